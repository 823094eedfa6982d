"""Requests and lists that cost one account little and the Master much: each is small, or is refused before it costs."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.hostile.two_renters import TwoRenters, two_renters
from tests.unit.clusters.world import market_world, principal
from windrow_master.api import idempotency, paging, values
from windrow_master.clusters.request import REQUEST_CHARS_MAX
from windrow_master.clusters.templates import TEMPLATES_CHARS_MAX
from windrow_master.identity.model import ALL_ROLES, Role
from windrow_master.market import service
from windrow_master.market.prices import QUOTED
from windrow_proto.errors import TooMany
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import HOUR, MINUTE

LARGEST = ["x" * 7_900] * 8
"""Of a command."""


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[TwoRenters]:
    async with two_renters(tmp_path) as found:
        yield found


@pytest.mark.row("F13", "F20")
@pytest.mark.parametrize(
    "body",
    [
        '{"argv": [' + '"a",' * 200_000 + '"b"]}',
        '{"env": {' + ",".join(f'"V{number}": ""' for number in range(80_000)) + "}}",
        '{"argv": [' + "[]," * 300_000 + "[]]}",
    ],
)
async def test_a_body_of_many_values_is_refused_before_each_is_looked_at(
    market: TwoRenters, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    looks: list[str] = []
    check = values._check_text

    def counted(name: str, text: str, longest: int, *, is_program: object = False) -> None:
        looks.append(name)
        check(name, text, longest, is_program=is_program)

    monkeypatch.setattr(values, "_check_text", counted)
    answer = await market.noisy.client.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert f"more than {values.NODES_MAX} values" in answer.json()["detail"]
    assert len(looks) <= values.NODES_MAX


@pytest.mark.row("F13")
async def test_a_query_of_many_fields_is_refused(market: TwoRenters) -> None:
    answer = await market.noisy.client.get("/jobs?" + "&".join(["limit=1"] * 1_000))
    assert answer.status_code == 422


@pytest.mark.row("F16", "F20")
@pytest.mark.parametrize("path", ["jobs", "clusters/plan"])
async def test_what_one_request_asks_for_is_bounded_as_a_whole(market: TwoRenters, path: str) -> None:
    client, env = market.noisy.client, {f"V{number}": "x" * 7_900 for number in range(9)}
    for more in ({"argv": LARGEST * 12}, {"argv": ["a"], "env": env}, {"argv": LARGEST, "env": env}):
        answer = await client.post(f"/{path}", json={"simulated": True} | more)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert (await client.post(f"/{path}", json={"simulated": True, "argv": LARGEST})).status_code in (200, 201)


@pytest.mark.row("F16", "F20")
async def test_pages_of_large_items_are_short_and_nothing_is_passed_over(market: TwoRenters) -> None:
    client, count = market.noisy.client, 40
    for _ in range(count):
        answer = await client.post("/jobs", json={"argv": LARGEST, "gpus": 8, "gpu_model": "H100"})
        assert answer.status_code == 201, answer.text
    for who in (client, market.operator):
        found: list[str] = []
        sizes: list[int] = []
        asked: dict[str, str] | None = {"limit": "1000"}
        while asked is not None:
            answer = await who.get("/jobs", params=asked)
            found += [one["id"] for one in answer.json()["items"]]
            sizes.append(len(answer.content))
            cursor = answer.json()["next_cursor"]
            asked = None if cursor is None else {"limit": "1000", "cursor": cursor}
        assert len(found) == len(set(found)) == count
        assert max(sizes) < paging.PAGE_CHARS_MAX + 2 * REQUEST_CHARS_MAX


@pytest.mark.row("F16", "F20")
async def test_templates_of_one_account_fit_one_list(market: TwoRenters) -> None:
    client, statuses = market.noisy.client, []
    for number in range(20):
        statuses.append((await client.put(f"/templates/t{number}", json={"argv": LARGEST})).status_code)
    assert (statuses[0], statuses[-1]) == (200, 429)
    assert (await client.put("/templates/t0", json={"argv": LARGEST})).status_code == 200, "in place of itself"
    assert len((await client.get("/templates")).content) < 2 * TEMPLATES_CHARS_MAX
    assert (await market.quiet.client.put("/templates/t", json={"argv": LARGEST})).status_code == 200


@pytest.mark.row("F12")
@pytest.mark.parametrize("path", ["/ledger/transfers", "/audit", "/events"])
async def test_a_number_in_a_cursor_is_one_that_can_be(market: TwoRenters, path: str) -> None:
    for number in ("9" * 20, "9" * 200, "\u0663", "-1", "1.5"):
        answer = await market.operator.get(path, params={"cursor": paging.write_cursor(number)})
        assert answer.status_code == 422, (number, answer.text)


@pytest.mark.row("F11")
async def test_what_a_job_is_given_besides_its_own_fits_beside_it(market: TwoRenters) -> None:
    """Else each attempt of it would be refused, again and again."""
    env = {f"V{number}": "" for number in range(126)}
    answer = await market.noisy.client.post("/jobs", json={"argv": ["true"], "env": env, "array_size": 2})
    assert answer.status_code == 422, json.dumps(answer.json())[:300]


@pytest.mark.row("F11", "F16")
async def test_an_array_of_large_jobs_is_bounded_as_a_whole(market: TwoRenters) -> None:
    body = {"argv": LARGEST, "array_size": 1_000}
    answer = await market.noisy.client.post("/jobs", json=body)
    assert (answer.status_code, answer.json()["subject"]) == (422, "array_size")
    answer = await market.noisy.client.post("/jobs", json={"argv": ["x" * 2_000], "array_size": 1_000})
    assert answer.status_code == 201


@pytest.mark.row("F20", "F23")
async def test_an_owner_sets_so_many_prices(market: TwoRenters, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at what is offered reads all of them, whoever looks."""
    monkeypatch.setattr(service, "ASKS_MAX", 3)
    owner = await market.account("provider", Role.PROVIDER)
    price = {"price_per_hour": "1", "scope": "own"}
    found = [(await owner.client.put(f"/offers/{one}/A", json=price)).status_code for one in sorted(QUOTED)[:5]]
    assert found == [200, 200, 200, 429, 429]
    assert (await owner.client.put(f"/offers/{min(QUOTED)}/A", json=price)).status_code == 200, "in place of itself"
    assert (await market.operator.put(f"/offers/{max(QUOTED)}/A", json=price | {"scope": "all"})).status_code == 200


