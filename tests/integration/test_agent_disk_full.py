"""A host whose agent's disk is really full: its work goes on and is billed, nothing new is taken, a delete is followed
through, and an agent that is killed starts again on what it has left."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import truth
from tests.support.killing import SCRIPT, remains, telemetry_flaws, watching
from tests.support.rental import Renter
from tests.support.small_disk import MOUNT, SmallDisk, small_disk
from tests.support.stack import WINDROW, Stack, choose_ports, started, wait_for
from windrow.errors import ApiProblem
from windrow_proto.units import MIB

DISK_BYTES = 96 * MIB
"""Space for a short life and its ballast."""
CONDITION = "agent.disk_full"
_BOUND = 'mkdir -p "$2" && mount --bind "$1" "$2" && shift 2 && exec "$@"'
"""Within the disk's own mount namespace: nobody else sees the agent's folder there."""


@contextmanager
def market(disk: SmallDisk, data_dir: Path, log: Path) -> Iterator[Stack]:
    """`windrow up` of which the agent's folder alone is on this disk."""
    choose_ports(data_dir)
    (disk.seen / "agent").mkdir(mode=0o700)
    bound = ("sh", "-c", _BOUND, "sh", f"{MOUNT}/agent", str(data_dir / "agent"))
    command = [*disk.inside, *bound, WINDROW, "up", "--data-dir", str(data_dir)]
    with started(command, data_dir, log) as running:
        yield running


def _conditions(renter: Renter) -> set[str]:
    return {condition["code"] for condition in renter.host()["conditions"]}


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS"), reason="half a minute of a disk that fills: make chaos")
@pytest.mark.timeout(900)
@pytest.mark.proves("an agent on a full disk: takes no new work, follows a delete through, starts again, and recovers")
def test_a_host_on_a_full_disk_keeps_its_work_deletes_it_starts_again_and_recovers(tmp_path: Path) -> None:
    with watching() as seen, small_disk(DISK_BYTES) as disk:
        with market(disk, tmp_path / "data", tmp_path / "up.log") as running:
            renter = Renter(running)
            host_id = renter.online()["id"]
            marker = f"full-{host_id}"
            seen.markers.add(marker)
            first = renter.create("sh", "-c", SCRIPT, marker)
            wait_for(lambda: (disk.seen / "agent/ballast").exists())

            disk.fill()
            wait_for(lambda: CONDITION in _conditions(renter))
            with pytest.raises(ApiProblem) as refused:
                renter.create("sleep", "600", until="")
            assert refused.value.code == "no_capacity"
            _lives_again(renter, first["id"])
            assert len(truth.workload_processes(marker)) == 1
            renter.delete(first["id"])
            wait_for(lambda: truth.workload_processes(marker) == [])

            disk.empty()
            wait_for(lambda: CONDITION not in _conditions(renter))
            second = renter.create("echo", "again")
            renter.delete(second["id"])
            wait_for(lambda: not remains(renter, host_id, first["id"], second["id"]))
            assert telemetry_flaws(running.data_dir, disk.seen / "agent") == []
        assert len(seen.processes[marker]) == 1
        shutil.copytree(disk.seen / "agent", tmp_path / "data" / "agent", dirs_exist_ok=True)
    assert renter.flaws(first["id"], second["id"]) == []


def _lives_again(renter: Renter, cluster_id: str) -> None:
    """The agent is killed, and the next one is heard of the same work."""
    before = renter.host()["last_seen_at"]
    os.kill(renter.stack.daemons()["agent"][0], signal.SIGKILL)
    wait_for(lambda: (host := renter.host())["link_state"] == "online" and host["last_seen_at"] > before)
    assert renter.phase(cluster_id, "Running", "Failed", "Deleted")["phase"] == "Running"
