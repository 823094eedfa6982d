"""Limits of what may wait, by place: the judges' own copy of the caps (I10), and a watch that looks at what does wait.

The watch asks no service: it measures the queues themselves, frame by frame and file by file, every two virtual
seconds and at each fault. It takes no step of the loop, so that a history is the same with it and without it. No
history comes near to the shipped caps, so a plan may make them small (`Plan.tight`): the same code with other
constants, where everything fills that can.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from windrow_access import outbox as access_outbox
from windrow_access import relay
from windrow_agent.link import connection, spool
from windrow_agent.link.spool import SpoolCaps
from windrow_agent.report import sampler
from windrow_agent.workloads import channels
from windrow_master.link import downlink, pumps, wire
from windrow_master.link import route as trunk_route
from windrow_master.store import store
from windrow_proto import link_memory_stream, windows
from windrow_proto.model import Lane
from windrow_proto.units import KIB, MIB, MILLISECOND, SECOND

if TYPE_CHECKING:
    from tests.simulation.machines import AccessMachine, HostMachine
    from tests.simulation.world import World

FRAME: Final = 1 * KIB
"""The bytes that an Access counts for each frame beside what it carries."""
MESSAGE: Final = 1 * MIB + 64 * KIB
"""The largest of a trunk: it is taken whole by who has space for a byte."""
TIGHT_MESSAGE: Final = 4 * KIB
"""Far more than the largest in a history."""
SEGMENT: Final = 2 * MIB
"""Of a spool; what tells of a loss is written before what is lost goes."""
TIGHT_SEGMENT: Final = 2 * KIB
SHIPPED: Final[dict[str, int]] = {
    "access: evidence and channels of a host that is read": 2 * MIB,
    "access: all of a host that is read": 8 * MIB,
    "access: samples": 256 * MIB,
    "access: openings": 50_000,
    "access: down to one host": 4 * MIB,
    "master: down one trunk": 64 * MIB + MESSAGE,
    "master: evidence": 16_384,
    "master: samples": 32_768,
    "master: writes": 8_192,
    "master: bytes for the log": 64 * MIB,
    "master: lanes of one host": 2 * 64,
    "master: channels of one host": 192,
    "agent: control": 64,
    "agent: channels": 32,
    "agent: evidence offered": 4_096,
    "agent: samples offered": 4_096,
    "agent: evidence in flight": 128,
    "agent: samples in flight": 256,
    "agent: taken samples": 1_200,
    "agent: cache": 1 * MIB,
    "agent: ring": 16 * MIB,
    "disk: evidence": 64 * MIB + SEGMENT,
    "disk: samples": 256 * MIB + SEGMENT,
    "disk: journal": 32 * MIB,
}
"""As the modules say, written down a second time on purpose. The 64 GiB of the log are out of a history's reach."""
TIGHT: Final[dict[str, int]] = SHIPPED | {
    "access: evidence and channels of a host that is read": 2 * KIB,
    "access: all of a host that is read": 4 * KIB,
    "access: samples": 8 * KIB,
    "access: openings": 2,
    "access: down to one host": 12 * KIB,
    "master: down one trunk": 2 * KIB + TIGHT_MESSAGE,
    "master: evidence": 3,
    "master: samples": 3,
    "master: writes": 1,
    "master: lanes of one host": 2 * 2,
    "agent: control": 1,
    "agent: evidence offered": 8,
    "agent: samples offered": 8,
    "agent: evidence in flight": 4,
    "agent: samples in flight": 4,
    "agent: taken samples": 2,
    "agent: cache": 4 * KIB,
    "agent: ring": 2 * KIB,
    "disk: evidence": 8 * KIB + TIGHT_SEGMENT,
    "disk: samples": 4 * KIB + TIGHT_SEGMENT,
}
SMALLER: Final = (
    (link_memory_stream, "WINDOW_BYTES", 1 * KIB),
    (relay, "QUEUE_BYTES_MAX", 8 * KIB),
    (relay, "QUEUE_ROUTE_BYTES_MAX", 2 * KIB),
    (relay, "QUEUE_ROUTE_ALL_BYTES_MAX", 4 * KIB),
    (relay, "CONTROL_MAX", 2),
    (wire, "QUEUED_BYTES_MAX", 2 * KIB),
    (pumps, "EVIDENCE_WAITING_MAX", 3),
    (pumps, "TELEMETRY_WAITING_MAX", 3),
    (store, "PENDING_MAX", 1),
    (trunk_route, "BOOTS_MAX", 2),
    (connection, "CONTROL_MAX", 1),
    (channels, "CHANNEL_CHUNK_BYTES", 256),
    (sampler, "SAMPLES_MAX", 2),
    (spool, "CACHE_BYTES", 4 * KIB),
    (windows, "WINDOW_RECORDS_MAX", 8),
    (downlink, "AHEAD_BYTES_MAX", 2 * KIB),
    (downlink, "EVIDENCE_CREDITS", 4),
    (downlink, "TELEMETRY_CREDITS", 4),
)
"""Lines take little at a time, so that what is said waits where it is said."""
SMALL_SPOOL: Final = {
    "telemetry_bytes": 4 * KIB,
    "evidence_bytes": 8 * KIB,
    "ring_bytes": 2 * KIB,
    "segment_bytes": TIGHT_SEGMENT,
    "free_bytes_min": 0,
}
SMALL_OUTBOX: Final = 12 * KIB
LOOK_NS: Final = 2 * SECOND
LOOK_TIGHT_NS: Final = 50 * MILLISECOND
HOSTS_TURNS: Final = 10
"""Of the hosts a tenth is looked at each time, and all of them at a fault."""


