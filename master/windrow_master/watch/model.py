"""The message by which an alert reaches people. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from windrow_proto.conditions import Severity


class MessageKind(StrEnum):
    """The reason of a message."""

    FIRING = "firing"
    RESOLVED = "resolved"
    ESCALATED = "escalated"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMessage:
    """One message of one alert.

    message_id: `ALERT_ID.KIND`, escalated ones with `.N` behind it: the id by which receivers deduplicate. number: the
    order in the whole installation. object_key: `RULE/CAUSE`; messages with the same one arrive in order. link: a path
    of the console. subjects: at most 6 names, of subject_count. audiences: `operators` and ids of accounts.
    """

    message_id: str
    number: int
    alert_id: str
    kind: MessageKind
    at_ns: int
    rule: str
    severity: Severity
    title: str
    text: str
    remedy: str
    object_key: str
    link: str
    audiences: tuple[str, ...]
    subjects: tuple[str, ...]
    subject_count: int
    simulated: bool
