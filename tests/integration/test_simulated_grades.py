"""Simulated hosts are rented by the Master for a test, as real ones are, and graded by figures that say so."""

import pytest

from tests.support.rental import Renter
from tests.support.stack import stack, wait_for

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

HOSTS = 5


@pytest.mark.proves("simulated hosts are graded by drawn figures of their test rentals, and marked as such everywhere")
@pytest.mark.long
def test_simulated_hosts_have_grades_that_say_that_their_figures_are_drawn() -> None:
    with stack("--simulate", str(HOSTS), environment={"WINDROW_PROOFS": "on"}) as running:
        renter = Renter(running)
        hosts = wait_for(
            lambda: (
                len(found := [one for one in renter.all("/hosts") if one["simulated"] and one["proof"]]) == HOSTS
                and found
            ),
            200,
        )
        cards = [one for one in renter.ask("GET", "/gpus")["items"] if one["simulated"]]

        assert {host["proof"]["outcome"] for host in hosts} == {"passed"}
        for host in hosts:
            said = host["proof"]["words"]
            assert said.startswith("Simulated: nothing ran, GPU memory drawn by the simulator, not measured, at"), said
        grades = {card["tier"].split("/")[1] for card in cards}
        assert len(grades) > 1, grades
        page = renter.ask("GET", f"/gpus/{cards[0]['uuid']}")
        assert page["simulated"] and "simulated: its figures are drawn, not measured" in page["tier_reasons"]
        assert {one["name"] for one in page["benchmarks"]} == {
            "gpu.memory_bytes_per_s",
            "gpu.matrix_operations_per_s",
        }
        proof = renter.ask("GET", f"/hosts/{hosts[0]['id']}/proof")["proofs"][0]
        steps = {step["name"]: step for step in proof["steps"]}
        assert steps["start"]["words"] == "Started as a simulated workload: nothing runs."
        assert steps["benchmark"]["state"] == "passed" and "not measured" in steps["benchmark"]["words"]
        assert {steps[name]["state"] for name in ("reach", "count", "memory")} == {"absent"}
        assert {steps[name]["state"] for name in ("end", "receipt")} == {"passed"}
        real = next(one for one in renter.all("/hosts") if not one["simulated"])
        assert real["proof"] is None or "drawn" not in real["proof"]["words"]
