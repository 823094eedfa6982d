"""Draws a job's table: as a grid for the test, as a Mermaid page for the documentation."""

from windrow_master.jobs.model import JobState
from windrow_master.jobs.states import FINAL, MOVES, JobEvent, answer


def table_text() -> str:
    """Every (state, event) pair: the target and, behind `!`, the effects; `=` where nothing changes."""
    lines = []
    for state in JobState:
        for event in JobEvent:
            move = answer(state, event)
            target = "=" if move.state is state else move.state.value
            effects = f" ! {', '.join(move.effects)}" if move.effects else ""
            lines.append(f"{state.value:13} {event.value:7} {target}{effects}")
    return "\n".join(lines)


def mermaid_text() -> str:
    """The moves as a Mermaid state diagram; several events between the same two states share one arrow."""
    arrows: dict[tuple[JobState, JobState], list[str]] = {}
    for (state, event), target in MOVES.items():
        arrows.setdefault((state, target), []).append(event.value)
    lines = ["stateDiagram-v2", f"    [*] --> {JobState.SUBMITTED}"]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    lines += [f"    {state} --> [*]" for state in JobState if state in FINAL]
    return "\n".join(lines)


def page() -> str:
    """The whole of docs/diagrams/jobs.md."""
    head = [
        "# A job's life",
        "",
        "Generated from the table in `windrow_master.jobs.states` by",
        "`python -m windrow_master.jobs.drawings`; a test keeps it fresh.",
        "",
        "```mermaid",
    ]
    return "\n".join([*head, mermaid_text(), "```"]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
