"""Connections of unknown peers are cut, hosts call only so often, and writes wait."""

import asyncio
import errno
import fcntl
import os
import select
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from tests.support.links import Acceptor
from tests.waiting import PATIENCE_S
from windrow_access import accept_filter as accept_filter_module
from windrow_access.accept_filter import AcceptFilter
from windrow_access.core.admission import Admitted, Callers, Limits, Wait
from windrow_access.core.queues import LIVE, FairQueues
from windrow_access.core.strangers import (
    FILES_KEPT,
    Stranger,
    StrangerLimits,
    connections_max,
    endpoint_of,
    is_crowded,
    network_of,
    overstaying,
)
from windrow_access.guard import LISTING_PERIOD_NS, LOOK_TURN_NS, Guard
from windrow_access.outbox import Outbox
from windrow_proto.errors import Banned
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import TOGETHER_BYTES_MAX, TOGETHER_MAX, frame_from, put_together


@pytest.mark.parametrize(
    ("peer", "endpoint", "network"),
    [
        ("ipv4:10.0.0.1:5000", ("10.0.0.1", 5000), "10.0.0.1"),
        ("ipv6:%5B::1%5D:7", ("::1", 7), "::/64"),
        ("ipv6:[::ffff:10.0.0.1]:5", ("10.0.0.1", 5), "10.0.0.1"),
        ("ipv6:%5B2001:db8:1:2:3::9%25eth0%5D:80", ("2001:db8:1:2:3::9", 80), "2001:db8:1:2::/64"),
        ("memory", ("", 0), ""),
    ],
)
def test_an_address_is_read_as_grpc_writes_it(peer: str, endpoint: tuple[str, int], network: str) -> None:
    assert endpoint_of(peer) == endpoint
    assert network_of(endpoint[0]) == network


def stranger(number: int, address: str, since_ns: int) -> Stranger:
    return Stranger(str(number), (address, number), since_ns)


def test_the_old_go_then_the_oldest_of_a_network_then_those_of_the_largest() -> None:
    limits = StrangerLimits(age_ns=100, per_network_max=3, in_all_max=4)
    crowd = [stranger(n, "10.0.0.1", 50 + n) for n in range(5)]
    others = [stranger(9, "10.0.0.2", 1), stranger(10, "10.0.0.3", 60), stranger(11, "10.0.0.4", 61)]
    cut = {one.name for one in overstaying([*crowd, *others], limits, now_ns=110)}
    assert cut == {"9", "0", "1", "2"}


CROWD = StrangerLimits(
    fresh_ns=100, fresh_max=6, fresh_per_network=2, young_ns=500, young_max=8, unread_max=3, late_ns=50
)


@pytest.mark.parametrize(
    ("strangers", "late_ns", "crowded"),
    [
        ([stranger(n, f"10.0.0.{n % 3}", 950) for n in range(6)], 0, True),  # three networks, two of each
        ([stranger(n, f"10.0.0.{n % 3}", 950) for n in range(5)], 0, False),
        ([stranger(n, "10.0.0.1", 950) for n in range(60)], 0, False),  # one network alone
        ([stranger(n, f"10.0.0.{n % 3}", 900) for n in range(6)], 0, False),  # they have come long ago
        ([stranger(n, f"10.0.0.{n % 4}", 900 - 50 * n) for n in range(8)], 0, True),  # none of them is served yet
        ([stranger(n, f"10.0.0.{n % 4}", 850 - 50 * n) for n in range(8)], 0, False),  # the first has given up
        ([stranger(n, f"10.0.0.{n % 3}", 800) for n in range(60)], 0, False),  # three networks alone
        ([Stranger(str(n), ("10.0.0.1", n), 1, is_unread=True) for n in range(3)], 0, True),
        ([Stranger(str(n), ("10.0.0.1", n), 1, is_unread=n > 0) for n in range(3)], 0, False),
        ([], 50, True),
        ([], 49, False),
    ],
)
def test_new_connections_are_dropped_for_many_newcomers_unread_words_and_a_late_loop(
    strangers: list[Stranger], late_ns: int, crowded: bool
) -> None:
    assert is_crowded(strangers, CROWD, now_ns=1_000, late_ns=late_ns) is crowded