@contextmanager
def tightened(is_tight: bool) -> Iterator[None]:
    """Let all caps be small while this is open, if a plan wants it."""
    with ExitStack() as stack:
        if is_tight:
            for module, name, value in SMALLER:
                stack.enter_context(mock.patch.object(module, name, value))
            held = SpoolCaps()
            caps = tuple(SMALL_SPOOL.get(name, getattr(held, name)) for name in SpoolCaps.__dataclass_fields__)
            stack.enter_context(mock.patch.object(SpoolCaps.__init__, "__defaults__", caps))
            stack.enter_context(mock.patch.object(access_outbox.Outbox.__init__, "__defaults__", (SMALL_OUTBOX,)))
        yield


class Watch:
    """The most that ever waited in each place. over: of what was above its cap the first, by place, in words."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._caps = TIGHT if world.plan.tight else SHIPPED
        self._every_ns = LOOK_TIGHT_NS if world.plan.tight else LOOK_NS
        self._turn = 0
        self.most: dict[str, int] = {}
        self.over: dict[str, str] = {}

    def look(self, now_ns: int, is_fault: bool) -> int:
        """Measure everything, of the hosts some; returns when to look again."""
        self._accesses()
        self._master()
        hosts = self._world.hosts
        self._turn = (self._turn + 1) % HOSTS_TURNS
        for host in hosts if is_fault or self._world.plan.tight else hosts[self._turn :: HOSTS_TURNS]:
            self._agent(host)
            self._disk(host)
        return now_ns + self._every_ns

    def note(self, place: str, who: str, amount: int) -> None:
        """So much waits there now."""
        if amount <= self.most.get(place, 0):
            return
        self.most[place] = amount
        cap = self._caps[place]
        if amount > cap:
            at_s = self._world.clock.monotonic_ns() / SECOND
            self.over.setdefault(place, f"{place}: {amount} at {who} after {at_s:.1f} s, its cap is {cap}")

    # --- where things wait ----------------------------------------------------------------------------------------

    def _accesses(self) -> None:
        for access in self._world.accesses:
            acceptor: Any = self._world.network._acceptors.get(access.address)
            if acceptor is None:
                continue
            relay = acceptor._relay
            self.note("access: openings", access.name, sum(item.HasField("opened") for item in relay._control))
            for route in relay._routes.all():
                stream = route.stream
                if stream._urgent or stream._bulk:
                    waiting = (*stream._urgent, *stream._bulk)
                    self.note("access: down to one host", access.name, sum(map(_size, waiting)))
            if any(relay._queues._turns):
                self._upward(access.name, relay._queues._turns)

    def _upward(self, who: str, turns: Any) -> None:
        of_host: dict[int, list[int]] = {}
        for frame_class, queue in enumerate(turns):
            for route, turn in queue.items():
                size = sum(_size(item.frame) for _, item in turn.items)
                of_host.setdefault(route, [0, 0, 0, 0])[frame_class] = size
        self.note("access: samples", who, sum(sizes[1] + sizes[3] for sizes in of_host.values()))

    def read_on(self, access: "AccessMachine", link: Any) -> None:
        """An Access has read a message of this stream, and not yet put it to what waits of it already."""
        acceptor: Any = self._world.network._acceptors.get(access.address)
        if acceptor is None:
            return
        relay = acceptor._relay
        if link.route is None:
            link.route = relay._routes.of_host(link.host_id).route  # at its first message it is the newest
        if not any(relay._queues._turns):
            return
        sizes = [
            sum(_size(item.frame) for _, item in turns[link.route].items) if link.route in turns else 0
            for turns in relay._queues._turns
        ]
        self.note("access: evidence and channels of a host that is read", link.host_id, sizes[0] + sizes[2])
        self.note("access: all of a host that is read", link.host_id, sum(sizes))

    def _master(self) -> None:
        rooms = self._world.master.rooms
        if rooms is None:
            return
        hub, who = rooms.hub, "the Master"
        for trunk in hub._trunks:
            self.note("master: down one trunk", who, sum(len(item.frame.sealed) + 64 for item in trunk._items))
            routes = trunk.routes.values()
            self.note("master: lanes of one host", trunk.access_id, max((len(one._lanes) for one in routes), default=0))
            channels = max((len(one._channels) for one in routes), default=0)
            self.note("master: channels of one host", trunk.access_id, channels)
        self.note("master: evidence", who, len(hub._evidence._waiting))
        self.note("master: samples", who, len(hub._samples._waiting))
        jobs = {id(job): job for job in (*rooms.telemetry.log._pending, *rooms.telemetry.log._under_way.values())}
        if jobs:
            size = sum(len(payload) for job in jobs.values() for payload in job.payloads)
            self.note("master: bytes for the log", who, size)

    def asked_to_write(self) -> None:
        """The Master's store was asked for one more write."""
        rooms = self._world.master.rooms
        if rooms is not None:
            self.note("master: writes", "the Master", len(rooms.store._pending))

    def _agent(self, host: "HostMachine") -> None:
        service: Any = host.service
        if not host.is_up or not hasattr(service, "gpu_visibility"):
            return  # it has not read its disk yet
        note, who = self.note, host.name
        line = service._connection
        if line is not None:
            note("agent: control", who, len(line._control))
            note("agent: channels", who, len(line._channel))
        evidence, samples = service.outbox._windows[Lane.EVIDENCE], service.outbox._windows[Lane.TELEMETRY]
        note("agent: evidence offered", who, sum(map(len, evidence._known.values())))
        note("agent: samples offered", who, sum(map(len, samples._known.values())))
        note("agent: evidence in flight", who, len(evidence._in_flight))
        note("agent: samples in flight", who, len(samples._in_flight))
        note("agent: taken samples", who, len(service.parts.sampler._samples))
        spool = service.outbox._spool
        note("agent: cache", who, sum([len(record.body) for record in spool._cache.values()]))
        note("agent: ring", who, sum([held.size for held in spool._lanes[Lane.TELEMETRY].ring.values()]))

    def _disk(self, host: "HostMachine") -> None:
        evidence = samples = journal = 0
        for path, file in host.disk._names.items():
            if path.startswith("/agent/spool/evidence"):
                evidence += len(file.data)
            elif path.startswith("/agent/spool/"):
                samples += len(file.data)
            elif path.startswith("/agent/journal"):
                journal += len(file.data)
        self.note("disk: evidence", host.name, evidence)
        self.note("disk: samples", host.name, samples)
        self.note("disk: journal", host.name, journal)


def _size(frame: Any) -> int:
    return len(frame.sealed) + FRAME
