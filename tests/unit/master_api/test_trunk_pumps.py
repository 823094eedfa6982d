"""The pumps store what hosts sent and let it be acknowledged: at once, or with what comes a moment later."""

import asyncio

from tests.simulation.loop import VirtualLoop, run
from windrow_master.link.pumps import Pump, Waiting
from windrow_proto.ids import BootId
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind, Lane

BOOT = BootId(b"b" * 16)


class Route:
    """The questions of a pump to a route, counted."""

    def __init__(self):
        self.samples_acked_s = float("-inf")
        self.committed, self.told, self.aborted = [], [], []

    def commit(self, lane, boot, sequences):
        self.committed += sequences

    def abort(self, lane, boot, sequences):
        self.aborted += sequences

    def flush_acks(self):
        self.told.append(len(self.committed))


async def stored(taken):
    """Nothing is in the way."""
    await asyncio.sleep(0)


def pumped(*offered, frame_class=FrameClass.LIVE, store=stored):
    """Let a pump take (route, sequence) one by one, in virtual time: no busy machine makes it late."""

    async def history(loop: VirtualLoop):
        pump = Pump(Lane.TELEMETRY, store, waiting_max=100, at_once=1, bytes_at_once=1 << 20, ack_every_s=0.05)
        task = loop.create_task(pump.run())
        for route, sequence in offered:
            pump.offer(Waiting(route, Record(BOOT, sequence, Kind.TELEMETRY, b""), frame_class=frame_class))
        await asyncio.sleep(1)
        task.cancel()

    run(1, history)


def test_one_batch_is_acknowledged_at_once():
    route = Route()
    pumped((route, 1))
    assert route.told == [1]


def test_who_sends_many_is_acknowledged_in_few_words_that_tell_of_all():
    route, other = Route(), Route()
    pumped(*((route, sequence) for sequence in range(1, 41)), (other, 1))
    assert route.told == [1, 40]
    assert other.told == [1], "who sends one batch does not wait for who sends many"


def test_a_backlog_is_acknowledged_in_one_word():
    route, other = Route(), Route()
    pumped(*((route, sequence) for sequence in range(1, 41)), (other, 1), frame_class=FrameClass.BACKLOG)
    assert (route.told, other.told) == ([40], [1])


def test_what_a_bug_kept_from_being_stored_is_given_back_and_what_comes_after_it_is_stored():
    route, bugs = Route(), [ZeroDivisionError("of one record")]

    async def store(taken):
        if bugs:
            raise bugs.pop()

    pumped((route, 1), (route, 2), store=store)
    assert (route.aborted, route.committed) == ([1], [2])
