"""No text and no number of any body or query breaks a list, a loop or a route for anybody."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import text

from tests.hostile import IS_LONG
from tests.master_support import ManualClock
from tests.unit.security.test_permissions import CUSTOMER, World
from tests.unit.security.test_permissions import world as world
from windrow_master.api import values
from windrow_master.api.app import build_api
from windrow_master.api.routers import declared
from windrow_master.clusters import end_limits
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.identity.decide import GRANTS
from windrow_master.jobs.model import JobId, JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.loops import CRASHES_MAX, GIVEN_UP
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId
from windrow_proto.units import MINUTE, parse_time, time_text

TEXTS: dict[str, str] = {
    "lone surrogate": "\ud800",
    "NUL": "a\0b",
    "escape": "\x1b[2J",
    "C1 escape": "\x9b2J",
    "right to left": "a\u202eb",
    "10^30": "1" + "0" * 30,
    "NaN": "NaN",
    "year 10^4": "10000-01-01T00:00:00Z",
    "year 9999": "9999-12-31T23:59:59Z",
    "long text": "x" * (1 << 20),
}
NUMBERS: dict[str, Any] = {
    "10^30": 10**30,
    "-10^30": -(10**30),
    "2^63": 2**63,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "10^400": "1" + "0" * 400,  # as digits: see _json
}
BODIES: dict[str, dict[str, Any]] = {
    "/jobs": {"argv": ["true"], "simulated": True},
    "/jobs/plan": {"argv": ["true"], "simulated": True},
    "/clusters": {"argv": ["true"], "simulated": True},
    "/clusters/plan": {"argv": ["true"], "simulated": True},
    "/accounts": {"name": "someone", "roles": ["renter"]},
    "/accounts/{account_id}/credit": {"amount": "1"},
    "/offers/{tier}": {"price_per_hour": "0.5"},
    "/templates/{name}": {"argv": ["true"]},
    "/volumes": {"name": "data"},
    "/clusters/{cluster_id}/exec": {"argv": ["true"]},
    "/clusters/{cluster_id}/tunnels": {"port": 80},
    "/hosts/{host_id}/default-image": {"image": None},
}
"""The least that a route takes, where what its schema asks for is not enough."""


@cache
def specification() -> dict[str, Any]:
    """Returns the API's description of itself; made where it is needed, and not by everybody who collects tests."""
    return build_api().openapi()


@dataclass(frozen=True)
class Case:
    """One request with one bad value."""

    said: str
    method: str
    path: str
    body: Any = None
    query: str = ""
    part: str = ""
    """In place of the first name in the path."""


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        *_, kind, name = schema["$ref"].split("/")
        return _resolved(specification()["components"][kind][name])
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _resolved(choice)
    return schema


def _least(schema: dict[str, Any]) -> Any:
    """The least that such a schema takes."""
    schema = _resolved(schema)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            inner = schema.get("properties", {})
            return {name: _least(inner[name]) for name in schema.get("required", ())}
        case "array":
            return [_least(schema["items"])] if schema.get("minItems") else []
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
        case _:
            return "a"


