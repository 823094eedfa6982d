"""Decides which events a host may report: their kinds, their subjects, and how many of them are kept in an hour. Pure.

A host speaks for itself: of its own storage, of the GPUs in its inventory and of the work that it holds. Whatever else
it says is counted, told once an hour, and changes nothing. What the Master concludes itself is of other kinds, so that
no decision rests on a host's word about another.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_proto import wipes
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import HostId
from windrow_proto.model import Event
from windrow_proto.units import HOUR


class About(StrEnum):
    """The subject that an event must have: the host itself, one of its GPUs or slices, or work that it holds."""

    HOST = "host"
    GPU = "gpu"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A kind of event that hosts report. words: its text where the host sends none."""

    about: About
    words: str


SPOKEN: Final[Mapping[str, Spoken]] = {
    "agent.storage_damaged": Spoken(About.HOST, "The agent found its own files damaged, and put them aside"),
    "host.leaving": Spoken(About.HOST, "The host will be gone soon"),
    "gpu.xid": Spoken(About.GPU, "The driver reported an error of the GPU"),
    "gpu.lost": Spoken(About.GPU, ConditionCode.GPU_LOST.words),
    "gpu.recovered": Spoken(About.GPU, "The GPU answers again"),
    "gpu.ecc_uncorrected": Spoken(About.GPU, "The GPU had memory errors that could not be corrected"),
    "gpu.recovery_action": Spoken(About.GPU, "The driver asks for a reset of the GPU or a reboot of the host"),
    "gpu.unavailable": Spoken(About.GPU, ConditionCode.GPU_UNAVAILABLE.words),
    "gpu.mig_changed": Spoken(About.GPU, ConditionCode.GPU_MIG_CHANGED.words),
    "gpu.stripped": Spoken(About.GPU, ConditionCode.GPU_STRIPPED.words),
    "workload.exited": Spoken(About.WORK, "The work ended"),
    "workload.lost": Spoken(About.WORK, "The work is gone from its host"),
}
"""The kinds of events that hosts report, what each is about, and its words."""


def words_of(kind: str, fields: Mapping[str, str]) -> str:
    """The text of an event that came without one; empty for a kind that hosts do not report."""
    known = SPOKEN.get(kind)
    if known is None:
        return ""
    if kind == "gpu.ecc_uncorrected" and fields.get("count"):
        return f"The GPU had memory errors that could not be corrected: {fields['count']}"
    code = fields.get("exit_code")
    return f"{known.words} with exit code {code}" if kind == "workload.exited" and code else known.words


FIELDS: Final = frozenset(
    {"action", "at_ns", "blame", "count", "exit_code", "leased", "pid", "process", "slice", "why", "workload", "xid"}
)
FIELD_CHARS_MAX: Final = 200
AT_DIGITS_MAX: Final = 20
"""Of nanoseconds since 1970 that fit 64 bits."""
DETAIL_CHARS_MAX: Final = 1_000
"""With the fields some 3 KB: ten of them at most."""

KEPT_AN_HOUR: Final[Mapping[str, int]] = {
    "events": 200,
    "conditions": 200,
    "notes": 200,
    "inventories": 240,
    "gaps": 1_000,
    "letters": 100,
    "orphans": 200,
    "bytes": 16 << 20,
}
"""Of each host, by what it is: more is counted and not kept.

events: what it reports; conditions: what came and went; notes: moves, restarts, what its inventory says that is not
believed; letters: what could not be read; orphans: work that nobody asked for; bytes: sealed messages that are kept.
A card that fails in earnest says some ten things an hour.
"""


REFUSED: Final = "refused"
"""The name under which events are counted that a host may not report at all."""


WIPE_FIELDS: Final = frozenset(
    {"at_ns", "bytes", "cipher", "files", "host", "keys", "left", "method", wipes.SIGNATURE, "workload"}
)
"""Of a wipe's report, which is signed as a whole: it is kept whole, or not at all."""


def heard_wipe(event: Event, host_id: HostId, cluster_of: Callable[[str], str]) -> Event | None:
    """The report of a wiped cache as it may be kept; None where this host may not say it.

    cluster_of: the cluster of a workload that this host has or had; empty where it had none of that name.
    """
    fields = event.fields
    is_whole = fields.keys() <= WIPE_FIELDS and all(len(value) <= FIELD_CHARS_MAX for value in fields.values())
    if not is_whole or fields.get("host") != host_id or not event.subject:
        return None
    if cluster_of(fields.get("workload", "")) != event.subject:
        return None
    return Event(event.code, event.at_wall_ns, event.subject, event.detail[:DETAIL_CHARS_MAX], fields)


def heard(event: Event, own: Collection[str], holds: Callable[[str], bool]) -> Event | None:
    """The event as it may be kept; None where this host may not say it.

    own: its GPUs and slices; holds: whether a workload is one that it holds.
    """
    known = SPOKEN.get(event.code)
    if known is None:
        return None
    about = known.about
    is_own = {
        About.HOST: event.subject == "",
        About.GPU: event.subject in own,
        About.WORK: about is About.WORK and holds(event.subject),
    }[about]
    if not is_own:
        return None
    fields = {name: value[:FIELD_CHARS_MAX] for name, value in event.fields.items() if name in FIELDS}
    if "slice" in fields and fields["slice"] not in own:
        del fields["slice"]
    if "workload" in fields and not holds(fields["workload"]):
        del fields["workload"]
    return Event(event.code, event.at_wall_ns, event.subject, event.detail[:DETAIL_CHARS_MAX], fields)


def leaving_at(fields: Mapping[str, str]) -> int | None:
    """Return when a host says that it will be gone, in wall time; None: it does not."""
    text = fields.get("at_ns", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < AT_DIGITS_MAX else None


@dataclass(slots=True)
class _Hour:
    began_ns: int
    kept: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Excess:
    """The notice about a host that reports too much. before: what of the last hour was not kept."""

    what: str
    before: Mapping[str, int]


class HostBudget:
    """Counts what each host says, by the hour."""

    def __init__(self, kept_an_hour: Mapping[str, int] = KEPT_AN_HOUR) -> None:
        self._most = kept_an_hour
        self._hours: dict[HostId, _Hour] = {}
        self._before: dict[HostId, Mapping[str, int]] = {}

    def admit(self, host_id: HostId, what: str, now_ns: int, amount: int = 1) -> bool:
        """Return whether this is kept; counts it either way."""
        hour = self._hour(host_id, now_ns)
        if hour.kept[what] + amount > self._most[what]:
            hour.dropped[what] += amount
            return False
        hour.kept[what] += amount
        return True

    def refuse(self, host_id: HostId, now_ns: int) -> None:
        """Count something that the host may not say at all."""
        self._hour(host_id, now_ns).dropped[REFUSED] += 1

    def excess(self, host_id: HostId, what: str, now_ns: int) -> Excess | None:
        """Said once an hour of each kind: that more came than is kept."""
        hour = self._hour(host_id, now_ns)
        if not hour.dropped[what] or hour.kept["told." + what]:
            return None
        hour.kept["told." + what] = 1
        return Excess(what, self._before.pop(host_id, {}))

    def _hour(self, host_id: HostId, now_ns: int) -> _Hour:
        hour = self._hours.get(host_id)
        if hour is None or not 0 <= now_ns - hour.began_ns < HOUR:
            if hour is not None and hour.dropped:
                self._before[host_id] = dict(hour.dropped)
            hour = self._hours[host_id] = _Hour(now_ns)
        return hour
