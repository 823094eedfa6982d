"""No text and no number of any body or query breaks a list, a loop or a route for anybody."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from tests.hostile import IS_LONG
from tests.master_support import ManualClock
from tests.unit.security.test_permissions import World
from tests.unit.security.test_permissions import world as world
from windrow_master.again import CRASHES_MAX, GIVEN_UP
from windrow_master.api.app import build_api
from windrow_master.clusters.jobs.model import JobId, JobRequest, JobState
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId
from windrow_proto.units import MINUTE, parse_time, time_text

STEP = 1 if IS_LONG else 4
"""The short form plays each fourth case."""
POISONS: dict[str, Any] = {
    "lone surrogate": "\ud800",
    "NUL": "a\0b",
    "escape": "\x1b[2J",
    "10^30": 10**30,
    "-10^30": -(10**30),
    "10^30 as text": "1" + "0" * 30,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "year 10^4": "10000-01-01T00:00:00Z",
    "year 9999": "9999-12-31T23:59:59Z",
    "long text": "x" * (1 << 20 if IS_LONG else 1 << 18),
}
SPECIFICATION = build_api().openapi()
Case = tuple[str, str, str, Any, dict[str, Any]]


def _example(schema: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(SPECIFICATION["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _example(choice)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            found = {name: _example(inner) for name, inner in schema.get("properties", {}).items()}
            more = schema.get("additionalProperties")
            return found | ({"KEY": _example(more)} if isinstance(more, dict) else {})
        case "array":
            return [_example(schema.get("items", {"type": "string"}))]
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
        case _:
            return "1"


def _poisoned(value: Any, poison: Any) -> Iterator[tuple[str, Any]]:
    """The value once for each text and number in it, with that replaced; and for each key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for place, changed in _poisoned(inner, poison):
                yield f".{key}{place}", {**value, key: changed}
        if "KEY" in value and isinstance(poison, str):
            yield ".(key)", {poison: value["KEY"]}
    elif isinstance(value, list):
        for place, changed in _poisoned(value[0], poison):
            yield f"[0]{place}", [changed]
    elif not isinstance(value, bool):
        yield "", poison


def _cases() -> Iterator[Case]:
    for path, methods in SPECIFICATION["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            for name, poison in POISONS.items():
                for place, changed in _poisoned(_example(body["schema"]), poison) if body else ():
                    yield f"{name} in {place}", method.upper(), path, changed, {}
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] == "query" and name != "lone surrogate":  # no URL holds one
                        given = {parameter["name"]: str(poison)[:6_000]}
                        yield f"{name} in ?{parameter['name']}", method.upper(), path, None, given


CASES = list(_cases())


def _address(world: World, method: str, path: str) -> str:
    path = path.replace("{tier}", "{tier:path}").replace("{owner_id}/{name}", "{owner_id}/{name:path}")
    return world.address(method, path)


@pytest.mark.row("F5", "F12")
async def test_no_text_and_no_number_breaks_anything_for_anybody(world: World) -> None:
    token = world.opened.identity.local_token(world.opened.identity.first_account(), None)
    transport = httpx2.ASGITransport(world.app, raise_app_exceptions=False)
    wrong = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for said, method, path, body, query in CASES[::STEP]:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            content = None if body is None else json.dumps(body)
            try:
                async with asyncio.timeout(2):  # a stream that is open has been served
                    answer = await client.request(
                        method, _address(world, method, path), params=query, content=content, headers=headers
                    )
            except TimeoutError:
                continue
            if answer.status_code >= 500 and answer.status_code != 503:
                wrong.append((said, method, path, answer.status_code, answer.text[:200]))
    assert wrong == []

    await _loops_go_on(world)
    await _lists_go_on(world)


async def _loops_go_on(world: World) -> None:
    jobs = world.opened.services.jobs
    assert jobs is not None
    await jobs.course.tick()
    await world.opened.clusters.tick()


