"""A job's life, pair by pair."""

from pathlib import Path

from windrow_master.jobs.drawings import mermaid_text, page, table_text
from windrow_master.jobs.states import FINAL, HOLDING, LIVING, MOVES, JobEffect, JobEvent, answer

TABLE = """\
Submitted     admit   Queued
Submitted     placed  =
Submitted     runs    =
Submitted     collect =
Submitted     succeed =
Submitted     fail    Failed ! let_go
Submitted     cancel  Cancelled ! let_go
Submitted     again   =
Submitted     lose    =
Queued        admit   =
Queued        placed  Starting
Queued        runs    =
Queued        collect =
Queued        succeed =
Queued        fail    Failed ! let_go
Queued        cancel  Cancelled ! let_go
Queued        again   =
Queued        lose    =
Starting      admit   =
Starting      placed  =
Starting      runs    Running
Starting      collect Checkpointing
Starting      succeed =
Starting      fail    Failed ! let_go
Starting      cancel  Cancelled ! let_go
Starting      again   Migrating ! let_go
Starting      lose    Lost ! let_go
Running       admit   =
Running       placed  =
Running       runs    =
Running       collect Checkpointing
Running       succeed =
Running       fail    Failed ! let_go
Running       cancel  Cancelled ! let_go
Running       again   Migrating ! let_go
Running       lose    Lost ! let_go
Checkpointing admit   =
Checkpointing placed  =
Checkpointing runs    =
Checkpointing collect =
Checkpointing succeed Succeeded ! let_go
Checkpointing fail    Failed ! let_go
Checkpointing cancel  Cancelled ! let_go
Checkpointing again   Migrating ! let_go
Checkpointing lose    Lost ! let_go
Migrating     admit   =
Migrating     placed  Starting
Migrating     runs    =
Migrating     collect =
Migrating     succeed =
Migrating     fail    Failed ! let_go
Migrating     cancel  Cancelled ! let_go
Migrating     again   =
Migrating     lose    =
Succeeded     admit   =
Succeeded     placed  =
Succeeded     runs    =
Succeeded     collect =
Succeeded     succeed =
Succeeded     fail    =
Succeeded     cancel  =
Succeeded     again   =
Succeeded     lose    =
Failed        admit   =
Failed        placed  =
Failed        runs    =
Failed        collect =
Failed        succeed =
Failed        fail    =
Failed        cancel  =
Failed        again   =
Failed        lose    =
Cancelled     admit   =
Cancelled     placed  =
Cancelled     runs    =
Cancelled     collect =
Cancelled     succeed =
Cancelled     fail    =
Cancelled     cancel  =
Cancelled     again   =
Cancelled     lose    =
Lost          admit   =
Lost          placed  =
Lost          runs    =
Lost          collect =
Lost          succeed =
Lost          fail    =
Lost          cancel  =
Lost          again   =
Lost          lose    ="""


def test_every_pair_of_state_and_event_has_its_answer() -> None:
    assert table_text() == TABLE


def test_what_has_ended_answers_nothing_any_more() -> None:
    for state in FINAL:
        for event in JobEvent:
            assert (answer(state, event).state, answer(state, event).effects) == (state, ())


def test_whatever_lives_can_be_ended_and_then_lets_its_cluster_go() -> None:
    for state in LIVING:
        for event in (JobEvent.CANCEL, JobEvent.FAIL):
            move = answer(state, event)
            assert move.state in FINAL
            assert move.effects == (JobEffect.LET_GO,)


def test_no_cluster_is_kept_by_a_job_that_is_not_holding_one() -> None:
    for (state, event), target in MOVES.items():
        if state in HOLDING and target not in HOLDING:
            assert JobEffect.LET_GO in answer(state, event).effects


def test_the_drawings_of_the_documentation_are_fresh() -> None:
    root = Path(__file__).parents[3]
    assert (root / "docs/diagrams/jobs.md").read_text() == page()
    assert mermaid_text() in (root / "master/windrow_master/jobs/README.md").read_text()