def test_the_accept_filter_keeps_newcomers_waiting_and_nobody_else() -> None:
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        place = listener.getsockname()
        early = sockets.enter_context(socket.create_connection(place))
        served = sockets.enter_context(listener.accept()[0])
        accept_filter = AcceptFilter()
        accept_filter.turn(place[1], is_shut=True)
        late = sockets.enter_context(socket.socket())
        late.setblocking(False)
        assert late.connect_ex(place) == errno.EINPROGRESS
        early.sendall(b"still here")
        assert served.recv(64) == b"still here"
        assert select.select([], [late], [], 0.2) == ([], [], [])
        accept_filter.turn(place[1], is_shut=False)
        assert select.select([], [late], [], PATIENCE_S)[1] == [late]  # its system has knocked again
        assert late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert accept_filter.times == 1


def test_a_narrow_listener_holds_few_that_nobody_has_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept_filter_module, "WAITING_MAX", 3)
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        AcceptFilter().narrow(listener.getsockname()[1])
        dialled = []
        for _ in range(20):
            one = sockets.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
            dialled.append(one)
        listener.setblocking(False)
        for _ in range(4):  # the kernel takes one more than it is told
            sockets.enter_context(listener.accept()[0])
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_accept_filter_finds_the_listener_that_came_instead_of_another() -> None:
    accept_filter = AcceptFilter()
    for _ in range(2):
        with ExitStack() as sockets:
            listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
            place = listener.getsockname()
            accept_filter.turn(place[1], is_shut=True)
            late = sockets.enter_context(socket.socket())
            late.setblocking(False)
            assert late.connect_ex(place) == errno.EINPROGRESS
            assert select.select([], [late], [], 0.2) == ([], [], [])
            accept_filter.turn(place[1], is_shut=False)
            assert select.select([], [late], [], PATIENCE_S)[1] == [late]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=60))
def test_what_stays_is_within_every_limit_and_no_more_is_cut_than_needed(seen: list[tuple[str, int]]) -> None:
    limits = StrangerLimits(age_ns=30, per_network_max=5, in_all_max=10)
    all_of_them = [stranger(number, *one) for number, one in enumerate(seen)]
    cut = set(overstaying(all_of_them, limits, now_ns=50))
    kept = [one for one in all_of_them if one not in cut]
    counts = [sum(one.endpoint[0] == network for one in kept) for network in "abc"]
    young = [sum(one.endpoint[0] == n and one.since_ns >= 20 for one in all_of_them) for n in "abc"]
    assert all(one.since_ns >= 20 for one in kept)
    assert len(kept) == min(10, sum(min(5, count) for count in young))
    assert max(counts) <= 5


def test_open_files_bound_the_connections_where_they_are_few() -> None:
    limits, strangers = Limits(), StrangerLimits()
    assert connections_max(1 << 20, limits, strangers) == limits.routes_max + limits.warm_max + strangers.in_all_max
    assert connections_max(1024, limits, strangers) == 1024 - FILES_KEPT
    assert connections_max(10, limits, strangers) == 1


def test_a_host_calls_so_often_and_at_once_so_many_whatever_others_do() -> None:
    callers = Callers(Limits(calls_per_s=1, calls_burst=3, calls_at_once=2))
    assert [callers.enter("a", 0) for _ in range(2)] == [Admitted(), Admitted()]
    assert isinstance(callers.enter("a", 0), Wait)
    callers.leave("a")
    assert callers.enter("a", 0) == Admitted()
    callers.leave("a")
    assert callers.enter("a", 0) == Wait("too_many", SECOND)
    assert callers.enter("b", 0) == Admitted()
    assert callers.enter("a", SECOND) == Admitted()


