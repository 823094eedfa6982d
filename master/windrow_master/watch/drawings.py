"""Draws the table of alerts: as a grid for the test, as a Mermaid page for the documentation."""

from windrow_master.watch.model import Alert, AlertState
from windrow_master.watch.states import MOVES, AlertEvent, step
from windrow_proto.conditions import Severity


def table_text() -> str:
    """Every (state, event) pair, of an alert that was told unless it is pending: the target and, behind `!`, the
    effects; `=` where it stays."""
    lines = []
    for state in AlertState:
        fired = None if state is AlertState.PENDING else 1
        alert = Alert(
            alert_id="", rule="", cause="", state=state, severity=Severity.PAGE, title="", text="", remedy="",
            opened_at_ns=0, fired_at_ns=fired, escalate_ns=1,
        )  # fmt: skip
        for event in AlertEvent:
            after, effects = step(alert, event, 2)
            target = "=" if after.state is state else after.state.value
            said = f" ! {', '.join(effects)}" if effects else ""
            lines.append(f"{state.value:13} {event.value:12} {target}{said}")
    return "\n".join(lines)


def mermaid_text() -> str:
    """The moves as a Mermaid state diagram; several events between the same two states share one arrow."""
    arrows: dict[tuple[AlertState, AlertState], list[str]] = {}
    for (state, event), target in MOVES.items():
        if state is not target:
            arrows.setdefault((state, target), []).append(event.value)
    lines = ["stateDiagram-v2", f"    [*] --> {AlertState.PENDING}"]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    lines += [
        f"    {AlertState.SILENCED} --> {AlertState.ACKNOWLEDGED}: unsilence, if it was acknowledged",
        f"    {AlertState.RESOLVED} --> [*]",
    ]
    return "\n".join(lines)


def page() -> str:
    """The whole of docs/diagrams/alerts.md."""
    head = [
        "# An alert's life",
        "",
        "Generated from the table in `windrow_master.watch.states` by",
        "`python -m windrow_master.watch.drawings > docs/diagrams/alerts.md`; a test keeps it fresh.",
        "",
        "```mermaid",
    ]
    return "\n".join([*head, mermaid_text(), "```"]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
