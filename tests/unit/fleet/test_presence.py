"""Records of hosts that all come another way at once; and that a crowd's silence ends none."""

from tests.master_support import ManualClock
from windrow_master.fleet.liveness import BREAKER_AGENTS_MIN, LOST_MIN_NS
from windrow_master.fleet.model import LinkState
from windrow_master.fleet.presence import MOVES_MIN, MOVES_TURNS, PresenceBook, Route
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Heartbeat
from windrow_proto.units import SECOND

BOOT = BootId(b"b" * 16)


def moved(count: int) -> PresenceBook:
    """A book of so many hosts that are online, and have just come by another Access."""
    book = PresenceBook(ManualClock())
    for access_id in ("access_1", "access_2"):
        for number in range(count):
            book.opened(HostId(f"host_{number}"), Route(access_id, "", "", BOOT))
            book.heard(HostId(f"host_{number}"), Heartbeat(book._clock.wall_ns(), 1, "", b""))
        if access_id == "access_1":
            book.take_changes()
    return book


def test_hosts_that_fall_silent_together_stay_suspect_and_none_is_lost() -> None:
    clock = ManualClock()
    book = PresenceBook(clock)
    crowd = [HostId(f"host_{number}") for number in range(BREAKER_AGENTS_MIN + 1)]
    for host_id in crowd:
        book.opened(host_id, Route("access_1", "", "", BOOT))
        book.heard(host_id, Heartbeat(clock.wall_ns(), 1, "", b""))

    while clock.monotonic_ns() < 2 * LOST_MIN_NS:
        clock.advance(SECOND)
        book.judge(5 * SECOND)

    assert [book._hosts[host_id].presence.link for host_id in crowd] == [LinkState.SUSPECT] * len(crowd)


def test_the_moves_of_a_crowd_are_written_down_over_some_turns_each_once_the_first_ones_first() -> None:
    book = moved(20 * MOVES_MIN)

    turns = []
    while book.has_changes:
        turns.append(book.take_changes())

    assert len(turns) == MOVES_TURNS
    assert [change.host_id for turn in turns for change in turn] == [f"host_{n}" for n in range(20 * MOVES_MIN)]


def test_few_are_written_down_at_once() -> None:
    assert len(moved(MOVES_MIN).take_changes()) == MOVES_MIN


def test_what_is_more_than_a_move_does_not_wait() -> None:
    book = moved(2 * MOVES_MIN)
    last = HostId(f"host_{2 * MOVES_MIN - 1}")
    book.heard(last, Heartbeat(book._clock.wall_ns(), 1, "", b"", ("gpu.no_driver",)))

    (change,) = [change for change in book.take_changes() if not change.is_move]

    assert change.host_id == last
    assert change.route is not None and change.route.access_id == "access_2"


def test_what_could_not_be_written_is_no_reason_to_forget_what_waits() -> None:
    book = moved(2 * MOVES_MIN)

    book.put_back(book.take_changes())

    hosts = {change.host_id for _ in range(2) for change in book.take_changes()}
    assert len(hosts) == 2 * MOVES_MIN


def test_round_trips_to_accesses_hold_until_others_are_told() -> None:
    book, host = moved(1), HostId("host_0")
    told: list[dict[str, int]] = []
    for rtts in ((("access_1", 5), ("access_2", 9)), (), (("access_2", 7),)):
        book.heard(host, Heartbeat(book._clock.wall_ns(), 1, "", b"", rtts=rtts))
        live = book.get(host)
        assert live is not None
        told.append(dict(live.rtts_ns))

    assert told == [{"access_1": 5, "access_2": 9}, {"access_1": 5, "access_2": 9}, {"access_2": 7}]


def test_a_host_that_was_not_online_is_told_of_when_it_is_heard_and_not_again() -> None:
    book, told = PresenceBook(ManualClock()), list[HostId]()
    book.on_return(told.append)
    host_id = HostId("host_1")
    book.opened(host_id, Route("access_1", "", "", BOOT))
    for _ in range(2):
        book.heard(host_id, Heartbeat(book._clock.wall_ns(), 1, "", b""))
    assert told == [host_id]
