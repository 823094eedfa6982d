"""A command on its host: every pair of phase and event, and the promises about repetition and crashes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import command as c
from windrow_proto.ids import CommandId

EVENTS: tuple[tuple[str, c.Event], ...] = (
    ("arrived", c.Arrived()),
    ("refused", c.Arrived("fenced", "too old")),
    ("journaled", c.Journaled()),
    ("begun", c.Begun("preparing")),
    ("progressed", c.Progressed("pulling", 500)),
    ("finished", c.Finished({"a": "1"})),
    ("broke", c.Broke("workload_failed", "no such file")),
    ("resumed", c.Resumed()),
    ("missed", c.Missed()),
    ("asked", c.Asked()),
)

TABLE = """
NEW        arrived    RECEIVED   WriteReceived
NEW        refused    REFUSED    WriteDone Report
NEW        journaled  NEW        -
NEW        begun      NEW        -
NEW        progressed NEW        -
NEW        finished   NEW        -
NEW        broke      NEW        -
NEW        resumed    NEW        -
NEW        missed     NEW        -
NEW        asked      NEW        Report
RECEIVED   arrived    RECEIVED   Report
RECEIVED   refused    RECEIVED   Report
RECEIVED   journaled  ACCEPTED   Enqueue Report
RECEIVED   begun      RECEIVED   -
RECEIVED   progressed RECEIVED   -
RECEIVED   finished   RECEIVED   -
RECEIVED   broke      FAILED     WriteDone Report
RECEIVED   resumed    ACCEPTED   Enqueue Report
RECEIVED   missed     RECEIVED   -
RECEIVED   asked      RECEIVED   Report
ACCEPTED   arrived    ACCEPTED   Report
ACCEPTED   refused    ACCEPTED   Report
ACCEPTED   journaled  ACCEPTED   -
ACCEPTED   begun      RUNNING    WriteStarted Report Perform
ACCEPTED   progressed ACCEPTED   -
ACCEPTED   finished   ACCEPTED   -
ACCEPTED   broke      FAILED     WriteDone Report
ACCEPTED   resumed    ACCEPTED   Enqueue Report
ACCEPTED   missed     ACCEPTED   -
ACCEPTED   asked      ACCEPTED   Report
RUNNING    arrived    RUNNING    Report
RUNNING    refused    RUNNING    Report
RUNNING    journaled  RUNNING    -
RUNNING    begun      RUNNING    -
RUNNING    progressed RUNNING    Report
RUNNING    finished   SUCCEEDED  WriteDone Report
RUNNING    broke      FAILED     WriteDone Report
RUNNING    resumed    RUNNING    Investigate
RUNNING    missed     RUNNING    Perform
RUNNING    asked      RUNNING    Report
SUCCEEDED  arrived    SUCCEEDED  Report
SUCCEEDED  refused    SUCCEEDED  Report
SUCCEEDED  journaled  SUCCEEDED  -
SUCCEEDED  begun      SUCCEEDED  -
SUCCEEDED  progressed SUCCEEDED  -
SUCCEEDED  finished   SUCCEEDED  -
SUCCEEDED  broke      SUCCEEDED  -
SUCCEEDED  resumed    SUCCEEDED  -
SUCCEEDED  missed     SUCCEEDED  -
SUCCEEDED  asked      SUCCEEDED  Report
FAILED     arrived    FAILED     Report
FAILED     refused    FAILED     Report
FAILED     journaled  FAILED     -
FAILED     begun      FAILED     -
FAILED     progressed FAILED     -
FAILED     finished   FAILED     -
FAILED     broke      FAILED     -
FAILED     resumed    FAILED     -
FAILED     missed     FAILED     -
FAILED     asked      FAILED     Report
REFUSED    arrived    REFUSED    Report
REFUSED    refused    REFUSED    Report
REFUSED    journaled  REFUSED    -
REFUSED    begun      REFUSED    -
REFUSED    progressed REFUSED    -
REFUSED    finished   REFUSED    -
REFUSED    broke      REFUSED    -
REFUSED    resumed    REFUSED    -
REFUSED    missed     REFUSED    -
REFUSED    asked      REFUSED    Report
""".strip()


def _state(phase: c.Phase) -> c.CommandState:
    return c.CommandState(CommandId("cmd_1"), phase)


def test_every_phase_answers_every_event_as_the_table_says():
    lines = []
    for phase in c.Phase:
        for name, event in EVENTS:
            after, effects = c.step(_state(phase), event)
            names = " ".join(type(effect).__name__ for effect in effects) or "-"
            lines.append(f"{phase.name:<10} {name:<10} {after.phase.name:<10} {names}")
    assert "\n".join(lines) == TABLE


@pytest.mark.parametrize("phase", [phase for phase in c.Phase if phase in c.FINAL])
@pytest.mark.parametrize("event", [event for _, event in EVENTS])
def test_a_result_never_changes(phase: c.Phase, event: c.Event):
    state = replace(_state(phase), result={"kept": "yes"}, error_code="kept")
    after, effects = c.step(state, event)
    assert after == state
    assert not any(isinstance(effect, c.Perform | c.WriteDone) for effect in effects)


@given(st.lists(st.sampled_from([event for _, event in EVENTS if not isinstance(event, c.Resumed | c.Missed)])))
def test_a_command_is_performed_at_most_once_within_one_life_of_the_agent(events: list[c.Event]):
    state, performed, started, done = _state(c.Phase.NEW), 0, 0, 0
    for event in events:
        state, effects = c.step(state, event)
        for effect in effects:
            assert not isinstance(effect, c.Perform) or started > performed, "performed before it was journaled"
            performed += isinstance(effect, c.Perform)
            started += isinstance(effect, c.WriteStarted)
            done += isinstance(effect, c.WriteDone)
    assert performed <= 1
    assert done <= 1


@given(st.lists(st.sampled_from([event for _, event in EVENTS])))
def test_what_had_begun_is_looked_for_before_it_is_done_again(events: list[c.Event]):
    state, _ = c.step(_state(c.Phase.RUNNING), c.Resumed())
    for event in events:
        state, effects = c.step(state, event)
        assert not any(isinstance(effect, c.Perform) for effect in effects) or isinstance(event, c.Missed)


def test_progress_within_a_step_never_falls_and_is_said_once():
    state, _ = c.step(_state(c.Phase.RUNNING), c.Progressed("pulling", 400))
    state, effects = c.step(state, c.Progressed("pulling", 300))
    assert (state.progress_permille, effects) == (400, ())
    state, effects = c.step(state, c.Progressed("starting", 10))
    assert (state.progress_permille, effects) == (10, (c.Report(),))


def test_every_phase_has_a_word_for_the_master():
    assert set(c.REPORTED_AS) == set(c.Phase)
