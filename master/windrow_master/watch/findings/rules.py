"""Decides what holds a card back, from its readings over a window: at most one cause, with its evidence. Pure.

A window is the last half hour of work that runs, or the whole of work that has ended. What is not clear is no finding:
each rule asks for a reading that the healthy do not have. Readings that a host does not give rule their causes out.

    hot                 clocks held down by heat in a tenth of the time, by the driver's own counter
    power_capped        held down by power in half of the time, at a limit below 90 % of what the card may take
    idle                ten minutes or more in which the card computed nothing and the processors next to nothing
    pcie_bound          one direction of the link at 70 % or more in half of the steps, and the card under 70 % busy
    cpu_bound           the work's processors at 90 % or more, or at 40 % where its host has none left; the card under
                        70 % busy
    data_starved        the card between 2 and 70 % busy, while the work reads and disks are waited for, or one
                        processor alone is busy and its host has others
    memory_nearly_full  97 % or more of the card's memory in half of the steps
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from windrow_master.watch.findings.model import CardFacts, Cause, Evidence, Finding, Line, Readings
from windrow_proto.metrics import BY_NAME

READ_MS_MIN: Final = 60_000
"""Readings of a minute at least: what begins loads its program first."""
IDLE_MS_MIN: Final = 600_000
IDLE_USE: Final = 0.02
IDLE_CORES: Final = 0.1
BUSY_USE: Final = 0.70
"""At and above it nothing of what feeds a card is worth changing first."""
HEAT_SHARE: Final = 0.10
POWER_SHARE: Final = 0.50
LIMIT_SHARE: Final = 0.90
LINK_SHARE: Final = 0.70
CORES_SHARE: Final = 0.90
SQUEEZED_SHARE: Final = 0.40
"""Of its processors, where others use the rest of the host's."""
HOST_FULL: Final = 0.90
READ_BYTES_PER_S: Final = 100e3
"""Less is no data set: the disks of the host are waited for by others."""
MEMORY_SHARE: Final = 0.97
WAITING_RATIO: Final = 0.10
"""Of the time in which somebody on the host waits for a disk (Linux's pressure stall information)."""
ONE_CORE: Final = (0.8, 1.25)
"""Processors in use where one process feeds the card alone."""

USE: Final = "gpu_utilization_ratio"
MEMORY: Final = "gpu_memory_used_bytes"
TEMPERATURE: Final = "gpu_temperature_celsius"
POWER: Final = "gpu_power_watts"
CLOCK: Final = "gpu_clock_sm_hertz"
HEAT: Final = "gpu_throttled_heat_seconds_total"
HELD: Final = "gpu_throttled_power_seconds_total"
SENT: Final = "gpu_pcie_transmit_bytes_total"
RECEIVED: Final = "gpu_pcie_receive_bytes_total"
WAITING: Final = "host_io_pressure_ratio"
HOST_CORES: Final = "host_cpu_ratio"
CORES: Final = "workload_cpu_cores"
DISK: Final = "workload_disk_read_bytes_per_second"
NETWORK: Final = "workload_network_receive_bytes_per_second"
OF_GPU: Final = (USE, MEMORY, TEMPERATURE, POWER, CLOCK, HEAT, HELD, SENT, RECEIVED)
OF_HOST: Final = (WAITING, HOST_CORES)
OF_WORKLOAD: Final = (CORES, DISK, NETWORK)


def finding(card: CardFacts, readings: Readings) -> Finding | None:
    """Return the cause that holds this card back; None: nothing does, or too little was read."""
    look = _Look(card, readings)
    if look.read_ms < READ_MS_MIN:
        return None
    rules = (look.hot, look.power_capped, look.idle, look.pcie_bound, look.cpu_bound, look.data_starved, look.full)
    return next((found for rule in rules if (found := rule()) is not None), None)


def is_read(readings: Readings) -> bool:
    """Return whether enough of a card was read to say anything."""
    return len(_values(readings.lines.get(USE, ()))) * readings.step_ms >= READ_MS_MIN


