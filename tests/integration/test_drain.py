"""An Access of a running market is drained and serves again: its agents go and come, none of their history is lost."""

import json
from typing import Any

import pytest

from tests.integration.conftest import SIMULATED
from tests.support import truth
from tests.support.killing import Killer, have_left, online, telemetry_flaws
from tests.support.rental import Renter
from tests.support.stack import wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.slow]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.proves("an Access that is drained: its agents move with no gap in history; after a resume it serves again")
def test_a_drained_access_loses_its_agents_and_no_history_and_serves_again_when_resumed(fleet: Renter) -> None:
    data_dir, renter = fleet.stack.data_dir, fleet
    folders = [data_dir / "agent"]
    folders += [data_dir / "simulated" / f"{number:04d}" for number in range(SIMULATED)]
    hosts = wait_for(lambda: (all_ := online(renter)) and len(all_) == SIMULATED + 1 and all_)
    wait_for(lambda: all(truth.produced(folder).keys for folder in folders))
    first = max((row["id"] for row in _rows(renter)), key=lambda one: sum(h["access_id"] == one for h in hosts))
    (second,) = {row["id"] for row in _rows(renter)} - {first}

    _empty(renter, first)
    with pytest.raises(ApiProblem, match="No other relay could take its agents"):
        renter.ask("POST", f"/accesses/{second}/drain", {"reason": ""})
    assert telemetry_flaws(data_dir, *folders) == []

    # It holds over a restart of the Master and of the Access itself.
    killer = Killer(renter)
    killer.kill_and_wait("master")
    wait_for(lambda: _row(renter, first)["state"] == "draining")
    shown = json.loads(renter.windrow("access", "show", first, "--json").stdout)
    assert (shown["state"], shown["agents"], shown["drain_reason"]) == ("draining", 0, "test")

    assert renter.windrow("access", "resume", first).returncode == 0
    wait_for(lambda: _row(renter, first)["state"] == "serving")
    _empty(renter, second)  # its agents can only be on the one that was resumed
    assert len(online(renter)) == SIMULATED + 1
    assert telemetry_flaws(data_dir, *folders) == []
    kinds = [event["kind"] for event in renter.ask("GET", f"/events?subject={first}")["items"]]
    assert kinds[:2] == ["access.resumed", "access.draining"]
    assert renter.windrow("access", "resume", second).returncode == 0
    wait_for(lambda: _row(renter, second)["state"] == "serving")


def _empty(renter: Renter, access_id: str) -> None:
    """Drain it and wait until every host that was on it is heard through the other one."""
    moving = {host["id"]: host["last_seen_at"] for host in online(renter) if host["access_id"] == access_id}
    assert moving
    renter.ask("POST", f"/accesses/{access_id}/drain", {"reason": "test"})
    wait_for(lambda: have_left(renter, moving, access_id), pause_s=0.2)
    wait_for(lambda: _row(renter, access_id)["agents"] == 0)
    points = {row["id"]: row["state"] for row in _rows(renter)}
    assert sorted(points.values()) == ["draining", "serving"]
    assert points[access_id] == "draining"


def _rows(renter: Renter) -> list[dict[str, Any]]:
    return list(renter.all("/accesses"))


def _row(renter: Renter, access_id: str) -> dict[str, Any]:
    row: dict[str, Any] = renter.ask("GET", f"/accesses/{access_id}")
    return row
