"""No paid machine outlives its purchase in histories of crashes, lost answers and lagging lists, and no cap is passed;
`python -m tests.simulation.purchases` plays ten thousand. Designs that are known to be wrong must fail there."""

import os

import pytest

from tests.simulation import purchase_shells
from tests.simulation.purchases import SHOWN_BY, Design, Hasty, histories

ALL = bool(os.environ.get("SIM"))
"""`make sim`: as many as the command plays by itself; `make test` plays a few."""
HISTORIES, CONTROLS, SHELLS = (10_000, 500, 300) if ALL else (200, 60, 3)


@pytest.mark.timeout(1_800)
@pytest.mark.proves("purchases: no paid machine outlives its purchase in histories of crashes and lost answers")
def test_no_paid_machine_outlives_its_purchase_no_cap_is_passed_and_no_foreign_one_touched() -> None:
    tally = histories(HISTORIES)
    assert not tally.broken, tally.text()
    assert {"gone", "refused", "never_made"} <= set(tally.ends)
    assert tally.machines > HISTORIES


@pytest.mark.parametrize("design", list(SHOWN_BY))
def test_a_design_that_is_known_to_be_wrong_fails(design: Design) -> None:
    assert SHOWN_BY[design] in histories(CONTROLS, design).broken


@pytest.mark.timeout(1_800)
def test_the_shipped_loop_keeps_the_same_promises_while_its_master_is_killed() -> None:
    assert purchase_shells.shells(SHELLS) == {}


def test_the_judges_of_the_shipped_loop_find_a_master_that_has_no_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchase_shells, "Rules", Hasty)
    found = set[str]()
    for seed in range(1, 40):
        found |= set(purchase_shells.shell(seed).broken)
        if "machine whose purchase is believed over" in found:
            return
    raise AssertionError(f"found only {sorted(found)}")
