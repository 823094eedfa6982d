"""The agent's disk fails at its n-th call, for every n: nothing is damaged, nothing falsely told, deletes are done."""

import errno
import os
from functools import partial

import pytest

from tests.simulation.loop import run
from tests.torture.agent import live
from tests.torture.platter import Fault
from windrow_proto.ballast import Ballast

SEEDS = 20 if os.environ.get("TORTURE") else 1
"""Power cuts judged for each call that failed."""
pytestmark = pytest.mark.timeout(1_800)

STRIDE = 1 if os.environ.get("TORTURE") else 3
"""Of the calls that are let fail: all in the long form, every third in the short one."""


def calls() -> int:
    seen = run(1, partial(live, fault=None))
    assert seen.faults == []
    assert seen.calls > 50
    return seen.calls


@pytest.mark.parametrize(
    ("number", "times"), [(errno.EIO, 1), (errno.EIO, 25), (errno.ENOSPC, 1)], ids=["eio", "eio for a while", "enospc"]
)
def test_every_call_of_the_agents_disk_may_fail(number: int, times: int) -> None:
    last, failed = calls(), 0
    for at in range(1, last + 1, STRIDE):
        for seed in range(SEEDS):
            seen = run(seed, partial(live, fault=Fault(at, number, times), seed=at + seed))
            assert seen.faults == [], f"call {at} of {last}, seed {seed}"
            failed += seen.refused > 0
    assert failed >= last // STRIDE * SEEDS // 2, "hardly any of the faults happened"


def test_the_sweep_catches_an_agent_without_ballast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ballast, "spend", lambda self: False)
    found = [run(1, partial(live, fault=Fault(at, errno.ENOSPC))).faults for at in (5, 25, 45)]
    assert any("a delete was not done" in faults for faults in found)