class SlowClock:
    """Each look at it takes longer than the guard may hold everything else up."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        self.now_ns += 2 * LOOK_TURN_NS
        return self.now_ns

    def wall_ns(self) -> int:
        return self.monotonic_ns()

    async def sleep_ns(self, duration_ns: int) -> None:
        await asyncio.sleep(0)


async def test_while_the_guard_looks_at_many_connections_frames_go_on() -> None:
    guard = Guard(Acceptor(), SlowClock(), Callers(Limits()), StrangerLimits(age_ns=1 << 60), {})
    turns = 0

    async def carry_frames() -> None:
        nonlocal turns
        while guard.strangers < 20:
            turns += 1
            await asyncio.sleep(0)

    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        for _ in range(20):
            opened.enter_context(socket.create_connection(listening.getsockname()))
            opened.enter_context(listening.accept()[0])
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(guard.run(listening.getsockname()[1]))
            await carry_frames()
            looking.cancel()
    assert turns > 20


class StillClock(SlowClock):
    """Goes only when it is set."""

    def monotonic_ns(self) -> int:
        return self.now_ns


async def test_between_two_listings_newcomers_are_seen_and_who_has_gone_is_not() -> None:
    clock = StillClock()
    guard = Guard(Acceptor(), clock, Callers(Limits()), StrangerLimits(), {})
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listening.getsockname()[1]
        await guard._look(port, 0)
        ours = [opened.enter_context(socket.create_connection(listening.getsockname())) for _ in range(20)]
        theirs = [opened.enter_context(listening.accept()[0]) for _ in ours]
        await guard._look(port, 0)
        assert guard.strangers == 20
        for one in theirs[:5]:
            one.close()
        await guard._look(port, 0)
        assert guard.strangers == 15
        listed_ns = guard._listed_ns
        clock.now_ns += LISTING_PERIOD_NS
        await guard._look(port, 0)
        assert (guard.strangers, guard._listed_ns) == (15, (listed_ns or 0) + LISTING_PERIOD_NS)


async def test_connections_by_unix_sockets_are_passed_over(tmp_path: Path) -> None:
    guard = Guard(Acceptor(), StillClock(), Callers(Limits()), StrangerLimits(), {})
    with ExitStack() as opened:
        listening = opened.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(tmp_path / "line"))
        listening.listen()
        ours = opened.enter_context(socket.socket(socket.AF_UNIX))
        ours.connect(str(tmp_path / "line"))
        opened.enter_context(listening.accept()[0])
        await guard._look(1, 0)
    assert guard.strangers == 0


async def test_where_most_have_gone_a_look_is_for_those_that_are_left() -> None:
    guard = Guard(Acceptor(), StillClock(), Callers(Limits()), StrangerLimits(), {})
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        opened.enter_context(socket.create_connection(listening.getsockname()))
        served = opened.enter_context(listening.accept()[0])
        high = fcntl.fcntl(served.fileno(), fcntl.F_DUPFD, 900)
        opened.callback(os.close, high)
        served.close()
        await guard._look(listening.getsockname()[1], 0)
        assert guard.strangers == 1
        looked_at = list(guard._numbers())
    assert high in looked_at
    assert len(looked_at) < high


def test_an_agent_whose_samples_fill_its_share_is_not_read() -> None:
    queues: FairQueues[str, int] = FairQueues(1000, 100, 200)
    assert queues.offer("a", LIVE, 199, 1) == 0
    assert queues.may_read("a")
    queues.offer("a", LIVE, 1, 2)
    assert not queues.may_read("a")
    assert queues.may_read("b")


async def test_a_stream_that_is_ended_ends_in_the_midst_of_a_write_that_nobody_reads() -> None:
    outbox, writing = Outbox(), asyncio.Event()

    async def send(frame: link_pb2.Frame) -> None:
        writing.set()
        await asyncio.Event().wait()

    async def end() -> None:
        outbox.put(link_pb2.Frame(sealed=b"x"))
        await writing.wait()
        outbox.end(Banned())

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(end())
        with pytest.raises(Banned):
            await outbox.hand_to(send)


def test_a_large_message_of_an_honest_agent_is_read_as_it_is() -> None:
    large = put_together([link_pb2.Frame(sequence=n, sealed=bytes(16_000)) for n in range(TOGETHER_MAX)])
    message = large.SerializeToString()
    assert len(message) > TOGETHER_BYTES_MAX
    assert frame_from(message) == large
    one = link_pb2.Frame(sequence=1, sealed=bytes(1 << 20))
    assert frame_from(one.SerializeToString()) == one


MANY = b"\x2a\x00" * 100_000


@pytest.mark.parametrize(
    "message",
    [MANY, b"\x2a\xc0\x9a\x0c" + MANY, b"\x0b" * 100_000, b"\x08\x01" * 100_000, b"\xff" * 100_000],
    ids=["frames", "frames in a frame", "groups", "numbers", "noise"],
)
def test_a_message_of_many_fields_is_not_parsed(message: bytes) -> None:
    with pytest.raises(DecodeError):
        frame_from(message)


@given(st.binary(max_size=400))
def test_garbage_is_refused_or_read_and_nothing_else(garbage: bytes) -> None:
    large = link_pb2.Frame(sealed=bytes(TOGETHER_BYTES_MAX)).SerializeToString()
    try:
        frame_from(large + garbage)
    except DecodeError:
        return
