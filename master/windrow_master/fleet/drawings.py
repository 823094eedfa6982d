"""Draw the state machines as text: one table for the tests, one Mermaid page for the documentation."""

from enum import StrEnum
from typing import TypeVar

from windrow_master.fleet.states import ADMIN, COMMAND, LINK, SLOT, VERIFY, Answer, Machine

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)

_HEADINGS = (
    "admin: what people decided about a host",
    "verify: what was proven about its hardware",
    "link: what is heard of it",
    "slot: what one slot is doing",
    "command: how far a command is known to have come",
)


def table_text(machine: Machine[S, E]) -> str:
    """Every (state, event) pair as one grid: the target state, `=` where nothing changes, `-` where it is refused."""
    first = max(len(state) for state in machine.states)
    width = max(len(word) for word in (*machine.states, *machine.events))
    lines = [" ".join([machine.name.ljust(first), *(event.ljust(width) for event in machine.events)]).rstrip()]
    for state in machine.states:
        cells = []
        for event in machine.events:
            step = machine.step(state, event)
            text = {Answer.MOVES: str(step.state), Answer.STAYS: "=", Answer.REFUSED: "-"}[step.answer]
            cells.append(text.ljust(width))
        lines.append(" ".join([state.ljust(first), *cells]).rstrip())
    return "\n".join(lines)


def mermaid_text(machine: Machine[S, E]) -> str:
    """The moves as a Mermaid state diagram; several events between the same two states share one arrow."""
    arrows: dict[tuple[S, S], list[str]] = {}
    for state in machine.states:
        for event in machine.events:
            step = machine.step(state, event)
            if step.moved:
                arrows.setdefault((state, step.state), []).append(str(event))
    lines = ["stateDiagram-v2", f"    [*] --> {machine.initial}"]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    lines += [f"    {state} --> [*]" for state in machine.final_states()]
    return "\n".join(lines)


def page() -> str:
    """The whole of docs/diagrams/fleet.md."""
    parts = [
        "# The fleet's state machines",
        "",
        "Generated from the tables in `windrow_master.fleet.states` by `python -m windrow_master.fleet.drawings`;",
        "a test keeps it fresh.",
    ]
    for heading, drawing in zip(_HEADINGS, _drawings(), strict=True):
        parts += ["", f"## {heading}", "", "```mermaid", drawing, "```"]
    return "\n".join(parts) + "\n"


def _drawings() -> tuple[str, ...]:
    return mermaid_text(ADMIN), mermaid_text(VERIFY), mermaid_text(LINK), mermaid_text(SLOT), mermaid_text(COMMAND)


if __name__ == "__main__":
    print(page(), end="")
