"""Connects telemetry with other packages: tiers for the metrics store, events, health and figures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from windrow_master.api.services import Figure
from windrow_master.fleet.service import FleetService
from windrow_master.link.hub import LinkHub
from windrow_master.store.disk_space import DiskSpace, Tell
from windrow_master.store.leadership import Claim
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.model import Place
from windrow_master.telemetry.ports import Executor
from windrow_master.telemetry.remote.service import RemoteView
from windrow_master.telemetry.service import TelemetryService
from windrow_master.telemetry.settings import HistorySettings
from windrow_proto.ballast import ReservedDisk
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock, Disk, Rng
from windrow_proto.units import MINUTE, SECOND


def telemetry_of(
    settings: HistorySettings,
    disk: Disk,
    data_dir: Path,
    epoch: int,
    clock: Clock,
    rng: Rng,
    fleet: FleetService,
    make_executor: Callable[[], Executor],
    disk_space: DiskSpace | None = None,
    claim: Claim | None = None,
) -> TelemetryService:
    """Telemetry with the views that are configured; it ends the executors that it is given here."""
    metrics_store = settings.store()
    remote, tiers = None, partial(tiers_of, fleet)
    if metrics_store is not None:
        log, history = f"{data_dir}/log", f"{data_dir}/history"
        remote = RemoteView(
            *(disk, log, epoch, history, clock, rng, make_executor(), metrics_store),
            tiers=tiers,
            is_simulated=partial(is_simulated, fleet),
        )

    return TelemetryService(
        disk,
        data_dir,
        epoch,
        clock,
        log_executor=make_executor(),
        view_executor=make_executor(),
        fleet_size=lambda: len(fleet.view),
        retention=settings.retention,
        has_embedded=settings.has_embedded,
        remote=remote,
        tiers=tiers,
        reserved=disk if disk_space is None else ReservedDisk(disk, disk_space),
        admit=(lambda: None) if disk_space is None else disk_space.admit,
        check_term=(lambda: None) if claim is None else claim.leadership.check,
    )


def is_simulated(fleet: FleetService, host_id: HostId) -> bool:
    """Return whether this host is simulated; one that has left counts as real."""
    entry = fleet.view.get(host_id)
    return entry is not None and entry.host.simulated


def tiers_of(fleet: FleetService) -> Mapping[Place, str]:
    """The tier of each GPU now."""
    return {
        (entry.host.host_id, slot.gpu_uuid): slot.tier
        for entry in fleet.view
        for slot in entry.slots
        if slot.gpu_uuid is not None
    }


def introduce(telemetry: TelemetryService, store: Store) -> None:
    """Let telemetry write events."""

    telemetry.on_event(event_writer(store, "master/history"))


def event_writer(store: Store, subject: str) -> Tell:
    """Return a function that writes an event about a part of the Master."""

    async def write(kind: str, text: str, fields: Mapping[str, str]) -> None:
        def event(uow: UnitOfWork) -> None:
            uow.event(kind, [subject], text, fields, "master")

        await store.write(event, name=kind)

    return write


LAG_NS: Final = 2 * MINUTE
"""Samples wait for less in a history that is well."""


def conditions(telemetry: TelemetryService, now_ns: int) -> Iterable[Stated]:
    """For health: the log, while it cannot be written, and a history that is behind it."""
    if telemetry.log.problem:
        detail = f"Samples are not stored: {telemetry.log.problem} The agents keep theirs and send them again."
        yield ConditionCode.MASTER_LOG_FAILED, detail, telemetry.log.problem_since_ns
    lag_ns = telemetry.health().lag_ns
    if lag_ns >= LAG_NS:
        detail = f"The newest samples in the history are {lag_ns // MINUTE} min old."
        yield ConditionCode.MASTER_LOG_LAG, detail, now_ns - lag_ns


def health(telemetry: TelemetryService) -> dict[str, Any]:
    """For /operators/health. log_lag: records that wait for the disk."""
    charts = telemetry.health()
    return {
        "log": asdict(telemetry.log.figures),
        "log_lag": telemetry.log.pending,
        "duckdb_lag_s": charts.lag_ns / SECOND,
        "duckdb": asdict(charts),
        "history": [asdict(view.health()) for view in telemetry.views],
    }


def figures(telemetry: TelemetryService, fleet: FleetService) -> Iterable[Figure]:
    """The log, the live view, each view of history, and the intake of evidence."""
    log = telemetry.log.figures
    yield "log_records_total", "Records of telemetry made durable", log.records, {}
    yield "log_appended_bytes_total", "Bytes of telemetry made durable", log.bytes, {}
    yield "log_fsyncs_total", "Groups made durable at once", log.fsyncs, {}
    yield "log_failed_fsyncs_total", "Groups of which none could be made durable", log.failed_fsyncs, {}
    yield "log_pending_records", "Records that wait for the disk", telemetry.log.pending, {}
    yield "log_dropped_segments_total", "Segments that were old and read", log.dropped_segments, {}
    yield "log_forced_segments_total", "Segments that the disk budget took early", log.forced_segments, {}
    yield "log_unread_segments_total", "Of these, not yet read by every view", log.unread_segments, {}
    yield "log_damaged_records_total", "Records that could not be read", log.damage, {}
    yield "log_failed", "1 from a failed fsync until the next that succeeds", float(bool(telemetry.log.problem)), {}
    yield "live_bad_batches_total", "Live batches that could not be read", telemetry.live.bad_batches, {}
    for view in telemetry.views:
        told = view.health()
        labels = {"view": "remote" if view is telemetry.remote else "duckdb"}
        yield "history_up", "1 while the view works", float(told.is_open and not told.problem), labels
        yield "history_lag_seconds", "Age of the newest sample taken in, 0 when all is", told.lag_ns / SECOND, labels
        yield "history_samples_total", "Samples taken in", told.rows, labels
        yield "history_bad_batches_total", "Batches that could not be read", told.bad_batches, labels
        yield "history_left_out_samples_total", "Samples misdated, or refused by the store", told.misdated, labels
    if telemetry.remote is not None:
        remote = telemetry.remote.figures
        yield "remote_write_requests_total", "Remote-write requests answered", remote.requests, {}
        yield "remote_write_retries_total", "Times the store could not take one", remote.retries, {}
    evidence = fleet.evidence.figures
    yield "evidence_taken_total", "Proven records committed", evidence.taken, {}
    yield "evidence_duplicates_total", "Records that were had already", evidence.duplicates, {}
    yield "evidence_dead_letters_total", "Proven records that could not be understood", evidence.dead_letters, {}
    yield "evidence_gaps_total", "Gaps that agents told", evidence.gaps, {}


def disk_figures(disk_space: DiskSpace) -> Iterable[Figure]:
    """The figures of the disks."""
    yield "disk_full", "1 while a disk has no room and no new work is taken", float(not disk_space.has_room()), {}
    for folder, free in disk_space.free_bytes().items():
        yield "disk_free_bytes", "Free on each disk, beside the ballast", free, {"folder": folder}


def hub_figures(hub: LinkHub) -> Iterable[Figure]:
    """The figures of the link."""
    figures = hub.figures
    yield "link_frames_total", "Frames that came up", figures.frames, {}
    yield "link_bad_proofs_total", "Messages whose proof did not hold", figures.bad_proofs, {}
    yield "link_commands_sent_total", "Commands handed to the link", figures.commands_sent, {}
    yield "link_clones_total", "Identities found in two places", figures.clones, {}
    for reason, count in sorted(figures.refused_messages.items()):
        yield "link_refused_messages_total", "Messages refused, by reason", count, {"reason": reason}
    for reason, count in sorted(figures.refused_routes.items()):
        yield "link_refused_routes_total", "Connections refused or ended, by reason", count, {"reason": reason}
