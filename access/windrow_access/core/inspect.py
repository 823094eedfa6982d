"""Judges whether a frame may pass: the few things an Access can judge without opening it. Pure.

A host cannot lift its telemetry into the class that is never shed, nor send what nobody would accept.
"""

from typing import Final

EVIDENCE_CLASS, LIVE_CLASS, CHANNEL_CLASS, BACKLOG_CLASS = 0, 1, 2, 3
CONTROL_LANE, EVIDENCE_LANE, TELEMETRY_LANE, CHANNEL_LANE = 0, 1, 2, 3

CLASSES_OF_LANE: Final[dict[int, frozenset[int]]] = {
    CONTROL_LANE: frozenset({EVIDENCE_CLASS}),
    EVIDENCE_LANE: frozenset({EVIDENCE_CLASS}),
    TELEMETRY_LANE: frozenset({LIVE_CLASS, BACKLOG_CLASS}),
    CHANNEL_LANE: frozenset({CHANNEL_CLASS}),
}
SEALED_BYTES_MAX: Final[dict[int, int]] = {
    CONTROL_LANE: 1 << 20,
    EVIDENCE_LANE: 1 << 20,
    TELEMETRY_LANE: 256 << 10,
    CHANNEL_LANE: 256 << 10,
}
"""Caps of design.md section 4 and reliability figures: larger messages cost hundreds of megabytes once parsed."""


def objection(frame_class: int, lane: int, sealed_bytes: int) -> str | None:
    """Why a frame may not pass, as a sentence; None if it may."""
    classes = CLASSES_OF_LANE.get(lane)
    if classes is None:
        return f"There is no lane {lane}."
    if frame_class not in classes:
        return f"Lane {lane} does not carry class {frame_class}."
    if sealed_bytes > SEALED_BYTES_MAX[lane]:
        return f"A message of {sealed_bytes} bytes on lane {lane} is over its limit of {SEALED_BYTES_MAX[lane]}."
    return None
