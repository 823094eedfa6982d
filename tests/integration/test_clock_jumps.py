"""The wall clocks of a real Master and a real Agent jump by hours while work runs: no lease ends, nothing is lost, and
nobody pays for time that did not pass."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import truth
from tests.support.jumping_clock import clear_up, jumping_clocks
from tests.support.killing import SCRIPT, remains, telemetry_flaws, watching
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from tests.support.wrapped_up import COMMAND, MODULES, wrapped
from windrow_proto.units import HOUR, SECOND

IS_LONG = bool(os.environ.get("CHAOS"))
AHEAD_S, BEHIND_S = 3 * HOUR // SECOND, -5 * HOUR // SECOND
"""Each is longer than any lease."""
JUMPS = (AHEAD_S, BEHIND_S, AHEAD_S, 0) if IS_LONG else (AHEAD_S, BEHIND_S)
RECEIPTS = 2 if IS_LONG else 1
"""Signed and stored after each jump, before the next."""


@pytest.fixture
def cleared() -> Iterator[None]:
    """Nothing of libfaketime's stays when all has ended."""
    yield
    clear_up()


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.usefixtures("cleared")
@pytest.mark.skipif(not IS_LONG, reason="minutes of signed receipts: make chaos")
@pytest.mark.timeout(900)
@pytest.mark.proves("clocks of Master and Agent jump by hours under a rental: it goes on, and is billed what it ran")
def test_jumps_of_the_masters_and_the_agents_clock_end_no_lease_and_charge_for_no_time_that_did_not_pass(
    tmp_path: Path,
) -> None:
    clocks = dict(zip(("master", "agent"), jumping_clocks(tmp_path, "master", "agent"), strict=True))
    words = {kind: (*clock.words, sys.executable, "-m", MODULES[kind]) for kind, clock in clocks.items()}
    with watching() as seen, stack(folder=tmp_path, environment=wrapped(words), command=COMMAND) as running:
        renter = Renter(running)
        host_id = renter.online()["id"]
        marker = f"clock-{host_id}"
        seen.markers.add(marker)
        began_ns = time.monotonic_ns()
        cluster = renter.create("sh", "-c", SCRIPT, marker)
        (workload,) = cluster["workloads"]

        for seconds in JUMPS:
            for clock in clocks.values():
                clock.jump(seconds)
                _goes_on(renter, cluster["id"], workload["id"])
            wait_for(lambda seconds=seconds: ("clock.skew" in _conditions(renter)) == bool(seconds))
        assert "master_clock_jumped" in renter.events("master/clock")

        # An agent that starts by a clock that is ahead takes its work up again.
        clocks["agent"].jump(AHEAD_S)
        os.kill(running.daemons()["agent"][0], signal.SIGKILL)
        _goes_on(renter, cluster["id"], workload["id"])

        for clock in clocks.values():
            clock.jump(0)
        receipt = renter.delete(cluster["id"])
        elapsed_ns = time.monotonic_ns() - began_ns
        wait_for(lambda: not remains(renter, host_id, cluster["id"]))
        again = renter.create("true", until="")
        renter.exited(again["id"])
        renter.delete(again["id"])

        assert len(seen.processes[marker]) == 1
        assert 0 < float(receipt["running_seconds"]) * SECOND <= elapsed_ns
        assert telemetry_flaws(running.data_dir, running.data_dir / "agent") == []
        assert _flaws(renter, cluster["id"]) == []
        assert renter.flaws(again["id"]) == []


def _goes_on(renter: Renter, cluster_id: str, workload_id: str) -> None:
    """Its receipts still come, its host is heard, and it runs."""

    def receipts() -> int:
        query = "SELECT count(*) AS count FROM receipts WHERE workload_id = ?"
        return int(truth.rows(renter.stack.data_dir, query, workload_id)[0]["count"])

    before = receipts()
    wait_for(lambda: receipts() >= before + RECEIPTS)
    assert renter.phase(cluster_id, "Running", "Failed", "Deleted")["phase"] == "Running"


def _conditions(renter: Renter) -> set[str]:
    return {condition["code"] for condition in renter.host()["conditions"]}


def _flaws(renter: Renter, *cluster_ids: Any) -> list[str]:
    """Returns the faults of the bills, apart from what receipts say of the wall clock that jumped under them."""
    return [flaw for flaw in renter.flaws(*cluster_ids) if not flaw.endswith("of life")]
