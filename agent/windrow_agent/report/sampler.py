"""Samples this host and its GPUs at a period that may change, and never lets a heartbeat wait for a driver.

The GPUs are read on one thread and the host on another, each call under a deadline; the loop only reads what came in.
What did not come in time is absent in that instant's sample, and stated as a condition when it stays away.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from windrow_agent.core import sampling
from windrow_agent.core.availability import Availability
from windrow_agent.core.gpu_port import Condition, GpuBackend, GpuInventory, GpuLook
from windrow_agent.core.inventory import HostFacts, HostReader
from windrow_agent.core.sampling import Due, Schedule
from windrow_agent.core.sharing import Shares
from windrow_agent.gpu.watch import GpuWatch
from windrow_agent.threads import InlineRunner, Runner, ThreadRunner
from windrow_proto.conditions import ConditionCode
from windrow_proto.metrics import SLOW
from windrow_proto.model import Event
from windrow_proto.ports import Clock
from windrow_proto.samples import DEVICES_MAX, Sample
from windrow_proto.units import SECOND, seconds

log = structlog.get_logger()

SAMPLES_MAX: Final = 1200
"""Kept until taken: 20 minutes at 1 Hz, beyond any batch period. The oldest goes first and is counted."""

PATIENCE_NS: Final = SECOND
"""How long one instant's sample waits for its sweep; a slower driver's sweep goes into the next sample."""

HOST_DEADLINE_NS: Final = 5 * SECOND
LOOK_NS: Final = SECOND
"""The longest nap: how late a shorter period or a lease may take hold."""

WORKLOADS: Final = 110
OF_WORKLOADS_MAX: Final = 16
"""Workloads with figures in one sample; of a host with more the others follow in the next ones."""
OF_WORKLOADS_WAITING: Final = 256
"""Beyond it the oldest goes: it was read long ago."""


_HostAnswer = tuple[HostFacts | None, Mapping[int, int | None] | None]
"""The result of one call of the reader: facts where they were wanted, and the host's figures."""


@dataclass(slots=True)
class _Instant:
    """The sample that is being put together."""

    wall_ns: int
    give_up_ns: int
    host: Mapping[int, int | None] | None = None
    gpus: Mapping[tuple[str, int], int | None] | None = None


