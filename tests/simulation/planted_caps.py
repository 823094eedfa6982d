"""Planted bugs of what is bounded, hidden and urgent. How they are used: planted.py.

A bound that is gone shows where everything fills (Plan.tight).
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import structlog

from tests.simulation.planted_links import channels_shed_unseen, missing_pieces_unseen
from windrow_access.core.queues import BACKLOG, CHANNEL, EVIDENCE, LIVE, FairQueues
from windrow_access.relay import Relay
from windrow_agent.link.connection import Connection
from windrow_agent.link.spool import Spool
from windrow_agent.workloads.manager import WorkloadManager
from windrow_master.clusters import environments, launch
from windrow_master.clusters import repository as clusters_repository
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.service import IdentityService
from windrow_master.link.certificates import Certificates
from windrow_master.link.downlink import Downlink
from windrow_master.link.hub import LinkHub
from windrow_master.link.pumps import Pump
from windrow_master.link.route import HostRoute
from windrow_master.link.wire import Trunk, _size
from windrow_master.store.store import Store, _Job
from windrow_proto import keys
from windrow_proto.errors import Banned
from windrow_proto.intervals import Intervals
from windrow_proto.model import CommandKind, Event, Kind, Lane
from windrow_proto.units import MINUTE, SECOND
from windrow_proto.windows import ReceiveLane, SendWindow
from windrow_proto.wire import encode_record
from windrow_proto.wire_host import encode_event

log = structlog.get_logger()
EVER = 1 << 62
TIGHT = {"tight": True, "hosts": 6, "faulty_ns": 90 * SECOND, "fault_every_ns": 4 * SECOND}
LINES = ("weather", "cut one way", "reset streams")
ENDS = ("partition group", "kill agent", "reset streams")
COPIED = {"copies": True, "hosts": 8, "faulty_ns": 4 * MINUTE}


# --- I10: bounds ----------------------------------------------------------------------------------------------------


@contextmanager
def access_reads_on() -> Iterator[None]:
    """An Access reads from every host, however much of it waits."""
    with mock.patch.object(FairQueues, "may_read", lambda self, route: True):
        yield


@contextmanager
def access_sheds_nothing() -> Iterator[None]:
    """An Access keeps all samples until its trunk takes them."""
    with mock.patch.object(FairQueues, "_shed", lambda self: 0):
        yield


@contextmanager
def everybody_is_let_in() -> Iterator[None]:
    """An Access lets hosts in, however many of them wait to be announced."""
    admit = Relay._admit

    def lax(self: Relay, peer: Any) -> None:
        control, self._control = self._control, deque()
        try:
            admit(self, peer)
        finally:
            self._control = control

    with mock.patch.object(Relay, "_admit", lax):
        yield


@contextmanager
def trunk_takes_all() -> Iterator[None]:
    """Frames for an Access that takes nothing are kept for it."""

    def put(self: Trunk, item: Any, is_urgent: bool = True) -> None:
        self._items.append(item)
        self._bytes += _size(item)
        self._gather.nudge(is_urgent=is_urgent)

    with mock.patch.object(Trunk, "_put", put):
        yield


@contextmanager
def pump_takes_all() -> Iterator[None]:
    """Frames that come faster than they can be stored wait in the Master."""

    def offer(self: Pump, waiting: Any) -> None:
        self._waiting.append(waiting)
        self._wake.set()

    with mock.patch.object(Pump, "offer", offer):
        yield


@contextmanager
def store_takes_all() -> Iterator[None]:
    """Any number of writes may wait for the store."""

    async def write(self: Store, fn: Any, *, name: str, deadline_ns: int = 30 * SECOND, ahead: Any = None) -> Any:
        job = _Job(name, fn, asyncio.get_running_loop().create_future(), ahead)
        self._pending.append(job)
        self._flush_soon()
        return await self._answer(job, deadline_ns)

    with mock.patch.object(Store, "write", write):
        yield


@contextmanager
def boots_uncounted() -> Iterator[None]:
    """A connection may bring records of any number of boots."""

    def lane(self: HostRoute, of: Lane, boot: Any) -> ReceiveLane:
        found = self._lanes.get((of, boot))
        if found is None:
            committed = Intervals(tuple(self._committed.get(boot, ())))
            have = committed if of is Lane.EVIDENCE else self._telemetry_have(boot)
            found = self._lanes[of, boot] = self._moving[of, boot] = ReceiveLane(have)
        return found

    with mock.patch.object(HostRoute, "lane", lane):
        yield


@contextmanager
def window_without_end() -> Iterator[None]:
    """All that a host has not told is offered to its line at once."""
    offer = SendWindow.offer

    def generous(self: SendWindow, key: Any, is_live: bool) -> bool:
        count, self._count = self._count, 0
        try:
            return offer(self, key, is_live)
        finally:
            self._count += count

    with mock.patch.object(SendWindow, "offer", generous):
        yield


@contextmanager
def credits_ignored() -> Iterator[None]:
    """An agent sends all it has, whatever the Master has space for."""
    take = SendWindow.take

    def generous(self: SendWindow, limit: int, now_ns: int) -> Any:
        credits, self.credits = self.credits, EVER
        try:
            return take(self, limit, now_ns)
        finally:
            self.credits = credits

    with mock.patch.object(SendWindow, "take", generous):
        yield


@contextmanager
def ring_keeps_all() -> Iterator[None]:
    """Acknowledged frames are kept for ten minutes, however many they are."""

    def by_age(self: Spool, store: Any, now_ns: int) -> None:
        while store.ring:
            key, held = next(iter(store.ring.items()))
            if now_ns - (held.acked_ns or 0) <= self.caps.ring_age_ns:
                return
            store.drop_ringed(key)

    with mock.patch.object(Spool, "_age_ring", by_age):
        yield


@contextmanager
def spool_without_cap() -> Iterator[None]:
    """Samples are kept for as long as there is a disk."""
    with mock.patch.object(Spool, "_is_telemetry_full", lambda self, store, size: False):
        yield


@contextmanager
def evidence_without_cap() -> Iterator[None]:
    """And so is evidence."""
    make_room = Spool._make_room

    def none_needed(self: Spool, lane: Lane, size: int) -> Any:
        return [] if lane is Lane.EVIDENCE else make_room(self, lane, size)

    with mock.patch.object(Spool, "_make_room", none_needed):
        yield


@contextmanager
def cache_without_end() -> Iterator[None]:
    """Every record that was ever spooled is remembered until it is acknowledged."""

    def remember(self: Spool, lane: Any, key: Any, record: Any) -> None:
        self._cache[(lane, key)] = record
        self._cache_bytes += len(record.body)

    with mock.patch.object(Spool, "_remember", remember):
        yield


# --- I11: secrets ---------------------------------------------------------------------------------------------------


@contextmanager
def request_is_logged() -> Iterator[None]:
    """Requests of renters are written to the log for those who debug."""
    create = ClusterService.create

    async def telling(self: ClusterService, principal: Any, request: Any, *rest: Any, **more: Any) -> Any:
        log.debug("cluster_asked", actor=principal.actor, request=request)
        return await create(self, principal, request, *rest, **more)

    with mock.patch.object(ClusterService, "create", telling):
        yield


@contextmanager
def commands_in_the_open() -> Iterator[None]:
    """Commands are proved from end to end, and not encrypted, and their environment is not sealed to the host."""
    with (
        mock.patch.object(keys, "ENCRYPTED_KINDS", frozenset()),
        mock.patch.object(launch, "_sealed_for", lambda host, spec, cluster: spec),
    ):
        yield


@contextmanager
def environment_is_kept() -> Iterator[None]:
    """The row of a cluster has the values of its environment, and not their names alone."""
    with mock.patch.object(environments, "names_of", dict), mock.patch.object(clusters_repository, "names_of", dict):
        yield


@contextmanager
def environment_is_told() -> Iterator[None]:
    """An agent says in an event what it starts, and with what."""
    create = WorkloadManager.create

    async def telling(self: WorkloadManager, spec: Any, progress: Any) -> Any:
        event = Event("workload.begins", self._clock.wall_ns(), spec.workload_id, str(dict(spec.env)))
        await self._outbox.put(Lane.EVIDENCE, Kind.EVENT, encode_event(event))
        return await create(self, spec, progress)

    with mock.patch.object(WorkloadManager, "create", telling):
        yield


@contextmanager
def join_token_is_logged() -> Iterator[None]:
    """A token that was made is written to the log, so that it can be found again."""
    make = IdentityService.make_join_token

    async def telling(self: IdentityService, *asked: Any, **more: Any) -> Any:
        token, text = await make(self, *asked, **more)
        log.info("join_token_made", token_id=token.id, text=text)
        return token, text

    with mock.patch.object(IdentityService, "make_join_token", telling):
        yield


# --- I12: who goes first --------------------------------------------------------------------------------------------


@contextmanager
def samples_before_results() -> Iterator[None]:
    """An agent sends all that it has of samples first, since there are most of them, each as it is ready."""

    async def send_all(self: Connection) -> None:
        wake = self._outbox.wake
        while True:
            wake.clear()
            is_any = False
            while self._outbox.may_go(Lane.TELEMETRY) and (records := await self._outbox.take(Lane.TELEMETRY, 1)):
                for one, kind in records:
                    await self._link.send(self._sealed(one.kind, Lane.TELEMETRY, kind, encode_record(one)))
                is_any = True
            if not await self._send_urgent() and not is_any:
                await wake.wait()

    with mock.patch.object(Connection, "_send_all", send_all):
        yield


@contextmanager
def access_passes_samples_first() -> Iterator[None]:
    """An Access passes on what is fresh before what is sure to come."""
    take = FairQueues.take

    def hasty(self: FairQueues[Any, Any], count: int, bytes_max: int = EVER) -> Any:
        turns = self._turns
        self._turns = tuple(turns[place] for place in (LIVE, EVIDENCE, CHANNEL, BACKLOG))
        try:
            return take(self, count, bytes_max)
        finally:
            self._turns = turns

    with mock.patch.object(FairQueues, "take", hasty):
        yield


@contextmanager
def deletes_wait() -> Iterator[None]:
    """Deletes are told when a host has been quiet for a while: they only cost it work."""
    send = Downlink._send_commands

    def patient(self: Downlink, host_id: Any, rows: Any) -> Any:
        route = self._routes.get(host_id)
        is_quiet = route is not None and not route._moving and route.samples_acked_s < 0
        return send(self, host_id, [row for row in rows if is_quiet or row.kind is not CommandKind.DELETE])

    with mock.patch.object(Downlink, "_send_commands", patient):
        yield


# --- I7: older certificates -----------------------------------------------------------------------------------------


@contextmanager
def older_certificate_only_unanswered() -> Iterator[None]:
    """A host that shows an older certificate is not told that it is alive, and is served all the same."""
    beat = LinkHub._beat

    async def lax(self: Certificates, opening: Any) -> Any:
        facts = await self._identities.host_facts(opening.host_id)
        if facts is None or facts.is_banned:
            raise Banned(subject=opening.host_id)
        self._generations[opening.host_id] = max(self._generations.get(opening.host_id, 0), facts.used_generation)
        return facts

    def silent(self: LinkHub, route: Any, envelope: Any) -> None:
        if not self._certificates.is_older(route.opening):
            beat(self, route, envelope)

    with mock.patch.object(Certificates, "check", lax), mock.patch.object(LinkHub, "_beat", silent):
        yield


CAP_BUGS = (
    ("an Access that reads on", "I10", access_reads_on, LINES, TIGHT),
    ("an Access that sheds nothing", "I10", access_sheds_nothing, LINES, TIGHT | {"hosts": 12}),
    ("everybody is let in", "I10", everybody_is_let_in, LINES, TIGHT | {"hosts": 12}),
    ("a trunk that takes all", "I10", trunk_takes_all, LINES, TIGHT | {"hosts": 12}),
    ("a pump that takes all", "I10", pump_takes_all, (*LINES, "fail disk of master"), TIGHT | {"hosts": 12}),
    ("a store that takes all", "I10", store_takes_all, ENDS, TIGHT),
    ("boots uncounted", "I10", boots_uncounted, ENDS, TIGHT),
    ("a window without an end", "I10", window_without_end, ENDS, TIGHT),
    ("credits ignored", "I10", credits_ignored, ENDS, TIGHT),
    ("a ring that keeps all", "I10", ring_keeps_all, ENDS, TIGHT),
    ("a spool without a cap", "I10", spool_without_cap, ("isolate host",), TIGHT | {"hosts": 4}),
    ("evidence without a cap", "I10", evidence_without_cap, ("isolate host", "kill agent"), TIGHT | {"hosts": 4}),
    ("a cache without an end", "I10", cache_without_end, ENDS, TIGHT),
    ("a missing piece unseen", "I1", missing_pieces_unseen, ("relay misbehaves",), {"hosts": 6}),
    ("channels shed unseen", "I1", channels_shed_unseen, LINES, {"hosts": 12}),
    ("what is asked for is logged", "I11", request_is_logged, ENDS, {"hosts": 2, "faulty_ns": 60 * SECOND}),
    ("commands in the open", "I11", commands_in_the_open, ENDS, {"hosts": 2, "faulty_ns": 60 * SECOND}),
    ("an environment in a row", "I11", environment_is_kept, ENDS, {"hosts": 2, "faulty_ns": 60 * SECOND}),
    ("an event that says with what", "I11", environment_is_told, ENDS, {"hosts": 2, "faulty_ns": 60 * SECOND}),
    ("a join token in a log", "I11", join_token_is_logged, ENDS, {"hosts": 2, "faulty_ns": 60 * SECOND}),
    ("samples before results", "I12", samples_before_results, ENDS),
    ("an Access that passes samples first", "I12", access_passes_samples_first, LINES),
    ("deletes wait", "I12", deletes_wait, ENDS),
    ("an older certificate only unanswered", "I7", older_certificate_only_unanswered, ("copy host",), COPIED),
)
"""Name, promise, how it is planted, faults and what of the plan is otherwise: see planted.Bug."""
