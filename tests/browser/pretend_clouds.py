"""The pretend Master's clouds: backends with their caps, machines that could be bought, and purchases."""

from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_rental import job_of
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.backend_routes import BackendKindOut
from windrow_master.hybrid.backends.kinds import KINDS

NO_CAPS: Json = dict.fromkeys(("per_hour", "per_day", "in_all", "machines", "vcpus")) | {"currency": "USD"}
NOTHING_OWED: Json = dict.fromkeys(("per_hour", "today", "in_all", "reserved"), "0.00") | {"living": 0, "vcpus": 0}
GOOD: Json = {"what": "credentials", "good": True, "said": "The key of user windrow is good.", "way_out": None}
UNREACHABLE: Json = {
    "what": "reachability",
    "good": False,
    "said": "This Master listens on 127.0.0.1 alone: no machine outside could join it.",
    "way_out": "Start it with --listen 0.0.0.0 --public and an address that machines outside reach.",
}
PLACE = (
    *("backend", "service", "machine", "region", "zone", "spot"),
    *("price_per_hour", "currency", "purchase_id", "run_id"),
)
ENDED = ("gone", "refused", "never_made")


def purchase_id(number: int) -> str:
    """The id of a purchase of this number."""
    return f"purchase_{number:032x}"


def backend(name: str, kind: str = "ec2", **more: Any) -> Json:
    """A backend that was never checked and has bought nothing."""
    of = KINDS[kind]
    return {
        "name": name,
        "kind": kind,
        "title": of.title,
        "level": str(of.level),
        "level_text": of.level_text,
        "ends_by": str(of.ends_by),
        "settings": {"region": "eu-central-1"},
        "has_secrets": True,
        "caps": NO_CAPS | {"per_day": "40.00"},
        "margin_percent": 0,
        "owed": NOTHING_OWED,
        "market_id": "market_019a0000deadbeef",
        "findings": [],
        "checked_at": None,
        "swept_at": None,
        "created_at": at(86_400),
        **more,
    }


def offer(text: str, kind: str, price: str, gpu: str | None = "a10g") -> Json:
    """A machine that could be bought."""
    return {
        "offer": text,
        "kind": kind,
        "gpu": gpu,
        "gpu_count": 1 if gpu else 0,
        "cpus": 4,
        "memory_bytes": 16 << 30,
        "region": "eu-central-1",
        "zone": "eu-central-1a",
        "country": "DE",
        "price_per_hour": price,
        "currency": "USD",
        "priced_on": "2026-11-20",
        "granularity_seconds": 1,
        "minimum_seconds": 60,
    }


OFFERS = (
    offer("c7i.large/eu-central-1a/on-demand", "on-demand", "0.1020", None),
    offer("g5.xlarge/eu-central-1a/spot", "spot", "0.4212"),
    offer("g5.xlarge/eu-central-1a/on-demand", "on-demand", "1.2580"),
)


def purchase(number: int, state: str, of: Json = OFFERS[1], **more: Any) -> Json:
    """A machine that was bought for the first account."""
    same = ("offer", "kind", "gpu", "gpu_count", "cpus", "memory_bytes", "region", "zone", "currency", "price_per_hour")
    return {
        "id": purchase_id(number),
        "backend": "aws",
        "state": state,
        "reason": None,
        "account_id": "account_1",
        "account": "first account",
        **{name: of[name] for name in same},
        "reserved": "3.93",
        "forecast": None,
        "spent": "0.52",
        "paid": None,
        "billed_seconds": None,
        "idle_seconds": 0,
        "machine_id": f"i-{number:017x}",
        "host_id": None,
        "host": None,
        "for_id": None,
        "for_name": None,
        "created_at": at(4_400),
        "ends_at": at(-24_400),
        "ended_at": None,
        **more,
    }


