"""Values of channels and deliveries, and the rules of who hears what. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from windrow_master.identity.membership import check_address
from windrow_master.watch.model import AlertMessage, MessageKind
from windrow_proto.conditions import Severity
from windrow_proto.errors import InvalidInput

OPERATORS: Final = "operators"
"""The audience, and the owner of channels, of those who run the installation."""
CHANNELS_MAX: Final = 50
"""Of one owner."""
TESTS_MAX: Final = 10
"""Test messages of one owner within a minute."""
TEST: Final = "test/"
"""How the objects of test messages begin."""
RULES_MAX: Final = 50
URL_MAX: Final = 1_000
RANKS: Final = {Severity.INFO: 0, Severity.TICKET: 1, Severity.PAGE: 2}
HOST_OF_SERVICE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("slack", "discord", "tgram", "pagerduty", "opsgenie", "pover", "gchat", "wxteams"), r"[A-Za-z0-9_:@/.%#+=~-]+"
    ),
    "ntfys": r"[A-Za-z0-9_-]{1,64}",
    "workflows": r"[a-z0-9.-]+\.(?:logic\.azure\.com|powerplatform\.com)(?::443)?/[A-Za-z0-9_/.%=~-]+",
}
"""Services of apprise that are allowed, with the form of what follows `NAME://`. Each of them sends to hosts of its
own vendor alone, by TLS: apprise makes its calls itself, so that no other check of addresses would hold."""
_QUERY: Final = re.compile(r"(?:(?:region|priority|format)=[a-z]+&?)+")
"""Other options of apprise name files of this machine or another host."""


class ChannelKind(StrEnum):
    """The way of a channel. Apprise knows Slack, Teams, ntfy, PagerDuty and others."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    APPRISE = "apprise"


class Scope(StrEnum):
    """Whose alerts a channel gets: the user's own (those of all their projects), a project's, all of an organisation's
    projects, or the installation's."""

    ME = "me"
    PROJECT = "project"
    ORGANISATION = "organisation"
    OPERATORS = "operators"


class MailLevel(StrEnum):
    """How many alerts a user gets by mail without a channel. URGENT: severity page alone. ALL: page and ticket."""

    NONE = "none"
    URGENT = "urgent"
    ALL = "all"


