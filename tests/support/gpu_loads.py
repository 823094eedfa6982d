"""Loads of a rented card: seven that something holds back, and twenty healthy ones, the same for the same seed.

Their readings are lines of history in `make test`, and what the fake driver says to a real agent in `make long`. There
the processors and the disk are used by a real program.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.watch.findings import rules
from windrow_master.watch.findings.model import CardFacts, Cause, Line, Readings
from windrow_proto.ids import HostId
from windrow_proto.units import GIB

HEALTHY: Final = 20
STEP_MS: Final = 10_000
CPUS: Final = 2
WATTS: Final = 700.0
MEMORY: Final = 80 * GIB
Use = Callable[[float], float]
"""How busy the card is, 0 to 1, so many seconds after its work began."""
WAITS: Final = ("sleep", "3000")
BURNS: Final = "import os\nfor _ in range(4): os.fork()\nwhile True: pass"
"""Sixteen processes: on a busy machine, too, they take most of its processors."""
READS: Final = """
import mmap, os, random
with open("data", "wb") as made:
    for _ in range(64): made.write(os.urandom(1 << 20))
    os.fsync(made.fileno())
at, page = os.open("data", os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
while True: os.preadv(at, [page], random.randrange(16384) * 4096)
"""
"""Reads samples of 4 KiB from the disk, past the kernel's cache, as a data loader with shuffling does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One card and the work on it. heat, held: seconds a second in which heat, or the power limit, holds its clocks
    down; moved: bytes a second from its host; memory, limit: shares of what it has and may take; cores, reads, waits:
    what a history says of the program where none runs: processors, bytes a second, the share of time that is waited for
    disks. argv: the program."""

    name: str
    use: Use
    cause: Cause | None = None
    heat: float = 0.0
    held: float = 0.05
    moved: float = 2e9
    memory: float = 0.7
    celsius: float = 64.0
    limit: float = 1.0
    cores: float = 0.3
    reads: float = 0.0
    waits: float = 0.01
    argv: Sequence[str] = WAITS


def planted() -> list[Load]:
    """One for each cause."""
    some, python = steady(random.Random(1), 0.3, 0.4), ("python3", "-c")
    return [
        Load(name="hot", cause=Cause.HOT, use=lambda _: 0.9, heat=0.3, celsius=86),
        Load(name="capped", cause=Cause.POWER_CAPPED, use=lambda _: 0.95, held=0.9, limit=0.5),
        Load(name="idle", cause=Cause.IDLE, use=lambda _: 0.0, cores=0.0, moved=0.0, celsius=34),
        Load(name="pcie", cause=Cause.PCIE_BOUND, use=some, moved=55e9),
        Load(name="cpu", cause=Cause.CPU_BOUND, use=some, cores=2.0, argv=(*python, BURNS)),
        Load(name="starved", cause=Cause.DATA_STARVED, use=some, reads=20e6, waits=0.6, argv=(*python, READS)),
        Load(name="full", cause=Cause.MEMORY_NEARLY_FULL, use=lambda _: 0.9, memory=0.98),
    ]


def healthy(seed: int) -> list[Load]:
    """Twenty of five kinds: steady, loading first, pausing between epochs, in bursts, held at its full power."""
    chance, found = random.Random(seed), list[Load]()
    for number in range(HEALTHY):
        kind, base = number % 5, steady(chance, chance.uniform(0.75, 0.85), 1.0)
        use, name = _shaped(kind, base, chance)
        found.append(
            Load(
                name=f"{name}-{number}",
                use=use,
                held=0.8 if kind == 4 else chance.uniform(0, 0.3),
                moved=chance.uniform(0.1e9, 20e9),
                memory=chance.uniform(0.1, 0.93),
                celsius=chance.uniform(45, 79),
                cores=chance.uniform(0.1, 1.2),
                reads=chance.uniform(0, 50e6),
                waits=chance.uniform(0, 0.05),
            )
        )
    return found


def steady(chance: random.Random, least: float, most: float) -> Use:
    """Noise between the two, another value each second."""
    values = [chance.uniform(least, most) for _ in range(1_000)]
    return lambda second: values[int(second) % len(values)]


def _shaped(kind: int, base: Use, chance: random.Random) -> tuple[Use, str]:
    begins, pause, every = chance.uniform(5, 40), chance.uniform(3, 12), chance.uniform(50, 120)
    shapes: Sequence[tuple[Use, str]] = (
        (base, "steady"),
        (lambda second: 0.0 if second < begins else base(second), "loading"),
        (lambda second: 0.0 if second % every < pause else base(second), "pausing"),
        (lambda second: 0.3 if second % 30 < 8 else 1.0, "bursts"),
        (base, "full-power"),
    )
    return shapes[kind]


def history(load: Load, seconds: int, seed: int = 1) -> tuple[CardFacts, Readings]:
    """What is known of the card, and its lines over such a time, with the noise of real readings."""
    chance, step_s = random.Random(seed), STEP_MS // 1000
    times = range(0, seconds, step_s)

    def gauge(value: float, part: float = 0.02) -> Line:
        return [(at * 1000, value * chance.uniform(1 - part, 1 + part)) for at in times]

    def counter(per_s: float) -> Line:
        total, line = chance.uniform(0, 1e6), list[tuple[int, float | None]]()
        for at in times:
            line.append((at * 1000, total))
            total += per_s * step_s * chance.uniform(0.95, 1.05)
        return line

    use: Line = [(at * 1000, sum(load.use(at + one) for one in range(step_s)) / step_s) for at in times]
    lines: Mapping[str, Line] = {
        rules.USE: use,
        rules.MEMORY: gauge(load.memory * MEMORY, 0.001),
        rules.TEMPERATURE: gauge(load.celsius),
        rules.POWER: gauge(WATTS * load.limit * 0.9),
        rules.CLOCK: gauge(1.8e9),
        rules.HEAT: counter(load.heat),
        rules.HELD: counter(load.held),
        rules.SENT: counter(load.moved / 10),
        rules.RECEIVED: counter(load.moved),
        rules.WAITING: gauge(load.waits, 0.3),
        rules.HOST_CORES: gauge(0.5, 0.3),
        rules.CORES: gauge(load.cores, 0.1),
        rules.DISK: gauge(load.reads, 0.3),
        rules.NETWORK: gauge(0.0),
    }
    facts = CardFacts(
        host_id=HostId("host_a"), host_name="rack7-node2", rank=0, gpu="GPU-1", index=3, cpus=CPUS,
        memory_bytes=MEMORY, power_limit_watts=WATTS * load.limit, power_limit_max_watts=WATTS, pcie_generation=5,
        pcie_lanes=16,
    )  # fmt: skip
    return facts, Readings(STEP_MS, lines)
