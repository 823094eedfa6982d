"""An Access of a development market is killed on purpose: its agents go on elsewhere, and the count of what was lost is
the one that the agents' own spools and the log's files give, without asking the Master."""

import json

import pytest

from tests.integration.conftest import SIMULATED
from tests.support import truth
from tests.support.killing import Killer, online, telemetry_flaws
from tests.support.rental import Renter
from tests.support.stack import wait_for
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.slow]

COMMAND_S = 300


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.proves("a relay stopped on purpose, in development: its agents go on, no acknowledged sample is lost")
def test_an_access_that_is_stopped_as_a_test_is_killed_comes_back_and_costs_no_acknowledged_sample(
    fleet: Renter,
) -> None:
    data_dir, renter = fleet.stack.data_dir, fleet
    folders = [data_dir / "agent"]
    folders += [data_dir / "simulated" / f"{number:04d}" for number in range(SIMULATED)]
    hosts = wait_for(lambda: (all_ := online(renter)) and len(all_) == SIMULATED + 1 and all_)
    wait_for(lambda: all(truth.produced(folder).keys for folder in folders))
    rows = renter.all("/accesses")
    assert {row["stop_name"] for row in rows} == {"access-local-a", "access-local-b"}
    first = max((row["id"] for row in rows), key=lambda one: sum(host["access_id"] == one for host in hosts))
    name = next(row["stop_name"] for row in rows if row["id"] == first)
    (second,) = {row["id"] for row in rows} - {first}
    with pytest.raises(ApiProblem, match=f"confirm with its name: {name}"):
        renter.ask("POST", f"/accesses/{first}/stop", {"confirm": "yes"})
    before = Killer(renter).access_pids()

    done = renter.windrow("access", "stop", first, "--yes", "--reason", "a test", "--json", within_s=COMMAND_S)

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    counted = found["counted"]
    assert (found["phase"], found["name"], found["problem"]) == ("finished", name, None)
    assert found["back"] == found["agents"] > 0
    assert (counted["lost_samples"], counted["lost_batches"], counted["lost_evidence"]) == (0, 0, 0)
    assert counted["acked_samples"] > counted["acked_batches"] > 0
    # It was killed, and `windrow up` started it again; the other one was left alone.
    wait_for(lambda: Killer(renter).access_pids()[first] != before[first])
    assert Killer(renter).access_pids()[second] == before[second]
    wait_for(lambda: renter.ask("GET", f"/accesses/{first}")["state"] == "serving")
    # The same by the agents' spools and the log's files.
    assert telemetry_flaws(data_dir, *folders) == []
    kept = {host for host, _, _ in truth.stored(data_dir)}
    assert {host["id"] for host in hosts} <= kept

    audit = renter.ask("GET", f"/audit?subject={first}&action=access.stop")["items"]
    assert [one["reason"] for one in audit] == ["a test"]
    kinds = [event["kind"] for event in renter.ask("GET", f"/events?subject={first}")["items"]]
    assert kinds[:2] == ["access.stop_tested", "access.stop_test"]
    renter.ask("POST", f"/accesses/{second}/drain", {"reason": ""})
    with pytest.raises(ApiProblem, match="No other relay could take its agents"):
        renter.ask("POST", f"/accesses/{first}/stop", {"confirm": first})
    renter.ask("POST", f"/accesses/{second}/resume", {"reason": ""})
    wait_for(lambda: renter.ask("GET", f"/accesses/{second}")["state"] == "serving")
