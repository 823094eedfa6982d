"""A container that lost its GPUs is seen from inside, told once, and let go of when it has them again."""

from types import SimpleNamespace

import pytest

from tests.master_support import ManualClock
from windrow_agent.core import gpu_visibility
from windrow_agent.workloads.gpu_visibility_check import GpuVisibilityCheck
from windrow_proto.errors import Conflict
from windrow_proto.ids import GpuUuid, SlotId, WorkloadId
from windrow_proto.model import Event, SlotGrant, WorkloadPhase

GPU, OTHER = (GpuUuid(f"GPU-{n}a0b1c2d-1111-2222-3333-444455556666") for n in (1, 2))
SLICE = GpuUuid("MIG-0a0b1c2d-1111-2222-3333-444455556666")
WORK = WorkloadId("work_1")
BOTH = f"GPU 0: NVIDIA H100 (UUID: {GPU})\nGPU 1: NVIDIA H100 (UUID: {OTHER})\n"
ONE = f"GPU 0: NVIDIA H100 (UUID: {GPU})\n  MIG 1g.10gb     Device  0: (UUID: {SLICE})\n"
REFUSED = "Failed to initialize NVML: Unknown Error\n"


@pytest.mark.parametrize(
    ("exit_code", "said", "expected"),
    [
        (0, BOTH, frozenset()),
        (0, ONE, frozenset({OTHER})),
        (255, REFUSED, frozenset({GPU, OTHER})),
        (6, "No devices were found\n", frozenset({GPU, OTHER})),
        (None, BOTH, None),
        (127, "OCI runtime exec failed: no such file or directory", None),
        (126, REFUSED, None),
        (0, "", None),
        (1, BOTH, None),
    ],
)
def test_what_is_said_inside_names_what_is_missing(exit_code, said, expected):
    assert gpu_visibility.missing(exit_code, said, {GPU, OTHER}) == expected


def test_a_slice_is_found_by_its_own_id():
    assert gpu_visibility.missing(0, ONE, {SLICE}) == frozenset()


class Session:
    """One executed program that says this."""

    def __init__(self, exit_code: int, said: str) -> None:
        self.exit_code, self._said, self.closed = exit_code, [(1, said.encode())], False

    async def read(self):
        return self._said.pop() if self._said else None

    async def close(self) -> None:
        self.closed = True


class Host:
    """A manager of one container and what its looks lead to."""

    def __init__(self, *answers: tuple[int, str], runtime: str = "docker", phase=WorkloadPhase.RUNNING) -> None:
        self.answers = list(answers)
        self.sessions: list[Session] = []
        slots = (SlotGrant(SlotId("a"), 1, GPU), SlotGrant(SlotId("b"), 1, OTHER))
        state = SimpleNamespace(phase=phase, runtime=runtime, slots=slots)
        self.journal = SimpleNamespace(workloads={WORK: SimpleNamespace(state=state)})
        self.events: list[Event] = []
        self.changes = 0
        self.clock = ManualClock()
        self.gpu_visibility = GpuVisibilityCheck(self, self.clock, self._changed, self._tell)  # type: ignore[arg-type]

    def runtime_of(self, workload_id):
        return self

    async def exec(self, workload_id, argv):
        assert argv == gpu_visibility.COMMAND
        if not self.answers:
            raise Conflict("it does not run")
        self.sessions.append(Session(*self.answers.pop(0)))
        return self.sessions[-1]

    def _changed(self) -> None:
        self.changes += 1

    async def _tell(self, event: Event) -> None:
        self.events.append(event)


async def test_what_two_looks_agree_on_is_a_condition_and_an_event_of_that_container():
    host = Host((0, ONE), (255, REFUSED))
    await host.gpu_visibility.look()
    assert host.gpu_visibility.conditions == (f"gpu.stripped:{OTHER}",), "the other card was there at one of the looks"
    (event,) = host.events
    assert (event.code, event.subject, event.fields) == ("gpu.stripped", OTHER, {"workload": WORK})
    assert all(session.closed for session in host.sessions)


async def test_it_is_told_once_and_goes_when_the_container_has_them_again():
    host = Host((255, REFUSED), (255, REFUSED), (255, REFUSED), (255, REFUSED), (0, BOTH))
    await host.gpu_visibility.look()
    await host.gpu_visibility.look()
    assert (len(host.events), host.changes) == (2, 1)
    await host.gpu_visibility.look()
    assert (host.gpu_visibility.conditions, len(host.events), host.changes) == ((), 2, 2)


async def test_one_look_that_fails_is_no_finding():
    host = Host((255, REFUSED), (0, BOTH))
    await host.gpu_visibility.look()
    assert (host.gpu_visibility.conditions, host.events, host.answers) == ((), [], [])


@pytest.mark.parametrize(
    "host", [Host((127, "")), Host(), Host((255, REFUSED), runtime="process"), Host(phase=WorkloadPhase.STOPPING)]
)
async def test_what_cannot_be_looked_into_is_left_alone(host: Host):
    await host.gpu_visibility.look()
    assert (host.gpu_visibility.conditions, host.events, host.changes) == ((), [], 0)
