"""The pretend Master's queue: what waits in its order, shares of organisations and projects, quotas."""

from typing import Any

from fastapi import Body, FastAPI, Response

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_rental import decision, job_of
from tests.browser.pretend_world import Json, World, at

MINUTE_S = 60
OWN = "account_1"
OTHER = "account_2"
ORGANISATION = "organisation_1"
PROJECTS = {OWN: "first account", OTHER: "another account"}
WHOLE = 1_000_000
REFUSAL: Json = {
    "detail": "No host has 8 H100 free now.",
    "is_possible": True,
    "reasons": [],
    "ways": [
        {
            "text": "Fits on gpu-7 with A100 instead of H100, for 1.25 per hour",
            "changes": {"gpu_model": "A100"},
            "hosts": ["gpu-7"],
            "price_per_hour": "1.25",
        }
    ],
}
"""Why these jobs find no place, and what they would find one with."""
HERE = ["It runs on workbench: of 3 hosts that fit, this one has the highest score, 9,120.", "It costs 0.08 per hour."]
HELD = "gpu-7 would do: it is held by train-bert, until about 14:10 UTC."
ELSEWHERE = ["A host of this market that has room for it first starts it, and the machine is ended."]
STARTS = "It is expected to start at 14:20 UTC ± 6 min."


def job_id(number: int) -> str:
    """The id of the job with this number."""
    return f"job_019a0000-4444-7000-8000-{number:012d}"


def queued(entry_id: str, name: str, place: int | None, account_id: str = OWN, **more: Any) -> Json:
    """An entry of the queue. place: None where it is not ready."""
    start = None if place is None else 12 * place * MINUTE_S
    half = 6 * MINUTE_S
    estimate = start and {
        "start_at": at(-start),
        "low_at": at(half - start),
        "high_at": at(-start - half),
        "words": "14:20 UTC ± 6 min",
    }
    why = "Held by ada until it is released." if place is None else "In the queue: no host has 8 GPUs free."
    row: Json = {
        "id": entry_id,
        "kind": "job" if entry_id.startswith("job_") else "machine",
        "name": name,
        "account_id": account_id,
        "project": PROJECTS[account_id],
        "priority_class": "normal",
        "priority": 0,
        "state": "held" if place is None else "ready",
        "place": place,
        "summary": why if place is None else "In the queue, starts 14:20 UTC ± 6 min",
        "why": why,
        "elsewhere": None,
        "estimate": estimate,
        "factors": {
            "priority_class": 1,
            "is_above": [False],
            "usage": [0.2],
            "is_top": False,
            "points": 12.0,
            "priority": 0,
            "age": 12.0,
            "submitted_at": at(1_800),
        },
        "asks": "8 GPUs, 64 CPUs",
        "submitted_at": at(1_800),
        "held_by": "ada" if place is None else None,
    }
    return row | more


def add_queue(world: World) -> None:
    """Work of two projects that waits; one entry is held, one waits for another job."""
    waits = "Waits for train-resnet to succeed."
    urgent = {"priority_class": "urgent", "asks": "1 H100, 8 CPUs", "priority": 10}
    machine: dict[str, Any] = {"asks": "2 x (8 GPUs, 64 CPUs)", "priority_class": "low", "estimate": None}
    rows = [
        queued(job_id(1), "hotfix-eval", 1, OTHER, **urgent),
        queued(job_id(2), "train-resnet", 2),
        queued(
            job_id(3),
            "sweep-learning-rates",
            3,
            why="3rd in the queue: it has a reservation on gpu-7 from about 14:20 UTC.",
        ),
        queued("cluster_019a0000-2222-7000-8000-000000000777", "notebook-of-the-week", 4, **machine),
        queued(job_id(4), "nightly-report", None),
        queued(job_id(5), "evaluate", None, state="dependency", why=waits, held_by=None),
    ]
    world.queued += rows
    asked = {"argv": ["python", "train.py"], "gpus": 8, "gpu_model": "H100", "cpus": 64}
    world.jobs += [
        job_of(one["id"], asked | {"name": one["name"]}) | {"account_id": one["account_id"], "refusal": REFUSAL}
        for one in rows
        if one["kind"] == "job"
    ]


def share(node_id: str, name: str, level: str, parent: str | None, **more: Any) -> Json:
    """The share of a node; nothing is guaranteed to it, and all may be had."""
    row: Json = {"id": node_id, "level": level, "name": name, "parent_id": parent, "guarantee_ppm": 0}
    row |= {"ceiling_ppm": WHOLE, "weight": 1, "is_borrowing": True, "may_use_urgent": False}
    return row | {"held_ppm": 0, "used_ppm": 0, "rank": 1} | more