def add_clouds(world: World) -> None:
    """Two backends, one of them near its cap, and purchases in most states."""
    owed = {"per_hour": "2.52", "today": "36.48", "in_all": "212.09", "reserved": "14.20", "living": 4, "vcpus": 16}
    caps = NO_CAPS | {"per_hour": "5.00", "per_day": "40.00", "in_all": "500.00", "machines": 6, "vcpus": 64}
    more = {"checked_at": at(300), "swept_at": at(95)}
    world.backends += [
        backend("aws", caps=caps, owed=owed, findings=[GOOD], margin_percent=10, **more),
        backend(
            "lab-box",
            "ssh",
            caps=NO_CAPS | {"in_all": "100.00", "currency": "EUR"},
            findings=[GOOD, UNREACHABLE],
            **more,
        ),
        backend("spare"),
    ]
    spent: Json = {"spent_today": "44.10", "spent_in_all": "112.40", "living": 2}
    world.buyers += [
        buyer("aws", per_day="50.00", in_all="200.00", **spent),
        buyer("aws", "account_2", in_all="25.00"),
    ]
    host = "host_019a0000-0000-7000-8000-000000000001"
    gone: Json = {"ended_at": at(9_000), "paid": "1.85", "billed_seconds": 12_840, "idle_seconds": 600}
    for_job: Json = {"for_id": f"job_019a0000-3333-7000-8000-{70:012d}", "for_name": "train"}
    world.purchases += [
        purchase(6, "serving", host_id=host, host="bought-1a2b", **for_job, forecast="1.30"),
        purchase(5, "booting", spent="0.02"),
        purchase(4, "doubtful", OFFERS[2], machine_id=None, spent="0.00"),
        purchase(
            3, "idle", host_id=host, host="bought-1a2b", idle_seconds=1_320, reason="it has had no work for 22 min"
        ),
        purchase(2, "gone", reason="its time is over", spent="1.51", forecast="1.68", **gone, **for_job),
        purchase(1, "refused", reason="no capacity for g5.xlarge in eu-central-1a", machine_id=None, spent="0.00"),
    ]


def cloud_routes(app: FastAPI, world: World) -> None:
    """Backends: they are added, capped, checked, swept, stopped and removed; and purchases."""
    _deeds(app, world)
    _buyer_routes(app, world)
    _purchase_routes(app, world)

    @app.get("/api/v1/backend-kinds")
    async def kinds() -> Json:
        return listed([BackendKindOut.of(one) for one in KINDS.values()])

    @app.get("/api/v1/backends")
    async def backends() -> Json:
        return listed(world.backends)

    @app.post("/api/v1/backends")
    async def add(body: Json = Body()) -> Response:
        kept = {"settings": body["settings"], "has_secrets": bool(body["secrets"])}
        made = backend(
            body["name"], body["kind"], **kept, caps=NO_CAPS | body["caps"], margin_percent=body["margin_percent"]
        )
        world.backends.append(made)
        return JSONResponse(made, 201)

    @app.get("/api/v1/backends/{name}")
    async def one(name: str) -> Json:
        return _named(world, name)

    @app.delete("/api/v1/backends/{name}")
    async def remove(name: str) -> Response:
        if any(one["backend"] == name and one["state"] not in ENDED for one in world.purchases):
            said = f"{name} has purchases that are not over. End them first: windrow backend stop-all {name}"
            return problem(409, "conflict", "Conflict", said, name)
        world.backends.remove(_named(world, name))
        return Response(status_code=204)

    @app.put("/api/v1/backends/{name}/secrets")
    async def renew(name: str, body: Json = Body()) -> Json:
        _named(world, name)["has_secrets"] = bool(body["secrets"])
        return _named(world, name)

    @app.put("/api/v1/backends/{name}/caps")
    async def caps(name: str, body: Json = Body()) -> Json:
        _named(world, name)["margin_percent"] = body.pop("margin_percent")
        _named(world, name)["caps"] = body
        return _named(world, name)


