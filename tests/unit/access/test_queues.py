"""Fair queues: evidence first, only telemetry shed, agents take turns, caps hold."""

from hypothesis import given, settings
from hypothesis import strategies as st

from windrow_access.core.queues import BACKLOG, CHANNEL, EVIDENCE, LIVE, FairQueues


def queues(cap: int = 1000, per_route: int = 500) -> FairQueues[str, str]:
    return FairQueues(cap, per_route)


def test_evidence_goes_before_live_before_channel_before_backlog() -> None:
    q = queues()
    for frame_class, name in ((BACKLOG, "b"), (CHANNEL, "c"), (LIVE, "l"), (EVIDENCE, "e")):
        q.offer("host", frame_class, 1, name)
    assert [item for _, item in q.take(10)] == ["e", "l", "c", "b"]


def test_a_busy_agent_waits_for_its_turn() -> None:
    q = queues()
    for n in range(5):
        q.offer("busy", LIVE, 1, f"busy{n}")
    q.offer("quiet", LIVE, 1, "quiet0")
    assert [item for _, item in q.take(3)] == ["busy0", "quiet0", "busy1"]


def test_frames_of_one_agent_and_class_keep_their_order() -> None:
    q = queues()
    for n in range(20):
        q.offer("host", EVIDENCE, 1, str(n))
    taken = [item for _ in range(4) for _, item in q.take(5)]
    assert taken == [str(n) for n in range(20)]


def test_backlog_is_shed_first_and_from_the_agent_that_holds_most() -> None:
    q = queues(cap=100)
    q.offer("big", BACKLOG, 60, "big")
    q.offer("small", BACKLOG, 30, "small")
    shed = q.offer("host", LIVE, 20, "live")
    assert shed == 1
    assert [item for _, item in q.take(10)] == ["live", "small"]


def test_channels_are_never_shed_and_stop_their_readers_while_half_of_the_room_is_taken() -> None:
    q = queues(cap=100, per_route=90)
    q.offer("channel", CHANNEL, 30, "piece")
    assert q.may_read("channel")
    q.offer("live", LIVE, 25, "live")
    assert not q.may_read("channel")
    assert q.may_read("live")
    assert q.offer("host", EVIDENCE, 60, "evidence") == 1
    assert [item for _, item in q.take(10)] == ["evidence", "piece"], "what is live is sent again, a piece is not"
    assert q.may_read("channel")


def test_evidence_is_never_shed_and_stops_the_reader_instead() -> None:
    q = queues(cap=100, per_route=50)
    for n in range(10):
        q.offer("host", EVIDENCE, 20, str(n))
    assert len(q.take(100)) == 10
    assert q.may_read("host")
    q.offer("host", EVIDENCE, 60, "x")
    assert not q.may_read("host")
    assert q.may_read("other")


def test_a_gone_agent_leaves_nothing_behind() -> None:
    q = queues()
    q.offer("gone", EVIDENCE, 5, "e")
    q.offer("gone", BACKLOG, 7, "b")
    assert q.drop_route("gone") == 2
    assert (len(q), q.queued_bytes, q.take(9)) == (0, 0, [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from((0, 1, 2, 3)), st.integers(0, 400)), max_size=60))
def test_nothing_but_sheddable_frames_is_lost_and_the_cap_holds(offers: list[tuple[str, int, int]]) -> None:
    q = queues(cap=1000)
    shed = 0
    for number, (route, frame_class, size) in enumerate(offers):
        shed += q.offer(route, frame_class, size, f"{number}:{frame_class}")
        kept = sum(s for _, c, s in offers[: number + 1] if c in (EVIDENCE, CHANNEL))
        assert q.queued_bytes <= max(1000, kept)
    taken = [item for _, item in q.take(1000)]
    assert len(taken) + shed == len(offers)
    for kept in (EVIDENCE, CHANNEL):
        assert sum(item.endswith(f":{kept}") for item in taken) == sum(c == kept for _, c, _ in offers)
    assert q.queued_bytes == 0
