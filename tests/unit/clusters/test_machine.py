"""A cluster's life, pair by pair."""

from pathlib import Path

from tests.unit.clusters.made import NOW, cluster
from windrow_master.clusters.drawings import mermaid_text, page, table_text
from windrow_master.clusters.model import STEPS_KEPT, ClusterPhase, Step
from windrow_master.clusters.states import FINAL, MOVES, ClusterEvent, Effect, answer, noted, step

TABLE = """\
Requested queue     Queued
Requested place     Placing
Requested granted   =
Requested assembled =
Requested ready     =
Requested impaired  =
Requested broken    Failed ! fail_create
Requested done      =
Requested undone    =
Requested stop      =
Requested delete    Deleted ! fail_create, finish_delete
Requested expire    Deleted ! fail_create, finish_delete
Requested gone      =
Queued    queue     =
Queued    place     Placing
Queued    granted   =
Queued    assembled =
Queued    ready     =
Queued    impaired  =
Queued    broken    Failed ! fail_create
Queued    done      =
Queued    undone    =
Queued    stop      =
Queued    delete    Deleted ! fail_create, finish_delete
Queued    expire    Deleted ! fail_create, finish_delete
Queued    gone      =
Placing   queue     Queued
Placing   place     =
Placing   granted   Creating
Placing   assembled =
Placing   ready     =
Placing   impaired  =
Placing   broken    Failed ! fail_create
Placing   done      =
Placing   undone    =
Placing   stop      =
Placing   delete    Deleted ! fail_create, finish_delete
Placing   expire    Deleted ! fail_create, finish_delete
Placing   gone      =
Creating  queue     =
Creating  place     =
Creating  granted   =
Creating  assembled = ! start_members
Creating  ready     Running ! finish_create
Creating  impaired  =
Creating  broken    Failed ! close_work, fail_create
Creating  done      Finished ! close_work, finish_create
Creating  undone    Failed ! close_work, finish_create
Creating  stop      Stopping ! end_work, fail_create
Creating  delete    Deleting ! end_work, fail_create
Creating  expire    Deleting ! close_work, fail_create
Creating  gone      =
Running   queue     =
Running   place     =
Running   granted   =
Running   assembled = ! start_members
Running   ready     =
Running   impaired  Degraded
Running   broken    Failed ! close_work, fail_create
Running   done      Finished ! close_work, finish_create
Running   undone    Failed ! close_work, finish_create
Running   stop      Stopping ! end_work, fail_create
Running   delete    Deleting ! end_work, fail_create
Running   expire    Deleting ! close_work, fail_create
Running   gone      =
Degraded  queue     =
Degraded  place     =
Degraded  granted   =
Degraded  assembled = ! start_members
Degraded  ready     Running ! finish_create
Degraded  impaired  =
Degraded  broken    Failed ! close_work, fail_create
Degraded  done      Finished ! close_work, finish_create
Degraded  undone    Failed ! close_work, finish_create
Degraded  stop      Stopping ! end_work, fail_create
Degraded  delete    Deleting ! end_work, fail_create
Degraded  expire    Deleting ! close_work, fail_create
Degraded  gone      =
Stopping  queue     =
Stopping  place     =
Stopping  granted   =
Stopping  assembled =
Stopping  ready     =
Stopping  impaired  =
Stopping  broken    =
Stopping  done      =
Stopping  undone    =
Stopping  stop      =
Stopping  delete    Deleting ! fail_stop
Stopping  expire    Deleting ! fail_stop
Stopping  gone      Stopped ! finish_stop
Stopped   queue     =
Stopped   place     Placing
Stopped   granted   =
Stopped   assembled =
Stopped   ready     =
Stopped   impaired  =
Stopped   broken    =
Stopped   done      =
Stopped   undone    =
Stopped   stop      = ! finish_stop
Stopped   delete    Deleted ! fail_create, finish_delete
Stopped   expire    Deleted ! fail_create, finish_delete
Stopped   gone      =
Deleting  queue     =
Deleting  place     =
Deleting  granted   =
Deleting  assembled =
Deleting  ready     =
Deleting  impaired  =
Deleting  broken    =
Deleting  done      =
Deleting  undone    =
Deleting  stop      =
Deleting  delete    =
Deleting  expire    =
Deleting  gone      Deleted ! finish_delete
Deleted   queue     =
Deleted   place     =
Deleted   granted   =
Deleted   assembled =
Deleted   ready     =
Deleted   impaired  =
Deleted   broken    =
Deleted   done      =
Deleted   undone    =
Deleted   stop      =
Deleted   delete    = ! finish_delete
Deleted   expire    = ! finish_delete
Deleted   gone      =
Finished  queue     =
Finished  place     =
Finished  granted   =
Finished  assembled =
Finished  ready     =
Finished  impaired  =
Finished  broken    =
Finished  done      =
Finished  undone    =
Finished  stop      =
Finished  delete    = ! finish_delete
Finished  expire    = ! finish_delete
Finished  gone      =
Failed    queue     =
Failed    place     =
Failed    granted   =
Failed    assembled =
Failed    ready     =
Failed    impaired  =
Failed    broken    =
Failed    done      =
Failed    undone    =
Failed    stop      =
Failed    delete    = ! finish_delete
Failed    expire    = ! finish_delete
Failed    gone      ="""


