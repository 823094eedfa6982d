"""SIGKILL to hosts in the middle of jobs that save checkpoints: each goes on from the newest, to the same end.

A host that is killed loses its agent and all that runs there in the same moment (tests/support/mortal_hosts.py).
Several jobs run side by side, each killed again and again until it ends.
"""

import io
import os
import random
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import training, truth
from tests.support.mortal_hosts import Host, mortal_hosts
from tests.support.regions import RegionalMarket
from tests.support.rental import ENDED
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S
from windrow_master.storage import checkpoints
from windrow_master.storage.folder_store import MARK

IS_LONG = bool(os.environ.get("CHAOS"))
KILLS = int(os.environ.get("KILLS") or (200 if IS_LONG else 2))
SEED = int(os.environ.get("SEED") or 1)
JOBS_AT_ONCE = int(os.environ.get("JOBS") or (4 if IS_LONG else 1))
HOSTS = tuple(f"h{number}" for number in range(JOBS_AT_ONCE + (2 if IS_LONG else 1)))
STEPS = training.STEPS if IS_LONG else 120
REACH_S = 8.0 if IS_LONG else 1.0
"""After the moment from which it is drawn, the last one at which a host is killed."""
EARLY = 0.25 if IS_LONG else 0.0
"""Of the kills: drawn from the moment at which an attempt has its place. The others from when it runs; in the short
form, from when something of it is saved, so that each attempt after the first has something to go on from."""
REBOOTS = 0.25
"""Of the hosts: back at once, they say themselves that the work is gone; the others are silent until it has moved."""
JOB_S = 300.0
NEWEST_MIN = 0.99
LOSS_WITHIN = 1e-6
TRAINING = Path(training.__file__)

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(7200 if IS_LONG else 420)]


