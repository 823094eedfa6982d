"""A renter measures Accesses, tells the Master, and asks another where one does not answer."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import poll_async
from windrow import nearest, tunnel
from windrow.errors import AccessRefused, ApiProblem, MasterUnreachable, TunnelRefused
from windrow.nearest import Nearest, rtt_ms

URL = "https://master.example"
ACCESSES = [{"id": "access_a", "address": "a:1"}, {"id": "access_b", "address": "b:2"}]
THREE = [*ACCESSES, {"id": "access_c", "address": "c:3"}]
FOUND: dict[str, float | None] = {"a:1": 80.0, "b:2": 5.0004}
MEASURED = {"measured": [{"id": "access_a", "rtt_ms": 80.0}, {"id": "access_b", "rtt_ms": 5.0}]}
A, B = ({"access_id": one["id"], "address": one["address"], "accesses": ACCESSES} for one in ACCESSES)
OLD = {"address": "a:1"}


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


async def test_what_was_measured_beside_the_first_tunnel_is_told_with_the_next_and_by_the_next_program() -> None:
    known = Nearest(URL, FOUND.get)
    assert known.wish() == {}, "nobody waits for it"
    known.learn(A)
    await poll_async(lambda: known.wish() == MEASURED)
    assert Nearest(URL).wish() == MEASURED
    assert Nearest("https://other.example").wish() == {}


async def test_who_does_not_answer_has_no_figure_and_what_is_known_is_not_measured_again() -> None:
    asked: list[str] = []

    def measure(address: str) -> float | None:
        asked.append(address)
        return FOUND[address] if address == "b:2" else None

    known = Nearest(URL, measure)
    known.learn(A)
    await poll_async(lambda: known.wish() == {"measured": MEASURED["measured"][1:]})
    known.learn(A)
    assert asked == ["a:1", "b:2"]


@pytest.mark.parametrize("ticket", [OLD, {**A, "accesses": []}, {**A, "accesses": ACCESSES[:1]}])
def test_nothing_is_measured_without_a_choice(ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nearest, "_learn", lambda *_: pytest.fail("measured"))
    Nearest(URL).learn(ticket)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"until": "x"}', '{"until": 1, "measured": {"a": 1}}', '{"until": 9e99, "measured": [1]}']
)
def test_what_is_old_or_cannot_be_read_is_nothing(text: str) -> None:
    path = Nearest(URL)._path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert Nearest(URL).wish() == {}


def test_a_file_of_the_future_is_not_believed_for_longer_than_one_of_now() -> None:
    path = Nearest(URL)._path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"until": 9e99, "measured": {"access_a": 1}}))
    assert Nearest(URL)._until_s <= time.time() + nearest.KEPT_S


def test_the_time_of_connecting_is_measured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert rtt_ms(address) is not None
    assert rtt_ms(address) is None
    assert rtt_ms("no port") is None


def _asking(*tickets: dict[str, Any]) -> tuple[Callable[[dict[str, Any]], dict[str, Any]], list[dict[str, Any]]]:
    """A Master that answers with these, one after the other; and what it was asked."""
    wishes: list[dict[str, Any]] = []

    def ask(wish: dict[str, Any]) -> dict[str, Any]:
        wishes.append(wish)
        return tickets[len(wishes) - 1]

    return ask, wishes


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Addresses that do not answer."""
    found: set[str] = set()

    async def approach(where: dict[str, Any], within_s: float = 0) -> Any:
        if where["address"] in found:
            raise AccessRefused(f"The relay at {where['address']} does not answer.")
        return where["address"]

    async def dial(ticket: dict[str, Any], access: Any) -> Any:
        return access

    monkeypatch.setattr(tunnel, "approach", approach)
    monkeypatch.setattr(tunnel, "dial", dial)
    monkeypatch.setattr(Nearest, "learn", lambda *_: None)
    return found


