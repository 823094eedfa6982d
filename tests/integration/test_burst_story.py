"""The story of a job that fits nowhere here: it trains at EC2 (moto, and machines that are namespaces), is taken back,
and is finished on another machine. Nothing is left there, and the receipt names all of it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import training
from tests.support.machine_room import machine_room
from tests.support.moto_cloud import REGION
from tests.support.room_market import NAME, RoomMarket, room_market
from tests.support.stack import wait_for
from windrow_master.storage import checkpoints
from windrow_master.storage.folder_store import MARK

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1200)]

STEPS = {"STEPS": "600", "PACE_S": "0.1"}
"""A minute and more of training, with the pauses of its checkpoints."""
SAVED_STEP = 100
NOTICE_S = 45.0
LOSS_WITHIN = 1e-6
STORY_S = 600.0


@pytest.fixture
def market(tmp_path: Path) -> Iterator[RoomMarket]:
    with machine_room(tmp_path, "python3") as room, room_market(room, tmp_path) as found:
        yield found


def reference_loss(folder: Path) -> float:
    """The final loss of the same training, here and without a break."""
    environment = {"STEPS": STEPS["STEPS"], "PACE_S": "0", "CKPT_DIR": str(folder), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, training.__file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return loss(done.stdout)


def loss(said: str) -> float:
    return float(re.findall(r"final loss (\S+)", said)[-1])


def job(market: RoomMarket, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = market.renter.ask("GET", f"/jobs/{job_id}")
    return found


def submit(market: RoomMarket, folder: Path) -> str:
    """One command, with a budget."""
    folder.mkdir()
    (folder / "training.py").write_text(Path(training.__file__).read_text())
    env = [word for name, value in STEPS.items() for word in ("--env", f"{name}={value}")]
    words = ("job", "submit", "--backend", NAME, "--spot", "--budget", "1", "--checkpoint-every", "10s", *env, "--json")
    done = market.renter.windrow(*words, "--", "python3", "training.py", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    return str((found[0] if isinstance(found, list) else found.get("jobs", [found])[0])["id"])


@pytest.mark.proves("a job that fits nowhere trains at EC2's emulator, is taken back, and ends elsewhere with its loss")
def test_a_job_that_fits_nowhere_is_finished_on_bought_machines_and_nothing_is_left(
    market: RoomMarket, tmp_path: Path
) -> None:
    room, renter = market.room, market.renter
    market.packed()
    market.burst_only()
    room.cloud.full = {(f"{REGION}a", "spot")}

    job_id = submit(market, tmp_path / "work")

    def first_machine() -> str:
        used = [one for one in job(market, job_id)["tries"] if one["state"] == "used"]
        return str(used[0]["purchase_id"]) if used else ""

    first = wait_for(first_machine, STORY_S)
    saved = wait_for(lambda: (step := newest(market, job_id)) >= SAVED_STEP and step, STORY_S)
    room.take_back(market.machine(first).instance_id, NOTICE_S)
    ended = wait_for(lambda: (one := job(market, job_id))["ended_at"] and one, STORY_S)

    assert ended["state"] == "Succeeded", ended
    assert abs(loss(log(market, job_id)) - reference_loss(tmp_path / "reference")) <= LOSS_WITHIN
    is_full, spot, on_demand = ended["tries"]
    assert (is_full["zone"], is_full["spot"], is_full["state"]) == (f"{REGION}a", True, "failed")
    assert "capacity" in is_full["said"]
    assert (spot["zone"], spot["spot"], spot["state"]) == (f"{REGION}b", True, "used")
    assert (on_demand["spot"], on_demand["state"]) == (False, "used")
    goes_on = [int(one) for one in re.findall(r"goes on from step (-?\d+)", log(market, job_id))]
    assert goes_on[0] == -1 and goes_on[-1] >= saved, goes_on
    told = [one for one in renter.all("/events", subject=job_id) if one["kind"] == "job.backend_changed"]
    assert len(told) == 2, told

    assert [one["outcome"] for one in ended["attempts"]] == ["its host will be gone", "Succeeded"]
    for one in (spot, on_demand):
        market.until(one["purchase_id"], "gone", within_s=300)
    assert not [one.instance_id for one in room.of_market(market.market_id) if one.is_running]
    room.must_be_well()
    receipt(market, job_id, spot, on_demand)


def receipt(market: RoomMarket, job_id: str, *used: dict[str, Any]) -> None:
    """`windrow job show` names both machines, their seconds and their money."""
    shown = market.renter.windrow("job", "show", job_id)
    assert shown.returncode == 0, shown.stderr
    print(shown.stdout)
    attempts = job(market, job_id)["attempts"]
    assert [one["place"]["purchase_id"] for one in attempts] == [one["purchase_id"] for one in used]
    for one in attempts:
        assert one["place"]["text"] in " ".join(shown.stdout.split())
        assert one["cost"]
    spent = [market.purchase(one["purchase_id"]) for one in used]
    assert all(one["billed_seconds"] and one["spent"] for one in spent)
    print([(one["offer"], one["billed_seconds"], one["spent"], one["paid"]) for one in spent])


def newest(market: RoomMarket, job_id: str) -> int:
    """The step of the newest checkpoint that the Master keeps; -1: there is none."""
    folder = market.stack.data_dir / "artefacts" / checkpoints.owner_prefix(job_id) / "manifests"
    return max((int(path.name.removesuffix(MARK)) for path in folder.glob("*")), default=-1)


def log(market: RoomMarket, job_id: str) -> str:
    """The log of all attempts until now."""
    said = b""
    with market.stack.client() as api:
        for number in range(len(api.job(job_id)["attempts"])):
            said += b"".join(api.job_logs(job_id, attempt=number + 1))
    return said.decode()
