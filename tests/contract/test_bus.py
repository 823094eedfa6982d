"""The contract of every bus, in process and through a real Valkey that is killed, frozen and emptied."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from unittest import mock

import pytest

from tests import services
from tests.support.valkey import PASSWORD, Valkey, valkey
from tests.waiting import PATIENCE_S, poll_async
from windrow_master.store import bus_redis
from windrow_master.store.bus import Buckets, Bus, Exchange, Limit, MemoryBus, check_url, step
from windrow_master.store.bus_redis import OUTBOX_MAX, RedisBus
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

SLOW = Limit("slow", burst=3, refill_ns=3600 * SECOND)
"""Three, and then practically none."""


class Running(Protocol):
    """The parts that work while it runs: a bus, among others."""

    async def run(self) -> None:
        """Until cancelled."""


@dataclass
class Pair:
    """Two processes' ends of one bus, and the server behind, where there is one."""

    one: Bus
    two: Bus
    server: Valkey | None


@asynccontextmanager
async def kept_up(*buses: Running) -> AsyncIterator[None]:
    """Run what has to run meanwhile."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bus.run()) for bus in buses]
        yield
        for task in tasks:
            task.cancel()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server that is there be as late as a busy machine makes it: nothing is counted here in its place."""
    for name in ("COUNT_S", "CALL_S"):
        monkeypatch.setattr(bus_redis, name, PATIENCE_S)


def _through(server: Valkey, name: str) -> RedisBus:
    return RedisBus(server.url, name, SystemClock(), SystemRng(), "test")


async def _up(*buses: Bus) -> None:
    await poll_async(lambda: all(bus.health.problem is None for bus in buses), what="every bus is up")


@pytest.fixture(params=["memory", pytest.param("valkey", marks=pytest.mark.proves("the bus on a real Valkey"))])
async def pair(request: pytest.FixtureRequest, tmp_path: Path, patient: None) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            exchange = Exchange()
            one, two = (MemoryBus(name, SystemClock(), exchange) for name in ("one", "two"))
            made = Pair(one, two, None)
        else:
            services.need("valkey")
            server = stack.enter_context(valkey(tmp_path / "valkey"))
            made = Pair(_through(server, "one"), _through(server, "two"), server)
        await stack.enter_async_context(kept_up(made.one, made.two))
        await _up(made.one, made.two)
        yield made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    services.need("valkey")
    with valkey(tmp_path / "valkey") as running:
        yield running


def _heard(bus: Bus, kind: str = "event") -> list[tuple[str, str]]:
    """Returns the messages that wake this bus's listeners from now on."""
    heard: list[tuple[str, str]] = []
    bus.listen(kind, lambda subject, text: heard.append((subject, text)))
    return heard


# --- wake-ups -------------------------------------------------------------------------------------------------------


async def test_a_wake_up_reaches_this_process_at_once_and_the_others_soon(pair: Pair) -> None:
    here, there = _heard(pair.one), _heard(pair.two)

    pair.one.publish("event", "host_1", "7")

    assert here == [("host_1", "7")]
    await poll_async(lambda: there == [("host_1", "7")])


async def test_each_hears_its_own_kind_only_and_its_own_wake_ups_once(pair: Pair) -> None:
    events, clusters, there = _heard(pair.one, "event"), _heard(pair.one, "cluster"), _heard(pair.two, "last")

    pair.one.publish("event", "a")
    pair.one.publish("last", "b")

    await poll_async(lambda: there)
    assert (events, clusters) == ([("a", "")], [])


async def test_wake_ups_of_one_subject_arrive_in_order_and_the_latest_always_does(pair: Pair) -> None:
    there = _heard(pair.two)

    for number in range(500):
        pair.one.publish("event", "", str(number))

    await poll_async(lambda: there and there[-1] == ("", "499"))
    numbers = [int(text) for _, text in there]
    assert numbers == sorted(set(numbers))


async def test_a_listener_that_fails_does_not_keep_the_others_asleep(pair: Pair) -> None:
    def fails(subject: str, text: str) -> None:
        raise RuntimeError("as planned")

    pair.two.listen("event", fails)
    there = _heard(pair.two)

    pair.one.publish("event", "a")
    pair.one.publish("event", "b")

    await poll_async(lambda: [subject for subject, _ in there] == ["a", "b"])


# --- counting -------------------------------------------------------------------------------------------------------


async def test_a_limit_is_shared_by_all_processes_and_says_when_to_come_again(pair: Pair) -> None:
    answers = [await bus.take("token", SLOW) for bus in (pair.one, pair.two, pair.one, pair.two)]

    assert [taken.is_allowed for taken in answers] == [True, True, True, False]
    assert [taken.remaining for taken in answers] == [2, 1, 0, 0]
    assert 3590 * SECOND < answers[-1].retry_after_ns <= 3600 * SECOND