class _Look:
    """One card's window."""

    def __init__(self, card: CardFacts, readings: Readings) -> None:
        self._card, self._readings = card, readings
        self._use = _values(self._line(USE))
        self.read_ms = len(self._use) * readings.step_ms
        self._busy = _busy(self._use)

    def hot(self) -> Finding | None:
        share = self._grown(HEAT) / (self.read_ms / 1000)
        if share < HEAT_SHARE:
            return None
        peak = max(_values(self._line(TEMPERATURE)), default=None)
        at = "" if peak is None else f", at up to {peak:.0f} °C"
        words = f"Heat held the clocks of {self._card.name} down for {share:.0%} of the time{at}."
        remedy = "Report it to the provider, and move the work: its host cools this card too little."
        return self._found(Cause.HOT, words, remedy, share, (TEMPERATURE, CLOCK))

    def power_capped(self) -> Finding | None:
        limit, most = self._card.power_limit_watts, self._card.power_limit_max_watts
        share = self._grown(HELD) / (self.read_ms / 1000)
        if limit is None or most is None or limit >= LIMIT_SHARE * most or share < POWER_SHARE:
            return None
        words = (
            f"The power limit of {self._card.name} is {limit:.0f} W of the {most:.0f} W that it may take; it held the "
            f"clocks down for {share:.0%} of the time."
        )
        remedy = "Rent a card without a lowered limit, or ask the provider to raise it (`nvidia-smi -pl`)."
        return self._found(Cause.POWER_CAPPED, words, remedy, 1 - limit / most, (POWER, CLOCK), limit)

    def idle(self) -> Finding | None:
        cores = _mean(_values(self._line(CORES)))
        is_quiet = self._busy < IDLE_USE and _share(self._use, 0.0, IDLE_USE) >= 0.95
        if not is_quiet or self.read_ms < IDLE_MS_MIN or (cores is not None and cores >= IDLE_CORES):
            return None
        words = f"{self._card.name[0].upper()}{self._card.name[1:]} computed nothing for {self.read_ms // 60_000} min."
        remedy = "End the machine if nobody needs it, or let it end by itself: `--idle 30m` with the next one."
        return self._found(Cause.IDLE, words, remedy, 1.0, (USE, CORES))

    def pcie_bound(self) -> Finding | None:
        most = self._card.pcie_bytes_per_s
        rates = [self._rates(SENT), self._rates(RECEIVED)]
        if most is None or self._busy >= BUSY_USE or not any(rates):
            return None
        line = max(rates, key=lambda one: _mean(_values(one)) or 0.0)
        if _share(_values(line), LINK_SHARE * most, None) < 0.5:
            return None
        words = (
            f"The PCIe link of {self._card.name} carries {_giga(_mean(_values(line)))} of the {_giga(most)} that it "
            f"can, while the card is {self._busy:.0%} busy."
        )
        remedy = (
            "Keep tensors on the card between steps, copy from pinned memory beside the computation, or rent a card "
            "with a wider link."
        )
        name = SENT if line is rates[0] else RECEIVED
        charts = (_chart(name, line, LINK_SHARE * most, "By/s"), self._chart(USE))
        return Finding(Cause.PCIE_BOUND, self._card, words, remedy, 1 - self._busy, charts)

    def cpu_bound(self) -> Finding | None:
        cores, most = _mean(_values(self._line(CORES))), self._card.cpus
        if cores is None or not IDLE_USE <= self._busy < BUSY_USE or cores < SQUEEZED_SHARE * most:
            return None
        is_own = cores >= CORES_SHARE * most
        if not is_own and not self._is_host_full:
            return None
        rest = "" if is_own else ", its host has none left"
        words = (
            f"The work uses {cores:.1f} of its {most} CPUs{rest}, and {self._card.name} is {self._busy:.0%} "
            "busy: it waits for them."
        )
        remedy = "Ask for more CPUs (`--cpus`), or do on the card what the CPUs prepare."
        charts = (CORES, USE) if is_own else (CORES, HOST_CORES, USE)
        return self._found(Cause.CPU_BOUND, words, remedy, 1 - self._busy, charts, float(most))

    def data_starved(self) -> Finding | None:
        if not IDLE_USE <= self._busy < BUSY_USE:
            return None
        waiting, cores = _mean(_values(self._line(WAITING))), _mean(_values(self._line(CORES)))
        read = [_mean(_values(self._line(name))) for name in (DISK, NETWORK)]
        is_reading = read == [None, None] or max(one or 0.0 for one in read) >= READ_BYTES_PER_S
        words = f"{self._card.name[0].upper()}{self._card.name[1:]} is {self._busy:.0%} busy: it waits for its data"
        if waiting is not None and waiting >= WAITING_RATIO and is_reading:
            words += f"; the host waits for its disks {waiting:.0%} of the time."
            remedy = "Copy the data set to the machine's disk first, in fewer and larger files, or load it into memory."
            return self._found(Cause.DATA_STARVED, words, remedy, 1 - self._busy, (WAITING, USE, DISK), WAITING_RATIO)
        is_one = cores is not None and ONE_CORE[0] <= cores <= ONE_CORE[1] and self._card.cpus > 1
        if is_one and not self._card.serves and not self._is_host_full:
            words += f", which one of {self._card.cpus} CPUs prepares alone."
            remedy = "Load data in several processes: in PyTorch `DataLoader(num_workers=4, pin_memory=True)`."
            return self._found(Cause.DATA_STARVED, words, remedy, 1 - self._busy, (CORES, USE))
        return None

    def full(self) -> Finding | None:
        memory, used = self._card.memory_bytes, _values(self._line(MEMORY))
        if not memory or _share(used, MEMORY_SHARE * memory, None) < 0.5:
            return None
        words = f"The memory of {self._card.name} is full to {max(used) / memory:.0%}: the next larger batch fails."
        remedy = "Lower the batch size, or rent a card with more memory. If the program reserves it all, ignore this."
        return self._found(Cause.MEMORY_NEARLY_FULL, words, remedy, 0.0, (MEMORY,), MEMORY_SHARE * memory)

    @property
    def _is_host_full(self) -> bool:
        return (_mean(_values(self._line(HOST_CORES))) or 0.0) >= HOST_FULL

    def _line(self, name: str) -> Line:
        return self._readings.lines.get(name, ())

    def _chart(self, name: str, limit: float | None = None) -> Evidence:
        return _chart(name, self._line(name), limit)

    def _found(
        self, cause: Cause, words: str, remedy: str, lost: float, names: Iterable[str], limit: float | None = None
    ) -> Finding:
        """limit: of the first of these charts."""
        charts = [self._chart(name, None if place else limit) for place, name in enumerate(names)]
        shown = tuple(one for one in charts if _values(one.points))
        return Finding(cause, self._card, words, remedy, min(1.0, max(0.0, lost)), shown)

    def _grown(self, name: str) -> float:
        """By how much a counter has grown; one that fell has begun anew, with its host."""
        values = _values(self._line(name))
        return sum(max(0.0, after - before) for before, after in pairwise(values))

    def _rates(self, name: str) -> Line:
        """A counter as a rate of each step, per second; a step without a reading has none."""
        line, step_s = self._line(name), self._readings.step_ms / 1000
        found: list[tuple[int, float | None]] = []
        last: tuple[int, float] | None = None
        for at_ms, value in line:
            if value is None:
                continue
            if last is not None and value >= last[1]:
                steps = (at_ms - last[0]) / self._readings.step_ms
                found.append((at_ms, (value - last[1]) / (steps * step_s)))
            last = at_ms, value
        return found


def _chart(name: str, points: Line, limit: float | None, unit: str | None = None) -> Evidence:
    metric = BY_NAME[name]
    return Evidence(name, metric.label, unit or metric.unit, points, limit)


def _values(line: Line) -> list[float]:
    return [value for _, value in line if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _busy(use: Sequence[float]) -> float:
    """How busy a card is since it was first used: the higher of mean and median, since neither loading a program nor
    pauses between epochs are faults."""
    begun = next((place for place, value in enumerate(use) if value >= IDLE_USE), 0)
    used = use[begun:]
    return max(fmean(used), median(used)) if used else 0.0


def _share(values: Sequence[float], least: float, most: float | None) -> float:
    """The share of values from least to most, both included; 0 of none."""
    if not values:
        return 0.0
    return sum(value >= least and (most is None or value <= most) for value in values) / len(values)


def _giga(rate: float | None) -> str:
    return f"{(rate or 0.0) / 1e9:.1f} GB/s"
