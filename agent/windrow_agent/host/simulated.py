"""A host that does not exist: drawn from a seed, behind the ports of a real one, marked simulated everywhere."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from windrow_agent.core.gpu_port import GpuBackend
from windrow_agent.core.inventory import HostFacts
from windrow_agent.core.scaling import hundredths, kibibytes, mebibytes, permille
from windrow_agent.gpu.drawn_rates import DrawnRates, draw
from windrow_agent.gpu.personas import FLEET, HOSTS, HostPersona
from windrow_agent.gpu.simulated import SimulatedGpus, unit, wave
from windrow_proto.conditions import ConditionCode
from windrow_proto.metrics import BENCHMARK_UNIT, CPU_HASH, DISK_WRITE, MEMORY_COPY, MEMORY_COPY_THREADS
from windrow_proto.model import Benchmark
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, SECOND

SHA256_PER_PROCESSOR: Final = 1e9
"""Bytes per second and logical processor that a server of the day hashes with its own instructions, about."""

MEMORY_PER_PROCESSOR: Final = 5e9
DISK: Final = 1.8e9


class Fault(Enum):
    """A fault of a simulated host, to see how faults are shown and what is done about them."""

    GPU_LOST = "gpu_lost"
    GPU_HOT = "gpu_hot"
    DISK_FULL = "disk_full"


FAULTS: Final = {1: Fault.GPU_LOST, 6: Fault.GPU_HOT, 11: Fault.DISK_FULL}
"""By the number of the host: few, and each of another model, so that a fleet of fifty is mostly well."""
OFF_THE_BUS: Final = 79
"""The XID of a card that has fallen off its bus."""
FAULTY_CARD: Final = 2


class SimulatedHost:
    """Host number `index` of the fleet that `seed` draws. `gpus` and `reader` go into a Sampler; faults by `gpus`.

    persona: a key of personas.HOSTS; None takes the fleet's order.
    """

    def __init__(self, seed: int, index: int, clock: Clock, persona: str | None = None) -> None:
        self.index = index
        self.key = f"{seed}|{index}"
        self.persona: HostPersona = HOSTS[persona or FLEET[index % len(FLEET)]]
        self.gpus = SimulatedGpus(self.persona.gpu, self.persona.gpu_count, self.key, clock)
        self.reader = SimulatedReader(self.persona, self.key, index, clock)
        self._clock = clock
        self._conditions: tuple[str, ...] = ()

    def break_down(self, fault: Fault) -> None:
        """Have this fault from now on, as long as this process runs."""
        if fault is Fault.GPU_LOST:
            self.gpus.xid(FAULTY_CARD, OFF_THE_BUS)
            self.gpus.lose(FAULTY_CARD)
        elif fault is Fault.GPU_HOT:
            self.gpus.heat(FAULTY_CARD)
        else:
            self.reader.fill_disk()
            self._conditions = (ConditionCode.AGENT_DISK_FULL.value,)

    def conditions(self) -> tuple[str, ...]:
        """The conditions of the host itself, by their codes."""
        return self._conditions

    @property
    def backend(self) -> GpuBackend:
        """The GPUs as the port."""
        return self.gpus

    def benchmarks(self) -> tuple[Benchmark, ...]:
        """Figures under the names of the real benchmarks, drawn and not measured; hosts differ by up to a quarter."""
        processors, now_ns = self.persona.cpu_count, self._clock.wall_ns()
        copying = min(processors, MEMORY_COPY_THREADS)
        quality = 0.8 + 0.25 * unit(self.key, "quality")
        return (
            Benchmark(CPU_HASH, round(SHA256_PER_PROCESSOR * processors * quality), BENCHMARK_UNIT, now_ns),
            Benchmark(DISK_WRITE, round(DISK * quality), BENCHMARK_UNIT, now_ns),
            Benchmark(MEMORY_COPY, round(MEMORY_PER_PROCESSOR * copying * quality), BENCHMARK_UNIT, now_ns),
        )

    def card_rates(self) -> dict[str, DrawnRates]:
        """The drawn figures of each card, by UUID; a test rental reports them."""
        gpu = self.persona.gpu
        return {} if gpu is None else {one.uuid: draw(gpu, self.key, one.uuid) for one in self.gpus.inventory().gpus}


class SimulatedReader:
    """The facts and metrics of a simulated host."""

    simulated = True

    def __init__(self, persona: HostPersona, key: str, index: int, clock: Clock) -> None:
        self._persona, self._key, self._index, self._clock = persona, key, index, clock
        self._began_ns = clock.monotonic_ns()
        self._counted_ns = self._began_ns
        self._counters = [0.0, 0.0, 0.0, 0.0]
        self._is_disk_full = False

    def fill_disk(self) -> None:
        """Nothing is free on its disk from now on."""
        self._is_disk_full = True

    def facts(self) -> HostFacts:
        """A machine of this persona; its name says that it is simulated."""
        persona = self._persona
        return HostFacts(
            hostname=f"simulated-{self._index:04d}",
            os="Windrow simulated host",
            kernel="Linux 6.8.0-simulated",
            cpu_model=persona.cpu_model,
            cpu_count=persona.cpu_count,
            cpu_physical=persona.cpu_count // 2,
            memory_bytes=persona.memory_bytes,
            disk_bytes=persona.disk_bytes,
            machine_id=f"simulated|{self._key}",
        )

    def sample(self) -> Mapping[int, int | None]:
        """Metrics at this instant of the clock; counters grow at rates that drift."""
        now_ns = self._clock.monotonic_ns()
        at, span_s = (now_ns - self._began_ns) / SECOND, max(0, now_ns - self._counted_ns) / SECOND
        self._counted_ns = now_ns
        for number, base in enumerate((2e6, 8e5, 3e5, 1.5e6)):
            rate = base * (1.2 + wave(at, self._key, "rate", number))
            self._counters[number] += rate * span_s
        cpu = 4.0 + 3.0 * wave(at, self._key, "cpu")
        received, sent, read, written = (int(value) for value in self._counters)
        memory = self._persona.memory_bytes * (0.06 + 0.01 * wave(at, self._key, "memory"))
        return {
            101: permille(cpu),
            102: mebibytes(int(memory)),
            103: hundredths(cpu / 100 * self._persona.cpu_count),
            104: kibibytes(received),
            105: kibibytes(sent),
            106: mebibytes(self._persona.disk_bytes if self._is_disk_full else 40 * GIB + written),
            107: kibibytes(read),
            108: kibibytes(written),
            109: 0,
            111: 0,
            112: 0,
            113: 0,
        }