async def test_keys_and_limits_are_counted_apart(pair: Pair) -> None:
    for _ in range(3):
        await pair.one.take("a", SLOW)

    assert not (await pair.one.take("a", SLOW)).is_allowed
    assert (await pair.one.take("b", SLOW)).is_allowed
    assert (await pair.one.take("a", Limit("other", 1, SECOND))).is_allowed


async def test_looking_whether_there_is_room_takes_none(pair: Pair) -> None:
    looks = [(await pair.two.take("a", SLOW, 0)).is_allowed for _ in range(5)]
    for _ in range(3):
        await pair.one.take("a", SLOW)
    late = await pair.two.take("a", SLOW, 0)

    assert looks == [True] * 5
    assert (late.is_allowed, late.remaining) == (False, 0)
    assert late.retry_after_ns > 3590 * SECOND


async def test_a_burst_of_askings_at_once_is_let_through_exactly_as_often_as_allowed(pair: Pair) -> None:
    limit = Limit("burst", 20, 3600 * SECOND)

    answers = await asyncio.gather(*[bus.take("a", limit) for bus in (pair.one, pair.two) for _ in range(20)])

    assert sum(taken.is_allowed for taken in answers) == 20


def test_a_bucket_fills_by_one_per_period_up_to_its_burst() -> None:
    buckets, limit = Buckets(), Limit("l", 2, SECOND)

    def taken(at_s: float) -> bool:
        return buckets.take("k", limit, 1, int(at_s * SECOND)).is_allowed

    assert [taken(0), taken(0), taken(0), taken(0.9), taken(1.0), taken(1.0)] == [True, True, False, False, True, False]
    assert [taken(100), taken(100), taken(100)] == [True, True, False]


def test_a_refusal_costs_nothing() -> None:
    allowed, full_at = step(full_at=30, now=0, refill=10, burst=3, cost=1)

    assert (allowed, full_at) == (False, 30)


def test_counters_are_bounded_and_the_one_not_asked_for_longest_goes_first() -> None:
    buckets = Buckets(keys_max=2)
    for key in ("a", "b", "a", "c"):
        buckets.take(key, SLOW, 1, 0)

    assert [buckets.take(key, SLOW, 1, 0).remaining for key in ("a", "b")] == [0, 2]


# --- presence -------------------------------------------------------------------------------------------------------


async def test_processes_know_of_one_another(pair: Pair) -> None:
    pair.one.announce({"role": "leader"})
    pair.two.announce({"role": "standby"})

    async def roles() -> dict[str, str]:
        return {peer.id: peer.facts["role"] for peer in await pair.one.peers()}

    async def complete() -> bool:
        return await roles() == {"one": "leader", "two": "standby"}

    await poll_async(complete)


# --- a server that fails --------------------------------------------------------------------------------------------


async def _while_away(bus: Bus, away: Callable[[], None], back: Callable[[], None]) -> None:
    """Checks the promises that hold while the server is away, whatever kind of away."""
    here = _heard(bus)
    away()
    with mock.patch.object(bus_redis, "_script", wraps=bus_redis._script) as asked:
        answers = [(await bus.take("away", SLOW)).is_allowed for _ in range(4)]
    bus.publish("event", "a", "1")
    assert answers == [True, True, True, False]
    assert here == [("a", "1")]
    waited = [call for call in asked.call_args_list if call.args[1] == bus_redis.TAKE]
    assert len(waited) <= 1, "one deadline is paid once, not by every asking"
    await poll_async(lambda: bus.health.problem is not None, what="the bus says that it reaches this process only")
    assert PASSWORD not in str(bus.health.problem) and bus.health.since_ns is not None
    assert [peer.id for peer in await bus.peers()] == ["one"]
    back()
    await _up(bus)
    assert ("", "") in here  # woken: something may have been missed


@pytest.mark.proves("nothing fails when Valkey is killed, frozen or emptied")
@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_while_the_server_is_away_everything_goes_on_here_and_then_everywhere_again(
    server: Valkey, how: str
) -> None:
    one, two = _through(server, "one"), _through(server, "two")
    one.announce({"role": "leader"})
    async with kept_up(one, two):
        await _up(one, two)
        away, back = {"killed": (server.kill, server.start), "frozen": (server.freeze, server.thaw)}[how]

        await _while_away(one, away, back)

        await _up(two)
        there = _heard(two)
        one.publish("event", "after", "2")
        await poll_async(lambda: ("after", "2") in there)


