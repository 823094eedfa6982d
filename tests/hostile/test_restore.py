"""A market that lost its disk comes back from a backup: its fleet finds it, nobody pays twice, and it says what it knows."""

import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from windrow_proto.enrol import IdentityFolder, renew

RENTALS = 100 if IS_LONG else 1
SIMULATED = 5 if IS_LONG else 1
BACK_S = 60.0

pytestmark = pytest.mark.timeout(900 if IS_LONG else 420)


def master(*words: str | Path, code: int = 0) -> str:
    """Run `windrow-master ...`; returns what it said."""
    command = [sys.executable, "-m", "windrow_master", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said, said
    return said


def renew_all(data_dir: Path, times: int = 2) -> None:
    """Give every member of this market its next certificates, as half a day each would."""
    for path in sorted(data_dir.glob("**/identity/identity.json")):
        for _ in range(times):
            renew(IdentityFolder(path.parent), time.time_ns())


def paid(renter: Renter) -> dict[str, Any]:
    """What each rental has cost so far, by its cluster."""
    return {one["cluster_id"]: one["amount"] for one in renter.all("/receipts")}


@pytest.mark.row("F18")
def test_a_fleet_that_has_renewed_since_the_backup_is_back_within_a_minute_and_nobody_pays_twice(
    tmp_path: Path,
) -> None:
    backup, data_dir = tmp_path / "market.tar", tmp_path / "data"
    flags = ("--simulate", str(SIMULATED))
    with stack(*flags, folder=tmp_path) as running:
        renter = Renter(running)
        renter.online()
        ended_since = renter.create("sleep", "600")["id"]
        ended_before = renter.create("true", until="")["id"] if IS_LONG else None
        master("backup", backup, "--data-dir", data_dir)
        assert backup.stat().st_mode & 0o777 == 0o600
        assert "stop it first" in master("restore", backup, "--data-dir", data_dir, code=1)
        renter.delete(ended_since)
        for _ in range(RENTALS):
            renter.delete(renter.create("true", until="")["id"])
        truth = paid(renter)
        hosts = {host["id"] for host in renter.all("/hosts")}
        renew_all(data_dir)
    assert ended_before is None or ended_before in truth

    said = master("restore", backup, "--data-dir", data_dir)
    assert "before-restore" in said and list(data_dir.glob("before-restore-*/master.sqlite3"))
    assert "is whole" in master("check", "--data-dir", data_dir)

    with stack(*flags, folder=tmp_path) as running:
        renter, began = Renter(running), time.monotonic()
        wait_for(lambda: {one["id"] for one in renter.all("/hosts") if one["link_state"] == "online"} == hosts, BACK_S)
        assert time.monotonic() - began < BACK_S
        cluster = renter.phase(ended_since, "Failed", "Deleted", "Lost")
        wait_for(lambda: all(one["ended_at"] for one in renter.all("/receipts")))
        assert float(paid(renter)[ended_since]) <= float(truth[ended_since]), cluster
        assert renter.windrow("run", "--no-files", "--", "echo", "back").returncode == 0
        renew_all(data_dir, times=1)
        assert renter.windrow("audit", "verify").returncode == 0
    assert "ledger         it balances" in master("check", "--data-dir", data_dir)
