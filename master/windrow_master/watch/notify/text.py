"""Writes messages for people (mail, chats) and for programs (the body of a webhook). Pure."""

import json
from collections.abc import Sequence
from typing import Final, TypedDict

from windrow_master.mail.message import Letter
from windrow_master.watch.model import AlertMessage, MessageKind
from windrow_proto.conditions import Severity
from windrow_proto.units import time_text

WORDS: Final = {
    MessageKind.FIRING: "",
    MessageKind.RESOLVED: "Resolved: ",
    MessageKind.ESCALATED: "Nobody has answered: ",
    MessageKind.TEST: "",
}
FOOT: Final = "You get this mail because of the alerts of a Windrow market. Change that there, under Settings."
LINES_MAX: Final = 50
"""Messages of one digest that are written out."""


class AlertData(TypedDict):
    """What a webhook says of an alert. object: messages with the same one arrive in order. subjects: at most 6 names,
    of subject_count."""

    alert_id: str
    rule: str
    severity: str
    title: str
    text: str
    remedy: str
    object: str
    number: int
    subjects: list[str]
    subject_count: int
    is_simulated: bool
    link: str


class Event(TypedDict):
    """The body of a webhook. type: `alert.firing`, `.resolved`, `.escalated` or `.test`; timestamp: RFC 3339, of the
    message."""

    type: str
    timestamp: str
    data: AlertData


def body(message: AlertMessage, base_url: str) -> str:
    """The body of a webhook: the same bytes at each try. base_url: of the console."""
    data = AlertData(
        alert_id=message.alert_id,
        rule=message.rule,
        severity=message.severity.value,
        title=message.title,
        text=message.text,
        remedy=message.remedy,
        object=message.object_key,
        number=message.number,
        subjects=list(message.subjects),
        subject_count=message.subject_count,
        is_simulated=message.simulated,
        link=base_url + message.link,
    )
    said = Event(type=f"alert.{message.kind}", timestamp=time_text(message.at_ns), data=data)
    return json.dumps(said, separators=(",", ":"))


def title(message: AlertMessage) -> str:
    """One line."""
    urgent = "[PAGE] " if _is_urgent(message) else ""
    return f"{urgent}{WORDS[message.kind]}{message.title}{' (simulated)' if message.simulated else ''}"


def _is_urgent(message: AlertMessage) -> bool:
    return message.severity is Severity.PAGE and message.kind is not MessageKind.RESOLVED


def paragraphs(message: AlertMessage) -> tuple[str, ...]:
    """What there is to say below the title."""
    more = message.subject_count - len(message.subjects)
    names = ", ".join(message.subjects) + (f" and {more} more" if more > 0 else "")
    remedy = "" if message.kind is MessageKind.RESOLVED else message.remedy
    last = f"{message.rule}, {time_text(message.at_ns)}"
    said = (*message.text.splitlines(), remedy, names and f"Affected: {names}", last)
    return tuple(one for one in said if one)


def letter(messages: Sequence[AlertMessage], base_url: str) -> Letter:
    """One mail for one message, or for all those of a digest."""
    first = messages[0]
    if len(messages) == 1:
        return Letter(title(first), (title(first), *paragraphs(first)), base_url + first.link, "Open", foot=FOOT)
    lines = tuple(f"{title(one)} ({time_text(one.at_ns)}): {one.text}" for one in messages[:LINES_MAX])
    more = len(messages) - len(lines)
    below = (f"And {more} more.",) if more else ()
    return Letter(f"{len(messages)} messages of alerts", lines, base_url + "/alerts", "Open", below, FOOT)


def plain(messages: Sequence[AlertMessage], base_url: str) -> tuple[str, str, str]:
    """Title and text for a chat, and the tone of both: success, warning or failure."""
    said = letter(messages, base_url)
    rest = said.paragraphs[1:] if len(messages) == 1 else said.paragraphs
    is_over = all(one.kind is MessageKind.RESOLVED for one in messages)
    tone = "success" if is_over else "failure" if any(map(_is_urgent, messages)) else "warning"
    return said.subject, "\n".join((*rest, *said.below, said.link)), tone


def delivery_key(messages: Sequence[AlertMessage]) -> str:
    """The id by which a receiver knows a mail again that arrives twice."""
    more = len(messages) - 1
    return messages[0].message_id + (f".and-{more}" if more else "")
