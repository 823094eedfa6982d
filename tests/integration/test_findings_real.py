"""Bottlenecks of real programs on a real agent over the fake driver: seven planted ones are named once each, none of 20
healthy runs is. Takes twelve minutes, since a card is idle after ten."""

import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench._cards import cards, why_none
from tests.fake_nvml.state import GPUS, H100, FakeState
from tests.support import gpu_loads
from tests.support.gpu_loads import Load
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from tests.support.wrapped_up import COMMAND, wrapped
from windrow_master.watch.findings import rules
from windrow_master.watch.findings.model import TITLES, Cause

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.xdist_group("findings")]

PASSED_ON = ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")
PROCESSORS = 2 * GPUS
AGENT = f"""
from windrow_agent.__main__ import main
from windrow_agent.host.psutil_reader import PsutilHost
PsutilHost._cpu_count = lambda self: {PROCESSORS}
main()
"""
"""As shipped, on a machine that says it has two processors for each card: else two cards could be rented at once."""
READ_S = 150
"""A minute of readings, each ten seconds, which reach history some seconds later; the rest is for a busy machine."""
IDLE_S = rules.IDLE_MS_MIN / 1000 + 30
TICK_S = 0.25
PRESSURE = Path("/proc/pressure/io")


class Driver:
    """Makes the cards of the fake driver read what each load says, from the time on at which it got its card."""

    def __init__(self, state: FakeState) -> None:
        self._state, self._loads = state, dict[int, tuple[Load, float]]()
        self._ended, self._last_s = threading.Event(), time.monotonic()
        self._chance = random.Random(1)

    def begin(self, uuid: str, load: Load) -> None:
        """This card works for a load from now on."""
        self._loads[self._index(uuid)] = load, time.monotonic()

    def rest(self, uuid: str) -> None:
        """This card has nothing to do any more."""
        index = self._index(uuid)
        self._loads.pop(index, None)
        self._set(index, utilization=0, memory_used=0, **{name: H100[name] for name in ("temperature", "power_mw")})
        self._set(index, power_limit_mw=H100["power_limit_mw"], clock_sm=H100["clock_sm"])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Beside the block."""
        thread = threading.Thread(target=self._run, name="driver")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _index(self, uuid: str) -> int:
        return next(index for index in range(GPUS) if self._state.uuid(index) == uuid)

    def _set(self, index: int, **members: int) -> None:
        for name, value in members.items():
            setattr(self._state.gpu(index), name, value)

    def _run(self) -> None:
        while not self._ended.wait(TICK_S):
            now_s = time.monotonic()
            span_s, self._last_s = now_s - self._last_s, now_s
            for index, (load, since_s) in list(self._loads.items()):
                self._move(index, load, now_s - since_s, span_s)

    def _move(self, index: int, load: Load, second: float, span_s: float) -> None:
        use, most = load.use(second), H100["power_limit_mw"]
        self._set(
            index, utilization=round(100 * use), memory_used=int(load.memory * H100["memory_total"]),
            temperature=round(load.celsius + self._chance.uniform(-1, 1)), power_limit_mw=int(most * load.limit),
            power_mw=int(most * load.limit * (0.1 + 0.88 * use)), clock_sm=1980 if load.limit == 1 else 1200,
        )  # fmt: skip
        grown = {74: load.held * 1e9, 75: load.heat * 1e9, 197: load.moved / 10, 198: load.moved}
        for field, per_s in grown.items():
            self._state.gpu(index).field[field] += int(per_s * span_s)


class Runs:
    """Jobs with one card each, and what was found of them."""

    def __init__(self, renter: Renter, driver: Driver) -> None:
        self._renter, self._driver = renter, driver
        self._jobs: dict[str, tuple[str, str]] = {}
        self.found: dict[str, str] = {}

    def begin(self, loads: Sequence[Load]) -> None:
        """Submit a job for each, and let its card work for it once it runs."""
        asked: dict[str, Any] = {"gpus": 1, "cpus": gpu_loads.CPUS}
        made = {
            load.name: self._renter.ask("POST", "/jobs", {"name": load.name, "argv": list(load.argv), **asked})
            for load in loads
        }
        for load in loads:
            job_id = made[load.name]["jobs"][0]["id"]
            cluster_id = wait_for(lambda job_id=job_id: self._running(job_id))
            (work,) = self._renter.ask("GET", f"/clusters/{cluster_id}")["workloads"]
            (uuid,) = work["slots"]
            self._driver.begin(uuid, load)
            self._jobs[load.name] = job_id, uuid

    def _running(self, job_id: str) -> str:
        job = self._renter.ask("GET", f"/jobs/{job_id}")
        assert job["state"] not in ("Failed", "Lost"), job["reason"]
        return str(job["attempts"][-1]["cluster_id"]) if job["state"] == "Running" else ""

    def look(self, name: str) -> dict[str, Any]:
        """The findings of a job that runs, and what `windrow job doctor` prints of them."""
        job_id, _ = self._jobs[name]
        answer: dict[str, Any] = self._renter.ask("GET", f"/jobs/{job_id}/findings")
        said = self._renter.windrow("job", "doctor", job_id)
        titles = [one["title"] for one in answer["findings"]]
        assert (said.returncode, [one for one in TITLES.values() if f": {one}\n" in said.stderr]) == (0, titles), said
        self.found[name] = ", ".join(titles) or answer["words"]
        return answer

    def end(self, name: str) -> None:
        """Give its card back."""
        job_id, uuid = self._jobs[name]
        self._driver.rest(uuid)
        self._renter.ask("POST", f"/jobs/{job_id}/cancel")


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Sixteen cards on one host."""
    with cards(GPUS) as fake:
        driver = Driver(fake.state)
        environment = wrapped({"agent": (sys.executable, "-c", AGENT)})
        environment |= {name: fake.environment[name] for name in PASSED_ON}
        with driver.running(), stack(environment=environment, command=COMMAND) as market:
            renter = Renter(market)
            wait_for(lambda: len(renter.online()["gpus"]) == GPUS)
            yield Runs(renter, driver)