class DeliveryState(StrEnum):
    """HELD waits for the end of quiet hours or for a digest, WAITING for its turn or its next try."""

    WAITING = "waiting"
    HELD = "held"
    SENT = "sent"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours of each day in which only PAGE is sent. from_minute, until_minute: of the day in that time zone, 0 to 1439;
    an end before the begin is on the next day."""

    from_minute: int
    until_minute: int
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One way to somebody. owner: `operators`, or the id of an account, an organisation or a user. sealed: its URL and
    the secrets that sign, sealed by the Master's key; empty for mail. shown: as much of the target as may be read, of
    mail the address. rules: patterns
    such as `host.*`; none: all. digest_minutes: what can wait goes together, at full spans of it. rotated_at_ns: since
    when there is a second secret."""

    channel_id: str
    owner: str
    kind: ChannelKind
    name: str
    sealed: bytes
    shown: str
    min_severity: Severity
    created_by: str
    created_at_ns: int
    rules: tuple[str, ...] = ()
    quiet: Quiet | None = None
    digest_minutes: int | None = None
    disabled_at_ns: int | None = None
    rotated_at_ns: int | None = None

    @property
    def scope(self) -> Scope:
        """Whose alerts it gets."""
        by_prefix = {"user": Scope.ME, "organisation": Scope.ORGANISATION, OPERATORS: Scope.OPERATORS}
        return by_prefix.get(self.owner.partition("_")[0], Scope.PROJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message on its way to one channel. batch: those with the same one of a channel go as one; empty: alone.
    due_at_ns: of the next try; None: it is done. first_at_ns: since when it is tried; last_answer: to the last try."""

    delivery_id: str
    message: AlertMessage
    channel_id: str
    owner: str
    state: DeliveryState
    due_at_ns: int | None
    first_at_ns: int
    batch: str = ""
    tries: int = 0
    last_answer: str = ""
    done_at_ns: int | None = None


def wants(channel: Channel, message: AlertMessage) -> bool:
    """Return whether a channel of the message's audience takes it."""
    if channel.disabled_at_ns is not None or RANKS[message.severity] < RANKS[channel.min_severity]:
        return False
    return not channel.rules or any(fnmatchcase(message.rule, rule) for rule in channel.rules)


def least_severity(level: MailLevel) -> Severity | None:
    """The least severity that this user gets by mail; None: nothing is mailed."""
    return {MailLevel.NONE: None, MailLevel.URGENT: Severity.PAGE, MailLevel.ALL: Severity.TICKET}[level]


def check_target(kind: ChannelKind, target: str) -> str:
    """The target as it is shown: of a URL the host alone, since the rest may be a secret. Raises InvalidInput."""
    if kind is ChannelKind.MAIL:
        return check_address(target)
    if len(target) > URL_MAX or not target.isascii() or not target.isprintable() or " " in target:
        raise InvalidInput(f"target: A URL is at most {URL_MAX} ASCII characters without spaces.", subject="target")
    if kind is ChannelKind.WEBHOOK:
        return _check_webhook(target)
    scheme, _, rest = target.partition("://")
    rest, _, query = rest.partition("?")
    form = HOST_OF_SERVICE.get(scheme)
    if form is None or "://" in rest or not re.fullmatch(form, rest) or (query and not _QUERY.fullmatch(query)):
        words = (
            f"target: apprise is allowed for {', '.join(sorted(HOST_OF_SERVICE))}, and with region, priority, format"
        )
        raise InvalidInput(f"{words}. Use a webhook for others.", subject="target")
    return f"{scheme}://..."


def _check_webhook(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good, parts = False, urlsplit("")
    if not is_good or "@" in parts.netloc or parts.fragment:
        raise InvalidInput("target: A webhook is a URL such as https://example.org/hook.", subject="target")
    return f"{parts.scheme}://{parts.netloc}/..."


def check_settings(channel: Channel) -> Channel:
    """The same with its rules without repeats. Raises InvalidInput."""
    if not channel.name.isprintable():
        raise InvalidInput("name: A name is one line.", subject="name")
    if channel.digest_minutes is not None and channel.kind is ChannelKind.WEBHOOK:
        raise InvalidInput("digest_minutes: A webhook gets each message by itself.", subject="digest_minutes")
    if channel.quiet is not None and channel.quiet.from_minute == channel.quiet.until_minute:
        raise InvalidInput("quiet: Quiet hours begin and end at different times.", subject="quiet")
    return replace(channel, rules=tuple(dict.fromkeys(channel.rules)))


def trial_message(channel: Channel, message_id: str, at_ns: int) -> AlertMessage:
    """A message that shows that a channel works."""
    return AlertMessage(
        message_id=f"{message_id}.test",
        number=0,
        alert_id=message_id,
        kind=MessageKind.TEST,
        at_ns=at_ns,
        rule="test",
        severity=Severity.INFO,
        title=f"Test of the channel {channel.name}",
        text="This channel works: alerts will arrive here.",
        remedy="",
        object_key=f"{TEST}{message_id}",
        link="/alerts",
        audiences=(channel.owner,),
        subjects=(),
        subject_count=0,
        simulated=False,
    )


def units(heads: Sequence[Delivery], most: int) -> list[list[Delivery]]:
    """What is sent together: deliveries of one batch, and each other one alone; at most so many."""
    found: dict[str, list[Delivery]] = {}
    for one in heads:
        found.setdefault(one.batch or one.delivery_id, []).append(one)
    return list(found.values())[:most]
