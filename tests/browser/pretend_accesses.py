"""The Accesses of a pretend Master: how each fares, and draining one. Never shipped."""

from typing import Any

from fastapi import Body, FastAPI

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at


def attached(world: World) -> list[Json]:
    """How each connected Access fares."""
    return [
        {
            "access_id": f"access_{region}",
            "name": f"relay {region}",
            "region": region,
            "address": "127.0.0.1:7443",
            "version": "0.1.0",
            "shed_frames": 0,
            "workers": 2,
            "agents": world.agents.get(region, len(world.hosts) // 2),
            "load_permille": 31 + 9 * index,
            "connected_since": at(4000),
            "queued_bytes": 0,
        }
        for index, region in enumerate(world.accesses)
    ]


def _row(world: World, access: Json) -> Json:
    drain = world.drains.get(access["access_id"])
    shared = {
        key: access[key] for key in ("name", "region", "address", "version", "workers", "agents", "load_permille")
    }
    return shared | {
        "id": access["access_id"],
        "state": "serving" if drain is None else "draining",
        "rtt_ms": 4.25 if access["agents"] else None,
        "since": access["connected_since"],
        "drained_at": None if drain is None else at(5),
        "drained_by": None if drain is None else "account/account_1",
        "drain_reason": drain or None,
        **_stopping(world, access["access_id"]),
    }


def _stopping(world: World, access_id: str) -> Json:
    test = world.stops.get(access_id)
    return {"stop_name": world.stop_names.get(access_id), "stopped_at": test and test["asked_at"]}


COUNTED: Json = {
    "acked_samples": 2_310,
    "acked_batches": 66,
    "lost_samples": 0,
    "lost_batches": 0,
    "lost_evidence": 0,
    "given_up_batches": 0,
    "longest_gap_s": 6.4,
    "usual_gap_s": 5.0,
}


def stop_test(access_id: str, name: str, agents: int) -> Json:
    """A test that has just begun."""
    named = {"access_id": access_id, "name": name, "region": "north", "asked_at": at(), "asked_by": "account/account_1"}
    counts = {"agents": agents, "back": 0, "elsewhere": 0, "away_s": 0.4, "counted": None}
    rest = {"reason": None, "phase": "running", "finished_at": None, "problem": None, "how": "Counted from the log."}
    return named | counts | rest


def move(world: World, host_id: str, access_id: str) -> None:
    """Let a host be at another Access, and the fleet's stream tell of it."""
    host = world.hosts[host_id]
    host.update(access_id=access_id, version=host["version"] + 1)
    world.told.add(host_id)


def access_routes(app: FastAPI, world: World) -> None:
    """Accesses, and what is done to them."""

    @app.get("/api/v1/accesses")
    async def accesses() -> Json:
        gone = dict.fromkeys(("address", "version", "rtt_ms", "since", "drained_at", "drained_by", "drain_reason"))
        gone |= {"region": None, "state": "departed", "workers": 0, "agents": 0, "load_permille": 0}
        return listed(
            [_row(world, one) for one in attached(world)]
            + [
                gone | {"id": name, "name": f"relay {name.removeprefix('access_')}"} | _stopping(world, name)
                for name in world.departed
            ]
        )

    @app.get("/api/v1/accesses/agents")
    async def agents() -> Json:
        shown = ("id", "name", "simulated", "link_state", "access_id", "rtt_ms", "version")
        return listed([{key: host[key] for key in shown} for host in world.hosts.values()])

    @app.get("/api/v1/accesses/{access_id}/stop")
    async def stop_of(access_id: str) -> Json:
        return world.stops[access_id]

    @app.post("/api/v1/accesses/{access_id}/stop", status_code=202)
    async def stop(access_id: str, body: Json = Body()) -> Any:
        name = world.stop_names[access_id]
        if body["confirm"] not in {name, access_id}:
            return problem(422, "invalid_input", "Invalid input", f"Confirm with its name: {name}.", access_id)
        agents = sum(host["access_id"] == access_id for host in world.hosts.values())
        world.stops[access_id] = stop_test(access_id, name, agents)
        return world.stops[access_id]

    @app.post("/api/v1/accesses/{access_id}/{verb}")
    async def drain(access_id: str, verb: str, body: Json = Body()) -> Any:
        if verb == "drain" and {f"access_{region}" for region in world.accesses} - {*world.drains, access_id} == set():
            return problem(409, "conflict", "Conflict", "No other relay could take its agents.", access_id)
        if verb == "drain":
            world.drains[access_id] = body["reason"]
        else:
            world.drains.pop(access_id, None)
        return _row(world, next(one for one in attached(world) if one["access_id"] == access_id))
