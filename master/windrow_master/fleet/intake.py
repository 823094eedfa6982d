"""Takes in the records of the evidence lane: each once, its effect and its mark in one transaction.

items ──▶ had already? skip ──▶ savepoint: effects of all ──▶ marks ──▶ (commit) ──▶ the trunk acks
                                  one fails: again, each in a savepoint of its own; what fails then is put aside as a
                                  dead letter, marked too, so that it is neither lost nor retried
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from windrow_master.fleet import bandwidth
from windrow_master.fleet.bandwidth_repository import BandwidthRepository
from windrow_master.fleet.commands import CommandQueue
from windrow_master.fleet.evidence_repository import EvidenceRepository, MarkRepository, Ranges
from windrow_master.fleet.host_events import REFUSED, heard, heard_wipe, leaving_at, words_of
from windrow_master.fleet.hosts import HostRegistry, gpu_ids
from windrow_master.fleet.messages import ClusterOf, Holds, ReceiptTaken, SlotsLost, WorkloadReported
from windrow_master.fleet.model import EvidenceRow, GapRow, MeasuredRound
from windrow_master.fleet.repository import CommandRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto import wipes
from windrow_proto.bandwidth import BandwidthClaim
from windrow_proto.errors import BadProof, InvalidInput, StorageFailed
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.keys import DOMAIN_CLAIM, verify_signature
from windrow_proto.messages import Gap, Record
from windrow_proto.model import CommandKind, Event, Kind, Lane, Observed
from windrow_proto.units import DAY, HOUR
from windrow_proto.wire_command import decode_status
from windrow_proto.wire_host import (
    decode_bandwidth,
    decode_claim,
    decode_event,
    decode_inventory,
    decode_observed,
    decode_receipt,
)
from windrow_proto.wire_link import decode_gap

MEASURE_EVERY_NS: Final = 6 * HOUR
MEASURE_JITTER_PERCENT: Final = 10
"""So that a fleet that joined together does not measure together."""
REGION_CHARS_MAX: Final = 128
"""As far as the store keeps it: a host's own word."""
KEPT_KINDS: Final = frozenset({Kind.BANDWIDTH, Kind.INVENTORY, Kind.COMMAND_STATUS})
"""Kept sealed here; receipts are kept by the market, with what they paid for."""
_LANES: Final = {Lane.EVIDENCE: "reports", Lane.TELEMETRY: "samples"}
_REASONS: Final = {"spool_cap": "its spool was full", "spool_corrupt": "its spool was damaged"}
AccessKey = Callable[[UnitOfWork, str], bytes | None]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One proven record of one host, with the sealed bytes that prove it."""

    host_id: HostId
    record: Record
    sealed: bytes


@dataclass(slots=True)
class EvidenceFigures:
    """Counters since the start."""

    taken: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    gaps: int = 0


class EvidenceIntake:
    """The intake. On the loop, after the commit, `observed` is called for each report of workloads, `missing` for each
    gap in the samples, and `leaving` for each host that says that it will be gone.

    relay_regions: where each relay is; of one that is not in it a host's own word counts.
    """

    def __init__(
        self,
        hosts: HostRegistry,
        commands: CommandQueue,
        access_key: AccessKey,
        observed: Callable[[HostId, Observed], None],
        missing: Callable[[HostId, Gap], None],
        leaving: Callable[[HostId], None],
    ) -> None:
        self._hosts = hosts
        self._commands = commands
        self._access_key = access_key
        self._observed, self._missing, self._leaving = observed, missing, leaving
        self.relay_regions: Mapping[str, str] = {}
        self.figures = EvidenceFigures()

    def committed(self, uow: UnitOfWork, host_id: HostId) -> Mapping[BootId, Ranges]:
        """The records of a host that were taken in: sorted inclusive ranges per boot of origin."""
        return uow[MarkRepository].of_host(host_id)

    def take(self, uow: UnitOfWork, items: Iterable[EvidenceItem]) -> None:
        """Take in records of any number of hosts, in this order per host; when it commits, all of them may be acked."""
        marks: dict[tuple[HostId, BootId], Intervals] = {}
        new: list[EvidenceItem] = []
        for item in items:
            key = item.host_id, item.record.origin_boot
            have = marks.get(key) or self._load(uow, *key)
            if have.contains(item.record.origin_sequence):
                uow.after_commit(partial(self._counted, "duplicates"))
            else:
                new.append(item)
                have = self._with_gaps(item, have.add(item.record.origin_sequence))
            marks[key] = have
        if new and not self._take_all(uow, new):
            for item in new:
                self._take_one(uow, item)
        for (host_id, boot), have in marks.items():
            uow[MarkRepository].put(host_id, boot, have.ranges, uow.now_wall_ns)

    def _counted(self, name: str, count: int = 1) -> None:
        setattr(self.figures, name, getattr(self.figures, name) + count)

    def _load(self, uow: UnitOfWork, host_id: HostId, boot: BootId) -> Intervals:
        return Intervals(uow[MarkRepository].of_host(host_id).get(boot, ()))

    def _with_gaps(self, item: EvidenceItem, have: Intervals) -> Intervals:
        """Add the records that a gap record gave up to those had: they will never come."""
        if item.record.kind is not Kind.GAP:
            return have
        try:
            gap = decode_gap(item.record.body)
        except InvalidInput:
            return have  # it was put aside as a dead letter
        is_here = gap.lane is Lane.EVIDENCE and gap.origin_boot == item.record.origin_boot
        return have.union(Intervals.of(gap.ranges)) if is_here else have

    def _take_all(self, uow: UnitOfWork, items: list[EvidenceItem]) -> bool:
        """Take in all of them at once, or none: a savepoint costs as much as a small record."""
        try:
            with uow.attempt():
                for item in items:
                    self._apply(uow, item)
                    self._keep(uow, item)
        except StorageFailed:
            raise
        except Exception as error:
            # Which one it was, and what to do with it, is found out one by one.
            log.debug("evidence_one_by_one", count=len(items), error=str(error)[:300])
            return False
        uow.after_commit(partial(self._counted, "taken", len(items)))
        return True

    def _take_one(self, uow: UnitOfWork, item: EvidenceItem) -> None:
        record = item.record
        try:
            with uow.attempt():
                self._apply(uow, item)
                self._keep(uow, item)
            uow.after_commit(partial(self._counted, "taken"))
        except StorageFailed:
            raise  # none of them can be taken now, and no record is to blame
        except Exception as error:
            # The top of what one record may do: a poisoned one must not keep its neighbours from being acked.
            uow.after_commit(partial(self._counted, "dead_letters"))
            log.exception("evidence_put_aside", host_id=item.host_id, kind=record.kind.name, error=str(error)[:300])
            self._put_aside(uow, item, error)

    def _put_aside(self, uow: UnitOfWork, item: EvidenceItem, error: Exception) -> None:
        host_id, size = item.host_id, len(item.sealed)
        if not self._may_keep(uow, host_id, "letters") or not self._may_keep(uow, host_id, "bytes", size):
            return
        uow[EvidenceRepository].bury(_row(uow, item), f"{type(error).__name__}: {error}")
        text = "A message of this host could not be taken in and was put aside"
        uow.event("evidence.put_aside", (host_id,), text, {"error": str(error)[:300]}, "master")

    def _may_keep(self, uow: UnitOfWork, host_id: HostId, what: str, amount: int = 1) -> bool:
        """Return whether the host's hour has a place left for this event; the first time that it has none, an event
        tells."""
        if self._hosts.budget.admit(host_id, what, uow.now_wall_ns, amount):
            return True
        self._hosts.tell_excess(uow, host_id, what)
        return False

    def _keep(self, uow: UnitOfWork, item: EvidenceItem) -> None:
        """Keep the sealed bytes of what may have to be proved later."""
        if item.record.kind in KEPT_KINDS and self._may_keep(uow, item.host_id, "bytes", len(item.sealed)):
            uow[EvidenceRepository].keep(_row(uow, item))

    def _apply(self, uow: UnitOfWork, item: EvidenceItem) -> None:
        host_id, body = item.host_id, item.record.body
        match item.record.kind:
            case Kind.INVENTORY if self._may_keep(uow, host_id, "inventories"):
                _, lost = self._hosts.inventory(uow, host_id, decode_inventory(body))
                self._lose(uow, host_id, lost)
                self._hosts.check_instance(uow, host_id)
            case Kind.COMMAND_STATUS:
                self._commands.on_status(uow, host_id, decode_status(body))
            case Kind.RECEIPT:
                uow.publish(ReceiptTaken(host_id, decode_receipt(body), item.sealed))
            case Kind.OBSERVED:
                self._take_observed(uow, host_id, decode_observed(body))
            case Kind.EVENT:
                self._hear(uow, host_id, decode_event(body))
            case Kind.BANDWIDTH:
                self._measure(uow, host_id, body)
            case Kind.GAP:
                self._record_gap(uow, host_id, body)
            case Kind.INVENTORY:
                pass  # the next hour's is as good
            case _:
                raise InvalidInput(f"{item.record.kind.name} does not belong into the evidence lane.")

    def _hear(self, uow: UnitOfWork, host_id: HostId, said: Event) -> None:
        """An event in the host's own words, as far as it may say it."""
        own = gpu_ids(self._hosts.load(uow, host_id))
        if said.code == wipes.CODE:
            event = heard_wipe(said, host_id, lambda workload_id: uow.ask(ClusterOf(host_id, workload_id)))
        else:
            event = heard(said, own, lambda workload_id: uow.ask(Holds(host_id, workload_id)))
        if event is None:
            self._hosts.budget.refuse(host_id, uow.now_wall_ns)
            self._hosts.tell_excess(uow, host_id, REFUSED)
            return
        about = tuple(filter(None, (event.subject, event.fields.get("slice"))))
        if event.code == "host.leaving":
            about = self._hosts.leaving(uow, host_id, leaving_at(event.fields), event.fields.get("why", ""))
            uow.after_commit(lambda: self._leaving(host_id))
        text = event.detail or words_of(event.code, event.fields) or "The host cleared its cache of the work"
        self._hosts.tell(uow, host_id, "events", event.code, text, about=about, fields=event.fields)

    def _take_observed(self, uow: UnitOfWork, host_id: HostId, observed: Observed) -> None:
        for workload in observed.workloads:
            uow.publish(WorkloadReported(host_id, workload))
        uow.after_commit(lambda: self._observed(host_id, observed))

    def _lose(self, uow: UnitOfWork, host_id: HostId, lost: tuple[object, ...]) -> None:
        if lost:
            uow.publish(SlotsLost(host_id, tuple(map(str, lost)), "the GPU is out of order"))

    def _measure(self, uow: UnitOfWork, host_id: HostId, body: bytes) -> None:
        """A bandwidth counts as the lower of both ends' counts, and only with the relay's own signature and as the
        answer of that relay to a command; the same answer once more changes nothing."""
        result = decode_bandwidth(body)
        public = self._access_key(uow, result.access_id)
        if public is None:
            raise BadProof(f"The relay {result.access_id} is not known here, so its claim cannot be checked.")
        verify_signature(public, DOMAIN_CLAIM, result.access_signed, result.access_signature)
        claim = decode_claim(result.access_signed)
        if (claim.nonce, claim.access_id, claim.host_id) != (result.nonce, result.access_id, host_id):
            raise BadProof("The relay's claim is about another measurement.")
        up_bps = min(result.up_bits_per_s, claim.up_bits_per_s)
        down_bps = min(result.down_bits_per_s, claim.down_bits_per_s)
        if self._is_known(uow, host_id, claim, (up_bps, down_bps)):
            return
        before = self._hosts.load(uow, host_id).bandwidth
        after = bandwidth.after(before, result.access_id, result.region, up_bps, down_bps, uow.now_wall_ns)
        self._hosts.measured(uow, host_id, after, next_measurement_ns(uow))
        region = self.relay_regions.get(result.access_id, result.region)[:REGION_CHARS_MAX]
        nonce, now_ns = result.nonce, uow.now_wall_ns
        known = uow[BandwidthRepository].get(host_id, nonce, region) or MeasuredRound(
            host_id, nonce, region, now_ns, 0, 0, {}
        )
        uow[BandwidthRepository].put(bandwidth.with_relay(known, result.access_id, up_bps, down_bps, now_ns))
        text = f"Bandwidth: {up_bps / 1e6:.0f} Mbit/s up, {down_bps / 1e6:.0f} Mbit/s down"
        uow.event("bandwidth.measured", (host_id,), text, {"access": result.access_id}, f"host/{host_id}")

    def _is_known(self, uow: UnitOfWork, host_id: HostId, claim: BandwidthClaim, found: tuple[int, int]) -> bool:
        """Return whether just this answer was counted already; BadProof where it is none to a command of the last
        day."""
        rows = uow[CommandRepository].since(host_id, CommandKind.MEASURE_BANDWIDTH, uow.now_wall_ns - DAY)
        asked = bandwidth.asked_for(rows, claim.nonce)
        rounds = uow[BandwidthRepository].of_round(host_id, claim.nonce) if asked is not None else ()
        answered = {access_id: one for round_ in rounds for access_id, one in round_.relays.items()}
        if answered.get(claim.access_id) == found:
            return True
        why = bandwidth.refusal(asked, claim, answered, uow.now_wall_ns)
        if why is not None:
            raise BadProof(f"This measurement does not count: {why}.")
        return False

    def _record_gap(self, uow: UnitOfWork, host_id: HostId, body: bytes) -> None:
        gap = decode_gap(body)
        if not self._may_keep(uow, host_id, "gaps"):
            self._count_gap(uow, host_id, gap)
            return
        uow[EvidenceRepository].add_gap(
            GapRow(host_id, gap.lane, gap.origin_boot, gap.ranges, gap.reason, uow.now_wall_ns)
        )
        count = Intervals.of(gap.ranges).count
        why = _REASONS.get(gap.reason, "it could not keep them")
        text = f"The host had to give up {count} {_LANES.get(gap.lane, 'records')} before they arrived: {why}"
        uow.event("spool.gap", (host_id,), text, {"records": str(count), "reason": gap.reason}, f"host/{host_id}")
        self._count_gap(uow, host_id, gap)

    def _count_gap(self, uow: UnitOfWork, host_id: HostId, gap: Gap) -> None:
        uow.after_commit(partial(self._counted, "gaps", Intervals.of(gap.ranges).count))
        if gap.lane is Lane.TELEMETRY:
            uow.after_commit(lambda: self._missing(host_id, gap))


def _row(uow: UnitOfWork, item: EvidenceItem) -> EvidenceRow:
    record = item.record
    return EvidenceRow(
        item.host_id, record.origin_boot, record.origin_sequence, record.kind, item.sealed, uow.now_wall_ns
    )


def next_measurement_ns(uow: UnitOfWork) -> int:
    """Return when a host measured now is due again: six hours, give or take a tenth."""
    jitter = MEASURE_EVERY_NS * MEASURE_JITTER_PERCENT // 100
    offset = int.from_bytes(uow.random_bytes(4), "big") * 2 * jitter >> 32
    return uow.now_wall_ns + MEASURE_EVERY_NS - jitter + offset