@pytest.mark.row("F20", "F23")
async def test_answers_that_are_remembered_take_a_bounded_room(
    market: TwoRenters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "LONG_MAX", 5)
    client = market.noisy.client
    job = (await client.post("/jobs", json={"argv": LARGEST, "gpus": 8})).json()["jobs"][0]["id"]
    replayed = []
    for number in range(20):
        key = {"Idempotency-Key": f"key-{number}"}
        for _ in range(2):
            answer = await client.post(f"/jobs/{job}/cancel", headers=key)
            assert answer.status_code == 200, answer.text
        replayed.append(idempotency.REPLAYED in answer.headers)
    assert replayed == [True] * 5 + [False] * 15


# --- holding hosts for nothing ---------------------------------------------------------------------------------------


@pytest.mark.row("K4")
async def test_nobody_holds_a_market_for_nothing_by_waiting_for_files(tmp_path: Path) -> None:
    with market_world(tmp_path) as market:
        for number in range(6):
            market.join(HostId(f"host_{number}"), gpus=8)
        stranger, made = principal(AccountId("account_stranger")), []
        market.write(lambda uow: market.market.open_account(uow, stranger.account_id))
        ask = {"gpus": 4, "await_files": True, "argv": ("true",), "image": "a/image"}
        with pytest.raises(TooMany, match="wait for files"):
            for _ in range(12):
                made.append(await market.create(stranger, **ask))
        assert len(made) == 4, "16 slots"
        market.clock.advance(14 * MINUTE)
        for view in made:
            await market.clusters.delete(stranger, view.cluster.cluster_id)
        with pytest.raises(TooMany, match="wait for files"):
            for _ in range(3):
                made.append(await market.create(stranger, **ask))
        assert len(made) == 5
        await market.clusters.delete(stranger, made[-1].cluster.cluster_id)
        await market.create(stranger, **ask | {"await_files": False})
        await market.create(principal(roles=ALL_ROLES), **ask)
        market.clock.advance(2 * HOUR)
        await market.create(stranger, **ask)