def _poisoned(schema: dict[str, Any], path: str, base: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields the place, the poison, and the value that is otherwise right: for each text, number and key that may stand
    in it, given or not."""
    schema = _resolved(schema)
    match schema.get("type"):
        case "object":
            base = base if isinstance(base, dict) else _least(schema)
            for name, inner in schema.get("properties", {}).items():
                for place, poison, value in _poisoned(inner, f"{path}.{name}", base.get(name)):
                    yield place, poison, {**base, name: value}
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                for poison, text_ in TEXTS.items():
                    yield f"{path}.(key)", poison, {text_: _least(more)}
                for place, poison, value in _poisoned(more, f"{path}.KEY", None):
                    yield place, poison, {"KEY": value}
        case "array":
            for place, poison, value in _poisoned(schema.get("items", {"type": "string"}), f"{path}[0]", None):
                yield place, poison, [value]
        case "integer" | "number":
            yield from ((path, poison, value) for poison, value in NUMBERS.items())
        case "boolean":
            return
        case _:
            yield from ((path, poison, value) for poison, value in TEXTS.items())


def _all_cases() -> Iterator[Case]:
    for path, methods in specification()["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                base = BODIES.get(path.removeprefix("/api/v1"), _least(body["schema"]))
                for place, poison, value in _poisoned(body["schema"], "", base):
                    yield Case(f"{poison} in {place}", method.upper(), path, value)
            for parameter in map(_resolved, operation.get("parameters", ())):
                named, kind = parameter["name"], _resolved(parameter["schema"]).get("type")
                for poison, value in (NUMBERS if kind in ("integer", "number") else TEXTS).items():
                    given = quote(str(value)[:20_000].encode("utf-8", "surrogatepass"), safe="")
                    if parameter["in"] == "query":
                        yield Case(f"{poison} in ?{named}", method.upper(), path, query=f"{named}={given}")
                    elif parameter["in"] == "path" and not IS_FILE.search(path):
                        yield Case(f"{poison} in the path", method.upper(), path, part=given)


@cache
def every_case() -> list[Case]:
    """All of them."""
    return list(_all_cases())


IS_FILE = re.compile(r"\{name\}|\{path\}")
ALWAYS = ("lone surrogate", "10^30 in")
STREAM_S = 0.3


def _shown() -> list[Case]:
    """All; in the short form of each place what was met before, and one more in turn. A plan reads what the route
    beside it reads."""

    def is_shown(number: int, one: Case) -> bool:
        return number % 9 == 0 or (one.said.startswith(ALWAYS) and not one.path.endswith("/plan"))

    return [one for number, one in enumerate(every_case()) if IS_LONG or is_shown(number, one)]


def _json(body: Any) -> str | None:
    """As a stranger writes it: also numbers that no program holds."""
    if body is None:
        return None
    return json.dumps(body).replace('"1' + "0" * 400 + '"', "1" + "0" * 400)


def _address(world: World, case: Case) -> str:
    path = case.path.replace("{tier}", "{tier:path}").replace("{owner_id}/{name}", "{owner_id}/{name:path}")
    if case.part:
        path = re.sub(r"\{[a-z_:]+\}", case.part, path, count=1)
    address = world.address(case.method, path)
    return f"{address}?{case.query}" if case.query else address


def _asker(world: World, case: Case) -> str:
    """Returns the caller of the request: the owner of one of everything, else somebody with every role."""
    rules = {(method, path.replace(":path", "")): rules.may for (method, path), rules in declared().items()}
    rule = rules.get((case.method, case.path))
    if rule is not None and GRANTS.get(rule, frozenset()) & CUSTOMER:
        return world.tokens["owner"]
    return world.opened.identity.local_token(world.opened.identity.first_account(), None)


async def _walk(world: World, cases: Iterable[Case]) -> list[tuple[Any, ...]]:
    """Returns the faults of the answers."""
    transport = httpx2.ASGITransport(world.app, raise_app_exceptions=False)
    wrong: list[tuple[Any, ...]] = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for case in cases:
            headers = {"Authorization": f"Bearer {_asker(world, case)}", "Content-Type": "application/json"}
            try:
                async with asyncio.timeout(STREAM_S if case.path.endswith("/stream") else 20):
                    answer = await client.request(
                        case.method, _address(world, case), content=_json(case.body), headers=headers
                    )
            except TimeoutError:
                if not case.path.endswith("/stream"):
                    wrong.append((case.said, case.method, case.path, "no answer"))
                continue  # a stream that is open has been served
            if answer.status_code >= 500 and answer.status_code != 503:
                wrong.append((case.said, case.method, case.path, answer.status_code, answer.text[:200]))
    return wrong


@pytest.mark.row("F5", "F12")
@pytest.mark.timeout(600)
async def test_no_text_and_no_number_breaks_anything_for_anybody(world: World) -> None:
    assert await _walk(world, _shown()) == []

    await _loops_go_on(world)
    await _lists_go_on(world)


@pytest.mark.row("F5", "F12")
async def test_the_walk_finds_what_the_check_of_values_keeps_out(world: World, monkeypatch: Any) -> None:
    async def nothing(request: Any, route: Any) -> None:
        return

    monkeypatch.setattr(values, "check", nothing)
    stored = ("/api/v1/jobs", "/api/v1/events")
    cases = [one for one in every_case() if one.path in stored and one.said.startswith(("lone", "10^30", "2^63"))]

    wrong = await _walk(world, cases)

    met = {(one[2], one[0].partition(" in ")[0]) for one in wrong}
    assert met >= {("/api/v1/jobs", "lone surrogate"), ("/api/v1/events", "10^30"), ("/api/v1/events", "2^63")}


async def test_what_the_walk_sends_is_right_but_for_the_poison(world: World) -> None:
    refused = []
    transport = httpx2.ASGITransport(world.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for path, body in BODIES.items():
            (method,) = [one for one in specification()["paths"][f"/api/v1{path}"] if one in ("post", "put")]
            case = Case("nothing", method.upper(), f"/api/v1{path}", body)
            headers = {"Authorization": f"Bearer {_asker(world, case)}"}
            async with asyncio.timeout(5):
                answer = await client.request(case.method, _address(world, case), json=body, headers=headers)
            if answer.status_code in (400, 401, 403, 404, 405, 422):
                refused.append((path, answer.status_code, answer.text[:200]))
    assert refused == []


async def _loops_go_on(world: World) -> None:
    opened = world.opened
    services, jobs = opened.services, opened.services.jobs
    assert jobs and services.results and services.volume_controller and services.proofs and services.verification
    async with asyncio.TaskGroup() as group:
        for one in (jobs.controller, services.results, services.volume_controller):
            one._group = group
            await one.tick()
    for tick in (services.queue.tick, opened.clusters.tick, opened.clusters.running.renewals, opened.fleet.tick):
        await tick()
    await services.proofs.tick()
    await services.verification.tick()
    await services.artefacts.sweep()
    await services.retention.sweep()
    await opened.audit.checkpoint()


async def _lists_go_on(world: World) -> None:
    paths = [path for path in specification()["paths"] if path.startswith("/api/v1/") and "{" not in path]
    transport = httpx2.ASGITransport(world.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        for name in ("rival", "operator"):
            headers = {"Authorization": f"Bearer {world.tokens[name]}"}
            for path in paths:
                if "get" in specification()["paths"][path] and not path.endswith("/stream"):
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


_REQUEST = "SELECT CAST(request AS TEXT) FROM jobs WHERE job_id = :id"


@pytest.mark.row("F5")
async def test_a_job_that_an_older_release_took_with_half_a_character_stops_no_list_and_no_loop(
    world: World, monkeypatch: Any
) -> None:
    job_id = world.ids["{job_id}"]

    def poison(uow: UnitOfWork) -> None:
        job = uow[JobRepository].get(JobId(job_id))
        assert job is not None
        kept = json.dumps({"argv": ["\ud800"]})
        row = uow.connection.execute(text(_REQUEST), {"id": job_id}).scalar_one()
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
        "".join(request.argv).encode()  # as for the command to a host that has space
        return await create(who, request, key, **more)

    monkeypatch.setattr(world.opened.clusters, "create", encoded)
    (healthy,) = await jobs.submit(rival, JobRequest(argv=("true",)))
    await _loops_go_on(world)
    await _loops_go_on(world)
    first = await jobs.get(rival, healthy.job.job_id)
    assert first.job.reason or first.job.attempts, "it was tried beside the poisoned one"

    for _ in range(12):
        clock.advance(MINUTE)
        await _loops_go_on(world)
    await _lists_go_on(world)

    job = await world.opened.store.read(lambda uow: uow[JobRepository].get(JobId(job_id)))
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
    life, cluster_id = world.opened.clusters.lifecycle, world.ids["{cluster_id}"]
    crashing = Crashing(life.judge, cluster_id)
    monkeypatch.setattr(life, "judge", crashing)
    monkeypatch.setattr(end_limits, "is_steady", lambda *_: False)  # it is judged at each look

    for _ in range(CRASHES_MAX + 1):
        await world.opened.clusters.tick()

    cluster = await world.opened.store.read(lambda uow: uow[ClusterRepository].get(ClusterId(cluster_id)))
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
