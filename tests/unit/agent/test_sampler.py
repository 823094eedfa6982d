"""The sampler while real threads call the fake driver: fresh, bounded, and never in the loop's way."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.state import MIG_CHANGED
from tests.waiting import poll_async
from windrow_agent.core.availability import Availability
from windrow_agent.core.gpu_port import GpuBackend
from windrow_agent.core.inventory import HostFacts
from windrow_agent.gpu import watch
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_agent.host.psutil_reader import PsutilHost
from windrow_agent.report.sampler import Sampler
from windrow_proto.clock import SystemClock
from windrow_proto.model import Event
from windrow_proto.samples import Sample
from windrow_proto.units import MILLISECOND, SECOND

FAST = 200 * MILLISECOND


@asynccontextmanager
async def sampling(sampler: Sampler) -> AsyncIterator[Sampler]:
    task = asyncio.get_running_loop().create_task(sampler.run())
    try:
        yield sampler
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def make(backend: GpuBackend, tmp_path: Path, period_ns: int = FAST) -> Sampler:
    return Sampler(SystemClock(), backend, PsutilHost(tmp_path), period_ns)


def nvml(tmp_path: Path) -> NvmlBackend:
    return NvmlBackend(pci_devices=tmp_path / "pci")


def is_whole(sample: Sample | None, key: tuple[str, int], value: int | None) -> bool:
    """True if the sample has the host's part, and this of the GPUs': on a busy machine either may come too late for
    one."""
    return sample is not None and sample.values.get(("", 106)) is not None and sample.values.get(key, -1) == value


def texts(sampler: Sampler) -> list[str]:
    return [condition.text for condition in sampler.conditions]


async def test_who_waits_for_a_sample_is_woken_when_it_is_whole(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        for _ in range(3):
            await asyncio.wait_for(sampler.wait_sample(), 30)
            assert sampler.take()[-1] == sampler.latest


async def test_one_sample_holds_the_host_and_every_gpu(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        sampler.set_workloads(3)
        uuid = fake_nvml.state.uuid(7)
        await poll_async(lambda: is_whole(sampler.latest, (uuid, 4), 34))
        assert sampler.latest is not None
        assert sampler.latest.values["", 110] == 3
        assert len(sampler.gpus.gpus) == 8
        assert sampler.host_facts.cpu_count > 0
        await poll_async(lambda: texts(sampler) == [] and 0 <= sampler.age_ns() < SECOND)
        await poll_async(lambda: set(sampler.availability.values()) == {Availability.FREE})
        taken = sampler.take()
        assert [sample.at_wall_ns for sample in taken] == sorted(sample.at_wall_ns for sample in taken)


async def test_a_host_without_gpus_is_sampled_and_says_so(tmp_path: Path):
    async with sampling(make(NoGpus(), tmp_path)) as sampler:
        await poll_async(lambda: len(sampler.take()) > 0)
        await poll_async(lambda: texts(sampler) == ["gpu.none"] and 0 <= sampler.age_ns() < SECOND)


async def test_before_the_driver_is_ready_the_host_is_already_sampled(fake_nvml: FakeNvml, tmp_path: Path):
    fake_nvml.state.state.hang = 1
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        await poll_async(lambda: sampler.latest is not None and texts(sampler) == ["gpu.initialising"])
        fake_nvml.state.state.hang = 0
        await poll_async(lambda: texts(sampler) == [])


async def test_a_hanging_driver_is_stated_while_the_loop_stays_responsive(
    fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(watch.DEADLINE_NS, watch._Kind.SWEEP, 300 * MILLISECOND)
    uuid = fake_nvml.state.uuid(0)
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        await poll_async(lambda: sampler.latest is not None and sampler.latest.values.get((uuid, 4)) == 34)
        fake_nvml.state.state.hang = 1  # until it is told otherwise, from this very loop
        await poll_async(lambda: "gpu.sweep_stalled" in texts(sampler))
        sampler.take()
        await poll_async(lambda: any(is_whole(sample, (uuid, 4), None) for sample in sampler.take()))
        assert set(sampler.availability.values()) == {Availability.UNKNOWN}
        fake_nvml.state.state.hang = 0
        await poll_async(lambda: texts(sampler) == [])
        await poll_async(lambda: sampler.latest is not None and sampler.latest.values[uuid, 4] == 34)


async def test_a_driver_slower_than_the_period_still_gives_every_figure_it_can(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        uuid = fake_nvml.state.uuid(0)
        await poll_async(lambda: sampler.latest is not None and sampler.latest.values.get((uuid, 4)) == 34)
        fake_nvml.state.state.delay_us = 3_000
        fake_nvml.state.gpu(0).temperature = 55
        await poll_async(lambda: any(sample.values.get((uuid, 4)) == 55 for sample in sampler.take()))
        fake_nvml.state.state.delay_us = 0
        await poll_async(lambda: texts(sampler) == [])


async def test_an_xid_reaches_the_sampler_as_an_event_with_its_blame(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path, 30 * SECOND)) as sampler:
        await poll_async(lambda: len(sampler.gpus.gpus) == 8)
        sampler.set_leases(lambda: {fake_nvml.state.uuid(1): "work_1"})
        await poll_async(lambda: sampler.latest is not None)
        fake_nvml.state.xid(1, 31)
        fake_nvml.state.xid(2, 79)
        events: list[Event] = []

        def are_two() -> bool:
            events.extend(sampler.take_events())
            return len(events) >= 2

        await poll_async(are_two)
        assert [(event.code, event.subject, event.fields["xid"], event.fields["blame"]) for event in events] == [
            ("gpu.xid", fake_nvml.state.uuid(1), "31", "tenant"),
            ("gpu.xid", fake_nvml.state.uuid(2), "79", "host"),
        ]
        assert all(event.at_wall_ns > 0 for event in events)


async def test_a_lost_gpu_is_a_condition_an_event_and_a_change(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        await poll_async(lambda: set(sampler.availability.values()) == {Availability.FREE})
        await asyncio.wait_for(sampler.wait_change(), 30)
        fake_nvml.state.gpu(4).lost = 1
        uuid = fake_nvml.state.uuid(4)
        events: list[Event] = []
        while not events:  # the condition is a change of its own, and may be there first
            await asyncio.wait_for(sampler.wait_change(), 30)
            events += sampler.take_events()
        assert (texts(sampler), sampler.availability[uuid]) == ([f"gpu.lost:{uuid}"], Availability.LOST)
        assert [event.code for event in events] == ["gpu.lost"]
        assert len(sampler.gpus.gpus) == 8


async def test_the_period_changes_while_running(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path, 60 * SECOND)) as sampler:
        await poll_async(lambda: sampler.latest is not None)
        sampler.take()
        sampler.set_period(FAST)
        await poll_async(lambda: len(sampler.take()) > 0)
        assert sampler.period_ns == FAST


async def test_a_broken_driver_is_let_go_on_its_thread_and_never_on_the_loop(fake_nvml: FakeNvml, tmp_path: Path):
    closed_by: list[str] = []

    class Told(NvmlBackend):
        def close(self) -> None:
            closed_by.append(threading.current_thread().name)
            super().close()

    async with sampling(make(Told(pci_devices=tmp_path / "pci"), tmp_path)) as sampler:
        await poll_async(lambda: len(sampler.gpus.gpus) == 8)
        opened = len(closed_by)
        fake_nvml.state.gpu(0).fault = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
        await poll_async(lambda: len(closed_by) > opened)
    assert set(closed_by) == {"windrow-gpu"}


async def test_a_driver_replaced_under_us_advises_a_restart(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        await poll_async(lambda: len(sampler.gpus.gpus) == 8)
        fake_nvml.state.gpu(0).fault = 18
        await poll_async(lambda: "gpu.driver_mismatch" in texts(sampler))
        assert sampler.restart_advised
        uuid = fake_nvml.state.uuid(3)
        await poll_async(lambda: sampler.latest is not None and sampler.latest.values[uuid, 4] is None)


async def test_a_driver_that_comes_later_is_found(fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "REOPEN_AFTER_NS", FAST)
    fake_nvml.state.state.init_code = 9
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        await poll_async(lambda: texts(sampler) == ["gpu.no_driver"])
        fake_nvml.state.state.init_code = 0
        await poll_async(lambda: texts(sampler) == [] and len(sampler.gpus.gpus) == 8)


class Raising(NoGpus):
    """A backend with a bug."""

    def open(self) -> None:
        raise ZeroDivisionError("a bug")


async def test_a_bug_in_a_backend_is_a_condition_and_no_crash(tmp_path: Path):
    async with sampling(make(Raising(), tmp_path)) as sampler:
        await poll_async(lambda: texts(sampler) == ["gpu.unavailable"])
        await poll_async(lambda: len(sampler.take()) > 0)


class DeadDisk(PsutilHost):
    """A host whose data lies on a disk that does not answer until it is let go."""

    def facts(self) -> HostFacts:
        self.revived.wait(timeout=30)
        return super().facts()

    revived = threading.Event()


async def test_a_hanging_disk_is_stated_and_the_gpus_go_on(
    fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("windrow_agent.report.sampler.HOST_DEADLINE_NS", FAST)
    host = DeadDisk(tmp_path)
    async with sampling(Sampler(SystemClock(), nvml(tmp_path), host, FAST)) as sampler:
        uuid = fake_nvml.state.uuid(0)
        await poll_async(lambda: texts(sampler) == ["host.sweep_stalled"])
        await poll_async(lambda: sampler.latest is not None and sampler.latest.values.get((uuid, 4)) == 34)
        host.revived.set()
        await poll_async(lambda: texts(sampler) == [] and sampler.host_facts.cpu_count > 0)


async def test_samples_not_taken_are_bounded_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("windrow_agent.report.sampler.SAMPLES_MAX", 2)
    async with sampling(make(NoGpus(), tmp_path)) as sampler:
        await poll_async(lambda: sampler.dropped >= 1)
        assert len(sampler.take()) == 2


async def test_what_two_sweeps_must_see_does_not_wait_for_the_next_sample(fake_nvml: FakeNvml, tmp_path: Path):
    fake_nvml.state.gpu(3).throttle = 0x40
    async with sampling(make(nvml(tmp_path), tmp_path, 300 * SECOND)) as sampler:
        await poll_async(lambda: texts(sampler) == [f"gpu.throttled:{fake_nvml.state.uuid(3)}"])


async def test_a_change_of_mig_mode_does_not_wait_for_the_next_sample(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path, 300 * SECOND)) as sampler:
        await poll_async(lambda: texts(sampler) == [] and set(sampler.availability.values()) == {Availability.FREE})
        fake_nvml.state.gpu(3).mig_mode = fake_nvml.state.gpu(3).mig_pending = 1
        fake_nvml.state.event(3, MIG_CHANGED)
        await poll_async(lambda: texts(sampler) == [f"gpu.mig_changed:{fake_nvml.state.uuid(3)}"])
        await poll_async(lambda: sampler.gpus.gpus[3].mig_enabled is True)
