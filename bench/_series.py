"""Readings of 1,000 hosts with eight cards each: slow walks of every GPU metric, the same for the same seed. Pure.

Four cards of five work, the rest are idle. Readings change as cards' do: temperatures by a degree now and then, power
and clocks with noise, counters upwards, error counters and P-states hardly ever. Instants lie a second (or the plan's
step) apart with the few milliseconds of jitter that a sampling thread has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow_proto.samples import Sample
from windrow_proto.units import MILLISECOND

Int64 = NDArray[np.int64]

METRICS: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15)
"""All GPU metrics but the fan, which cards of a data centre do not have."""
BUSY_SHARE = 0.8
SECOND_MS = 1000
JITTER_MS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """How much there is: `batches` batches of `instants` samples each, of `gpus` cards on each of `hosts` hosts, one
    instant each `step_ms`."""

    hosts: int
    batches: int
    gpus: int = 8
    instants: int = 5
    seed: int = 1
    step_ms: int = SECOND_MS

    @property
    def values_per_batch(self) -> int:
        """Single values in one batch of one host."""
        return self.gpus * len(METRICS) * self.instants

    @property
    def span_ms(self) -> int:
        """The time that all batches cover."""
        return self.batches * self.instants * self.step_ms


@dataclass(frozen=True, slots=True)
class HostSeries:
    """One host's readings. at_ms: wall milliseconds, one per instant; values[gpu, metric, instant]."""

    at_ms: Int64
    values: Int64


def uuid(seed: int, host: int, gpu: int) -> str:
    """A card's uuid, in the driver's form."""
    return f"GPU-{seed & 0xFFFFFFFF:08x}-{host & 0xFFFF:04x}-4000-8000-{gpu:012x}"


def host_series(plan: Plan, host: int, start_ms: int) -> HostSeries:
    """The readings of one host from `start_ms` on."""
    draw = np.random.default_rng((plan.seed, host))
    count, instants = plan.gpus, plan.batches * plan.instants
    shape = (count, instants)
    busy = (draw.random(count) < BUSY_SHARE)[:, None]

    def walk(start: Int64, chance: float, step: int) -> Int64:
        moves = (draw.random(shape) < chance) * draw.integers(-step, step + 1, shape)
        return start[:, None] + np.cumsum(moves, axis=1, dtype=np.int64)

    def level(low: int, high: int) -> Int64:
        return draw.integers(low, high, count)

    def fixed(values: Int64) -> Int64:
        return np.repeat(values[:, None], instants, axis=1)

    power = np.where(busy, 5500 + walk(level(-800, 800), 0.3, 20) + draw.normal(0, 60, shape).astype(np.int64), 0)
    power = np.maximum(power, 690 + draw.integers(0, 6, shape))
    columns = {
        1: np.where(busy, np.clip(walk(level(92, 100), 0.5, 3), 60, 100), 0),
        2: np.where(busy, np.clip(walk(level(40, 70), 0.5, 3), 20, 90), 0),
        3: np.where(busy, walk(level(20_000, 78_000), 0.02, 256), 4),
        4: walk(level(55, 75), 0.1, 1),
        5: walk(level(60, 85), 0.1, 1),
        6: power,
        7: level(10**6, 10**9)[:, None] + np.cumsum(power, axis=1) // 10,
        8: np.where(busy, 1980 - 15 * ((draw.random(shape) < 0.1) * draw.integers(1, 6, shape)), 345),
        9: fixed(np.full(count, 2619)),
        10: np.where(busy, 4 * (draw.random(shape) < 0.05), 1),
        11: np.where(busy, fixed(np.zeros(count, dtype=np.int64)), 8),
        13: fixed(np.zeros(count, dtype=np.int64)),
        14: fixed(level(0, 40)),
        15: fixed(np.where(busy[:, 0], level(1, 9), 0)),
    }
    offset = int(draw.integers(0, SECOND_MS))
    at_ms = start_ms + offset + np.arange(instants) * plan.step_ms + draw.integers(0, JITTER_MS, instants)
    return HostSeries(at_ms, np.stack([columns[metric] for metric in METRICS], axis=1).astype(np.int64))


def batch_samples(plan: Plan, host: int, series: HostSeries, batch: int) -> list[Sample]:
    """One batch as the agent's sampler hands it over."""
    begin = batch * plan.instants
    keys = [(uuid(plan.seed, host, gpu), metric) for gpu in range(plan.gpus) for metric in METRICS]
    columns = series.values.reshape(len(keys), -1)[:, begin : begin + plan.instants].T.tolist()
    instants: Sequence[int] = series.at_ms[begin : begin + plan.instants].tolist()
    return [
        Sample(at_ms * MILLISECOND, dict(zip(keys, column, strict=True)))
        for at_ms, column in zip(instants, columns, strict=True)
    ]
