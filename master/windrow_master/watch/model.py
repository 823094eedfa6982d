"""The values of alerts: signals, alerts, the messages that tell of them, silences. Pure.

An alert is one rule and one cause: a relay, a host, a job. What has the trouble (GPUs, hosts, the jobs of an array) are
its subjects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_proto.conditions import Severity
from windrow_proto.units import MINUTE, SECOND

OPERATORS: Final = "operators"
"""The audience of whoever operates the market; any other audience is the id of an account."""
MASTER: Final = "master"
"""The cause of alerts about the Master itself."""
NAMES_MAX: Final = 6
"""Subjects named in a message; the rest are counted."""
SETTLE_NS: Final = 30 * SECOND
"""An alert is resolved when its cause has been gone for this long, so that a flapping one is told once."""
WIDER_NS: Final = 5 * MINUTE
"""Alerts of one rule that begin within this time of each other may be one alert of a wider cause."""


class AlertState(StrEnum):
    """The state of an alert. PENDING: its duration is not over, and nobody was told."""

    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    SILENCED = "silenced"
    RESOLVED = "resolved"


class MessageKind(StrEnum):
    """The kinds of messages about an alert."""

    FIRING = "firing"
    RESOLVED = "resolved"
    ESCALATED = "escalated"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A cause has trouble with this subject.

    lasts_ns: of a moment, which has no end of its own: the alert is over so long after the last one. after_ns: wall
    time at which it fires, in place of the duration's end; until_ns: wall time at which it is over. is_news: an alert
    that is open already gets these words, and is told again. held_by: alerts, as rule and cause, that tell of this
    already while they are open; same: rules of which one alert tells where they are about the same subject, the gravest
    first. wider: the cause that `wider_least` causes of one rule have together; empty: none.
    """

    rule: str
    severity: Severity
    title: str
    remedy: str
    cause: str
    subject: str
    name: str
    text: str
    audiences: tuple[str, ...]
    duration_ns: int = 0
    settle_ns: int = SETTLE_NS
    lasts_ns: int | None = None
    escalate_ns: int | None = None
    after_ns: int | None = None
    until_ns: int | None = None
    is_news: bool = False
    held_by: tuple[tuple[str, str], ...] = ()
    same: tuple[str, ...] = ()
    wider: str = ""
    wider_name: str = ""
    wider_least: int = 0
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """A cause has no trouble any more: of one rule, or of all (None); with one subject, or with all (None). text: what
    is told of the end, in place of how long it lasted."""

    cause: str
    rule: str | None = None
    subject: str | None = None
    text: str = ""


Signal = Raise | Clear


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert as its row says. Times are wall nanoseconds.

    fires_at_ns: while it is pending; settles_at_ns: when it is resolved unless it is raised again; escalates_at_ns:
    when it is told again unless somebody acknowledges it; escalations: how often it was told again. acked_at_ns: None
    with an acked_by: others than operators look after it, and operators are told again. flaps: how often it
    was raised again while it settled. subject_count: subjects that have the trouble now, without those held back by it.
    """

    alert_id: str
    rule: str
    cause: str
    state: AlertState
    severity: Severity
    title: str
    text: str
    remedy: str
    opened_at_ns: int
    settle_ns: int = SETTLE_NS
    fires_at_ns: int | None = None
    fired_at_ns: int | None = None
    acked_at_ns: int | None = None
    acked_by: str = ""
    silenced_until_ns: int | None = None
    settles_at_ns: int | None = None
    escalate_ns: int | None = None
    escalates_at_ns: int | None = None
    escalations: int = 0
    resolved_at_ns: int | None = None
    flaps: int = 0
    assignee: str = ""
    simulated: bool = False
    subject_count: int = 0
    wider: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def object_key(self) -> str:
        """Messages are delivered in order for each of these."""
        return f"{self.rule}/{self.cause}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What has, or had, the trouble of an alert. held: it is another alert's, held back by this one."""

    rule: str
    cause: str
    subject: str
    name: str
    since_ns: int
    cleared_at_ns: int | None
    held: bool


@dataclass(frozen=True, slots=True)
class Note:
    """A line of an alert's history. kind: `comment`, or what was done."""

    number: int
    at_ns: int
    actor: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No alert that fits is told in this span. owner: an audience; it silences what concerns that one alone, operators
    whatever concerns them. rule, cause: None: any."""

    silence_id: str
    owner: str
    rule: str | None
    cause: str | None
    from_ns: int
    until_ns: int
    reason: str
    created_by: str
    created_at_ns: int

    def covers(self, rule: str, cause: str, audiences: tuple[str, ...], now_ns: int) -> bool:
        """Return whether it silences this alert now."""
        is_theirs = OPERATORS in audiences if self.owner == OPERATORS else set(audiences) == {self.owner}
        fits = self.rule in (None, rule) and self.cause in (None, cause)
        return is_theirs and fits and self.from_ns <= now_ns < self.until_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A maintenance window: no alert about these hosts is told, and nothing new runs there. Times are wall nanoseconds.

    owner: whose it is to change: `operators`, or an account. hosts: ids. started_at_ns: None: not yet; ended_at_ns:
    when it was over or removed. drained: the hosts that it drained, which are active again at its end.
    """

    window_id: str
    owner: str
    hosts: tuple[str, ...]
    from_ns: int
    until_ns: int
    reason: str
    created_by: str
    created_at_ns: int
    started_at_ns: int | None = None
    ended_at_ns: int | None = None
    drained: tuple[str, ...] = ()

    def runs(self, now_ns: int) -> bool:
        """Return whether it is now."""
        return self.ended_at_ns is None and self.from_ns <= now_ns < self.until_ns

    def covers(self, cause: str) -> bool:
        """Return whether the cause of an alert is one of its hosts, or several of them together."""
        return cause in self.hosts or cause.startswith(f"{self.window_id}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMessage:
    """A message about an alert, handed to the channels in the transaction that it tells of.

    message_id: by which receivers drop a second copy. number: its place in the order of all messages. object_key:
    messages of one object are delivered in order. link: a path in the console. subjects: the names of the first.
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
