"""The shipped market on a disk that is really full: nothing new is taken, nothing is lost, a delete is followed
through, and everything goes on by itself when there is space again."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import telemetry_flaws
from tests.support.rental import Renter
from tests.support.small_disk import MOUNT, SmallDisk, small_disk
from tests.support.stack import WINDROW, Stack, choose_ports, started, wait_for
from windrow.errors import ApiProblem
from windrow_proto import enrol
from windrow_proto.errors import DiskFull
from windrow_proto.units import MIB

DISK_BYTES = 512 * MIB


@contextmanager
def market(disk: SmallDisk, log: Path) -> Iterator[Stack]:
    """`windrow up` with its data directory on this disk."""
    choose_ports(disk.seen / "data")
    command = [*disk.inside, WINDROW, "up", "--data-dir", f"{MOUNT}/data"]
    with started(command, disk.seen / "data", log) as running:
        yield running


def health(renter: Renter) -> dict[str, Any]:
    """Returns the Master's health."""
    found: dict[str, Any] = renter.ask("GET", "/operators/health")["master"]
    return found


def codes(renter: Renter) -> list[str]:
    """The codes of its conditions."""
    return [condition["code"] for condition in health(renter)["conditions"]]


def refused(renter: Renter) -> ApiProblem:
    """Ask for a cluster, which must be refused."""
    with pytest.raises(ApiProblem) as raised:
        renter.create("sleep", "600", until="")
    return raised.value


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.proves("a Master on a full disk: refuses new work, follows a delete through, starts, and recovers")
@pytest.mark.long
def test_a_market_on_a_full_disk_deletes_starts_again_and_recovers(tmp_path: Path) -> None:
    with small_disk(DISK_BYTES, elsewhere=["data/agent"]) as disk:
        with market(disk, tmp_path / "up.log") as running:
            renter = Renter(running)
            wait_for(renter.online)
            first = renter.create("sleep", "600")
            wait_for(lambda: (disk.seen / "data/ballast").exists())
            token = renter.ask("POST", "/join-tokens", {"role": "host"})["join_token"]

            disk.fill()
            wait_for(lambda: "master.disk_full" in codes(renter))
            problem = refused(renter)
            assert (problem.status, problem.code) == (503, "disk_full") and "Free " in str(problem)
            https_url, folder = running.cli["https_url"], enrol.IdentityFolder(tmp_path / "late")
            with pytest.raises(DiskFull):
                enrol.join(folder, https_url, token, enrol.JoinRequest("host", "late"))
            renter.delete(first["id"])

            disk.empty()
            wait_for(lambda: "master.disk_full" not in codes(renter))
            second = renter.create("sleep", "600")

            # Whoever fills it takes what is given up, too, and the Master is killed: it starts on what it has left.
            disk.fill()
            wait_for(lambda: "master.disk_full" in codes(renter))
            disk.fill()
            before = health(renter)["epoch"]
            os.kill(running.cli["pids"]["master"], signal.SIGKILL)
            wait_for(lambda: health(renter)["epoch"] > before)
            assert wait_for(lambda: "master.disk_full" in codes(renter))
            stored = health(renter)["log"]["records"]
            renter.delete(second["id"])
            assert health(renter)["log"]["records"] == stored, "samples have eaten the room that was kept"

            disk.empty()
            wait_for(lambda: "master.disk_full" not in codes(renter))
            third = renter.create("echo", "again")
            renter.delete(third["id"])
            assert not telemetry_flaws(running.data_dir, running.data_dir / "agent")
            kinds = renter.events("master/storage")
            assert kinds.count("master_disk_full") >= 2 and kinds.count("master_disk_has_room") >= 1
            enrol.join(folder, https_url, token, enrol.JoinRequest("host", "late"))
        # SQLite finds no file through another process' root: it is judged on a copy.
        shutil.copytree(disk.seen / "data", tmp_path / "copy")
    judged = Renter(Stack(running.process, tmp_path / "copy", running.started_at))
    assert not judged.flaws(first["id"], second["id"], third["id"])
