"""Promises of the rate limits: who is counted, what is refused and how, and that nobody honest meets them."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.unit.master_api.conftest import Api
from windrow_master.api.app import build_app
from windrow_master.api.rate_limits import ADDRESS, SIGN_IN, TOKEN, Limits
from windrow_master.store.bus import Exchange, Limit, MemoryBus
from windrow_proto.units import SECOND

TIGHT = Limits(
    token=Limit("token", 5, 10 * SECOND), address=Limit("address", 8, 10 * SECOND), sign_in=Limit("sign_in", 3, SECOND)
)


class Caller:
    """One application with limits, and clients that come to it from anywhere."""

    def __init__(self, api: Api, limits: Limits = TIGHT, exchange: Exchange | None = None) -> None:
        api.services.bus = MemoryBus("one", api.clock, exchange)
        self._app = build_app(api.services, api.static, limits=limits)
        self._api = api

    async def ask(
        self, path: str = "/api/v1/me", token: str | None = "", address: str = "192.0.2.1", method: str = "GET"
    ) -> httpx2.Response:
        """One request; token "" is the real one, None is none."""
        headers = {} if token is None else {"Authorization": f"Bearer {token or self._api.token}"}
        transport = httpx2.ASGITransport(self._app, raise_app_exceptions=False, client=(address, 1234))
        async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
            body = {"token": "wr_none"} if method == "POST" else None
            return await client.request(method, path, headers=headers, json=body)


async def test_a_token_that_asks_too_often_is_told_when_to_come_again_and_what_its_limit_is(api: Api) -> None:
    caller = Caller(api)
    for _ in range(6):
        assert (await caller.ask()).status_code == 200  # the first proved the token, and was counted by address

    refused = await caller.ask()

    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.json()["code"], refused.json()["retryable"]) == ("too_many", True)
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert refused.headers["ratelimit-policy"] == '"token";q=5;w=50'
    assert refused.headers["ratelimit"].startswith('"token";r=0;t=')
    api.clock.advance(int(refused.headers["retry-after"]) * SECOND)
    assert (await caller.ask()).status_code == 200


async def test_an_answer_says_what_is_left(api: Api) -> None:
    caller = Caller(api)
    await caller.ask()

    left = [(await caller.ask()).headers["ratelimit"].split(";")[1] for _ in range(3)]

    assert left == ["r=4", "r=3", "r=2"]


async def test_one_token_at_its_limit_does_not_stop_another_nor_somebody_without(api: Api) -> None:
    caller = Caller(api)
    other = (await api.client.post("/api/v1/tokens", json={"name": "other", "roles": ["operator"]})).json()["token"]
    for _ in range(7):
        last = await caller.ask()

    assert last.status_code == 429
    assert (await caller.ask(token=other)).status_code == 200
    assert (await caller.ask("/api/v1/openapi.json", token=None)).status_code == 200


async def test_somebody_without_a_token_is_counted_by_address_and_a_subscriber_of_ipv6_by_network(api: Api) -> None:
    caller = Caller(api)

    same = [await caller.ask("/api/v1/ca", None, f"2001:db8::{n}") for n in range(1, 10)]
    mapped = [await caller.ask("/api/v1/ca", None, "::ffff:192.0.2.7") for _ in range(8)]

    assert [answer.status_code for answer in same] == [200] * 8 + [429]
    assert (await caller.ask("/api/v1/ca", None, "2001:db8:0:1::1")).status_code == 200
    assert [answer.status_code for answer in mapped] == [200] * 8
    assert (await caller.ask("/api/v1/ca", None, "192.0.2.7")).status_code == 429


@pytest.mark.parametrize("way", ["bearer", "session"])
async def test_refused_tokens_are_few_per_address_and_a_token_known_to_be_real_goes_on(api: Api, way: str) -> None:
    caller = Caller(api)
    await caller.ask()

    async def attempt() -> int:
        if way == "session":
            return (await caller.ask("/api/v1/session", None, method="POST")).status_code
        return (await caller.ask(token="wr_guess")).status_code

    tries = [await attempt() for _ in range(4)]

    assert tries == [401, 401, 401, 429]
    assert (await caller.ask()).status_code == 200
    assert (await caller.ask("/api/v1/ca", None)).status_code == 200
    api.clock.advance(SECOND)
    assert await attempt() == 401


async def test_many_requests_with_a_real_token_at_once_after_a_start_are_no_attempts(api: Api) -> None:
    caller = Caller(api, Limits(sign_in=Limit("sign_in", 2, 3600 * SECOND)))

    answers = await asyncio.gather(*[caller.ask() for _ in range(20)])

    assert {answer.status_code for answer in answers} == {200}


async def test_a_revoked_token_is_an_attempt_again(api: Api) -> None:
    caller = Caller(api)
    made = (await api.client.post("/api/v1/tokens", json={"name": "short", "roles": ["operator"]})).json()
    assert (await caller.ask(token=made["token"])).status_code == 200
    await api.client.delete(f"/api/v1/tokens/{made['id']}")

    answers = [(await caller.ask(token=made["token"])).status_code for _ in range(5)]

    assert answers == [401, 401, 401, 429, 429]


async def test_a_guess_that_was_sent_to_an_open_page_first_is_still_an_attempt(api: Api) -> None:
    caller = Caller(api, Limits(sign_in=Limit("sign_in", 3, 3600 * SECOND)))
    answers = []
    for number in range(5):
        assert (await caller.ask("/api/v1/ca", token=f"wr_{number:08}")).status_code == 200
        answers.append((await caller.ask(token=f"wr_{number:08}")).status_code)

    assert answers == [401, 401, 401, 429, 429]


async def test_whoever_has_a_real_token_guesses_no_more_sign_in_links_than_others(api: Api) -> None:
    caller = Caller(api, Limits(sign_in=Limit("sign_in", 3, 3600 * SECOND)))
    answers = []
    for _ in range(5):
        assert (await caller.ask()).status_code == 200
        answers.append((await caller.ask("/api/v1/session", method="POST")).status_code)

    assert answers == [401, 401, 401, 429, 429]
    assert (await caller.ask()).status_code == 200


async def test_limits_are_shared_by_the_processes_of_a_market(api: Api) -> None:
    exchange = Exchange()
    one, two = Caller(api, exchange=exchange), Caller(api, exchange=exchange)

    answers = [(await caller.ask("/api/v1/ca", None)).status_code for caller in (one, two) * 5]

    assert answers == [200] * 8 + [429] * 2


async def test_who_asks_whether_the_master_lives_is_always_answered(api: Api) -> None:
    caller = Caller(api)

    answers = [(await caller.ask("/healthz", None)).status_code for _ in range(20)]

    assert answers == [200] * 20


async def test_the_token_itself_never_reaches_the_bus(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(api)
    keys: list[str] = []
    real = api.services.bus.take

    async def spy(key: str, limit: Limit, cost: int = 1):
        keys.append(key)
        return await real(key, limit, cost)

    monkeypatch.setattr(api.services.bus, "take", spy)
    for _ in range(3):
        await caller.ask()

    assert keys and not any(api.token in key or key in api.token for key in keys)


async def test_refusals_are_counted_for_the_metrics(api: Api, tmp_path: Path) -> None:
    caller = Caller(api)
    for _ in range(9):
        await caller.ask("/api/v1/ca", None)

    figures = [figure for source in api.services.health.figures for figure in source()]

    assert ("http_limited_total", 1, {"limit": "address"}) in [
        (name, value, labels) for name, _, value, labels in figures
    ]


def test_the_defaults_leave_room_for_a_console_a_command_line_and_a_fleet_behind_one_address() -> None:
    console = 40 + 10 * 60  # its files, then ten requests a second for a minute
    joining = 1_000 * 3  # a thousand hosts of one rack row: the CA, the regions, the joining

    assert TOKEN.burst >= console and TOKEN.refill_ns <= SECOND // 100
    assert ADDRESS.burst >= joining
    assert SIGN_IN.burst < 100 and SIGN_IN.refill_ns >= SECOND
