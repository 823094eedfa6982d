"""The fleet's state machines answer every event in every state, and the drawings say what the tables say."""

from pathlib import Path
from typing import Any

import pytest

from windrow_master.fleet import states
from windrow_master.fleet.drawings import page, table_text
from windrow_master.fleet.states import (
    ADMIN,
    COMMAND,
    COMMAND_DONE,
    LINK,
    SLOT,
    VERIFY,
    Answer,
    CommandEvent,
    CommandState,
)

TABLES = {
    "admin": """
admin       activate    drain       maintain    quarantine  reverified  retire
enrolled    active      -           -           quarantined -           retired
active      =           draining    -           quarantined -           retired
draining    active      =           maintenance quarantined -           retired
maintenance active      draining    =           quarantined -           retired
quarantined -           -           -           =           active      retired
retired     -           -           -           =           -           =""",
    "verify": """
verify     begin      pass       fail       give_up
unverified verifying  -          -          =
verifying  =          verified   failed     unverified
verified   verifying  =          failed     -
failed     verifying  -          =          -""",
    "link": """
link    heard       silent      silent_long start       gone
unseen  online      =           =           =           lost
unknown online      suspect     suspect     =           lost
online  =           suspect     suspect     unknown     lost
suspect online      =           lost        unknown     lost
lost    online      =           =           =           =""",
    "slot": """
slot      reserve    start      ran        stop       stopped    scrubbed   release    fault      reverified
free      reserved   -          -          -          =          =          =          faulted    -
reserved  -          starting   -          -          -          -          free       faulted    -
starting  -          =          running    stopping   scrubbing  -          -          faulted    -
running   -          =          =          stopping   scrubbing  -          -          faulted    -
stopping  -          -          =          =          scrubbing  -          -          faulted    -
scrubbing -          -          =          =          =          free       -          faulted    -
faulted   -          -          =          =          =          =          -          =          free""",
    "command": """
command   send       accept     run        succeed    fail       cancel     refused    expire     silence    never_seen abandon
queued    sent       accepted   running    succeeded  failed     cancelled  failed     timed_out  -          =          failed
sent      =          accepted   running    succeeded  failed     cancelled  failed     unknown    -          =          failed
accepted  -          =          running    succeeded  failed     cancelled  failed     =          unknown    failed     failed
running   -          =          =          succeeded  failed     cancelled  failed     =          unknown    failed     failed
succeeded -          =          =          =          =          =          =          =          =          =          =
failed    -          =          =          =          =          =          =          =          =          =          =
cancelled -          =          =          =          =          =          =          =          =          =          =
timed_out -          =          =          =          =          =          =          =          =          =          =
unknown   -          accepted   running    succeeded  failed     cancelled  failed     =          =          timed_out  failed""",  # noqa: E501
}
MACHINES: dict[str, Any] = {"admin": ADMIN, "verify": VERIFY, "link": LINK, "slot": SLOT, "command": COMMAND}
DRAWINGS = Path(__file__).parents[3] / "docs" / "diagrams" / "fleet.md"


@pytest.mark.parametrize("name", TABLES)
def test_every_pair_of_state_and_event_has_the_answer_printed_here(name):
    assert table_text(MACHINES[name]).split("\n") == TABLES[name].strip().split("\n")


@pytest.mark.parametrize("name", TABLES)
def test_no_pair_both_moves_and_stays(name):
    machine = MACHINES[name]
    assert not set(machine.moves) & machine.stays


@pytest.mark.parametrize("name", TABLES)
def test_every_state_is_reached_from_the_first_one(name):
    machine = MACHINES[name]
    reached = {machine.initial}
    for _ in machine.states:
        reached |= {machine.step(state, event).state for state in reached for event in machine.events}
    assert reached == set(machine.states)


@pytest.mark.parametrize("state", sorted(COMMAND_DONE))
@pytest.mark.parametrize("event", list(CommandEvent))
def test_the_result_of_a_done_command_never_changes(state, event):
    step = states.step_command(state, event)
    assert step.state is state
    assert not step.moved


@pytest.mark.parametrize("event", [CommandEvent.EXPIRE, CommandEvent.SILENCE])
def test_a_command_that_was_sent_is_never_called_timed_out_by_time_alone(event):
    sent = [s for s in CommandState if s not in COMMAND_DONE and s is not CommandState.QUEUED]
    assert CommandState.TIMED_OUT not in {states.step_command(state, event).state for state in sent}


def test_a_command_is_never_sent_again_once_its_fate_is_unknown():
    assert states.step_command(CommandState.UNKNOWN, CommandEvent.SEND).answer is Answer.REFUSED


def test_only_retired_ends_a_host():
    assert ADMIN.final_states() == (states.AdminState.RETIRED,)
    assert SLOT.final_states() == ()
    assert set(COMMAND.final_states()) == COMMAND_DONE


def test_the_documented_drawings_are_fresh():
    assert DRAWINGS.read_text() == page(), "run: python -m windrow_master.fleet.drawings > docs/diagrams/fleet.md"