def wrong(runs: Runs, loads: Sequence[Load]) -> list[str]:
    """The runs of which something else is said than what is planted."""
    found = []
    for load in loads:
        answer = runs.look(load.name)
        causes = [one["cause"] for one in answer["findings"]]
        if answer["gpus_read"] != 1 or causes != ([load.cause] if load.cause else []):
            found.append(f"{load.name}: {causes}, {answer['words']}")
    return found


@pytest.mark.skipif(bool(why_none()), reason=f"sixteen pretend H100: {why_none() or 'there is a compiler'}")
@pytest.mark.skipif(not PRESSURE.exists(), reason="this kernel does not say who waits for disks")
@pytest.mark.proves("seven planted bottlenecks are named once each, 20 healthy runs never: real programs, fake driver")
def test_each_planted_cause_is_named_once_and_healthy_runs_never(runs: Runs) -> None:
    planted, healthy = gpu_loads.planted(), gpu_loads.healthy(40)
    idle = next(load for load in planted if load.cause is Cause.IDLE)
    quick = [load for load in planted if load is not idle]
    first, second = healthy[: GPUS - len(planted)], healthy[GPUS - len(planted) :]
    runs.begin(planted + first)
    began_s = time.monotonic()
    time.sleep(READ_S)
    missed = wrong(runs, quick + first)
    assert not runs.look(idle.name)["findings"], "ten minutes are not over"
    for load in quick + first:
        runs.end(load.name)
    runs.begin(second)
    time.sleep(max(READ_S, IDLE_S - (time.monotonic() - began_s)))
    missed += wrong(runs, [idle, *second])
    print("\n".join(f"{name:16} {said}" for name, said in sorted(runs.found.items())))
    assert not missed
    assert len(runs.found) == len(Cause) + gpu_loads.HEALTHY
