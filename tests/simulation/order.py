"""Records the order in which things are passed on: an onlooker in every Access and on every trunk, who opens nothing
(I12).

What is urgent has the lanes of control and evidence, and a sample waits for it: on the host, where a result is on the
disk or a heartbeat is said, and in the Access, where either waits for the trunk.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from windrow_proto.model import Lane
from windrow_proto.ports import FrameLink, PeerFacts, TrunkLink
from windrow_proto.v1 import link_pb2, services_pb2

if TYPE_CHECKING:
    from tests.simulation.world import World
    from windrow_master.app.wiring import Master

KEPT_MAX: Final = 20_000
"""Frames that came to an Access and not to the Master: most went with their trunk, the older half is forgotten."""
SAMPLES: Final = int(Lane.TELEMETRY)
URGENT: Final = frozenset({int(Lane.CONTROL), int(Lane.EVIDENCE)})


class Order:
    """Records the order in which messages came. late: in words, what samples went before."""

    def __init__(self) -> None:
        self.late: list[str] = []
        self.waiting: Callable[[str, FrameLink], object | None] = lambda host, link: None
        """The urgent frames on this host that could go by this connection and have not gone."""
        self._waited: dict[str, object] = {}
        self._came: dict[bytes, int] = {}
        self._count = 0

    def said(self, host: str, link: FrameLink, frame: link_pb2.Frame) -> None:
        """A host sends a message of samples now: what is urgent may have come up since the last one, and no earlier."""
        if frame.lane != SAMPLES:
            return
        waits = self.waiting(host, link)
        if waits is None:
            self._waited.pop(host, None)
        elif self._waited.get(host) == waits:
            self.late.append(f"{host} sent samples, twice, while {waits} waited there")
        else:
            self._waited[host] = waits

    def came(self, frame: link_pb2.Frame) -> None:
        """An Access has this message of a host whole."""
        for one in (frame, *frame.more):
            self._count += 1
            self._came[one.sealed] = self._count
        if len(self._came) > KEPT_MAX:
            for sealed in list(self._came)[: KEPT_MAX // 2]:
                del self._came[sealed]

    def passed(self, frame: link_pb2.Frame, newest: int) -> int:
        """The Master has it. newest: of the samples that came by this trunk, the one that the Access had last."""
        place = self._came.pop(frame.sealed, None)
        if place is None:
            return newest  # said twice, or of before
        if frame.lane == SAMPLES:
            return max(newest, place)
        if frame.lane in URGENT and place < newest:
            self.late.append(f"an Access passed samples on before frame {frame.sequence} of lane {frame.lane}")
        return newest


class ReadTrunk:
    """A trunk that the onlooker reads along at the Master's end."""

    def __init__(self, link: TrunkLink, order: Order) -> None:
        self._link, self._order, self._newest = link, order, 0

    async def send(self, batch: services_pb2.TrunkBatch) -> None:
        """As it is."""
        await self._link.send(batch)

    async def receive(self) -> services_pb2.TrunkBatch:
        """As it is, and noted."""
        batch = await self._link.receive()
        for item in batch.items:
            if item.HasField("frame"):
                self._newest = self._order.passed(item.frame, self._newest)
        return batch

    async def close(self) -> None:
        """As it is."""
        await self._link.close()


def read_trunks(rooms: "Master", order: Order) -> None:
    """Have every trunk to this Master read along."""
    attached = rooms.hub.attached

    async def tapped(peer: PeerFacts, trunk: TrunkLink) -> None:
        await attached(peer, ReadTrunk(trunk, order))

    rooms.hub.attached = tapped  # type: ignore[method-assign]


def urgent_waiting(world: "World", host: str, link: FrameLink) -> object | None:
    """The first heartbeat or the like that was said on this connection and has not gone; or the first record of the
    evidence lane on the host's disk that is not under way, as long as the Master's credits last. None: nothing."""
    service: Any = next((machine.service for machine in world.hosts if machine.name == host), None)
    line = None if service is None else service._connection
    if line is None or line._link is not link:
        return None
    if line._control:
        said: object = line._control[0]
        return said
    outbox = service.outbox
    window = outbox._windows[Lane.EVIDENCE]
    if len(window._in_flight) >= window.credits:
        return None
    return next((key for key in outbox._spool._lanes[Lane.EVIDENCE].held if key not in window._in_flight), None)
