"""The pretend Master's records: the overview, commands, the audit log and where one is signed in."""

from typing import Any

from fastapi import Body, FastAPI, Response

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.audit_texts import action_title

FIRST = "host_019a0000-0000-7000-9000-000000000000"
USES = ("idle", "rented", "faulty", "offline", "paused")
DAYS = ("0.000000", "0.120000", "0.044400", "0.000000", "1.250000", "0.310000", "0.087655")
HISTORY_STEP_S = 300


def trouble(**changed: Any) -> Json:
    """A faulty GPU that needs attention."""
    one = {"name": "sim-000", "detail": "The driver reported a fault", "host_id": FIRST, "gpu_id": "GPU-1", "gpu": 5}
    one |= {"access_id": None, "rented": True, "simulated": True, "since": at(600)}
    said = {"kind": "faulty", "title": "1 GPU faulty", "remedy": "Reset the GPU.", "severity": "ticket", "count": 1}
    return {**said, "affected": [one]} | changed


def counts(uses: list[str]) -> Json:
    """The number in each state."""
    return {"total": len(uses), **{use: uses.count(use) for use in USES}}


def host_uses(hosts: list[Json]) -> list[str]:
    """The state of each host."""
    return [host["slots"][0]["state_text"] for host in hosts]


def overview_routes(app: FastAPI, world: World) -> None:
    """The first page."""

    @app.get("/api/v1/overview")
    async def overview() -> Json:
        hosts = list(world.hosts.values())
        rows = list(world.gpu_rows.values())
        tiers = []
        for simulated, tier in sorted({(host["simulated"], host["tier"]) for host in hosts}):
            of = [host for host in hosts if (host["simulated"], host["tier"]) == (simulated, tier)]
            cards = [row for row in rows if row["tier"] == tier and row["simulated"] == simulated]
            gpus = [row["state"] for row in cards]
            one = {"tier": tier, "simulated": simulated, "hosts": counts(host_uses(of)), "gpus": counts(gpus)}
            tiers.append(one)
        days = [{"day": at(86_400 * (6 - index))[:10], "amount": amount} for index, amount in enumerate(DAYS)]
        revenue = {"scope": "all", "currency": "CRD", "test_money": True, "today": DAYS[-1], "days": days}
        sums = {"last_7_days": "1.812055", "last_30_days": "1.812055", "this_month": "1.812055"}
        return {
            "at": at(),
            "hosts": counts(host_uses(hosts)),
            "gpus": counts([row["state"] for row in rows]),
            "simulated_hosts": sum(host["simulated"] for host in hosts),
            "simulated_gpus": sum(row["simulated"] for row in rows),
            "tiers": tiers,
            "per_hour": {"rented": "0.080000", "idle": "3.800000"},
            "revenue": revenue | sums,
            "accesses": len(world.accesses),
            "events": world.events[:12],
        }

    def simulated() -> Json:
        return {"can_set": True, "wanted": world.simulated_hosts, "at_most": 2_000}

    @app.get("/api/v1/simulated-hosts")
    async def simulated_hosts() -> Json:
        return simulated()

    @app.put("/api/v1/simulated-hosts")
    async def set_simulated_hosts(body: Json = Body()) -> Json:
        world.simulated_hosts = body["count"]
        return simulated()

    _home_routes(app, world)


def _home_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/overview/attention")
    async def attention() -> Json:
        alone = {"kind": "no_relay", "title": "No relay is connected", "severity": "page", "affected": []}
        return {"items": ([] if world.accesses else [trouble(**alone)]) + world.troubles}

    @app.get("/api/v1/overview/history")
    async def history(span: str = "day") -> Json:
        now = counts([row["state"] for row in world.gpu_rows.values()])
        points = [{"at": at(HISTORY_STEP_S * (30 - index))} | {use: now[use] for use in USES} for index in range(30)]
        return {"step_s": HISTORY_STEP_S, "points": points if now["total"] else []}

    @app.get("/api/v1/overview/hosts")
    async def own_hosts() -> Json:
        hosts = list(world.hosts.values())
        rows = list(world.gpu_rows.values())
        items = [_own_host(host, [row for row in rows if row["host_id"] == host["id"]]) for host in hosts]
        why = {"tier": "h100/A", "host_id": hosts[0]["id"], "host_name": hosts[0]["name"], "hosts": 1} if hosts else {}
        return {
            "hosts": counts(host_uses(hosts)),
            "gpus": counts([row["state"] for row in rows]),
            "items": items,
            "unrented": [why | {"words": "Its price of 2.00 an hour is 9 % above the median."}] if why else [],
            "grades": [why | {"words": "memory speed not measured yet"}] if why else [],
        }


