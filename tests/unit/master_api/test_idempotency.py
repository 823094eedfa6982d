"""Promises of Idempotency-Key, through a route made for the test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from tests.unit.master_api.conftest import Api
from windrow_master.api import problems
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_proto.errors import Conflict
from windrow_proto.units import DAY


class Counter:
    def __init__(self) -> None:
        self.calls = 0
        self.refusals = 0
        self.crashes = 0
        self.gate: asyncio.Event | None = None


@pytest.fixture
async def counting(api: Api) -> AsyncIterator[tuple[httpx2.AsyncClient, Counter]]:
    counter, route = Counter(), Routes("test")

    @route.post("/things", may=Permission.SIGNED_IN)
    async def make_thing(request: Request) -> JSONResponse:
        if counter.refusals:
            counter.refusals -= 1
            raise Conflict("not now")
        if counter.crashes:
            counter.crashes -= 1
            raise RuntimeError("a bug")
        counter.calls += 1
        if counter.gate is not None:
            await counter.gate.wait()
        return JSONResponse({"number": counter.calls}, 202, headers={"Location": "/x"})

    app = FastAPI()
    problems.install(app)
    app.router.routes.extend(route.routes)
    app.state.services = api.services
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {api.token}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as client:
        yield client, counter


async def _post(client: httpx2.AsyncClient, key: str, body: object = None) -> httpx2.Response:
    return await client.post("/api/v1/things", json=body, headers={"Idempotency-Key": key})


async def test_the_same_key_gets_the_first_answer_again_and_says_so(counting) -> None:
    client, counter = counting

    first, again, other = await _post(client, "a"), await _post(client, "a"), await _post(client, "b")

    assert [answer.json()["number"] for answer in (first, again, other)] == [1, 1, 2]
    assert (again.status_code, again.headers["location"]) == (202, "/x")
    assert ["idempotency-replayed" in answer.headers for answer in (first, again, other)] == [False, True, False]
    assert counter.calls == 2


async def test_the_same_key_for_another_request_is_refused(counting) -> None:
    client, _ = counting
    await _post(client, "a", {"x": 1})

    answer = await _post(client, "a", {"x": 2})

    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")


async def test_what_is_kept_of_a_request_is_the_same_whatever_login_came_with_it(counting) -> None:
    client, counter = counting
    bodies = [{"x": 1, "registry_login": {"username": "a", "password": one}} for one in ("first", "second")]
    answers = [await _post(client, "a", body) for body in bodies]
    other = await _post(client, "a", bodies[0] | {"x": 2})

    assert ([answer.json()["number"] for answer in answers], other.status_code) == ([1, 1], 409)
    for key, content in (("b", b'{"registry_login"'), ("c", b'["registry_login"]'), ("d", b'"registry_login"')):
        told = {"Idempotency-Key": key}
        numbers = [(await client.post("/api/v1/things", content=content, headers=told)).json()["number"] for _ in "12"]
        assert numbers == [counter.calls] * 2


async def test_a_refusal_changed_nothing_so_the_key_may_be_used_again(counting) -> None:
    client, counter = counting
    counter.refusals = 1

    first, again = await _post(client, "a"), await _post(client, "a")

    assert (first.status_code, again.status_code) == (409, 202)


async def test_a_repetition_while_the_first_runs_is_not_run_twice(counting) -> None:
    client, counter = counting
    counter.gate = asyncio.Event()

    async def second() -> httpx2.Response:
        answer = await _post(client, "a")
        counter.gate.set()
        return answer

    async with asyncio.TaskGroup() as group:
        one = group.create_task(_post(client, "a"))
        two = group.create_task(second())

    assert (one.result().status_code, two.result().status_code, counter.calls) == (202, 409, 1)


async def test_what_was_cut_short_is_never_run_again_under_its_key(counting) -> None:
    client, counter = counting
    counter.crashes = 1

    first, again = await _post(client, "a"), await _post(client, "a")

    assert (first.status_code, again.status_code, counter.calls) == (500, 409, 0)
    assert "not known" in again.json()["detail"]


async def test_a_key_is_forgotten_after_a_day(counting, api: Api) -> None:
    client, counter = counting
    await _post(client, "a")
    made = await api.client.post("/api/v1/tokens", json={"name": "x"})
    assert made.status_code == 201
    api.clock.advance(DAY + 1)

    await _post(client, "a")

    assert counter.calls == 2


async def test_no_token_is_stored_in_a_remembered_answer(api: Api, tmp_path: Path) -> None:
    headers = {"Idempotency-Key": "secret"}
    made = await api.client.post("/api/v1/tokens", json={"name": "x"}, headers=headers)

    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("master.sqlite3*"))

    assert made.json()["token"].encode() not in stored
