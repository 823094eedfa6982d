"""The shipped market on a disk whose syncs fail: nothing is acknowledged that it may not have, and when the disk is
well again the Master has come back by itself."""

from pathlib import Path

import pytest

from tests.support.failing_disk import failing_disk
from tests.support.killing import telemetry_flaws
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from windrow.errors import WindrowClientError


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.proves("a Master whose disk failed says so, starts again by itself, and lost nothing that it acknowledged")
@pytest.mark.long
def test_a_master_whose_disk_failed_comes_back_when_the_disk_is_well(tmp_path: Path) -> None:
    disk = failing_disk(tmp_path)
    with stack(folder=tmp_path, environment=disk.environment) as running:
        renter = Renter(running)
        wait_for(renter.online)
        cluster = renter.create("sleep", "600")
        first = running.daemons()["master"]

        disk.fail()
        with pytest.raises(WindrowClientError):
            renter.ask("POST", "/join-tokens", {"role": "host"})
        wait_for(lambda: running.daemons().get("master", first) != first)
        disk.heal()

        wait_for(renter.online)
        receipt = renter.delete(cluster["id"])
        assert receipt["running_seconds"] is not None
        assert renter.flaws(cluster["id"]) == []
        assert telemetry_flaws(running.data_dir, running.data_dir / "agent") == []
        assert "The disk failed" in (running.data_dir / "logs" / "master.log").read_text()
