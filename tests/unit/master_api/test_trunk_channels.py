"""The Master's end of a channel keeps to what the host gave credit for, to the byte."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.link.channels import ChannelPipe
from windrow_proto.errors import InvalidInput
from windrow_proto.messages import CHANNEL_CHUNK_BYTES, Channel, ChannelCredit, ChannelData

WINDOW = 2 * CHANNEL_CHUNK_BYTES


class CountingHost:
    """Takes data in as slowly as it is told, and remembers the most that lay with it."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.taken = self.most = 0
        self.pipe = ChannelPipe(1, WINDOW, self._on, lambda number: None)

    @property
    def lying(self) -> int:
        """Bytes that came and were not taken."""
        return sum(self.pieces) - self.taken

    def _on(self, channel: Channel) -> None:
        assert isinstance(channel.step, ChannelData)
        self.pieces.append(len(channel.step.data))
        self.most = max(self.most, self.lying)

    def take(self, count: int) -> None:
        """Take in so many bytes of those that lie here, and give credit for them."""
        count = min(count, self.lying)
        self.taken += count
        if count:
            self.pipe.on_step(ChannelCredit(count))


@given(
    chunks=st.lists(st.integers(1, CHANNEL_CHUNK_BYTES), min_size=1, max_size=60),
    takes=st.lists(st.integers(1, CHANNEL_CHUNK_BYTES), min_size=1, max_size=20),
)
def test_never_more_lies_with_the_host_than_it_gave_credit_for(chunks: list[int], takes: list[int]) -> None:
    async def run() -> CountingHost:
        host = CountingHost()

        async def send_all() -> None:
            for size in chunks:
                await host.pipe.send(b"x" * size)

        async with asyncio.TaskGroup() as group:
            sending = group.create_task(send_all())
            turn = 0
            while not sending.done():
                await asyncio.sleep(0)
                host.take(takes[turn % len(takes)])
                turn += 1
        return host

    host = asyncio.run(run())
    assert host.pieces == chunks
    assert host.most <= WINDOW


async def test_a_chunk_waits_until_there_is_credit_for_all_of_it() -> None:
    host = CountingHost()
    for _ in range(WINDOW // CHANNEL_CHUNK_BYTES - 1):
        await host.pipe.send(b"x" * CHANNEL_CHUNK_BYTES)
    await host.pipe.send(b"x")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await host.pipe.send(b"y" * CHANNEL_CHUNK_BYTES)
    assert host.lying == WINDOW - CHANNEL_CHUNK_BYTES + 1
    host.take(1)
    await host.pipe.send(b"y" * CHANNEL_CHUNK_BYTES)
    assert host.lying == WINDOW


async def test_a_chunk_of_more_than_it_may_have_is_refused() -> None:
    host = CountingHost()
    with pytest.raises(InvalidInput):
        await host.pipe.send(b"x" * (CHANNEL_CHUNK_BYTES + 1))
    assert host.pieces == []