@dataclass(slots=True)
class Tally:
    """The kills of a run and their outcomes; kept by all lanes together."""

    kills: int = 0
    reboots: int = 0
    half_written: int = 0
    jobs: list[str] = field(default_factory=list)
    resumes: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Job, attempt, step that it went on from, step of the newest checkpoint that there was."""
    losses: list[float] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def __str__(self) -> str:
        newest = sum(said == there for *_, said, there in self.resumes)
        scratch = sum(said < 0 for *_, said, _ in self.resumes)
        return (
            f"{self.kills} kills of hosts ({self.reboots} came back at once, {self.half_written} with a checkpoint "
            f"half written), {len(self.jobs)} jobs; {newest} of {len(self.resumes)} attempts went on from the newest "
            f"whole checkpoint ({scratch} found that there was none yet)"
        )


@dataclass(slots=True)
class World:
    """A market and its hosts, by the Master's id."""

    market: RegionalMarket
    hosts: dict[str, Host]
    tally: Tally = field(default_factory=Tally)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.market.renter.ask(method, path, body)

    def newest(self, job: str) -> int:
        """The step of the newest manifest in the store, read from the Master's disk; -1: there is none."""
        folder = self.market.data_dir / "artefacts" / checkpoints.owner_prefix(job) / "manifests"
        return max((int(path.name.removesuffix(MARK)) for path in folder.glob("*")), default=-1)

    def submit(self) -> str:
        """A training with its folder; returns the job's id."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.add(TRAINING, "training.py")
        buffer.seek(0)
        asked = {"argv": ["python3", "training.py"], "await_files": True, "retries": 100, "checkpoint_every_seconds": 1}
        asked["env"] = {"STEPS": str(STEPS)}
        with self.market.renter.stack.client() as api:
            job = str(api.submit_job(asked)[0]["id"])
            api.put_job_folder(job, buffer)
        return job

    def place(self, attempt: dict[str, Any]) -> tuple[Host, Path]:
        """Returns the place of an attempt: its host, and its folder there."""
        (workload,) = self.ask("GET", f"/clusters/{attempt['cluster_id']}")["workloads"]
        host = self.hosts[workload["host_id"]]
        return host, host.works / workload["id"]


class Lane:
    """One job after another, each killed at random moments until all kills are done."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.tally = world, world.tally
        self.chance = random.Random(f"{SEED}-{number}")
        self.job = ""
        self.there: dict[int, int] = {}

    def run(self) -> None:
        while not self.tally.jobs or self.tally.kills < KILLS:
            self.job, self.there = self.world.submit(), {}
            with self.tally.lock:
                self.tally.jobs.append(self.job)
            self._carry()

    def _carry(self) -> None:
        """Kill its hosts until it has ended, then judge its end."""
        number = 0
        while not (now := self._until(lambda job: job["ended_at"] or len(job["attempts"]) > number))["ended_at"]:  # noqa: B023
            number = len(now["attempts"])
            if self.chance.random() >= EARLY:
                self._until(lambda job: self._is_under_way(job) or _has_left(job, number))  # noqa: B023
            due = time.monotonic() + self.chance.uniform(0.0, REACH_S)  # the moment itself is what is tried
            now = self._until(lambda job: time.monotonic() >= due or _has_left(job, number))  # noqa: B023
            if not _has_left(now, number) and self.tally.kills < KILLS:
                self._kill(now, number)
        self._judge_end(now)

    def _is_under_way(self, job: dict[str, Any]) -> bool:
        before = self.there.get(len(job["attempts"]), -1)
        return job["state"] == "Running" and (IS_LONG or self.world.newest(self.job) > before)

    def _kill(self, job: dict[str, Any], number: int) -> None:
        host, work = self.world.place(job["attempts"][-1])
        with self.tally.lock:
            if not host.is_up or self.tally.kills >= KILLS:
                return  # another lane was faster
            host.is_up = False
            self.tally.kills += 1
        host.lose()
        with self.tally.lock:
            self._judge(number, _read(work / "log"))
            self.tally.half_written += any(work.glob("work/ckpt/.tmp-*"))
        if self.chance.random() < REBOOTS:
            self.tally.reboots += 1
            host.start()
        self._until(lambda job: _has_left(job, number))
        if not host.is_up:
            host.start()

    def _until(self, is_so: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The job once this holds of it. Notes meanwhile which checkpoint there is for the attempt that is to
        begin: none is added before it runs."""

        def look() -> Any:
            job = self.world.ask("GET", f"/jobs/{self.job}")
            if job["state"] == "Starting":
                self.there[len(job["attempts"])] = self.world.newest(self.job)
            return is_so(job) and job

        found: dict[str, Any] = wait_for(look, JOB_S, pause_s=0.15)
        return found

    def _judge(self, number: int, log: str) -> None:
        """An attempt by what it said of itself; one that was killed before it began says nothing."""
        if "torn" in log or "Traceback" in log:
            self.tally.flaws.append(f"{self.job} attempt {number}: {log}")
        said = re.search(r"goes on from step (-?\d+)", log)
        if said and number > 1 and number in self.there:
            self.tally.resumes.append((self.job, number, int(said[1]), self.there[number]))

    def _judge_end(self, job: dict[str, Any]) -> None:
        with self.world.market.renter.stack.client() as api:
            log = b"".join(api.job_logs(self.job)).decode()
        with self.tally.lock:
            self._judge(len(job["attempts"]), log)
            loss = re.search(r"final loss (\S+)", log)
            if job["state"] != "Succeeded":
                self.tally.flaws.append(f"{self.job} is {job['state']}: {job['reason']}")
            elif loss is not None:
                self.tally.losses.append(float(loss[1]))
            elif "could not be had" not in (job["reason"] or ""):  # its host was killed after it had ended
                self.tally.flaws.append(f"{self.job} has no loss: {log}")


def _has_left(job: dict[str, Any], number: int) -> bool:
    """True if this attempt is over."""
    return len(job["attempts"]) > number or job["state"] not in ("Starting", "Running")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def alone(folder: Path, steps: int = STEPS) -> float:
    """The final loss of the same training with nobody in its way."""
    own = os.environ | {"CKPT_DIR": str(folder / f"ckpt-{steps}"), "PACE_S": "0", "STEPS": str(steps)}
    done = subprocess.run(
        [sys.executable, str(TRAINING)], env=own, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return float(done.stdout.split()[-1])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with mortal_hosts(tmp_path, HOSTS, "10.96.0") as (market, hosts):
        yield World(market, hosts)


def test_a_torn_or_wrong_resume_would_be_seen(tmp_path: Path) -> None:
    right = alone(tmp_path)
    assert abs(alone(tmp_path, STEPS - 1) - right) > 10 * LOSS_WITHIN
    newest = f"step-{STEPS - training.EVERY}"
    torn = tmp_path / f"ckpt-{STEPS}" / newest / "ballast"
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(subprocess.CalledProcessError) as refused:
        alone(tmp_path)
    assert (refused.value.returncode, f"torn: {newest}" in refused.value.stdout) == (9, True)


@pytest.mark.proves(
    "jobs whose hosts are killed at random moments go on from the newest whole checkpoint, to the same end"
)
@pytest.mark.long
def test_jobs_go_on_from_the_newest_whole_checkpoint_when_their_hosts_are_killed(world: World, tmp_path: Path) -> None:
    tally, right = world.tally, alone(tmp_path)
    with ThreadPoolExecutor(JOBS_AT_ONCE) as lanes:
        running = [lanes.submit(Lane(world, number).run) for number in range(JOBS_AT_ONCE)]
    for one in running:
        one.result()
    print(f"seed {SEED}: {tally}")

    assert tally.flaws == []
    assert tally.kills == KILLS
    assert tally.losses
    assert max(abs(loss - right) for loss in tally.losses) <= LOSS_WITHIN
    wrong = [one for one in tally.resumes if one[2] != one[3]]
    assert tally.resumes
    assert len(wrong) <= (1 - NEWEST_MIN) * len(tally.resumes), wrong

    clusters = [attempt["cluster_id"] for job in tally.jobs for attempt in world.ask("GET", f"/jobs/{job}")["attempts"]]
    wait_for(lambda: all(world.ask("GET", f"/clusters/{one}")["phase"] in ENDED for one in clusters))
    wait_for(lambda: not [path for host in world.hosts.values() for path in host.works.glob("workload_*")])
    identities = dict(host.identity for host in world.hosts.values())
    data_dir = world.market.data_dir
    assert truth.ledger_flaws(data_dir) == []
    assert [flaw for one in clusters for flaw in truth.billing_flaws(data_dir, one, identities)] == []
