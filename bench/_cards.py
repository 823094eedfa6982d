"""Cards that move: the tests' fake NVIDIA library with readings that change as real ones do, for a shipped agent.

The agent loads it as libnvidia-ml.so.1 through nvidia-ml-py and cannot tell. What it reads lies in one mapped file, so
that a benchmark knows what the card said, and (`read_ns`) when it was first asked since it said so.
"""

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench._series import METRICS, Plan, host_series
from tests.fake_nvml.build import FakeNvml, build
from tests.fake_nvml.state import PROCESSES, FakeState

COUNT: Final = 8
INSTANTS: Final = 5
STEP_S: Final = 1.0
MEMBERS: Final = {
    1: ("utilization", 1),
    2: ("memory_utilization", 1),
    3: ("memory_used", 1 << 20),
    4: ("temperature", 1),
    5: ("memory_temperature", 1),
    6: ("power_mw", 100),
    7: ("energy_mj", 1000),
    8: ("clock_sm", 1),
    9: ("clock_memory", 1),
    10: ("throttle", 1),
    11: ("performance_state", 1),
    13: ("ecc_uncorrected", 1),
    14: ("pcie_replays", 1),
}
"""Metric to the member of the fake's card that it is read from, and the wire's unit in the driver's."""


def why_none() -> str:
    """Returns the things that are missing to make such cards; empty when nothing is."""
    return "" if shutil.which("gcc") else "gcc is missing: the fake NVIDIA library cannot be built"


class Moving:
    """Cards whose readings follow the walk of `_series.py`, one instant a second, on a thread of its own."""

    def __init__(self, state: FakeState, seconds: float) -> None:
        plan = Plan(hosts=1, batches=int(seconds / INSTANTS) + 1, gpus=COUNT, instants=INSTANTS)
        self._values = host_series(plan, 0, time.time_ns() // 1_000_000).values
        self._state = state
        self._ended = threading.Event()
        self.set(0)

    def set(self, instant: int) -> None:
        """Let every card read what it read at an instant; after the last one the walk stays where it is."""
        place = min(instant, self._values.shape[2] - 1)
        for gpu in range(COUNT):
            card = self._state.gpu(gpu)
            card.gpm_elapsed += 1000
            for metric in range(len(card.gpm_busy)):
                card.gpm_busy[metric] += 10 * card.utilization
            for at, metric in enumerate(METRICS):
                value = int(self._values[gpu, at, place])
                if metric == 15:
                    card.process_count = min(value, PROCESSES)
                else:
                    member, scale = MEMBERS[metric]
                    setattr(card, member, value * scale)

    def run(self) -> None:
        """Move until ended."""
        instant = 1
        while not self._ended.wait(STEP_S):
            self.set(instant)
            instant += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Beside the block."""
        thread = threading.Thread(target=self.run, name="cards")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()


@contextmanager
def cards(count: int = COUNT) -> Iterator[FakeNvml]:
    """The library, built here, and `count` H100 at rest; `environment` is what the agent's supervisor needs to get."""
    with tempfile.TemporaryDirectory(prefix="windrow-cards-") as name:
        folder = Path(name)
        try:
            library = build(folder)
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"gcc could not build the fake NVIDIA library: {error}") from error
        with FakeState(folder / "state", count) as state:
            yield FakeNvml(library, state)
