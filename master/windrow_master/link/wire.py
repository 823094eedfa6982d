"""One trunk: its queue of messages to the Access, in batches of up to 64 items, and the facts about that Access."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from windrow_master.link.route import HostRoute
from windrow_proto.canary import Outflow
from windrow_proto.errors import DeadlineExceeded, Forbidden, InvalidInput, LinkClosed
from windrow_proto.gather import Gather
from windrow_proto.messages import AccessPoint
from windrow_proto.patience import Patience
from windrow_proto.ports import TrunkLink
from windrow_proto.service_names import check_place
from windrow_proto.units import MIB, time_text
from windrow_proto.v1 import link_pb2, services_pb2

ITEMS_PER_BATCH: Final = 64
BATCH_BYTES_MAX: Final = 2 * MIB
QUEUED_BYTES_MAX: Final = 64 * MIB
"""An Access that does not take this much is not working; its trunk is ended and its agents go elsewhere."""
HELLO_DEADLINE_S: Final = 10.0
SEND_DEADLINE_S: Final = 20.0
SILENCE_S: Final = 30.0
"""An Access reports its load every 5 s; after this long without a word its trunk is dead."""


async def hello_of(trunk: TrunkLink, access_id: str) -> services_pb2.TrunkHello:
    """The first word on a trunk of this Access. Raises DeadlineExceeded when it does not come, Forbidden for another
    one."""
    try:
        async with asyncio.timeout(HELLO_DEADLINE_S):
            first = await trunk.receive()
    except TimeoutError:
        raise DeadlineExceeded("The trunk's hello did not come in time.", subject=access_id) from None
    hello = next((item.hello for item in first.items if item.WhichOneof("what") == "hello"), None)
    if hello is None or hello.access_id != access_id:
        raise Forbidden("A trunk begins with the hello of the relay that its certificate names.")
    return hello


class Trunk:
    """One Access worker's stream, with the routes on it by their number."""

    def __init__(self, link: TrunkLink, hello: services_pb2.TrunkHello, address: str, attached_ns: int) -> None:
        self._link = link
        self.access_id, self.region = hello.access_id[:128], hello.region[:64]
        self.worker, self.address = hello.worker, hello.address[:128]
        self.version = hello.version[:64]
        self.tunnel_address, self.tunnel_host_address = hello.tunnel_address[:256], hello.tunnel_host_address[:256]
        self.tunnels_of_others = hello.tunnels_of_others
        self.service_place = check_place(hello.service_address[:256])
        self.peer = address
        self.attached_ns = attached_ns
        self.routes: dict[int, HostRoute] = {}
        self.asks: dict[int, asyncio.Task[None]] = {}
        self.load = services_pb2.LoadReport()
        self.outflow = Outflow()
        self._items: deque[services_pb2.TrunkItem] = deque()
        self._bytes = 0
        self._gather = Gather()
        self._is_broken = False

    async def read(self, take: Callable[[services_pb2.TrunkItem], None]) -> None:
        """Give all that comes up to `take`; until it ends, says what cannot be read, or is silent for too long."""
        with contextlib.suppress(TimeoutError):
            async with Patience(SILENCE_S) as patience:
                while True:
                    patience.renew()
                    try:
                        batch = await self._link.receive()
                    except (LinkClosed, InvalidInput):
                        return
                    for item in batch.items:
                        take(item)

    def hear_load(self, load: services_pb2.LoadReport) -> None:
        """Take in what it says of itself."""
        self.load = load
        self.outflow = Outflow(self.outflow.empty + (not load.queued_bytes), load.shed_frames)

    async def write(self) -> None:
        """Send what is put, until cancelled; ends the link when the peer does not take it."""
        try:
            async with Patience(SEND_DEADLINE_S) as patience:
                while not self._is_broken:
                    await self._gather.wait()
                    while self._items:
                        patience.renew()
                        await self._link.send(self._batch())
                        patience.rest()
        except (TimeoutError, LinkClosed):
            self._is_broken = True
        await self._link.close()

    def _batch(self) -> services_pb2.TrunkBatch:
        """The next of what waits."""
        items: list[services_pb2.TrunkItem] = []
        size = 0
        while self._items and len(items) < ITEMS_PER_BATCH and size < BATCH_BYTES_MAX:
            item = self._items.popleft()
            size += _size(item)
            items.append(item)
        self._bytes -= size
        return services_pb2.TrunkBatch(items=items)

    def put_frame(self, route: int, frame: link_pb2.Frame, is_urgent: bool) -> None:
        """Queue a frame for one route. Raises LinkClosed when this trunk does not move."""
        self._put(services_pb2.TrunkItem(route=route, frame=frame), is_urgent)

    def put_close(self, route: int, code: str, reason: str) -> None:
        """Queue the end of a route, with why."""
        close = services_pb2.RouteClose(code=code, reason=reason[:300])
        try:
            self._put(services_pb2.TrunkItem(route=route, close=close))
        except LinkClosed:
            pass  # the trunk's own end closes the route

    def put_bans(self, host_ids: Sequence[str]) -> None:
        """Queue the list of hosts that must not connect."""
        try:
            self._put(services_pb2.TrunkItem(route=0, bans=services_pb2.BanList(host_ids=host_ids)))
        except LinkClosed:
            pass

    def put_drain(self, draining: bool) -> None:
        """Queue the word that this Access is drained, or that it is not any more."""
        try:
            self._put(services_pb2.TrunkItem(route=0, drain=services_pb2.TrunkDrain(draining=draining)))
        except LinkClosed:
            pass  # the next trunk's welcome says it

    def put_letter(self, letter: services_pb2.Letter) -> None:
        """Queue the answer to a host that wrote over this Access."""
        try:
            self._put(services_pb2.TrunkItem(letter=letter))
        except LinkClosed:
            pass  # it writes again

    def put_answer(self, answer: services_pb2.ServiceAnswer) -> None:
        """Queue the answer to an Access that asked for a service."""
        try:
            self._put(services_pb2.TrunkItem(service_answer=answer))
        except LinkClosed:
            pass  # nobody waits for it

    def greet(self, epoch: int, host_ids: Sequence[str], *, draining: bool) -> None:
        """Queue the answer to the trunk's hello."""
        welcome = services_pb2.TrunkWelcome(
            epoch=epoch, frames_per_batch=ITEMS_PER_BATCH, leader=True, draining=draining
        )
        self._put(services_pb2.TrunkItem(route=0, welcome=welcome))
        self.put_bans(host_ids)

    def _put(self, item: services_pb2.TrunkItem, is_urgent: bool = True) -> None:
        if self._is_broken or self._bytes > QUEUED_BYTES_MAX:
            self._is_broken = True
            self._gather.nudge(is_urgent=True)
            raise LinkClosed("The relay does not take what is sent to it.", subject=self.access_id)
        self._items.append(item)
        self._bytes += _size(item)
        self._gather.nudge(is_urgent=is_urgent)

    def point(self, *, draining: bool) -> AccessPoint:
        """Return how agents find this Access."""
        return AccessPoint(self.access_id, self.region, self.address, min(self.load.load_permille, 1000), draining)

    @staticmethod
    def summary(access_id: str, trunks: "Sequence[Trunk]") -> dict[str, Any]:
        """One Access with all its workers, for operators."""
        return {
            "access_id": access_id,
            "region": trunks[0].region,
            "address": trunks[0].address,
            "workers": len(trunks),
            "version": trunks[0].version,
            "agents": sum(not route.is_second for trunk in trunks for route in trunk.routes.values()),
            "load_permille": max(trunk.load.load_permille for trunk in trunks),
            "shed_frames": sum(trunk.load.shed_frames for trunk in trunks),
            "queued_bytes": sum(trunk.load.queued_bytes for trunk in trunks),
            "connected_since": time_text(min(trunk.attached_ns for trunk in trunks)),
        }


def _size(item: services_pb2.TrunkItem) -> int:
    return len(item.frame.sealed) + 64