@pytest.mark.proves("nothing fails when Valkey is killed, frozen or emptied")
async def test_emptying_the_server_under_load_refuses_nobody_who_was_allowed_and_loses_no_wake_up(
    server: Valkey, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_redis, "BEAT_NS", SECOND // 5)
    one, two = _through(server, "one"), _through(server, "two")
    wide = Limit("wide", 1_000_000, SECOND // 1_000)
    one.announce({"role": "leader"})
    async with kept_up(one, two):
        await _up(one, two)
        there = _heard(two)
        refused = 0
        for number in range(300):
            if number % 50 == 0:
                server.flush()
            one.publish("event", "", str(number))
            refused += not (await one.take("k", wide)).is_allowed
        await poll_async(lambda: there[-1:] == [("", "299")])

        assert refused == 0
        assert one.health.problem is None

        async def seen_again() -> bool:
            return "one" in [peer.id for peer in await two.peers()]

        await poll_async(seen_again, what="the next beat says again who is there")


async def test_a_bus_whose_server_was_never_there_works_alone_and_finds_it_later(tmp_path: Path) -> None:
    services.need("valkey")
    server = Valkey(tmp_path / "valkey")
    bus = _through(server, "one")
    here = _heard(bus)
    async with kept_up(bus):
        bus.publish("event", "a")
        assert here == [("a", "")]
        assert (await bus.take("k", SLOW)).is_allowed
        server.start()
        try:
            await _up(bus)
        finally:
            server.kill()


async def test_a_bus_ends_when_it_is_told_to_in_whichever_turn_of_a_call_that_is(server: Valkey) -> None:
    bus = _through(server, "one")
    for turns in range(12):
        async with asyncio.timeout(PATIENCE_S), kept_up(bus):
            await _up(bus)
            sent = bus.health.sent
            bus.publish("event", "a")
            await poll_async(lambda: bus.health.sent > sent)  # noqa: B023 - called here
            bus.publish("event", "b")
            for _ in range(turns):
                await asyncio.sleep(0)


async def test_a_server_that_speaks_something_else_is_a_condition_and_not_a_crash() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"\0" * 1000)
        writer.close()

    async def reached(bus: RedisBus) -> None:
        await poll_async(lambda: bus.health.problem not in (None, "not connected yet"))

    listening = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    bus = RedisBus(f"redis://127.0.0.1:{port}/0", "one", SystemClock(), SystemRng())
    async with listening, kept_up(bus):
        await reached(bus)
        assert (await bus.take("k", SLOW)).is_allowed


async def test_a_bus_that_is_stopped_in_the_moment_its_connection_breaks_ends(
    server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_when_stopped(_: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionResetError("as it was stopped") from None

    bus = _through(server, "one")
    monkeypatch.setattr(bus, "_hear", break_when_stopped)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bus.run())
        await _up(bus)
        running.cancel()
        ended, _ = await asyncio.wait({running}, timeout=PATIENCE_S)
        running.cancel()

    assert ended


async def test_garbage_on_the_channel_wakes_nobody_and_breaks_nothing(server: Valkey, patient: None) -> None:
    one, two = _through(server, "one"), _through(server, "two")
    async with kept_up(one, two):
        await _up(one, two)
        heard = _heard(two)
        for text in ("", "not json", "[]", '["x","event",1,2]', "[" * 5_000, '["x","event","' + "s" * 600 + '",""]'):
            server.ask("PUBLISH", "windrow:{test}:wake", text)
        one.publish("event", "after")

        await poll_async(lambda: heard == [("after", "")])
        assert two.health.problem is None


def test_an_outbox_that_is_full_drops_the_oldest_and_says_that_something_was_missed(tmp_path: Path) -> None:
    bus = RedisBus("redis://127.0.0.1:1/0", "one", SystemClock(), SystemRng())

    for number in range(OUTBOX_MAX + 10):
        bus.publish("cluster", f"cluster_{number}")

    assert len(bus._outbox) == OUTBOX_MAX
    assert ("cluster", "") in bus._outbox
    assert bus.health.dropped > 0


@pytest.mark.parametrize("url", ["", "127.0.0.1:6379", "http://host/", "redis://", "redis://host:0/", "redis://h:p/"])
def test_an_url_that_is_none_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_url(url)

    assert "WINDROW_REDIS_URL" in refused.value.detail and "127.0.0.1" not in refused.value.detail


async def test_the_password_is_in_no_text_of_a_bus(server: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    bus = RedisBus(server.url.replace(PASSWORD, "another-canary"), "one", SystemClock(), SystemRng())
    async with kept_up(bus):
        await poll_async(lambda: "refuses" in str(bus.health.problem))

    assert "canary" not in caplog.text + repr(bus.health)
