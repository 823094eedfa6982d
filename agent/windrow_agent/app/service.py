"""The agent of one host: wires sampling, workloads, spool and link together, supervises them, and stops in order.

Heartbeats go out as soon as there is a link, whatever the driver, the disk's past or a container daemon do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from windrow_agent.challenge.prover_pool import COMMAND as PROVER
from windrow_agent.challenge.service import ChallengeService
from windrow_agent.core.access_choice import to_tell
from windrow_agent.core.layout import Layouts
from windrow_agent.link.access_connector import AccessConnector, Ask, Look, PreparedConnection, ask_nobody, look_nowhere
from windrow_agent.link.bandwidth_budget import BandwidthBudget, LineLimits
from windrow_agent.link.bandwidth_probe import is_busy, measure
from windrow_agent.link.connection import Connection, Greeting
from windrow_agent.link.outbox import Outbox
from windrow_agent.link.region_map_store import RegionMapStore
from windrow_agent.link.spool import Spool, SpoolCaps
from windrow_agent.loops import again, ends_alone
from windrow_agent.overlay.manager import OverlayManager
from windrow_agent.report.bought_host import BoughtHost
from windrow_agent.report.reporter import Reporter, Sources
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes.port import Runtime
from windrow_agent.storage.cache_wipe import LeaseCaches
from windrow_agent.storage.disk_space import STORAGE_DAMAGED, DiskSpace
from windrow_agent.storage.journal import Journal, JournalWriter, epoch_fact
from windrow_agent.threads import Runner
from windrow_agent.workloads.channels import ChannelServer
from windrow_agent.workloads.commands import CommandExecutor
from windrow_agent.workloads.gpu_visibility_check import GpuVisibilityCheck
from windrow_agent.workloads.lease_exit_check import LeaseExitCheck
from windrow_agent.workloads.manager import WorkloadManager
from windrow_agent.workloads.meter import WorkloadMeter
from windrow_agent.workloads.partition import Partitioner
from windrow_proto.bandwidth import BandwidthResult
from windrow_proto.errors import CertificateRefused, LinkClosed, StorageFailed, Unavailable, WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.keys import SigningKey, TlsIdentity
from windrow_proto.messages import Heartbeat, RegionMap, Settings, Welcome
from windrow_proto.model import RELAYS_MAX, BandwidthSpec, Benchmark, Event, Kind, Lane
from windrow_proto.ports import Clock, Dialer, DialledLink, Disk, FrameLink, Rng
from windrow_proto.sealed import SEAL_KEY, SealKey
from windrow_proto.session import AgentSession
from windrow_proto.units import MILLISECOND, MINUTE, SECOND, seconds
from windrow_proto.wire import Envelope
from windrow_proto.wire_command import decode_command, decode_leases
from windrow_proto.wire_host import encode_bandwidth
from windrow_proto.wire_link import (
    decode_ack,
    decode_channel,
    decode_heartbeat_reply,
    decode_query,
    decode_region_map,
    decode_settings,
    encode_heartbeat,
)

log = structlog.get_logger()

DEFAULT_SETTINGS: Final = Settings(5 * SECOND, SECOND, 5 * SECOND, 64, 8, 262_144)
"""Until a Master has said otherwise."""
FLUSH_NS: Final = 3 * SECOND
"""At a stop: for the Master to take the last results; the rest stays in the spool."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that an agent is wired from. identity: asked anew at each connection, since certificates are renewed.

    measure_benchmarks: runs the host's own figures; runner: the thread of the disk; look: for Accesses beyond
    the map; ask: for a newer map; tls: whom tunnels trust, None where nothing can be reached by one; prover:
    the process that works for a card in a challenge; layouts: what its owner lets cards be cut into; line: what
    measurements may cost; faults: conditions of the process that it runs in; bought: the market bought this machine.
    """

    host_id: HostId
    signing: SigningKey
    master_public: bytes
    generation: Callable[[], int]
    regions: RegionMap
    dialer: Dialer
    clock: Clock
    rng: Rng
    disk: Disk
    directory: str
    runner: Runner
    kernel_boot: str
    sampler: Sampler
    runtimes: Mapping[str, Runtime]
    agent_version: str
    measure_benchmarks: Callable[[], Awaitable[tuple[Benchmark, ...]]]
    save_regions: Callable[[bytes], None] = lambda body: None
    benchmarks: tuple[Benchmark, ...] = ()
    spool_caps: SpoolCaps = field(default_factory=SpoolCaps)
    ballast_bytes: int = 0
    look: Look = look_nowhere
    ask: Ask = ask_nobody
    tls: Callable[[], TlsIdentity] | None = None
    prover: tuple[str, ...] = PROVER
    layouts: Layouts = field(default_factory=dict)
    line: LineLimits = field(default_factory=LineLimits)
    more: Mapping[str, str] = field(default_factory=dict)
    faults: Callable[[], Iterable[str]] = tuple
    bought: BoughtHost | None = None


class AgentService:
    """One host's agent. `run` until `stop` is called; `ended` tells when everything is down."""

    gpu_visibility: GpuVisibilityCheck

    def __init__(self, parts: Parts) -> None:
        self.parts, self.settings = parts, DEFAULT_SETTINGS
        self.boot_id = BootId(parts.rng.random_bytes(16))
        self.connected, self._stop, self._is_terminated = asyncio.Event(), asyncio.Event(), False
        self._began_ns = parts.clock.monotonic_ns()
        self._told_rtts: dict[str, int] = {}
        self._disk_space = DiskSpace(parts.disk, parts.directory, parts.ballast_bytes, parts.runner, parts.clock)
        self._connection: Connection | None = None
        self._channels: ChannelServer | None = None
        self._group: asyncio.TaskGroup | None = None
        self.overlays = OverlayManager(lambda: self.workloads, parts.clock, self._spawn)
        self._budget = BandwidthBudget(parts.line, parts.disk, parts.directory, parts.runner, parts.clock)
        self._maps = RegionMapStore(parts.save_regions, parts.runner, parts.clock, parts.rng)
        self.connector = AccessConnector(
            *(parts.host_id, parts.dialer, parts.clock, parts.rng, parts.regions, self._serve, parts.look, parts.ask),
            canaries=self,
            prepare=self._prepare,
        )

    # --- life -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask it to end; `run` returns when it has."""
        self._stop.set()

    def terminate(self) -> None:
        """The same by SIGTERM: where the market bought this machine and it shuts down, its work is moved first."""
        self._is_terminated = True
        self.stop()

    @property
    def is_idle(self) -> bool:
        """True if nothing runs and nothing waits to be sent."""
        return self.workloads.running() == 0 and not self.outbox.is_evidence_waiting

    @property
    def is_certificate_refused(self) -> bool:
        """True if an Access refused this host's certificate."""
        return isinstance(self.connector.refused, CertificateRefused)

    def renewed(self, regions: RegionMap) -> None:
        """There is a new certificate: use it from now on. regions: the newest map known, as the renewal brought it."""
        if regions.version > self.connector.regions.version:
            self.connector.regions = regions
        self.connector.refused = None
        self.connector.move()

    async def open(self) -> None:
        """Read the disk's past; raises StorageFailed if it cannot be read."""
        parts, clock = self.parts, self.parts.clock
        await self._disk_space.look()
        directory, on = parts.directory, self._disk_space.reserved
        journal = await parts.runner.call(lambda: Journal(on, f"{directory}/journal", clock.wall_ns, parts.kernel_boot))
        spool = await parts.runner.call(
            lambda: Spool(parts.disk, f"{directory}/spool", self.boot_id, clock.wall_ns, parts.spool_caps, on)
        )
        self.journal, self._writer = journal, JournalWriter(journal, parts.runner)
        self.outbox = Outbox(spool, parts.runner, clock)
        self.session = AgentSession(parts.host_id, self.boot_id, journal.epoch)
        self.caches = LeaseCaches(Path(parts.directory) / "cache", parts.signing, parts.host_id, clock, self.outbox)
        wipe = self.overlays.and_then(self.caches.wipe)
        self.workloads = WorkloadManager(
            *(self._writer, self.outbox, parts.runtimes, clock, parts.kernel_boot, self._spawn),
            lease_exit=LeaseExitCheck(lambda: parts.sampler.gpus, parts.sampler.look, clock, wipe),
            changed=lambda: self.report.changed(),
        )
        sampler = parts.sampler
        self.meter = WorkloadMeter(self.workloads, lambda: sampler.latest, sampler.add_workload, clock)
        self.challenges = ChallengeService(clock, self.workloads.leased_gpus, parts.prover)
        seal_key = SealKey.of(parts.signing)
        sources = Sources(
            *(parts.sampler, parts.runtimes, self.workloads.running, parts.agent_version),
            *(
                lambda: (
                    *(*self._disk_space.faults, *self.gpu_visibility.conditions),
                    *(*self.workloads.conditions, *parts.faults()),
                ),
                self.challenges.held,
            ),
            *(parts.layouts, {SEAL_KEY: seal_key.public, **parts.more}),
        )
        self.report = Reporter(sources, self.outbox, clock, parts.benchmarks)
        self.gpu_visibility = GpuVisibilityCheck(self.workloads, clock, self.report.changed, self.report.event)
        self.commands = CommandExecutor(
            *(self._writer, self.outbox, self.workloads, clock, parts.kernel_boot, self._spawn),
            *(self._measure_bandwidth, self._benchmark, lambda: self._disk_space.is_full),
            partitioner=Partitioner(parts.sampler, parts.layouts, self.challenges.held),
            overlays=self.overlays,
            seal_key=seal_key,
        )
        lost = spool.lost_bytes + sum(damage.lost_bytes for damage in journal.damaged if damage.reason != "torn_tail")
        if lost or journal.unreadable:
            self._disk_space.faults.add(STORAGE_DAMAGED)
            detail = f"{lost} bytes and {journal.unreadable} facts were unreadable"
            await self.report.event(Event(STORAGE_DAMAGED, clock.wall_ns(), "", detail))

    async def run(self) -> None:
        """Everything, until `stop`; then in order: no new work, last words sent, link closed, disk closed."""
        await self.open()
        log.info("agent_started", host_id=self.parts.host_id, boot=self.boot_id.hex()[:8])
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self.workloads.recover()
                await self.commands.recover()
                loops = (
                    (self.connector.run, "link"),
                    (self.parts.sampler.run, "sampler"),
                    (self.report.send_samples, "telemetry"),
                    (self.report.send_changes, "changes"),
                    (self.workloads.run, "workloads"),
                    (self.meter.run, "figures of workloads"),
                    (self.report.probe_runtimes, "runtimes"),
                    (self.gpu_visibility.run, "gpu visibility"),
                    (self._maps.run, "regions"),
                    (lambda: self._disk_space.keep(self.report.changed), "disk"),
                )
                common = self.parts.clock, self._disk_space.note
                tasks = [group.create_task(again(work, name, *common), name=name) for work, name in loops]
                bought = self.parts.bought
                if bought is not None:
                    watch = again(partial(bought.run, self.report.event), "bought host", *common)
                    tasks.append(group.create_task(watch, name="bought host"))
                await self._stop.wait()
                if bought is not None and self._is_terminated:
                    await bought.end(self.report.event, lambda: self.workloads.is_empty)
                await self._flush()
                for task in tasks:
                    task.cancel()
                raise _Stopped
        except* _Stopped:
            log.info("agent_stopped", host_id=self.parts.host_id)
        finally:
            await self._close()

    async def end_workloads(self) -> None:
        """Without a link: end all that runs here, with final receipts in the spool for the next start."""
        await self.open()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self.workloads.end_all()
                raise _Stopped
        except* _Stopped:
            log.info("workloads_ended", host_id=self.parts.host_id)
        finally:
            await self._close()

    async def _flush(self) -> None:
        end_ns = self.parts.clock.monotonic_ns() + FLUSH_NS
        while self.connected.is_set() and self.outbox.is_evidence_waiting:
            if self.parts.clock.monotonic_ns() >= end_ns:
                return
            await self.parts.clock.sleep_ns(20 * MILLISECOND)

    async def _close(self) -> None:
        await self.parts.dialer.close()
        for runtime in self.parts.runtimes.values():
            await runtime.close()
        for close in (self.outbox.close, self._writer.close):
            try:
                await close()
            except StorageFailed as error:
                log.error("not_closed", detail=error.detail)
        self.parts.runner.close()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """A task of this agent's group whose failure is told and does not take the others with it."""
        assert self._group is not None

        async def guarded() -> None:
            with ends_alone("task", name, self._disk_space.note):
                await work

        task = self._group.create_task(guarded(), name=name)
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step, it was never begun
        return task

    # --- the link -------------------------------------------------------------------------------------------------

    def _connected(self, link: FrameLink, session: AgentSession) -> Connection:
        parts = self.parts
        return Connection(link, session, parts.signing, parts.master_public, self.outbox, self, parts.clock, parts.rng)

    def _greeting(self) -> Greeting:
        parts = self.parts
        return Greeting(parts.agent_version, parts.generation(), self.report.hash, parts.sampler.simulated)

    async def _serve(self, link: FrameLink) -> None:
        await self._run(self._connected(link, self.session))

    async def _prepare(self, link: DialledLink) -> PreparedConnection:
        """Greet over a second Access, which serves when the first one dies."""
        connection = self._connected(link, self.session.second())
        await connection.prepare(self._greeting())
        return PreparedConnection(link, lambda: self._run(connection))

    async def _run(self, connection: Connection) -> None:
        if connection.session.epoch < self.session.epoch:
            await connection.close()
            raise LinkClosed("A later Master has been seen than the one of this second connection.")
        self.session = connection.session
        try:
            await connection.run(self._greeting(), self._heartbeats)
        finally:
            self._connection = self._channels = None
            self.connected.clear()

    async def welcomed(self, welcome: Welcome, connection: Connection) -> None:
        """The Master answered: remember its epoch before anything is believed under it."""
        self._heard()
        if welcome.epoch > self.journal.epoch:
            await self._writer.write([epoch_fact(welcome.epoch)])
        self._connection = connection
        if connection.is_second:  # what it was told a while ago may be old by now
            connection.settings = self.settings
            return
        self._set(welcome.settings)
        if welcome.inventory_wanted:
            self.report.inventory_wanted()

    async def _heartbeats(self, connection: Connection) -> None:
        assert connection.group is not None
        self._channels = ChannelServer(
            *(self.workloads, connection.send_channel, self.settings.channel_credit_bytes, connection.group),
            *(self.parts.tls, self.challenges, self.caches, self.overlays),
        )
        self.connected.set()
        self._told_rtts, is_told = {}, False
        while True:
            connection.say(Kind.HEARTBEAT, encode_heartbeat(self._heartbeat()))
            if not is_told:
                await connection.answered.wait()
                log.info(
                    "connected", host_id=self.parts.host_id, address=self.connector.address, epoch=self.session.epoch
                )
                is_told = True
            await self.parts.clock.sleep_ns(self.settings.heartbeat_interval_ns)

    def _heartbeat(self) -> Heartbeat:
        clock, answer = self.parts.clock, self.connector.answer
        rtts = to_tell(self._told_rtts, [(one.access_id, one.rtt_ns) for one in self.connector.answers.values()])
        self._told_rtts = dict(rtts) or self._told_rtts
        return Heartbeat(
            wall_ns=clock.wall_ns(),
            uptime_ns=clock.monotonic_ns() - self._began_ns,
            inventory_hash=self.report.hash,
            observed_digest=self.workloads.digest(),
            conditions=self.report.conditions,
            sampling_age_ns=self.parts.sampler.age_ns(),
            access_id=answer.access_id if answer is not None else "",
            access_rtt_ns=answer.rtt_ns if answer is not None else -1,
            spool_bytes=self.outbox.spool_bytes,
            rtts=rtts,
        )

    def canary(self) -> bytes:
        """A letter about the connection there is, if there is one."""
        return self._connection.canary() if self._connection is not None else b""

    def on_letter(self, letter: bytes) -> bool:
        """The answer to it."""
        return self._connection is not None and self._connection.on_letter(letter)

    def pause_ns(self) -> int:
        """Two heartbeats: a fleet's canaries come half as often."""
        return 2 * self.settings.heartbeat_interval_ns

    async def received(self, envelope: Envelope, connection: Connection) -> None:
        """One believed message of the Master's."""
        self._heard()
        try:
            await self._received(envelope.kind, envelope.body)
        except StorageFailed as error:
            # Not stored is not answered: the Master sends it again. The link stays, since heartbeats still say so.
            log.error("not_stored", kind=envelope.kind.name, detail=error.detail)
            self._disk_space.note(error)

    def _heard(self) -> None:
        if self.parts.bought is not None:
            self.parts.bought.heard()

    async def _received(self, kind: Kind, body: bytes) -> None:
        match kind:
            case Kind.ACK:
                ack = decode_ack(body)
                if ack.epoch >= self.session.epoch:
                    await self.outbox.on_ack(ack)
            case Kind.HEARTBEAT_REPLY:
                reply = decode_heartbeat_reply(body)
                if reply.inventory_wanted:
                    self.report.inventory_wanted()
                if reply.observed_wanted:
                    await self.workloads.tell_observed(is_asked=True)
            case Kind.COMMAND:
                await self.commands.arrived(decode_command(body))
            case Kind.LEASES:
                await self.workloads.renew(decode_leases(body))
            case Kind.QUERY:
                await self.commands.asked(decode_query(body))
            case Kind.SETTINGS:
                self._set(decode_settings(body))
                self.outbox.set_credits(self.settings)
            case Kind.REGION_MAP:
                self._new_regions(body)
            case Kind.CHANNEL:
                if self._channels is not None:
                    await self._channels.on_frame(decode_channel(body))
            case other:
                log.warning("message_ignored", kind=other.name)

    def _set(self, settings: Settings) -> None:
        self.settings = settings
        self.parts.sampler.set_period(settings.sample_period_ns)
        self.report.batch_period_ns = settings.telemetry_period_ns
        self.report.changed()

    def _new_regions(self, body: bytes) -> None:
        regions = decode_region_map(body)
        if regions.version > self.connector.regions.version:
            self.connector.regions = regions
            self._maps.newer(body)

    # --- what commands ask ----------------------------------------------------------------------------------------

    async def _measure_bandwidth(self, spec: BandwidthSpec) -> Mapping[str, str]:
        """By this host's own Access, then by those that the Master names; what one of these cannot is left out."""
        address, points = self.connector.address, self.connector.regions.points
        if address is None:
            raise Unavailable("This host is not connected to any relay.")
        others = [one.address for one in points if one.access_id in spec.access_ids and one.address != address]
        result = await self._measure_by(address, spec)
        for other in others[: RELAYS_MAX - 1]:
            try:
                await self._measure_by(other, spec)
            except WindrowError as error:
                log.info("not_measured", address=other, error=error.detail)
        return {"up_bits_per_s": str(result.up_bits_per_s), "down_bits_per_s": str(result.down_bits_per_s)}

    async def _measure_by(self, address: str, spec: BandwidthSpec) -> BandwidthResult:
        parts = self.parts
        answer = await parts.dialer.ping(address, 5 * SECOND)
        self.connector.answers[address] = answer
        taken, ceiling_bps = await self._budget.take(spec), self._budget.limits.ceiling_bps
        try:
            result = await measure(parts.dialer, address, taken, answer, parts.clock, parts.rng, ceiling_bps)
        except Unavailable as error:
            await self._budget.settle(taken, 0 if is_busy(error) else 2 * taken.cap_bytes)
            raise
        await self._budget.settle(taken, result.up_bytes + result.down_bytes)
        await self.outbox.put(Lane.EVIDENCE, Kind.BANDWIDTH, encode_bandwidth(result))
        return result

    async def _benchmark(self) -> Mapping[str, str]:
        try:
            async with asyncio.timeout(seconds(2 * MINUTE)):
                found = await self.parts.measure_benchmarks()
        except TimeoutError as error:
            raise Unavailable("The benchmarks did not end in time.") from error
        self.report.set_benchmarks(found)
        return {one.name: f"{one.value:g} {one.unit}" for one in found}


class _Stopped(Exception):
    """Ends the group in order."""