class Sampler:
    """Owns the sampling threads. Everything but `run` and `wait_change` returns at once, whatever the driver does."""

    def __init__(
        self,
        clock: Clock,
        backend: GpuBackend,
        host: HostReader,
        period_ns: int = SECOND,
        *,
        gpu_runner: Runner | None = None,
        host_runner: Runner | None = None,
        least_ns: int = 0,
        shares: Shares | None = None,
    ) -> None:
        """least_ns: never more often than this, whatever the Master says; shares: in what parts cards are shared."""
        self.look_ns = max(LOOK_NS, least_ns)
        """The longest nap while nothing is being read."""
        self.host_facts = HostFacts()
        self.dropped = 0
        self.latest: Sample | None = None
        self._slow: dict[tuple[str, int], int | None] = {}
        self._clock = clock
        self._host = host
        self._least_ns = least_ns
        self._period_ns = max(least_ns, sampling.bounded_period(period_ns))
        self._watch = GpuWatch(backend, gpu_runner or _runner(clock, backend.simulated, "gpu"), shares)
        self._host_runner = host_runner or _runner(clock, host.simulated, "host")
        self._host_task: asyncio.Future[_HostAnswer] | None = None
        self._host_began_ns = 0
        self._host_good_ns: int | None = None
        self._host_series: tuple[int, ...] = ()
        self._schedule = Schedule(0, 0, 0)
        self._instant: _Instant | None = None
        self._samples: deque[Sample] = deque()
        self._workloads = 0
        self._of_workloads: deque[Mapping[tuple[str, int], int | None]] = deque(maxlen=OF_WORKLOADS_WAITING)
        self._changed = asyncio.Event()
        self._sampled = asyncio.Event()
        self._known: object = None
        self.simulated = backend.simulated or host.simulated

    # --- what others read ------------------------------------------------------------------------

    @property
    def gpus(self) -> GpuInventory:
        """The GPUs as last read; empty until the driver is ready."""
        return self._watch.inventory

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that is the matter, in a fixed order; `text` of each is what heartbeat and inventory carry."""
        found = self._watch.conditions()
        if self._host_task is not None and self._clock.monotonic_ns() - self._host_began_ns > HOST_DEADLINE_NS:
            found = (*found, Condition(ConditionCode.HOST_SWEEP_STALLED))
        return found

    @property
    def availability(self) -> Mapping[str, Availability]:
        """GPU by GPU, what it is good for."""
        return self._watch.availability()

    @property
    def restart_advised(self) -> bool:
        """True if only a new process can load the driver's new library; safe once nothing needs this one."""
        return any(one.code is ConditionCode.GPU_DRIVER_MISMATCH for one in self._watch.conditions())

    @property
    def readings(self) -> Sample | None:
        """The latest sample, with the slow metrics as they were read last of the cards that answer."""
        if self.latest is None:
            return None
        answering = {device for (device, _), value in self.latest.values.items() if value is not None}
        slow = {key: value for key, value in self._slow.items() if key[0] in answering}
        return Sample(self.latest.at_wall_ns, slow | dict(self.latest.values))

    @property
    def period_ns(self) -> int:
        """The period in force."""
        return self._period_ns

    def age_ns(self) -> int:
        """Since the last good sweep of the GPUs, or of the host where no GPU is open; -1 if there was none."""
        good = self._watch.last_good_ns if self._watch.inventory.gpus else self._host_good_ns
        return -1 if good is None else max(0, self._clock.monotonic_ns() - good)

    def take(self) -> list[Sample]:
        """The samples since the last call, oldest first."""
        samples = list(self._samples)
        self._samples.clear()
        return samples

    def take_events(self) -> list[Event]:
        """Takes the events of the GPUs since the last call, ready to be sent as evidence."""
        return self._watch.take_events()

    async def wait_change(self) -> None:
        """Until there are events to take, or conditions, facts or GPUs differ from those at the last return."""
        await self._changed.wait()
        self._changed.clear()

    async def wait_sample(self) -> None:
        """Until there is a sample that was not there at the last return."""
        await self._sampled.wait()
        self._sampled.clear()

    # --- what others set ---------------------------------------------------------------------------

    def set_period(self, period_ns: int) -> None:
        """Sample at this period from now on, within what this agent allows."""
        self._period_ns = max(self._least_ns, sampling.bounded_period(period_ns))
        self._schedule = sampling.with_period(self._schedule, self._clock.monotonic_ns(), self._period_ns)

    def set_leases(self, leases: Callable[[], Mapping[str, str]]) -> None:
        """Sets the function that tells which workload holds which GPU: use of the others is foreign, and faults are
        attributed by it."""
        self._watch.set_leases(leases)

    async def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards and slices as they are now; what does not answer in time is left out."""
        return await self._watch.look(uuids)

    async def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Cut an idle card into slices, or make it whole again; raises CutRefusedError."""
        await self._watch.cut(uuid, profiles)

    def add_workload(self, readings: Mapping[tuple[str, int], int | None]) -> None:
        """Put the series of one workload into the next sample that has a place for them."""
        self._of_workloads.append(readings)

    def set_workloads(self, count: int) -> None:
        """Sets the number of workloads that run, for the metric of that name."""
        self._workloads = count

    # --- running -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Sample until cancelled; then let go of the driver, unless it hangs."""
        self._schedule = sampling.start(self._clock.monotonic_ns())
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._step(group)
                    await self._rest()
        finally:
            self._host_runner.close()
            await self._watch.close()

    def _step(self, group: asyncio.TaskGroup) -> None:
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        self._schedule, due = sampling.advance(self._schedule, now_ns, self._period_ns)
        self._watch.step(group, now_ns, wall_ns, now_ns if due.sample else self._schedule.sample_ns)
        self._collect(now_ns)
        if due.sample:
            self._emit()
            self._begin(group, due, now_ns, wall_ns)
            self._watch.step(group, now_ns, wall_ns, self._schedule.sample_ns)
        self._note_changes()

    def _begin(self, group: asyncio.TaskGroup, due: Due, now_ns: int, wall_ns: int) -> None:
        self._instant = _Instant(wall_ns, now_ns + min(PATIENCE_NS, self._period_ns))
        self._watch.want_sweep(due.processes)
        if due.inventory:
            self._watch.want_inventory()
        if self._host_task is None:
            self._host_began_ns = now_ns
            made = self._host_runner.at_once(self._read_host)
            self._host_task = made or group.create_task(self._host_runner.call(self._read_host), name="read host")

    def _collect(self, now_ns: int) -> None:
        """Put what has come in into this instant's sample, and let the sample go when it is whole or late."""
        host = None
        if self._host_task is not None and self._host_task.done():
            (facts, host), self._host_task = self._host_task.result(), None
            if facts is not None:
                self.host_facts = facts
            if host is not None:
                self._host_good_ns, self._host_series = now_ns, tuple(host)
        gpus = self._watch.take_readings()
        instant = self._instant
        if instant is None:
            return
        instant.host = host if host is not None else instant.host
        instant.gpus = gpus if gpus is not None else instant.gpus
        whole = instant.host is not None and (instant.gpus is not None or not self._watch.is_sweep_due)
        if whole or now_ns >= instant.give_up_ns:
            self._emit()

    def _emit(self) -> None:
        """Finish the instant: what did not come is absent, as are the GPUs of a driver that stalls or was closed."""
        instant, self._instant = self._instant, None
        if instant is None:
            return
        host = instant.host if instant.host is not None else dict.fromkeys(self._host_series)
        gpus = instant.gpus if instant.gpus is not None else sampling.absent(self._watch.series)
        beside = self._take_workloads(gpus)
        self.latest = sampling.merge(instant.wall_ns, {**host, WORKLOADS: self._workloads}, {**gpus, **beside})
        self._slow |= {key: value for key, value in gpus.items() if key[1] in SLOW}
        self._samples.append(self.latest)
        if len(self._samples) > SAMPLES_MAX:
            self._samples.popleft()
            self.dropped += 1
        self._sampled.set()

    def _take_workloads(self, gpus: Mapping[tuple[str, int], int | None]) -> dict[tuple[str, int], int | None]:
        """The series of as many workloads as fit beside the GPUs; usually none waits."""
        if not self._of_workloads:
            return {}
        places = min(OF_WORKLOADS_MAX, DEVICES_MAX - len({device for device, _ in gpus}), len(self._of_workloads))
        taken = [self._of_workloads.popleft() for _ in range(places)]
        return {key: value for one in taken for key, value in one.items()}

    def _read_host(self) -> _HostAnswer:
        """On the host's thread."""
        facts = None
        try:
            if self.host_facts == HostFacts():
                facts = self._host.facts()
            return facts, self._host.sample()
        except BlockingIOError:
            raise  # not now, says a simulated one
        except Exception:  # the thread's top level: one bad reading must not end the agent
            log.exception("host_reading_failed")
            return facts, None

    async def _rest(self) -> None:
        """Until something came in or something is due."""
        until_ns = self._schedule.sample_ns
        if self._instant is not None:
            until_ns = min(until_ns, self._instant.give_up_ns)
        if self._watch.wake_ns is not None:
            until_ns = min(until_ns, self._watch.wake_ns)
        flying = [task for task in (self._watch.task, self._host_task) if task is not None]
        if any(task.done() for task in flying):
            return
        look_ns = LOOK_NS if flying else self.look_ns
        nap_ns = max(0, min(look_ns, until_ns - self._clock.monotonic_ns()))
        if flying:
            await asyncio.wait(flying, timeout=seconds(nap_ns), return_when=asyncio.FIRST_COMPLETED)
        else:
            await self._clock.sleep_ns(nap_ns)

    def _note_changes(self) -> None:
        known = (self.conditions, self._watch.inventory, self.host_facts)
        if known != self._known or self._watch.has_events:
            self._known = known
            self._changed.set()


def _runner(clock: Clock, simulated: bool, name: str) -> Runner:
    return InlineRunner(clock) if simulated else ThreadRunner(f"windrow-{name}")
