"""Jobs through the shipped daemons: the client goes away, the Master is killed, and what the work left is there."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.rental import Renter
from tests.support.stack import wait_for
from tests.support.wheels import wheel

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

JOB_S = 150


@pytest.fixture
def renter(fleet: Renter) -> Renter:
    return fleet


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "in.txt").write_text("from the renter")
    return folder


def submit(renter: Renter, here: Path, *words: str) -> str:
    """Submit it as a person does; returns its id."""
    done = renter.windrow("job", "submit", *words, cwd=here)
    assert done.returncode == 0, done.stderr
    return str(done.stdout.split()[0])


def state(renter: Renter, job: str, *states: str) -> dict[str, Any]:
    """The job once it is in one of these states."""
    found: dict[str, Any] = wait_for(
        lambda: (j := renter.ask("GET", f"/jobs/{job}")) and j["state"] in states and j, JOB_S
    )
    return found


@pytest.mark.proves("`windrow job submit` runs without its client: folder in, log and changed files kept, all let go")
def test_a_job_reads_its_folder_prints_leaves_a_file_and_lets_go(renter: Renter, here: Path, tmp_path: Path) -> None:
    command = "print(open('in.txt').read()); open('out.txt','w').write('left')"

    job = submit(renter, here, "--name", "first", "--", "python", "-c", command)

    waited = renter.windrow("job", "wait", job, "--timeout", "2m", "--json")
    assert waited.returncode == 0, waited.stderr + renter.windrow("job", "show", job).stdout
    (attempt,) = json.loads(waited.stdout)["attempts"]
    assert renter.windrow("job", "logs", "first").stdout == "from the renter\n"
    renter.windrow("job", "artefacts", job, str(tmp_path / "back"))
    assert [(path.name, path.read_text()) for path in (tmp_path / "back").iterdir()] == [("out.txt", "left")]
    renter.phase(attempt["cluster_id"], "Finished")
    assert renter.receipt(attempt["cluster_id"])["ended_at"]
    assert renter.flaws(attempt["cluster_id"]) == []


def test_a_job_brings_its_packages_and_they_are_no_files_of_its_own(renter: Renter, here: Path, tmp_path: Path) -> None:
    (here / "requirements.txt").write_text(f"# what it needs\n{wheel(here)}\n")
    command = "import tiny_thing; open('out.txt','w').write(str(tiny_thing.answer()))"

    job = submit(renter, here, "--requirements", "requirements.txt", "--", "python", "-c", command)

    assert renter.windrow("job", "wait", job, "--timeout", "2m").returncode == 0, renter.windrow("job", "logs", job)
    renter.windrow("job", "artefacts", job, str(tmp_path / "back"))
    assert [(path.name, path.read_text()) for path in (tmp_path / "back").iterdir()] == [("out.txt", "42")]


def test_what_comes_after_a_job_that_fails_never_runs(renter: Renter, here: Path) -> None:
    first = submit(renter, here, "--no-files", "--", "sh", "-c", "echo bad; exit 3")
    second = submit(renter, here, "--no-files", "--after", first, "--", "true")

    assert renter.windrow("job", "wait", first).returncode == 3
    cancelled = state(renter, second, "Cancelled")

    assert "which it comes after, is Failed" in cancelled["reason"]
    assert cancelled["attempts"] == []
    assert renter.windrow("job", "logs", first).stdout == "bad\n"


@pytest.mark.long
@pytest.mark.proves("a job goes on when the Master is killed, with one cluster and one effect")
def test_a_job_goes_on_when_its_master_is_killed(renter: Renter, here: Path) -> None:
    command = "import time; print('begun', flush=True); time.sleep(8); open('end.txt','w').write('whole')"
    job = submit(renter, here, "--", "python", "-c", command)
    state(renter, job, "Running")

    for pid in renter.stack.daemons()["master"]:
        os.kill(pid, signal.SIGKILL)

    done = state(renter, job, "Succeeded", "Failed", "Lost")
    assert (done["state"], len(done["attempts"])) == ("Succeeded", 1), done["reason"]
    assert done["attempts"][0]["files_bytes"] > 0
    with renter.stack.client() as api:
        assert b"".join(api.job_logs(job)) == b"begun\n"
    renter.phase(done["attempts"][0]["cluster_id"], "Finished")
    assert renter.flaws(done["attempts"][0]["cluster_id"]) == []


def test_a_cancelled_job_keeps_what_it_wrote(renter: Renter, here: Path) -> None:
    job = submit(renter, here, "--", "sh", "-c", "echo so far; echo half > half.txt; sleep 600")
    state(renter, job, "Running")
    wait_for(lambda: b"so far" in renter.windrow("job", "logs", job).stdout.encode())

    renter.windrow("job", "cancel", job)

    done = state(renter, job, "Cancelled")
    assert renter.windrow("job", "logs", job).stdout == "so far\n"
    assert done["attempts"][0]["files_bytes"] > 0


@pytest.mark.proves(
    "what a job did to its GPU is shown with it: use, memory, power, throttling before, during and after"
)
def test_what_a_job_did_to_its_gpu_is_shown_with_it(renter: Renter) -> None:
    asked = {"argv": ["sleep", "8"], "gpus": 1, "simulated": True, "runtime": "simulated"}
    wait_for(lambda: any(host["simulated"] and bool(host["price_per_hour"]) for host in renter.all("/hosts")))
    job = str(renter.ask("POST", "/jobs", asked)["jobs"][0]["id"])
    assert state(renter, job, "Succeeded", "Failed")["state"] == "Succeeded"

    def seen() -> Any:
        (card,) = renter.ask("GET", f"/jobs/{job}/impact")["gpus"]
        return card["during"]["power_watts"]["mean"] and card["before"]["power_watts"]["mean"] and card

    card = wait_for(seen)

    (workload,) = renter.ask("GET", f"/clusters/{renter.ask('GET', f'/jobs/{job}')['attempts'][0]['cluster_id']}")[
        "workloads"
    ]
    assert card["host_id"] == workload["host_id"]
    during, before = card["during"], card["before"]
    assert during["power_watts"]["mean"] > before["power_watts"]["mean"]
    assert during["utilization_ratio"]["mean"] > before["utilization_ratio"]["mean"]
    assert 0 <= during["throttled_ratio"] <= 1
    assert {line["metric"] for line in card["series"]} == {
        "gpu_utilization_ratio",
        "gpu_memory_used_bytes",
        "gpu_power_watts",
    }
    shown = renter.windrow("job", "show", job).stdout
    assert "before" in shown and "during" in shown and " W, at most " in shown
