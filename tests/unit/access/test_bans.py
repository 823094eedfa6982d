"""An Access knows the hosts that are banned, for tunnels to hosts that are connected elsewhere."""

import asyncio

from tests.unit.access.test_relay import HOST, world
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.v1 import services_pb2


async def test_who_is_banned_is_known_from_the_first_word_of_a_trunk_to_the_next_list() -> None:
    def said(*host_ids: str) -> services_pb2.TrunkItem:
        return services_pb2.TrunkItem(bans=services_pb2.BanList(host_ids=host_ids))

    async with world() as w:
        await w.master.close()
        w.master = await asyncio.wait_for(w.trunks.get(), PATIENCE_S)
        welcome = services_pb2.TrunkItem(welcome=services_pb2.TrunkWelcome(epoch=1, leader=True))
        await w.master.send(services_pb2.TrunkBatch(items=[welcome, said(HOST)]))
        await poll_async(lambda: w.relay.attached.is_set() and w.relay.banned == {HOST})
        await w.master.send(services_pb2.TrunkBatch(items=[said()]))
        await poll_async(lambda: not w.relay.banned)