@pytest.fixture
def refusing(deaf: set[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """Returns the refusal of the grant, by address."""
    found: dict[str, Exception] = {}

    async def dial(ticket: dict[str, Any], access: Any) -> Any:
        if access in found:
            raise found[access]
        return access

    monkeypatch.setattr(tunnel, "dial", dial)
    return found


async def _reached(known: Nearest, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    return (await tunnel.reach(ask, known, ask(known.wish())))[1]


async def test_where_an_access_does_not_answer_another_is_asked_for_and_at_once_the_next_time(deaf: set[str]) -> None:
    deaf.add("a:1")
    known, (ask, wishes) = Nearest(URL), _asking(A, B, B)
    assert [await _reached(known, ask), await _reached(known, ask)] == ["b:2", "b:2"]
    assert wishes == [{}, {"without": ["access_a"]}, {"without": ["access_a"]}]


async def test_where_none_answers_both_are_named(deaf: set[str]) -> None:
    deaf |= {"a:1", "b:2"}
    ask, wishes = _asking(A, B)
    with pytest.raises(TunnelRefused, match=r"None of 2 relays took the tunnel.*a:1.*b:2"):
        await _reached(Nearest(URL), ask)
    assert len(wishes) == 2


@pytest.mark.parametrize(("tickets", "asked"), [((A, A), 2), ((OLD,), 1), (({**A, "accesses": ACCESSES[:1]},), 1)])
async def test_nobody_is_dialled_twice_where_there_is_no_other(
    tickets: tuple[dict[str, Any], ...], asked: int, deaf: set[str]
) -> None:
    deaf.add("a:1")
    ask, wishes = _asking(*tickets)
    with pytest.raises(TunnelRefused, match="The relay at a:1 does not answer"):
        await _reached(Nearest(URL), ask)
    assert len(wishes) == asked


def _says(code: str) -> ApiProblem:
    return ApiProblem(503, {"code": code, "detail": f"No: {code}."})


def _wide(access: dict[str, Any]) -> dict[str, Any]:
    """A ticket for it, in a market of three."""
    return {"access_id": access["id"], "address": access["address"], "accesses": THREE}


@pytest.mark.parametrize("code", sorted(tunnel.ELSEWHERE))
async def test_where_an_access_refuses_what_another_may_do_that_one_is_asked_for(
    code: str, refusing: dict[str, Exception]
) -> None:
    refusing["a:1"] = _says(code)
    ask, wishes = _asking(A, B)
    assert await _reached(Nearest(URL), ask) == "b:2"
    assert wishes == [{}, {"without": ["access_a"]}]


@pytest.mark.parametrize("code", ["expired", "bad_proof", "invalid_input", "unauthenticated", "conflict", "banned"])
async def test_a_refusal_that_is_final_is_the_end_and_is_raised_as_it_is(
    code: str, refusing: dict[str, Exception]
) -> None:
    refusing["a:1"] = _says(code)
    ask, wishes = _asking(A, B)
    with pytest.raises(ApiProblem, match=f"No: {code}") as refused:
        await _reached(Nearest(URL), ask)
    assert (refused.value.code, len(wishes)) == (code, 1)


async def test_a_host_that_is_not_who_it_should_be_is_the_end(refusing: dict[str, Exception]) -> None:
    refusing["a:1"] = TunnelRefused("The host could not be reached through its relay.")
    ask, wishes = _asking(A, B)
    with pytest.raises(TunnelRefused, match="through its relay"):
        await _reached(Nearest(URL), ask)
    assert len(wishes) == 1


async def test_every_access_is_tried_once_and_the_message_says_what_each_answered(
    deaf: set[str], refusing: dict[str, Exception]
) -> None:
    deaf.add("a:1")
    refusing |= {"b:2": _says("too_many"), "c:3": _says("expired")}
    ask, wishes = _asking(*map(_wide, THREE))
    with pytest.raises(TunnelRefused, match=r"None of 3 .*a:1 does not.*b:2 says: No: too_many.*c:3 says: No: expired"):
        await _reached(Nearest(URL), ask)
    assert wishes[1:] == [{"without": ["access_a"]}, {"without": ["access_a", "access_b"]}]


async def test_what_the_master_says_to_the_next_request_stands(refusing: dict[str, Exception]) -> None:
    refusing["a:1"] = _says("unavailable")

    def ask(wish: dict[str, Any]) -> dict[str, Any]:
        raise MasterUnreachable("It is away.")

    with pytest.raises(MasterUnreachable, match="away"):
        await tunnel.reach(ask, Nearest(URL), A)


async def test_an_access_that_refuses_is_asked_again_sooner_than_one_that_does_not_answer(
    refusing: dict[str, Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing["a:1"] = _says("too_many")
    known, (ask, wishes) = Nearest(URL), _asking(A, B, A)
    assert await _reached(known, ask) == "b:2"
    later_s = time.time() + nearest.REFUSED_S
    refusing.clear()
    monkeypatch.setattr(time, "time", lambda: later_s)
    assert await _reached(known, ask) == "a:1"
    assert wishes[2] == {}


async def test_all_tries_together_end_at_one_deadline_and_say_what_was_answered(
    refusing: dict[str, Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing["a:1"] = _says("unavailable")
    forever, (ask, _) = asyncio.Event(), _asking(A, B)

    async def approach(where: dict[str, Any], within_s: float = 0) -> Any:
        if where["address"] == "b:2":
            await forever.wait()
        return where["address"]

    monkeypatch.setattr(tunnel, "approach", approach)
    monkeypatch.setattr(tunnel, "REACH_S", 0.2)
    with pytest.raises(TunnelRefused, match=r"No relay took the tunnel within .* a:1 says: No: unavailable"):
        await _reached(Nearest(URL), ask)
