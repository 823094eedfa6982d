"""Wires the rooms of one Master to one another; knows who tells whom what, and does nothing else."""

import errno
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow_master import __version__
from windrow_master.acceptance.rental import Ways
from windrow_master.acceptance.service import ProofService
from windrow_master.accesses.failover_test.service import TrialService
from windrow_master.accesses.service import AccessService
from windrow_master.accounts import AccountService
from windrow_master.api.services import Figure, HealthSources, Services
from windrow_master.api.sse import Broadcaster
from windrow_master.app import wiring_history
from windrow_master.app.clock import SteadyClock
from windrow_master.audit.service import AuditService
from windrow_master.clusters.results import ResultService
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.templates import TemplateService
from windrow_master.fleet.model import HostFacts
from windrow_master.fleet.ports import FleetPorts
from windrow_master.fleet.service import FleetService
from windrow_master.identity.authority import Authority
from windrow_master.identity.model import Member, MemberRole, Standing
from windrow_master.identity.service import IdentityService
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.service import JobService
from windrow_master.link.hub import LinkHub
from windrow_master.loops import GivenUp
from windrow_master.market.service import MarketService
from windrow_master.network.overlay import CordService
from windrow_master.network.reachability import SightService
from windrow_master.network.tunnels import TunnelService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.onboarding.packages import Packages
from windrow_master.onboarding.service import Wheelhouse
from windrow_master.records.rules import Keeping
from windrow_master.records.service import RecordService
from windrow_master.storage.artefacts import ARTEFACTS_KEY, ArtefactService
from windrow_master.storage.retention import RetentionService
from windrow_master.storage.s3_store import S3Settings
from windrow_master.storage.transfer import CheckpointService
from windrow_master.storage.volume_sync import VolumeCourse
from windrow_master.storage.volumes import VolumeService
from windrow_master.store.bus import MemoryBus
from windrow_master.store.disk_space import Room
from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.executors import Executor, ThreadExecutor
from windrow_master.store.leadership import Claim
from windrow_master.store.prepared import Unreadable
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.service import TelemetryService
from windrow_master.telemetry.settings import HistorySettings
from windrow_master.verification.scheduler import VerificationService
from windrow_proto.ballast import ReservedDisk
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.disk import OsDisk
from windrow_proto.errors import InvalidInput, StorageFailed
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.ports import Clock, Disk, Rng
from windrow_proto.renter_end import RenterTicket
from windrow_proto.units import CURRENCY_TEST, money_text


class KeysUnusable(StorageFailed):
    """A market's keys are missing or damaged: only a person helps."""