def test_every_phase_answers_every_event_as_the_table_says() -> None:
    assert table_text() == TABLE


def test_the_drawing_in_the_documentation_is_fresh() -> None:
    root = Path(__file__).parents[3]
    assert (root / "docs" / "diagrams" / "clusters.md").read_text() == page()
    assert mermaid_text() in (root / "master" / "windrow_master" / "clusters" / "README.md").read_text()


def test_what_is_deleted_or_failed_never_lives_again() -> None:
    assert not [phase for phase, _ in MOVES if phase in FINAL]


def test_whatever_holds_slots_can_be_deleted_and_then_ends_its_work() -> None:
    for phase in (ClusterPhase.CREATING, ClusterPhase.RUNNING, ClusterPhase.DEGRADED):
        move = answer(phase, ClusterEvent.DELETE)
        assert move.phase is ClusterPhase.DELETING and Effect.END_WORK in move.effects


def test_a_move_counts_a_version_and_leaves_its_reason_and_a_step() -> None:
    after, effects = step(cluster(ClusterPhase.RUNNING), ClusterEvent.IMPAIRED, "host a is lost", NOW)
    assert (after.version, after.reason, effects) == (2, "host a is lost", ())
    assert after.steps == (Step(NOW, "degraded", None, "host a is lost"),)


def test_an_event_twice_is_no_news() -> None:
    once, _ = step(cluster(ClusterPhase.CREATING), ClusterEvent.READY, "", NOW)
    twice, effects = step(once, ClusterEvent.READY, "", NOW + 1)
    assert twice == once and effects == ()
    assert (once.started_at_ns, once.ended_at_ns) == (NOW, None)


def test_the_end_of_its_command_is_the_end_of_the_cluster_also_where_it_was_not_seen_running() -> None:
    for event, phase in ((ClusterEvent.DONE, ClusterPhase.FINISHED), (ClusterEvent.UNDONE, ClusterPhase.FAILED)):
        ended, effects = step(cluster(ClusterPhase.CREATING), event, "exit", NOW)
        assert (ended.phase, ended.started_at_ns, ended.ended_at_ns) == (phase, NOW, NOW)
        assert effects == (Effect.CLOSE_WORK, Effect.FINISH_CREATE)


def test_progress_of_one_step_stays_in_one_line_and_old_steps_go_first() -> None:
    at = cluster(ClusterPhase.CREATING)
    for permille in range(0, 1001, 100):
        at = noted(at, Step(NOW + permille, "pulling", permille))
    assert at.steps == (Step(NOW, "pulling", 1000),)
    assert noted(at, Step(NOW + 9, "pulling", 1000)) is at
    for number in range(STEPS_KEPT + 5):
        at = noted(at, Step(NOW, f"step {number}"))
    assert len(at.steps) == STEPS_KEPT and at.steps[-1].name == f"step {STEPS_KEPT + 4}"