async def _lists_go_on(world: World) -> None:
    paths = [path for path in SPECIFICATION["paths"] if path.startswith("/api/v1/") and "{" not in path]
    transport = httpx2.ASGITransport(world.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for name in ("rival", "operator"):
            headers = {"Authorization": f"Bearer {world.tokens[name]}"}
            for path in paths:
                if "get" in SPECIFICATION["paths"][path] and not path.endswith("/stream"):
                    status = (await client.get(path, headers=headers)).status_code
                    assert status < 500, (name, path, status)


@pytest.mark.row("F5")
@pytest.mark.parametrize("poison", ["\ud800", "a\0b"])
async def test_a_poisoned_command_is_refused_with_its_field_and_nothing_is_kept(world: World, poison: str) -> None:
    headers = {"Authorization": f"Bearer {world.tokens['owner']}", "Content-Type": "application/json"}
    transport = httpx2.ASGITransport(world.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        before = (await client.get("/api/v1/jobs", headers=headers)).json()
        sent = json.dumps({"argv": ["echo", poison], "simulated": True})

        answer = await client.post("/api/v1/jobs", content=sent, headers=headers)

        assert answer.status_code == 422
        assert "argv.1" in answer.json()["detail"]
        assert (await client.get("/api/v1/jobs", headers=headers)).json() == before


@pytest.mark.row("F5")
async def test_a_job_that_an_older_release_took_with_half_a_character_stops_no_list_and_no_loop(
    world: World, monkeypatch: Any
) -> None:
    job_id = world.ids["{job_id}"]

    def poison(uow: UnitOfWork) -> None:
        job = uow.jobs.get(JobId(job_id))
        assert job is not None
        kept = json.dumps({"argv": ["\ud800"]})
        row = uow.connection.execute(text("SELECT request FROM jobs WHERE job_id = :id"), {"id": job_id}).scalar_one()
        request = json.loads(row) | json.loads(kept) | {"await_files": False}
        change = text("UPDATE jobs SET request = :request, state = 'Queued' WHERE job_id = :id")
        uow.connection.execute(change, {"request": json.dumps(request), "id": job_id})

    await world.opened.store.write(poison, name="test")
    rival = await world.opened.identity.authenticate(world.tokens["rival"])
    jobs, clock = world.opened.services.jobs, world.opened.services.clock
    assert jobs is not None
    assert isinstance(clock, ManualClock)
    create = world.opened.clusters.create

    async def encoded(who: Any, request: Any, key: str, **more: Any) -> Any:
        "".join(request.argv).encode()  # as for the command to a host that has room
        return await create(who, request, key, **more)

    monkeypatch.setattr(world.opened.clusters, "create", encoded)
    (healthy,) = await jobs.submit(rival, JobRequest(("true",)))
    await _loops_go_on(world)
    await _loops_go_on(world)
    first = await jobs.get(rival, healthy.job.job_id)
    assert first.job.reason or first.job.attempts, "it was tried beside the poisoned one"

    for _ in range(12):
        clock.advance(MINUTE)
        await _loops_go_on(world)
    await _lists_go_on(world)

    job = await world.opened.store.read(lambda uow: uow.jobs.get(JobId(job_id)))
    assert job is not None
    assert (job.state, job.reason) == (JobState.FAILED, GIVEN_UP)


class Crashing:
    """In the place of what looks at clusters: it has a bug that one of them meets."""

    def __init__(self, real: Any, cluster_id: str) -> None:
        self.real, self.cluster_id, self.seen = real, cluster_id, 0

    def __call__(self, uow: UnitOfWork, cluster: Any, actor: str = "master") -> Any:
        if cluster.cluster_id == self.cluster_id:
            self.seen += 1
            raise ZeroDivisionError
        return self.real(uow, cluster, actor)


@pytest.mark.row("F5")
async def test_a_cluster_that_crashes_its_loop_ends_with_the_reason(world: World, monkeypatch: Any) -> None:
    life, cluster_id = world.opened.clusters.life, world.ids["{cluster_id}"]
    crashing = Crashing(life.judge, cluster_id)
    monkeypatch.setattr(life, "judge", crashing)

    for _ in range(CRASHES_MAX + 1):
        await world.opened.clusters.tick()

    cluster = await world.opened.store.read(lambda uow: uow.clusters.get(ClusterId(cluster_id)))
    assert cluster is not None
    assert crashing.seen == CRASHES_MAX
    assert cluster.phase.value in ("Deleting", "Deleted", "Ending")
    assert cluster.reason == GIVEN_UP


@pytest.mark.row("F12")
async def test_a_budget_of_millions_is_shown_and_no_list_ends_there(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.tokens['owner']}"}
    transport = httpx2.ASGITransport(world.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for budget in ("2000000", "1000000000"):
            asked = {"argv": ["sleep", "60"], "budget": budget}
            plan = await client.post("/api/v1/clusters/plan", json=asked, headers=headers)
            assert plan.status_code < 500
        refused = await client.post("/api/v1/clusters", json={"argv": ["true"], "budget": "-1"}, headers=headers)
        assert refused.status_code == 422
    assert time_text(10**30) == "2262-04-11T23:47:16.854Z"
    assert time_text(-(10**30)) == "1677-09-21T00:12:43.145Z"
    with pytest.raises(ValueError, match="2262"):
        parse_time("9999-12-31T23:59:59Z")


@pytest.mark.row("F5")
async def test_bodies_that_are_too_deep_or_too_many_are_refused(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.tokens['owner']}", "Content-Type": "application/json"}
    transport = httpx2.ASGITransport(world.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for body in ("[" * 100_000, "[" * 500 + "]" * 500, "[" + "1," * 300_000 + "1]", '{"a":' * 40 + "1" + "}" * 40):
            answer = await client.post("/api/v1/jobs", content=body, headers=headers)
            assert 400 <= answer.status_code < 500, (body[:20], answer.status_code)