@dataclass(slots=True)
class Rooms:
    """One Master's rooms. `close` in the end, after the loop."""

    store: Store
    authority: Authority
    identity: IdentityService
    fleet: FleetService
    market: MarketService
    clusters: ClusterService
    telemetry: TelemetryService
    hub: LinkHub
    services: Services
    executors: tuple[Executor, ...]

    @property
    def audit(self) -> AuditService:
        """The audit log."""
        return self.services.audit

    def watching(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What looks after the disks, the tunnels and the clock, until it is cancelled."""
        services = self.services
        if services.room is not None:
            yield services.room.keep(wiring_history.event_writer(self.store, "master/storage"))
        if services.tunnels is not None:
            yield services.tunnels.run()
        if services.cords is not None:
            yield services.cords.run()
        yield services.artefacts.run()
        yield services.retention.run()
        yield services.records.run()
        if services.verification is not None:
            yield services.verification.run()
        if services.proofs is not None and services.proofs.is_automatic is not None:
            yield services.proofs.run()
        if services.jobs is not None:
            yield services.jobs.course.run()
        if services.volume_course is not None:
            yield services.volume_course.run()
        if services.results is not None:
            yield services.results.run()
        if isinstance(services.clock, SteadyClock):
            yield services.clock.keep(wiring_history.event_writer(self.store, "master/clock"))

    def close(self) -> None:
        """Let go of the log, record the end, release the lock."""
        self.telemetry.close()
        for executor in self.executors:
            executor.close()
        self.store.close()


def build(
    data_dir: Path,
    clock: Clock,
    rng: Rng,
    *,
    database: str | None = None,
    disk: Disk | None = None,
    make_executor: Callable[[], Executor] = ThreadExecutor,
    open_engines: Callable[[str], Engines] = engines_of,
    claim: Claim | None = None,
    history: HistorySettings | None = None,
    room: Room | None = None,
    lock: DirectoryLock | None = None,
    artefacts: S3Settings | None = None,
    keeping: Keeping | None = None,
) -> Rooms:
    """Open the store and every room on it. Before the loop. disk holds the telemetry log; the real one by default.

    room: watches the disks; without it nothing is full until a write says so. lock: of the data directory, where the
    caller holds it already; let go with the rooms. artefacts: where they are; None: in a folder of the data directory.
    """
    store = Store.open(
        data_dir,
        clock,
        rng,
        executor=make_executor(),
        version=__version__,
        database=database,
        open_engines=open_engines,
        claim=claim,
        room=room,
        lock=lock,
        resume=clock.resume if isinstance(clock, SteadyClock) else lambda last_ns: None,
    )
    try:
        history = history or HistorySettings()
        return _furnished(
            store, data_dir, clock, rng, disk, make_executor, history, room, claim, artefacts, keeping or Keeping()
        )
    except BaseException:
        store.close()
        raise


def _furnished(
    store: Store,
    data_dir: Path,
    clock: Clock,
    rng: Rng,
    disk: Disk | None,
    make_executor: Callable[[], Executor],
    history: HistorySettings,
    room: Room | None,
    claim: Claim | None,
    artefacts: S3Settings | None,
    keeping: Keeping,
) -> Rooms:
    authority = _authority(store, data_dir, clock.wall_ns())
    identity = IdentityService(store, authority, clock, rng)
    store.seal_earlier(identity.seal_key)
    fleet = FleetService(store, clock, rng, FleetPorts())
    clusters = ClusterService(store, fleet, market := MarketService(store), identity.seal_key)
    executors = (make_executor(),)
    telemetry = wiring_history.telemetry_of(
        history, disk or OsDisk(), data_dir, store.epoch, clock, rng, fleet, make_executor, room, claim
    )
    accesses = AccessService(store)
    accesses.start()
    hub = LinkHub(fleet, telemetry, clock, epoch=store.epoch, signing=authority.signing)
    wheelhouse = Wheelhouse(data_dir / "wheels", signing := authority.signing)
    services = Services(
        store=store,
        audit=(audit := AuditService(store, data_dir, _reserved(disk or OsDisk(), room), signing, clock, executors[0])),
        identity=identity,
        clock=clock,
        rng=rng,
        broadcaster=Broadcaster(),
        bus=MemoryBus("master", clock),
        health=HealthSources(),
        wheelhouse=wheelhouse,
        packages=Packages(data_dir / "packages", wheelhouse, authority.signing),
        fleet=fleet,
        accesses=accesses,
        trials=TrialService(store, clock, fleet, telemetry),
        telemetry=telemetry,
        market=market,
        clusters=clusters,
        templates=TemplateService(store, identity.seal_key),
        artefacts=(kept := ArtefactService.open(store, data_dir, clusters, clock, rng, artefacts, room)),
        retention=RetentionService(store, kept, clock),
        records=RecordService(store, audit, clock, keeping),
        volumes=VolumeService(store, kept),
        inside=WorkAccess(clusters, hub),
        tunnels=TunnelService(
            *(store, clusters, hub, hub.down.tunnel_addresses, authority.signing, authority.root_pem, clock),
            lambda host_id: hub.down.nearby(host_id, hub.accesses.tunnel_places()),
        ),
        version=__version__,
        started_at_ns=clock.monotonic_ns(),
        room=room,
    )
    rooms = Rooms(store, authority, identity, fleet, market, clusters, telemetry, hub, services, executors)
    _introduce(rooms, data_dir)
    return rooms


def _authority(store: Store, data_dir: Path, now_ns: int) -> Authority:
    """The market's keys, made at its first start and never again: members trust these and no others."""
    folder = data_dir / "identity"
    if store.read_now(lambda uow: uow.accounts.first()) is None:
        return Authority.make(folder, now_ns)
    try:
        if not (folder / ARTEFACTS_KEY).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / ARTEFACTS_KEY))
        return Authority.load(folder)
    except (OSError, InvalidInput) as error:
        what = f"{error.filename} is missing" if isinstance(error, FileNotFoundError) else str(error).rstrip(".")
        raise KeysUnusable(
            f"The keys of this market cannot be used: {what}. They are not made anew: no host would know them.",
            subject=str(folder),
        ) from error


