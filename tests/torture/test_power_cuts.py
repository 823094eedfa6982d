"""Power cuts: what was acknowledged is there, what was not written is not, and everything starts again.

Short here; `make torture` takes a thousand images and more.
"""

import os
from itertools import count

import pytest

from tests.torture.cuts import (
    JournalScenario,
    LogScenario,
    SpoolScenario,
    judge_journal,
    judge_log,
    judge_spool,
    without,
)
from tests.torture.platter import Platter

IMAGES = 2_000 if os.environ.get("TORTURE") else 20
"""Of each kind of file."""
pytestmark = pytest.mark.timeout(1_800)
"""The long form takes minutes of a processor, and more where it is shared."""
FIRST = int(os.environ.get("SEED") or "1")


def test_the_spool_keeps_what_it_promised_through_power_cuts() -> None:
    judged = 0
    for seed in count(FIRST):
        for cut in SpoolScenario(seed, 0.03).run():
            assert judge_spool(cut) == [], f"seed {seed}, at {cut.operation}"
            judged += 1
        if judged >= IMAGES:
            break


def test_the_journal_keeps_each_fact_through_power_cuts() -> None:
    judged = 0
    for seed in count(FIRST):
        for cut in JournalScenario(seed, 0.05).run():
            assert judge_journal(cut) == [], f"seed {seed}, at {cut.operation}"
            judged += 1
        if judged >= IMAGES:
            break


async def test_the_masters_log_keeps_what_it_acknowledged_through_power_cuts() -> None:
    judged = 0
    for seed in count(FIRST):
        for cut in await LogScenario(seed, 0.05).run():
            assert judge_log(cut) == [], f"seed {seed}, at {cut.operation}"
            judged += 1
        if judged >= IMAGES:
            break


@pytest.mark.parametrize("removed", ["sync", "sync_directory"])
async def test_the_judges_catch_a_sync_that_was_removed(removed: str) -> None:
    with without(Platter, removed):
        spool = [judge_spool(cut) for seed in (1, 2) for cut in SpoolScenario(seed, 0.1).run()]
        journal = [judge_journal(cut) for seed in (1, 2) for cut in JournalScenario(seed, 0.1).run()]
        log = [judge_log(cut) for seed in (1, 2) for cut in await LogScenario(seed, 0.1).run()]
    assert any(spool), "the spool's judge saw nothing"
    assert any(journal), "the journal's judge saw nothing"
    assert any(log), "the log's judge saw nothing"
