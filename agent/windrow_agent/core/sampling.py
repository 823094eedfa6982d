"""The schedule of samples: the instant of the next sweep, and the batches that samples are sent in. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from windrow_proto.samples import DEVICES_MAX, HOST_DEVICE, Sample
from windrow_proto.units import MILLISECOND, SECOND

PROCESSES_EVERY_NS: Final = 10 * SECOND
"""Process lists cost the driver milliseconds under its global lock, so tenants feel them: a tenth of the usual rate."""

INVENTORY_EVERY_NS: Final = 60 * SECOND
"""Modes and limits change by an administrator's hand; a minute is soon enough."""

PERIOD_MIN_NS: Final = 200 * MILLISECOND
"""Faster than this slows the tenants, whoever asks for it."""

PERIOD_MAX_NS: Final = 300 * SECOND


def merge(
    at_wall_ns: int,
    host: Mapping[int, int | None],
    gpus: Mapping[tuple[str, int], int | None],
) -> Sample:
    """One instant of everything: the host's metrics under the empty device, each GPU's under its UUID."""
    return Sample(at_wall_ns, {**{("", metric): value for metric, value in host.items()}, **gpus})


def absent(series: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int | None]:
    """The same series with nothing known: what a stalled driver's GPUs show, never their last values."""
    return dict.fromkeys(series)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When what is due next, on the monotonic clock."""

    sample_ns: int
    processes_ns: int
    inventory_ns: int


@dataclass(frozen=True, slots=True)
class Due:
    """The work that is due at this instant."""

    sample: bool
    processes: bool
    inventory: bool


def start(now_ns: int) -> Schedule:
    """Everything but the inventory, which opening has just read, is due at once."""
    return Schedule(now_ns, now_ns, now_ns + INVENTORY_EVERY_NS)


def advance(schedule: Schedule, now_ns: int, period_ns: int) -> tuple[Schedule, Due]:
    """Returns the work that is due now, and the schedule after it. Instants missed are skipped, never caught up in a
    burst."""
    if now_ns < schedule.sample_ns:
        return schedule, Due(False, False, False)
    due = Due(True, now_ns >= schedule.processes_ns, now_ns >= schedule.inventory_ns)
    missed = (now_ns - schedule.sample_ns) // period_ns
    after = Schedule(
        schedule.sample_ns + (missed + 1) * period_ns,
        now_ns + PROCESSES_EVERY_NS if due.processes else schedule.processes_ns,
        now_ns + INVENTORY_EVERY_NS if due.inventory else schedule.inventory_ns,
    )
    return after, due


def with_period(schedule: Schedule, now_ns: int, period_ns: int) -> Schedule:
    """The schedule after the period changed: the next instant comes no later than one new period from now."""
    return replace(schedule, sample_ns=min(schedule.sample_ns, now_ns + period_ns))


def bounded_period(period_ns: int) -> int:
    """A period as asked for, within what this agent allows; zero or less means the default of one second."""
    return SECOND if period_ns <= 0 else max(PERIOD_MIN_NS, min(PERIOD_MAX_NS, period_ns))


def is_batch_due(since_ns: int, sample_period_ns: int, batch_period_ns: int) -> bool:
    """True if a batch goes with the sample that is there now, `since_ns` after the last batch: the sample that lies
    nearest to the batches' period ends a batch, so that no batch waits."""
    return since_ns + sample_period_ns // 2 >= batch_period_ns


def batches(samples: Iterable[Sample], values_max: int) -> Iterator[list[Sample]]:
    """Samples in order, in groups of at most `values_max` values and of no more devices than one batch may name; one
    that alone has more is a group of its own."""
    group: list[Sample] = []
    values, devices = 0, set[str]()
    for sample in samples:
        own = {device for device, _ in sample.values if device != HOST_DEVICE}
        if group and (values + len(sample.values) > values_max or len(devices | own) > DEVICES_MAX):
            yield group
            group, values, devices = [], 0, set()
        group.append(sample)
        values += len(sample.values)
        devices |= own
    if group:
        yield group