def _reserved(disk: Disk, room: Room | None) -> Disk:
    return disk if room is None else ReservedDisk(disk, room)


def _introduce(rooms: Rooms, data_dir: Path) -> None:
    identity, fleet, clusters = rooms.identity, rooms.fleet, rooms.clusters
    rooms.services.health.problems.append(rooms.services.wheelhouse.problem)
    rooms.services.health.conditions.append(rooms.audit.conditions)
    rooms.services.health.conditions.append(GivenUp(rooms.services.clock).conditions)
    rooms.services.health.conditions.append(Unreadable(rooms.services.clock).conditions)
    rooms.audit.start()

    def host_joined(uow: UnitOfWork, member: Member) -> None:
        actor = f"account/{member.account_id}"
        fleet.enrol(uow, HostId(member.id), member.name, member.account_id, member.simulated, actor)

    def cloned(uow: UnitOfWork, member: Member, reason: str) -> None:
        if member.role is MemberRole.HOST:
            fleet.quarantine(uow, HostId(member.id), reason, "master")

    def banned(uow: UnitOfWork, host_id: HostId, is_banned: bool) -> None:
        host = uow.hosts.get(host_id)
        retired = host is not None and host.admin_state.value == Standing.RETIRED.value
        worse = Standing.RETIRED if retired else Standing.QUARANTINED
        identity.set_standing(uow, host_id, worse if is_banned else Standing.GOOD, "master", "as the host's state says")

    def access_public(uow: UnitOfWork, access_id: str) -> bytes | None:
        member = uow.members.get(access_id)
        return member.sign_public if member is not None and member.role is MemberRole.ACCESS else None

    async def balance(account_id: AccountId) -> dict[str, str]:
        amount = await rooms.market.balance_now(account_id)
        return {"amount": money_text(amount), "currency": CURRENCY_TEST}

    rooms.services.health.telemetry = lambda: wiring_history.health(rooms.telemetry)
    rooms.services.health.figures.append(lambda: wiring_history.figures(rooms.telemetry, fleet))
    rooms.services.health.conditions.append(lambda: wiring_history.conditions(rooms.telemetry))
    wiring_history.introduce(rooms.telemetry, rooms.store)
    if isinstance(rooms.services.clock, SteadyClock):
        rooms.services.health.conditions.append(rooms.services.clock.conditions)
    if rooms.services.room is not None:
        _introduce_room(rooms, rooms.services.room)
    rooms.services.balance = balance
    identity.hooks.on_account = rooms.market.open_account
    identity.hooks.on_host_joined = host_joined
    identity.hooks.on_clone = cloned
    fleet.ports.on_ban = banned
    fleet.ports.access_public = access_public
    fleet.ports.desired = clusters.desired
    fleet.ports.had = clusters.life.had
    fleet.ports.holds = clusters.life.holds
    fleet.ports.cluster_of = clusters.life.cluster_of
    fleet.ports.on_command = clusters.life.on_command
    fleet.ports.on_workload = clusters.life.on_workload
    fleet.ports.on_receipt = clusters.life.on_receipt
    fleet.ports.on_host_link = clusters.life.on_host_link
    fleet.ports.on_slots_lost = clusters.life.on_slots_lost
    _introduce_hub(rooms, data_dir)


def _introduce_room(rooms: Rooms, room: Room) -> None:
    def figures() -> Iterable[Figure]:
        yield "disk_full", "1 while a disk has no room and no new work is taken", float(not room.has_room()), {}
        for folder, free in room.free_bytes().items():
            yield "disk_free_bytes", "Free on each disk, beside the ballast", free, {"folder": folder}

    rooms.services.health.figures.append(figures)
    rooms.services.health.conditions.append(room.conditions)


