"""Remains of a stream that has ended: nothing that only a search for garbage would find."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.links import HOST, grpc_world
from tests.unit.access.test_relay import frame, world
from tests.waiting import poll_async
from windrow_access.outbox import Outbox
from windrow_proto.errors import LinkClosed
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2


def streams() -> int:
    """How many of an Access are in memory, ended or not."""
    return sum(isinstance(one, Outbox) for one in gc.get_objects())


@contextmanager
def no_search() -> Iterator[None]:
    """Meanwhile nobody looks for garbage."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("by", ["its host", "a ban", "its Master"])
async def test_a_stream_that_has_ended_is_out_of_memory_at_once(by: str) -> None:
    async with grpc_world() as certificates, world() as at:
        address = await certificates.agents(at.relay)  # type: ignore[arg-type]
        with no_search():
            before = streams()
            link = await certificates.dialer().connect(address, 30 * SECOND)
            await link.send(frame())
            await at.next_item("frame")
            assert streams() == before + 1
            if by == "its host":
                await link.close()
            elif by == "a ban":
                bans = services_pb2.BanList(host_ids=[HOST])
                await at.master.send(services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(bans=bans)]))
            else:
                await at.master.close()
            with pytest.raises(LinkClosed):
                await link.receive()
            del link
            await poll_async(lambda: streams() == before, what=by)
