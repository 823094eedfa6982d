"""Every state of a purchase answers every event, and nothing that is paid for can be forgotten."""

from pathlib import Path

import pytest

from windrow_master.fleet.states import Answer
from windrow_master.hybrid.purchases.states import FINAL, PAID, PURCHASE, Event, State, step

TABLE = Path(__file__).with_name("states.txt")


def printed() -> str:
    """All pairs, a line for each state: where each event leads, `=` where it changes nothing, `-` where it is wrong."""
    lines = []
    for state in State:
        steps = [(event, step(state, event)) for event in Event]
        lines += [
            f"{state:<10} "
            + " ".join(
                f"{event}:{ {Answer.MOVES: str(one.state), Answer.STAYS: '=', Answer.REFUSED: '-'}[one.answer] }"
                for event, one in steps
            )
        ]
    return "\n".join(lines) + "\n"


def test_the_table_of_all_pairs_is_as_it_is_kept() -> None:
    assert printed() == TABLE.read_text()


def test_every_paid_state_can_be_ended_and_only_the_provider_says_that_it_is_gone() -> None:
    assert all(step(state, Event.END).state is State.ENDING for state in PAID)
    assert [state for state in State if step(state, Event.GONE).state is State.GONE and state is not State.GONE] == [
        State.ENDING
    ]


@pytest.mark.parametrize("state", FINAL)
def test_a_machine_that_is_found_after_its_purchase_was_over_is_ended(state: State) -> None:
    assert step(state, Event.FOUND).state is State.ENDING


def test_a_provider_is_asked_once() -> None:
    assert [state for state in State if step(state, Event.ASK).answer is not Answer.REFUSED] == [State.WANTED]


def test_no_state_but_the_first_is_beyond_reach() -> None:
    reached, seen = {PURCHASE.initial}, set[State]()
    while reached - seen:
        state = (reached - seen).pop()
        seen.add(state)
        reached |= {step(state, event).state for event in Event}
    assert seen == set(State)