def _deeds(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/backends/{name}/offers")
    async def offers(gpu: str | None = None, kind: str | None = None) -> Json:
        return listed([one for one in OFFERS if gpu in (None, one["gpu"]) and kind in (None, one["kind"])])

    @app.post("/api/v1/backends/{name}/check")
    async def check(name: str) -> Json:
        _named(world, name).update(findings=[GOOD, UNREACHABLE], checked_at=at())
        return {"findings": [GOOD, UNREACHABLE]}

    @app.post("/api/v1/backends/{name}/sweep")
    async def sweep(name: str) -> Json:
        _named(world, name)["swept_at"] = at()
        words = "g5.xlarge eu-central-1a: running, bought in term 3"
        found = [{"id": f"i-{number:017x}", "purchase_id": purchase_id(number), "said": words} for number in (9, 6)]
        return {"ended": found[:1], "left_alone": found[1:], "unknown": []}

    @app.post("/api/v1/backends/{name}/stop-all")
    async def stop_all(name: str) -> Json:
        _named(world, name)["caps"] = _named(world, name)["caps"] | {"machines": 0}
        living = [one for one in world.purchases if one["backend"] == name and one["state"] not in ENDED]
        for each in living:
            each["state"] = "ending"
        return {"ended": [each["id"] for each in living]}


def _buyer_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/backends/{name}/buyers")
    async def buyers(name: str) -> Json:
        return listed([_bare(one) for one in world.buyers if one["backend"] == name])

    @app.put("/api/v1/backends/{name}/buyers/{account}")
    async def allow(name: str, account: str, body: Json = Body()) -> Json:
        made = buyer(name, account, **body)
        _drop(name, account)
        world.buyers.append(made)
        return _bare(made)

    @app.delete("/api/v1/backends/{name}/buyers/{account}")
    async def disallow(name: str, account: str) -> Response:
        _drop(name, account)
        return Response(status_code=204)

    @app.get("/api/v1/me/backends")
    async def usable() -> Json:
        own = [one for one in world.buyers if one["account_id"] == "account_1"]
        return listed([_usable(world, one) for one in own])

    def _drop(name: str, account: str) -> None:
        world.buyers = [one for one in world.buyers if (one["backend"], one["account_id"]) != (name, account)]


def buyer(name: str, account: str = "account_1", **more: Any) -> Json:
    """A project that may buy at a backend, and has bought nothing yet."""
    nothing = {"per_day": None, "in_all": None, "spent_today": "0.00", "spent_in_all": "0.00", "living": 0}
    who = "first account" if account == "account_1" else "amber"
    return {"backend": name, "account_id": account, "account": who, **nothing, "created_at": at(80_000), **more}


def _bare(one: Json) -> Json:
    return {name: value for name, value in one.items() if name != "backend"}


def _usable(world: World, one: Json) -> Json:
    row = _named(world, one["backend"])
    said = {name: row[name] for name in ("name", "title", "level", "level_text")}
    return said | {"currency": row["caps"]["currency"], "per_day": one["per_day"], "in_all": one["in_all"]}


def place_tried(number: int, state: str, said: str | None = None, *, zone: str = "a", spot: bool = True) -> Json:
    """A try to find a place elsewhere."""
    where = {"backend": "aws", "service": False, "machine": "g5.xlarge", "region": "eu-central-1"}
    where |= {"zone": f"eu-central-1{zone}", "spot": spot, "price_per_hour": "0.4212" if spot else "1.2580"}
    ids = {"currency": "USD", "purchase_id": purchase_id(number), "run_id": None}
    told = {"number": number, "place": f"aws eu-central-1{zone}", "state": state, "said": said}
    return where | ids | told | {"at": at(600 - 60 * number)}


def _place(one: Json) -> Json:
    words = f"{one['place']}, {'spot ' if one['spot'] else ''}{one['machine']} ({one['price_per_hour']} USD an hour)"
    return {name: one[name] for name in PLACE} | {"text": words}


def add_job_elsewhere(world: World) -> str:
    """A job that found no room here: its spot machine was taken back, and it goes on at another; returns its id."""
    tries = [
        place_tried(1, "failed", "no capacity for g5.xlarge in eu-central-1a"),
        place_tried(2, "used", zone="b"),
        place_tried(3, "used", zone="c", spot=False),
    ]
    attempts = [
        {
            "number": number,
            "cluster_id": f"cluster_{number:032x}",
            "began_at": at(began + 20),
            "started_at": at(began),
            "ended_at": None if ended is None else at(ended),
            "outcome": said,
            "exit_code": None,
            "log_bytes": None,
            "log_truncated": False,
            "files_bytes": None,
            "files_truncated": False,
            "place": _place(one),
            "cost": cost,
        }
        for number, began, ended, said, one, cost in (
            (1, 420, 250, "its machine is taken back by aws", tries[1], "0.021"),
            (2, 200, None, None, tries[2], "0.072"),
        )
    ]
    job_id = f"job_019a0000-3333-7000-8000-{70:012d}"
    request = {"argv": ["python", "train.py"], "gpus": 1, "backend": "aws", "spot": True, "optimize": "cost"}
    job = job_of(job_id, {"name": "train", **request})
    more = {"state": "Running", "tries": tries, "attempts": attempts, "cost_so_far": "0.093"}
    world.jobs.insert(0, job | more)
    return job_id


def _named(world: World, name: str) -> Json:
    found: Json = next(one for one in world.backends if one["name"] == name)
    return found


def _purchase_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/purchases")
    async def purchases(living: bool | None = None) -> Json:
        return listed([one for one in world.purchases if living in (None, one["state"] not in ENDED)])

    @app.post("/api/v1/purchases")
    async def buy(body: Json = Body()) -> Response:
        of = next(one for one in OFFERS if one["offer"] == body["offer"])
        made = purchase(100 + len(world.purchases), "wanted", of, machine_id=None, spent="0.00")
        world.purchases.insert(0, made)
        return JSONResponse(made, 201)

    @app.get("/api/v1/purchases/{wanted}")
    async def one(wanted: str) -> Json:
        return next(one for one in world.purchases if one["id"] == wanted) | {"console": None}

    @app.post("/api/v1/purchases/{wanted}/end")
    async def end(wanted: str, body: Json = Body()) -> Json:
        found = next(one for one in world.purchases if one["id"] == wanted)
        found.update(state="ending", reason=body["reason"] or None)
        return found
