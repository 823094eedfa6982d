"""Judges a failover test: finds acknowledged samples that the log lacks, and measures how long agents were silent.
Pure.

A sequence counts as acknowledged if the Master's marks say so, or if the agent does: at its return it names what it
holds as not acknowledged, and it no longer sends the rest. What is acknowledged has to be a record in the log on the
disk, each sequence by itself; marks alone prove nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from windrow_master.accesses.failover_test.model import Return, Verdict, Watched
from windrow_master.telemetry.model import LogRecord
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.intervals import Intervals
from windrow_proto.model import Kind, Lane
from windrow_proto.samples import parse_batch
from windrow_proto.wire_link import decode_gap


@dataclass(slots=True)
class _Found:
    """The records of one agent's boot in the log, by sequence, and those that the agent reported as gone."""

    samples: dict[int, int] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    arrivals: list[int] = field(default_factory=list)


def judge(
    watched: Mapping[HostId, Watched],
    returns: Mapping[HostId, Sequence[Return]],
    acked: Mapping[HostId, Intervals],
    evidence: Mapping[HostId, Intervals],
    stored: Iterable[LogRecord],
    killed_wall_ns: int,
    older: Iterable[LogRecord] = (),
) -> Verdict:
    """Compare what was acknowledged with what is there.

    acked, evidence: what the Master holds now, by its marks, of the boot that was watched. stored: the newest part of
    the log, as read from the disk; the window of each agent begins with its lowest sequence there. older: what lies in
    the log before that, to be looked through for what is not in `stored`.
    """
    found = _gather(watched, stored)
    before = _gather(watched, older)
    lost_batches = lost_samples = given_up = lost_evidence = 0
    for host_id, one in watched.items():
        here = found[host_id]
        lowest = min(here.samples, default=one.samples.highest + 1)
        claimed = _within(acked[host_id], lowest) | _claimed(returns.get(host_id, ()), lowest)
        absent = claimed - here.samples.keys() - before[host_id].samples.keys()
        # What an agent gives up after it was acknowledged is lost all the same.
        forgiven = (here.given_up | before[host_id].given_up) - _within(one.samples, lowest)
        given_up += len(absent & forgiven)
        lost = absent - forgiven
        lost_batches += len(lost)
        lost_samples += len(lost) * max(here.samples.values(), default=1)
        lost_evidence += len(_lost_evidence(one, returns.get(host_id, ()), evidence[host_id]))
    longest, usual = _silences(found, killed_wall_ns)
    return Verdict(
        acked_batches=sum(len(one.samples) for one in found.values()),
        acked_samples=sum(sum(one.samples.values()) for one in found.values()),
        lost_batches=lost_batches,
        lost_samples=lost_samples,
        given_up=given_up,
        lost_evidence=lost_evidence,
        longest_gap_ns=longest,
        usual_gap_ns=usual,
    )


def is_whole(one: Watched, returns: Sequence[Return], have: Intervals, boot_have: Intervals) -> bool:
    """Return whether an agent is back, has sent a batch since, and no hole has come into what it sent.

    have: what the Master holds of the boot that was watched. boot_have: of the boot that came back.
    """
    if not returns:
        return False
    last = returns[-1]
    is_same = last.boot_id == one.boot_id
    sent_anew = boot_have.highest > last.samples_had if is_same else boot_have.highest > 0
    known = one.samples.missing_below(one.samples.highest)
    return sent_anew and not have.missing_below(have.highest).without(known).ranges


def _gather(watched: Mapping[HostId, Watched], records: Iterable[LogRecord]) -> dict[HostId, _Found]:
    found = {host_id: _Found() for host_id in watched}
    for record in records:
        one = watched.get(record.host_id)
        if one is None or record.origin_boot != one.boot_id:
            continue
        here = found[record.host_id]
        here.samples[record.origin_sequence] = _samples(record)
        if record.kind is Kind.GAP:
            here.given_up |= _gap(record, one)
        else:
            here.arrivals.append(record.received_ns)
    return found


def _samples(record: LogRecord) -> int:
    if record.kind is not Kind.TELEMETRY:
        return 0
    try:
        batch = parse_batch(record.body)
    except WindrowError:
        return 0  # it is there; what it says is nobody's
    return len(batch.at_ms) * len(batch.metric)


def _gap(record: LogRecord, one: Watched) -> set[int]:
    try:
        gap = decode_gap(record.body)
    except WindrowError:
        return set()
    if gap.lane is not Lane.TELEMETRY or gap.origin_boot != one.boot_id:
        return set()
    return {number for first, last in gap.ranges for number in range(first, last + 1)}


def _within(have: Intervals, lowest: int) -> set[int]:
    return {number for first, last in have.ranges for number in range(max(first, lowest), last + 1)}


def _claimed(returns: Sequence[Return], lowest: int) -> set[int]:
    """Return the sequences that an agent holds for acknowledged, by its own word at each return."""
    found: set[int] = set()
    for one in returns:
        through = max(one.samples_unacked.highest, one.samples_had)
        found |= set(range(lowest, through + 1)) - _within(one.samples_unacked, lowest)
    return found


def _lost_evidence(one: Watched, returns: Sequence[Return], have: Intervals) -> set[int]:
    claimed = _within(one.evidence, 1)
    for back in returns:
        if back.boot_id == one.boot_id:
            through = max(back.evidence_unacked.highest, back.evidence_had)
            claimed |= set(range(1, through + 1)) - _within(back.evidence_unacked, 1)
    return claimed - _within(have, 1)


def _silences(found: Mapping[HostId, _Found], killed_wall_ns: int) -> tuple[int | None, int | None]:
    longest: int | None = None
    usual: list[int] = []
    for one in found.values():
        arrivals = sorted(one.arrivals)
        for earlier, later in pairwise(arrivals):
            if later <= killed_wall_ns:
                usual.append(later - earlier)
            else:
                longest = max(longest or 0, later - earlier)
    return longest, round(median(usual)) if usual else None