def _own_host(host: Json, rows: list[Json]) -> Json:
    told = {"id": host["id"], "name": host["name"], "simulated": host["simulated"], "headline": host["headline"]}
    return told | {"reason": "ready for work", "remedy": None, "gpus": counts([row["state"] for row in rows])}


def _entries() -> list[Json]:
    rows = (
        ("account/account_1", "host.drain", "host_019a0000-0000-7000-8000-000000000001", "fan is loud"),
        ("account/account_1", "token.make", "token_1", ""),
        ("master", "account.make", "account_1", ""),
    )
    return [
        {
            "number": len(rows) - index,
            "at": at(60 * (index + 1)),
            "epoch": 3,
            "actor": actor,
            "action": action,
            "title": action_title(action),
            "subject": subject,
            "reason": reason,
            "fields": {"name": "=first"} if action == "token.make" else {},
            "chain": f"{index:064x}",
            "names": {"host_019a0000-0000-7000-8000-000000000001": "workbench", "account_1": "ada"},
        }
        for index, (actor, action, subject, reason) in enumerate(rows)
    ]


def record_routes(app: FastAPI, world: World) -> None:
    """Commands, the audit log, sessions, the end of a join token."""

    @app.get("/api/v1/commands")
    async def commands(host: str = "") -> Json:
        return listed([row for row in reversed(world.commands.values()) if host in ("", row["host_id"])])

    @app.get("/api/v1/commands/{command_id}")
    async def command(command_id: str) -> Any:
        found = world.commands.get(command_id)
        return found or problem(404, "not_found", "Not found", "There is no such command.", command_id)

    @app.get("/api/v1/audit")
    async def audit(actor: str = "", action: str = "", subject: str = "") -> Json:
        def fits(row: Json) -> bool:
            by_action = row["action"].startswith(action) if action.endswith(".") else row["action"] == action
            return (
                (not actor or row["actor"] == actor)
                and (not action or by_action)
                and (not subject or row["subject"] == subject)
            )

        return listed([row for row in _entries() if fits(row)])

    @app.get("/api/v1/audit/verify")
    async def verify() -> Json:
        broken = world.audit_broken
        said = None if broken is None else f"Entry {broken} was changed after it was written."
        head = {"number": 3, "chain": "0" * 64, "at": at(60)}
        verdict = {"intact": broken is None, "entries": 3, "first_broken": broken, "problem": said}
        return verdict | {"head": head, "anchor": head}

    ended: set[str] = set()

    @app.get("/api/v1/sessions")
    async def sessions() -> Json:
        times = {"created_at": at(4000), "last_used_at": at(3), "expires_at": at(-86_400)}
        token = {"token_id": "token_1", "token_name": "first", "address": "192.0.2.7"}
        known = [
            {"id": "session_1", "browser": "Chromium on Linux", "current": True} | token | times,
            {"id": "session_2", "browser": "Firefox on <b>X</b>", "current": False} | token | times,
        ]
        return listed([session for session in known if session["id"] not in ended])

    @app.delete("/api/v1/sessions/{session_id}")
    async def end_session(session_id: str) -> Response:
        ended.add(session_id)
        world.event("session.ended", [session_id], f"{session_id} was ended")
        return Response(status_code=204)

    @app.delete("/api/v1/join-tokens/{token_id}")
    async def drop_join_token(token_id: str) -> Response:
        world.join_tokens = [one for one in world.join_tokens if one["id"] != token_id]
        return Response(status_code=204)
