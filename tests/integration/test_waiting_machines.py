"""A market of simulated hosts is full; machines wait in its queue while its Master is killed, and each starts when
something ends."""

import os
import signal
from typing import Any

import pytest

from tests.support.rental import Renter
from tests.support.stack import stack, wait_for

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(500)]

GPU: dict[str, Any] = {"simulated": True, "gpus": 1}


@pytest.mark.proves("machines that wait for a place outlive a killed Master, and start in their order")
def test_machines_wait_through_a_killed_master_and_start_in_their_order_when_something_ends() -> None:
    with stack("--simulate", "1") as running:
        renter = Renter(running)
        filling = _filled(renter)
        first = renter.create("sleep", "600", until="", wait_seconds=3600, name="first", **GPU)
        second = renter.create("sleep", "600", until="", wait_seconds=3600, name="second", **GPU)
        assert {first["phase"], second["phase"]} == {"Queued"}
        assert (first["price_per_hour"], first["tier"], first["workloads"]) == (None, None, [])

        killed = running.cli["pids"]["master"]
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: running.cli["pids"]["master"] != killed and renter.ask("GET", "/me"))

        assert [renter.phase(one["id"], "Queued")["phase"] for one in (first, second)] == ["Queued", "Queued"]
        renter.delete(filling.pop())
        assert renter.phase(first["id"], "Running", "Failed")["phase"] == "Running"
        assert renter.phase(second["id"], "Queued")["reason"]
        renter.ask("DELETE", f"/clusters/{second['id']}")
        assert renter.phase(second["id"], "Deleted")["rental_id"] is None
        shown = renter.windrow(
            "machine", "create", "--yes", "--runtime", "simulated", "--gpu", "1", "--wait", "2s", "--", "true"
        )
        assert "It found no place in the 2 s that it might wait" in shown.stderr


def _filled(renter: Renter) -> list[str]:
    """Rent every simulated GPU; returns the machines."""

    def online() -> list[dict[str, Any]]:
        found = [one for one in renter.all("/hosts") if one["simulated"]]
        return found if all(one["tier"] and one["link_state"] == "online" for one in found) else []

    hosts = wait_for(online)
    count = sum(len([slot for slot in host["slots"] if slot["kind"] == "gpu"]) for host in hosts)
    assert count > 0
    return [str(renter.create("sleep", "600", **GPU)["id"]) for _ in range(count)]
