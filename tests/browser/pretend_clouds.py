"""The pretend Master's clouds: backends with their caps, machines that could be bought, and purchases."""

from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
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
        "spent": "0.52",
        "paid": None,
        "billed_seconds": None,
        "idle_seconds": 0,
        "machine_id": f"i-{number:017x}",
        "host_id": None,
        "for_id": None,
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
    host = "host_019a0000-0000-7000-8000-000000000001"
    gone: Json = {"ended_at": at(9_000), "paid": "1.85", "billed_seconds": 12_840, "idle_seconds": 600}
    world.purchases += [
        purchase(6, "serving", host_id=host),
        purchase(5, "booting", spent="0.02"),
        purchase(4, "doubtful", OFFERS[2], machine_id=None, spent="0.00"),
        purchase(3, "idle", host_id=host, idle_seconds=1_320, reason="it has had no work for 22 min"),
        purchase(2, "gone", reason="its time is over", spent="1.51", **gone),
        purchase(1, "refused", reason="no capacity for g5.xlarge in eu-central-1a", machine_id=None, spent="0.00"),
    ]


def cloud_routes(app: FastAPI, world: World) -> None:
    """Backends: they are added, capped, checked, swept, stopped and removed; and purchases."""
    _deeds(app, world)
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
        made = backend(body["name"], body["kind"], **kept, caps=body["caps"], margin_percent=body["margin_percent"])
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

    @app.put("/api/v1/backends/{name}/caps")
    async def caps(name: str, body: Json = Body()) -> Json:
        _named(world, name)["margin_percent"] = body.pop("margin_percent")
        _named(world, name)["caps"] = body
        return _named(world, name)


def _deeds(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/backends/{name}/buyers")
    async def buyers(name: str) -> Json:
        """The projects that may buy there."""
        one = {
            "account_id": "account_1",
            "account": "first account",
            "per_day": "50.00",
            "in_all": "200.00",
            "spent_today": "1.51",
            "spent_in_all": "12.40",
            "living": 2,
            "created_at": at(80_000),
        }
        return listed([one] if name == "aws" else [])

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