def add_shares(world: World) -> None:
    """An organisation with two projects, one above its guarantee, and quotas of them."""
    lab = {"guarantee_ppm": 400_000, "held_ppm": 310_000, "used_ppm": 289_000, "weight": 4}
    own = {"guarantee_ppm": 100_000, "held_ppm": 210_000, "used_ppm": 125_000, "ceiling_ppm": 300_000, "rank": 2}
    whole = {"guarantee_ppm": WHOLE, "held_ppm": 780_000, "used_ppm": 700_000, "rank": None}
    world.fair_shares += [
        share("installation", "installation", "installation", None, **whole),
        share(ORGANISATION, "acme", "organisation", "installation", guarantee_ppm=500_000, held_ppm=520_000),
        share(OTHER, PROJECTS[OTHER], "project", ORGANISATION, **lab),
        share(OWN, PROJECTS[OWN], "project", ORGANISATION, **own),
        share("account_3", "guests", "project", "installation", held_ppm=60_000, is_borrowing=False),
    ]
    gpus: Json = {"item": "gpus", "tier": "h100", "limit": "16", "used": "12"}
    memory: Json = {"item": "memory", "tier": None, "limit": str(512 * 2**30), "used": str(512 * 2**30)}
    project = {"node_id": OWN, "level": "project", "name": PROJECTS[OWN]}
    everybody = {"node_id": "installation", "level": "installation", "name": "installation"}
    spend: Json = {"item": "spend_per_hour", "tier": None, "limit": "120.00", "used": "31.50"}
    world.quotas += [everybody | spend, project | gpus, project | memory]


def queue_routes(app: FastAPI, world: World) -> None:
    """The queue, and what is done with what waits in it."""

    @app.get("/api/v1/queue")
    async def queue() -> Json:
        counts = {"waiting": len(world.queued), "running": 14, "estimates_scored": 212, "estimates_held": 171}
        return listed(world.queued) | counts

    @app.post("/api/v1/jobs/{wanted}/{verb}")
    async def change(wanted: str, verb: str) -> Any:
        entry = next((one for one in world.queued if one["id"] == wanted), None)
        if entry is None:
            return problem(404, "not_found", "Not found", "There is no such job.", wanted)
        if verb == "top":
            entry["factors"] = entry["factors"] | {"is_top": True}
        else:
            entry["held_by"] = "ada" if verb == "hold" else None
            entry["state"] = "held" if verb == "hold" else "ready"
        return next(one for one in world.jobs if one["id"] == wanted)


def explain_routes(app: FastAPI, world: World) -> None:
    """The reasons for the place of a job or a machine."""

    @app.get("/api/v1/explain/{wanted}")
    async def explain(wanted: str, host: str | None = None) -> Json:
        entry = next((one for one in world.queued if one["id"] == wanted), None)
        there = host and f"{host} has no H100." if entry else host and f"{host} fits too, with a lower score."
        return {
            "id": wanted,
            "kind": "job" if wanted.startswith("job_") else "machine",
            "name": wanted if entry is None else entry["name"],
            "state": "Running" if entry is None else "Queued",
            "decided_at": at(60) if entry is None else None,
            "here": HERE if entry is None else [],
            "not_there": there,
            "is_recorded": entry is None,
            "otherwise": None,
            "not_yet": [] if entry is None else [entry["why"], HELD, *([STARTS] if entry["estimate"] else [])],
            "changes": []
            if entry is None
            else [*(ELSEWHERE if entry["elsewhere"] else ()), f"{REFUSAL['ways'][0]['text']}."],
            "decision": decision(world, wanted) if wanted in world.clusters else None,
            "queue": entry,
            "refusal": REFUSAL if entry else None,
        }


def share_routes(app: FastAPI, world: World) -> None:
    """Shares and quotas: they are listed, set and removed."""

    @app.get("/api/v1/fair-shares")
    async def shares() -> Json:
        return listed(world.fair_shares)

    @app.put("/api/v1/fair-shares/{node_id}")
    async def put_share(node_id: str, body: Json = Body()) -> Any:
        row = next(one for one in world.fair_shares if one["id"] == node_id)
        if body["guarantee_ppm"] > WHOLE // 2:
            said = "guarantee: must be at most 100000, which the organisation acme has left. To give more, "
            said += "raise the guarantee of the organisation acme, or lower another share in it"
            reason = {"field": "guarantee_ppm", "reason": said}
            return problem(422, "invalid_input", "Not valid", said, reasons=[reason])
        row.update(body)
        return row

    @app.get("/api/v1/quotas")
    async def quotas() -> Json:
        return listed(world.quotas)

    @app.put("/api/v1/quotas")
    async def put_quota(body: Json = Body()) -> Json:
        node = next(one for one in world.fair_shares if one["id"] == body["node"])
        key = {"node_id": node["id"], "item": body["item"], "tier": body.get("tier")}
        row = key | {"level": node["level"], "name": node["name"], "limit": body["limit"], "used": "0"}
        world.quotas = [*_others(world, key), row]
        return row

    @app.delete("/api/v1/quotas")
    async def drop_quota(node: str, item: str, tier: str | None = None) -> Response:
        world.quotas = _others(world, {"node_id": node, "item": item, "tier": tier})
        return Response(status_code=204)


def _others(world: World, key: Json) -> list[Json]:
    return [one for one in world.quotas if {name: one[name] for name in key} != key]