def _introduce_hub(rooms: Rooms, data_dir: Path) -> None:
    identity, hub, store = rooms.identity, rooms.hub, rooms.store

    async def host_facts(host_id: HostId) -> HostFacts | None:
        member = await store.read(lambda uow: identity.member(uow, host_id))
        if member is None or member.role is not MemberRole.HOST:
            return None
        is_banned = member.standing is not Standing.GOOD
        may_jump = member.may_jump(rooms.services.clock.wall_ns())
        return HostFacts(member.sign_public, member.generation, is_banned, member.used_generation, may_jump)

    hub.ports.host_facts = host_facts
    services = rooms.services
    services.verification = VerificationService(
        *(store, services.clock, services.rng, rooms.fleet, hub, host_facts, __version__)
    )
    services.proofs = ProofService(
        *(store, services.clock, services.rng, rooms.fleet, rooms.market, rooms.clusters),
        lambda: Ways(services.inside, services.tunnels) if services.inside and services.tunnels else None,
    )
    services.checkpoints = CheckpointService(services.artefacts, rooms.clusters, hub, services.clock, services.rng)
    services.volume_course = VolumeCourse(store, services.clock, rooms.clusters, services.checkpoints)
    rooms.clusters.sight = SightService(hub, services.clock)
    services.cords = CordService(
        *(store, rooms.clusters, hub, hub.down.tunnel_addresses, rooms.authority.signing, services.clock)
    )
    files = JobFiles(services.artefacts.objects, lambda: services.inside)
    services.results = ResultService(
        *(store, services.clock, rooms.clusters, services.artefacts, lambda: services.inside)
    )
    services.jobs = JobService(
        store, services.clock, rooms.clusters, files, identity.seal_key, services.artefacts.uploads
    )
    services.accounts = AccountService(
        *(store, identity, rooms.market, rooms.clusters, rooms.fleet, services.jobs),
    )
    services.jobs.course.move_by(services.checkpoints)
    services.artefacts.owners["job"] = services.jobs.owner
    services.jobs.course.free_slots = rooms.fleet.view.free_slots
    _introduce_certificates(identity, hub)
    hub.ports.renewals = rooms.clusters.renewals
    identity.hooks.access_points = hub.accesses.points
    rooms.fleet.ports.relays = hub.accesses.serving
    rooms.fleet.ports.relay_regions = lambda: {one.access_id: one.region for one in hub.accesses.points()}
    rooms.clusters.service_place = lambda host_id: hub.accesses.service_place(hub.down.access_of(host_id))
    hub.ports.is_drained = rooms.services.accesses.is_drained
    rooms.services.accesses.on_change = hub.drain_changed
    hub.ports.on_welcome = rooms.services.trials.on_hello
    rooms.services.health.accesses = hub.accesses.summaries
    rooms.services.health.conditions.append(hub.accesses.conditions)
    rooms.services.health.departed = hub.accesses.departed
    rooms.services.health.figures.append(lambda: _hub_figures(hub))
    _introduce_tunnels(rooms)


def _introduce_tunnels(rooms: Rooms) -> None:
    if (tunnels := rooms.services.tunnels) is not None:

        async def open_service(cluster_id: ClusterId, port: int) -> RenterTicket:
            ticket = await tunnels.open_public(cluster_id, port)
            trusted = ticket.ca_pem.encode(), ticket.host_pem.encode()
            return RenterTicket(ticket.address, ticket.grant, *trusted, ticket.secret)

        rooms.hub.ports.open_service = open_service
        rooms.services.health.figures.append(lambda: [("tunnels", "Tunnels that are open", tunnels.count, {})])


def _introduce_certificates(identity: IdentityService, hub: LinkHub) -> None:
    hub.ports.generations_used = identity.generations_used
    hub.ports.generation_found = identity.generation_found
    hub.ports.forgetting = identity.forgetting
    identity.hooks.on_standing = lambda member_id: hub.ban(HostId(member_id))


def _hub_figures(hub: LinkHub) -> Iterable[Figure]:
    figures = hub.figures
    yield "link_frames_total", "Frames that came up", figures.frames, {}
    yield "link_bad_proofs_total", "Messages whose proof did not hold", figures.bad_proofs, {}
    yield "link_commands_sent_total", "Commands handed to the link", figures.commands_sent, {}
    yield "link_clones_total", "Identities found in two places", figures.clones, {}
    for reason, count in sorted(figures.refused_messages.items()):
        yield "link_refused_messages_total", "Messages refused, by reason", count, {"reason": reason}
    for reason, count in sorted(figures.refused_routes.items()):
        yield "link_refused_routes_total", "Connections refused or ended, by reason", count, {"reason": reason}
