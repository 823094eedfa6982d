"""A simulated host repeats itself exactly, looks like a machine, and never passes for a real one."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.core.availability import Availability
from windrow_agent.core.inventory import build_inventory
from windrow_agent.gpu.personas import HOSTS
from windrow_agent.gpu.simulated import HOT_CELSIUS
from windrow_agent.host.simulated import Fault, SimulatedHost
from windrow_agent.report.sampler import Sampler
from windrow_proto.conditions import ConditionCode
from windrow_proto.metrics import METRICS
from windrow_proto.samples import Sample
from windrow_proto.units import MIB, SECOND


class StepClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_ns = 5 * SECOND

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return 1_790_000_000 * SECOND + self.now_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        self.now_ns += max(0, duration_ns)
        await asyncio.sleep(0)


def history(seed: int, index: int, script: Callable[[int, SimulatedHost], None] = lambda second, host: None) -> object:
    clock = StepClock()
    host = SimulatedHost(seed, index, clock)
    told: list[object] = [host.gpus.inventory(), host.reader.facts(), host.benchmarks()]
    for second in range(120):
        clock.now_ns += SECOND
        script(second, host)
        told += [host.gpus.sample(second % 10 == 0), host.reader.sample(), host.gpus.events(0)]
    return told


def work(second: int, host: SimulatedHost) -> None:
    if second == 30:
        host.gpus.leased(frozenset({host.gpus.inventory().gpus[0].uuid}))


def test_the_same_seed_index_and_script_give_the_same_figures():
    assert history(4, 2, work) == history(4, 2, work)


@pytest.mark.parametrize(("seed", "index"), [(5, 2), (4, 6)])
def test_another_seed_or_index_gives_another_host(seed: int, index: int):
    assert history(4, 2) != history(seed, index)


@pytest.mark.parametrize("persona", sorted(HOSTS))
def test_figures_stay_believable_and_counters_grow(persona: str):
    clock = StepClock()
    host = SimulatedHost(1, 0, clock, persona)
    uuids = [gpu.uuid for gpu in host.gpus.inventory().gpus]
    host.gpus.leased(frozenset(uuids[:1]))
    before: dict[tuple[str, int], int | None] = {}
    counters = {metric.number for metric in METRICS if metric.counter}
    for _ in range(300):
        clock.now_ns += SECOND
        values = {**host.gpus.sample(True), **{("", number): value for number, value in host.reader.sample().items()}}
        assert all(value is None or value >= 0 for value in values.values())
        assert all(20 <= (values[uuid, 4] or 0) <= 87 and (values[uuid, 1] or 0) <= 100 for uuid in uuids)
        assert all((values[key] or 0) >= (before.get(key) or 0) for key in values if key[1] in counters)
        before = values
    assert all((before[uuid, 6] or 0) > (before[uuids[-1], 6] or 0) for uuid in uuids[:1] if len(uuids) > 1)


def test_neighbouring_seconds_differ_little_but_do_differ():
    clock = StepClock()
    gpus = SimulatedHost(1, 0, clock, "8xH100").gpus
    uuid = gpus.inventory().gpus[0].uuid
    watts = []
    for _ in range(60):
        clock.now_ns += SECOND
        watts.append(gpus.sample(False)[uuid, 6] or 0)
    assert len(set(watts)) > 5
    assert max(abs(after - before) for before, after in pairwise(watts)) < 20


def test_everything_simulated_says_so():
    host = SimulatedHost(1, 3, StepClock())
    assert (host.backend.simulated, host.reader.simulated) == (True, True)
    assert host.reader.facts().hostname == "simulated-0003"
    sampler = Sampler(StepClock(), host.backend, host.reader)
    assert sampler.simulated
    made = build_inventory(host.reader.facts(), host.gpus.inventory(), agent_version="0", simulated=sampler.simulated)
    assert made.simulated


def test_a_fleet_without_a_stated_persona_has_eight_gpus_per_host():
    counts = [len(SimulatedHost(1, index, StepClock()).gpus.inventory().gpus) for index in range(20)]
    assert counts == [8] * 20
    uuids = {gpu.uuid for index in range(20) for gpu in SimulatedHost(1, index, StepClock()).gpus.inventory().gpus}
    assert len(uuids) == 160


def test_a_sampler_with_a_floor_keeps_it_whatever_the_master_says():
    host = SimulatedHost(1, 0, StepClock())
    sampler = Sampler(StepClock(), host.backend, host.reader, SECOND, least_ns=30 * SECOND)
    assert sampler.period_ns == 30 * SECOND
    sampler.set_period(SECOND)
    assert sampler.period_ns == 30 * SECOND
    sampler.set_period(45 * SECOND)
    assert sampler.period_ns == 45 * SECOND


async def an_hour(loop: VirtualLoop) -> tuple[list[Sample], list[str], list[str]]:
    """One virtual hour of sampling under a script of faults: the samples, all conditions seen, all events."""
    clock = VirtualClock(loop)
    host = SimulatedHost(9, 0, clock)
    sampler = Sampler(clock, host.backend, host.reader, SECOND)
    uuids = [gpu.uuid for gpu in host.gpus.inventory().gpus]
    running = loop.create_task(sampler.run())
    samples: list[Sample] = []
    seen: list[str] = []
    events: list[str] = []
    for minute in range(60):
        await clock.sleep_ns(60 * SECOND)
        samples += sampler.take()
        events += [f"{event.code}:{event.subject}" for event in sampler.take_events()]
        seen += [condition.text for condition in sampler.conditions if condition.text not in seen]
        match minute:
            case 5:
                sampler.set_leases(lambda: dict.fromkeys(uuids[:4], "work_1"))
            case 10:
                host.gpus.xid(1, 79)
            case 15:
                host.gpus.lose(2)
            case 20:
                host.gpus.recover(2)
            case 25:
                host.gpus.hang()
            case 30:
                assert set(sampler.availability.values()) == {Availability.UNKNOWN}
                host.gpus.hang(False)
            case 35:
                host.gpus.heat(7)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    named = {str(uuid): f"gpu{place}" for place, uuid in enumerate(uuids)}

    def short(text: str) -> str:
        code, _, uuid = text.partition(":")
        return f"{code}:{named[uuid]}" if uuid else code

    return samples, [short(text) for text in seen], [short(text) for text in events]


def test_a_virtual_hour_of_faults_is_sampled_every_second_and_repeats_itself():
    samples, seen, events = run(1, an_hour)
    assert seen == ["gpu.host_fault:gpu1", "gpu.lost:gpu2", "gpu.sweep_stalled", "gpu.hot:gpu7"]
    assert events == ["gpu.xid:gpu1", "gpu.lost:gpu2", "gpu.recovered:gpu2"]
    assert 3595 <= len(samples) <= 3605
    assert run(1, an_hour) == (samples, seen, events)


@pytest.mark.parametrize("fault", Fault)
def test_a_host_that_breaks_down_shows_it_and_stays_simulated(fault: Fault):
    host = SimulatedHost(1, 1, StepClock())
    host.break_down(fault)
    metrics, readings = host.reader.sample(), host.gpus.sample(False)
    told = {
        Fault.GPU_LOST: [one.code for one in host.gpus.conditions()] == [ConditionCode.GPU_LOST],
        Fault.GPU_HOT: max(value or 0 for (_, metric), value in readings.items() if metric == 4) == HOT_CELSIUS,
        Fault.DISK_FULL: host.conditions() == (ConditionCode.AGENT_DISK_FULL,) and metrics[106] == disk_mebibytes(host),
    }
    assert [one for one, is_told in told.items() if is_told] == [fault]


def disk_mebibytes(host: SimulatedHost) -> int:
    return host.persona.disk_bytes // MIB
