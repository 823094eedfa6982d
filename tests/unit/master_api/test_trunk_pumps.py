"""The pumps store what hosts sent and let it be acknowledged: at once, or with what comes a moment later."""

import asyncio

import pytest

from tests.waiting import poll_async
from windrow_master.api.trunk_pumps import Pump, Waiting
from windrow_proto.ids import BootId
from windrow_proto.messages import Record
from windrow_proto.model import Kind, Lane

BOOT = BootId(b"b" * 16)


class Route:
    """What a pump asks of a route, counted."""

    def __init__(self):
        self.samples_acked_s = float("-inf")
        self.committed, self.told = [], []

    def commit(self, lane, boot, sequences):
        self.committed += sequences

    def flush_acks(self):
        self.told.append(len(self.committed))


@pytest.fixture
async def pump():
    async def store(taken):
        await asyncio.sleep(0)

    made = Pump(Lane.TELEMETRY, store, waiting_max=100, at_once=1, bytes_at_once=1 << 20, ack_every_s=0.05)
    task = asyncio.get_running_loop().create_task(made.run())
    yield made
    task.cancel()


def offer(pump, route, sequence):
    pump.offer(Waiting(route, Record(BOOT, sequence, Kind.TELEMETRY, b"")))


async def test_one_batch_is_acknowledged_at_once(pump):
    route = Route()
    offer(pump, route, 1)
    await poll_async(lambda: route.told == [1])


async def test_a_backlog_is_acknowledged_in_few_words_that_tell_of_all(pump):
    route, other = Route(), Route()
    for sequence in range(1, 41):
        offer(pump, route, sequence)
    offer(pump, other, 1)
    await poll_async(lambda: route.told[-1:] == [40])
    assert route.told == [1, 40]
    assert other.told == [1], "who sends one batch does not wait for who sends many"
