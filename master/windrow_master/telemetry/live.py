"""Holds the latest sample of every host, in memory, with versions for streams. Pure; used from one thread.

A batch is kept as it came and decoded when somebody looks: most of a large fleet is looked at by nobody.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from windrow_master.telemetry.model import NS_PER_MS
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.metrics import BY_NUMBER, METRICS, SLOW, Scope
from windrow_proto.samples import Batch, decode_ends
from windrow_proto.units import SECOND

RATED: Final = {104: "rx_bps", 105: "tx_bps"}
"""Counters of bytes that people read as a rate, in bits per second."""

SLOW_NS: Final = 30 * SECOND
"""For how long a slow metric is taken to be as it was read last: three times the span between two reads of it."""
OF_WORKLOADS: Final = frozenset(metric.number for metric in METRICS if metric.scope is Scope.WORKLOAD)


@dataclass(frozen=True, slots=True)
class Reading:
    """One host at one instant: device ("" the host, else a GPU's uuid or a workload's id) to metric number to value in
    its unit.

    rates: of the host's network, bits per second, over the batch; empty when a batch holds one instant only.
    read_ns: when the slow metrics of a device were read.
    """

    at_ns: int
    values: Mapping[str, Mapping[int, float | None]]
    rates: Mapping[str, float] = field(default_factory=dict)
    read_ns: Mapping[str, int] = field(default_factory=dict)

    def get(self, device: str, metric: int) -> float | None:
        """One value; None where it is absent."""
        return self.values.get(device, {}).get(metric)


@dataclass(slots=True)
class _Slot:
    boot: BootId
    sequence: int
    body: bytes | None
    reading: Reading | None
    version: int
    earlier: bytes | None = None
    """The batch before `body`, where nobody looked at it: a rate needs two instants."""


class LiveView:
    """The latest reading of each host; `version` grows with every batch put here."""

    def __init__(self) -> None:
        self._slots: dict[HostId, _Slot] = {}
        self.version = 0
        self.bad_batches = 0

    def put(self, host_id: HostId, boot: BootId, sequence: int, body: bytes) -> None:
        """A live batch arrived; one of the same boot that is older than what is here is left out."""
        slot = self._slots.get(host_id)
        if slot is not None and slot.boot == boot and slot.sequence >= sequence:
            return
        self.version += 1
        if slot is None:
            self._slots[host_id] = _Slot(boot, sequence, body, None, self.version)
        else:
            self._slots[host_id] = _Slot(boot, sequence, body, slot.reading, self.version, slot.body)

    def get(self, host_id: HostId) -> Reading | None:
        """The latest reading of one host."""
        slot = self._slots.get(host_id)
        if slot is None:
            return None
        unread = [body for body in (slot.earlier, slot.body) if body is not None]
        slot.earlier = slot.body = None
        for body in unread:
            try:
                slot.reading = to_reading(decode_ends(body), slot.reading)
            except WindrowError:
                self.bad_batches += 1
        return slot.reading

    def peek(self, host_id: HostId, metrics: Set[int]) -> Reading | None:
        """The latest reading of one host with these metrics at least, for who looks at few of many hosts: what nobody
        else looks at is not decoded as a whole for it."""
        slot = self._slots.get(host_id)
        if slot is None or slot.body is None or metrics & SLOW:
            return self.get(host_id)
        try:
            return Reading(*_last(decode_ends(slot.body, metrics)))
        except WindrowError:
            return self.get(host_id)

    def version_of(self, host_id: HostId) -> int:
        """The version at which this host last changed; 0 if it never did."""
        slot = self._slots.get(host_id)
        return slot.version if slot is not None else 0

    def since(self, version: int) -> tuple[HostId, ...]:
        """The hosts that changed after a version."""
        return tuple(host_id for host_id, slot in self._slots.items() if slot.version > version)


def to_reading(batch: Batch, before: Reading | None = None) -> Reading:
    """The last instant of a batch; a series absent there is None. `before` serves rates when there is one instant."""
    at_ns, values = _last(batch)
    rates = _rates(batch)
    if not rates and before is not None and at_ns > before.at_ns:
        rates = _rates_between(before, values.get("", {}), at_ns)
    return Reading(at_ns, values, rates, _keep_slow(values, before, at_ns))


def _last(batch: Batch) -> tuple[int, dict[str, dict[int, float | None]]]:
    values: dict[str, dict[int, float | None]] = {}
    for (device, metric), column in zip(batch.series, batch.values, strict=True):
        known = BY_NUMBER.get(metric)
        last = column[-1]
        if known is not None:
            values.setdefault(device, {})[metric] = None if last is None else last * known.scale
    return batch.start_wall_ns + batch.at_ms[-1] * NS_PER_MS, values


def _keep_slow(values: dict[str, dict[int, float | None]], before: Reading | None, at_ns: int) -> dict[str, int]:
    """Put what was read of slow metrics before into a device that still answers; when each was read."""
    read_ns: dict[str, int] = {}
    for device, mine in values.items():
        fast = [value for metric, value in mine.items() if metric not in SLOW]
        if fast and all(value is None for value in fast):
            continue  # it does not answer: nothing of it is known
        if any(mine.get(metric) is not None for metric in SLOW):
            read_ns[device] = at_ns
        elif before is not None and device in before.read_ns and at_ns - before.read_ns[device] < SLOW_NS:
            read_ns[device] = before.read_ns[device]
            mine |= {metric: value for metric, value in before.values[device].items() if metric in SLOW}
    for device, when_ns in ({} if before is None else before.read_ns).items():
        kept = {} if before is None else before.values[device]
        if device not in values and at_ns - when_ns < SLOW_NS and OF_WORKLOADS.issuperset(kept):
            values[device], read_ns[device] = dict(kept), when_ns
    return read_ns


def _rates(batch: Batch) -> dict[str, float]:
    seconds = (batch.at_ms[-1] - batch.at_ms[0]) / 1000
    if seconds <= 0:
        return {}
    found = {}
    for (device, metric), column in zip(batch.series, batch.values, strict=True):
        first, last = column[0], column[-1]
        if device == "" and metric in RATED and first is not None and last is not None and last >= first:
            found[RATED[metric]] = (last - first) * BY_NUMBER[metric].scale * 8 / seconds
    return found


def _rates_between(before: Reading, now: Mapping[int, float | None], at_ns: int) -> dict[str, float]:
    seconds = (at_ns - before.at_ns) / 1e9
    found = {}
    for metric, name in RATED.items():
        first, last = before.get("", metric), now.get(metric)
        if first is not None and last is not None and last >= first:
            found[name] = (last - first) * 8 / seconds
    return found
