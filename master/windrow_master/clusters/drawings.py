"""Draws a cluster's table: as a grid for the test, as a Mermaid page for the documentation."""

from windrow_master.clusters.model import ClusterPhase
from windrow_master.clusters.states import FINAL, MOVES, ClusterEvent, answer


def table_text() -> str:
    """Every (phase, event) pair: the target and, behind `!`, the effects; `=` where nothing changes."""
    lines = []
    for phase in ClusterPhase:
        for event in ClusterEvent:
            move = answer(phase, event)
            target = "=" if move.phase is phase else move.phase.value
            effects = f" ! {', '.join(move.effects)}" if move.effects else ""
            lines.append(f"{phase.value:9} {event.value:9} {target}{effects}")
    return "\n".join(lines)


def mermaid_text() -> str:
    """The moves as a Mermaid state diagram; several events between the same two phases share one arrow."""
    arrows: dict[tuple[ClusterPhase, ClusterPhase], list[str]] = {}
    for (phase, event), target in MOVES.items():
        arrows.setdefault((phase, target), []).append(event.value)
    lines = ["stateDiagram-v2", f"    [*] --> {ClusterPhase.REQUESTED}"]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    lines += [f"    {phase} --> [*]" for phase in ClusterPhase if phase in FINAL]
    return "\n".join(lines)


def page() -> str:
    """The whole of docs/diagrams/clusters.md."""
    head = [
        "# A cluster's life",
        "",
        "Generated from the table in `windrow_master.clusters.states` by",
        "`python -m windrow_master.clusters.drawings`; a test keeps it fresh.",
        "",
        "```mermaid",
    ]
    return "\n".join([*head, mermaid_text(), "```"]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
