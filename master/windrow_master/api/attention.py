"""Sums up what a person has to look after: each kind of trouble once, with the hosts and GPUs that have it. Pure.

The troubles of hosts are those of fleet/availability.py; of several conditions of one thing the gravest is told, with
its remedy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_master.fleet.availability import (
    OFFLINE_REMEDY,
    QUARANTINE_REMEDY,
    Availability,
    Trouble,
    gpus_shown,
    gravest_first,
    headline,
    troubles,
)
from windrow_master.fleet.model import LinkState
from windrow_master.fleet.view import Entry
from windrow_proto.conditions import ConditionCode, Effect, Severity, Stated, find
from windrow_proto.ids import GpuUuid

SUBJECTS_MAX: Final = 6
"""Named of one kind; the rest are counted."""
RELAY_REMEDY: Final = "Start it again with `windrow-access run`; its hosts use another relay meanwhile."
NO_RELAY_REMEDY: Final = "Hosts reach the Master only through a relay. Start one with `windrow-access run`."
_HOT: Final = (ConditionCode.GPU_HOT, ConditionCode.GPU_THROTTLED)
_ORDER: Final = ("no_relay", "faulty", "hot", "offline", "quarantined", "relay", "disk_full", "master")


@dataclass(frozen=True, slots=True)
class Affected:
    """One thing that has the trouble. gpu: its index, with its id; rented: somebody has it now."""

    name: str
    detail: str
    host_id: str | None = None
    gpu_id: GpuUuid | None = None
    gpu: int | None = None
    access_id: str | None = None
    rented: bool = False
    simulated: bool = False
    since_ns: int | None = None


@dataclass(slots=True)
class Group:
    """One kind of trouble. of: what is counted, `GPU`, `host` or `relay`; empty for the Master. ending: said after that
    number; empty: `words` are whole."""

    kind: str
    words: str
    ending: str
    remedy: str
    severity: Severity
    of: str
    affected: dict[tuple[str | None, str | None], Affected] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many have it."""
        return len(self.affected)

    @property
    def title(self) -> str:
        """The trouble in a few words."""
        counted = f"{self.count} {self.of}{'' if self.count == 1 else 's'}"
        if self.ending:
            return f"{counted} {self.ending}"
        return f"{self.words} ({counted})" if self.count > 1 else self.words

    @property
    def shown(self) -> Sequence[Affected]:
        """The first of them: rented ones, then by name."""
        ordered = sorted(
            self.affected.values(), key=lambda one: (not one.rented, one.simulated, one.name, one.gpu or 0)
        )
        return ordered[:SUBJECTS_MAX]


@dataclass(slots=True)
class _Groups:
    found: dict[str, Group] = field(default_factory=dict)

    def add(
        self, kind: str, of: str, ending: str, remedy: str, one: Affected, severity: Severity = Severity.TICKET
    ) -> None:
        self.say(kind, of, "", remedy, one, severity, ending)

    def say(
        self, kind: str, of: str, words: str, remedy: str, one: Affected, severity: Severity, ending: str = ""
    ) -> None:
        group = self.found.setdefault(kind, Group(kind, words, ending, remedy, severity, of))
        key = one.host_id or one.access_id, one.gpu_id
        if key in group.affected:
            return
        group.affected[key] = one
        if remedy not in group.remedy:
            group.remedy = f"{group.remedy} {remedy}"


def attention(
    entries: Iterable[Entry], stated: Iterable[Stated] = (), gone: Iterable[tuple[str, str]] = (), *, no_relay: bool
) -> list[Group]:
    """Return the troubles, the most pressing first. stated: conditions of the Master; gone: relays that went and were
    not drained, by id and region."""
    groups, page = _Groups(), Severity.PAGE
    if no_relay:
        groups.say("no_relay", "", "No relay is connected", NO_RELAY_REMEDY, Affected("Master", ""), page)
    for entry in entries:
        _of_host(groups, entry)
    for access_id, region in gone:
        one = Affected(region or access_id, "it has closed its connection", access_id=access_id)
        groups.add("relay", "relay", "down", RELAY_REMEDY, one)
    for code, detail, since_ns in stated:
        known = find(code)
        if known is not None and known.severity is not Severity.INFO:
            one = Affected("Master", detail, since_ns=since_ns)
            groups.say(f"master:{code}", "", known.words.rstrip("."), known.remedy, one, known.severity)
    return sorted(groups.found.values(), key=_rank)


def _rank(group: Group) -> tuple[int, int, int]:
    kind = group.kind.partition(":")[0]
    place = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return group.severity is not Severity.PAGE, place, -group.count


def _of_host(groups: _Groups, entry: Entry) -> None:
    host, shown = entry.host, headline(entry)
    if shown.word in ("retired", "maintenance", "enrolled", "verifying"):
        return  # people have decided so, or it is on its way
    one = Affected(host.name, shown.reason, host.host_id, simulated=host.simulated)
    if shown.word == "quarantined":
        groups.add("quarantined", "host", "in quarantine", QUARANTINE_REMEDY, one)
    elif shown.word == "offline":
        if host.link_state is not LinkState.UNKNOWN:  # this Master has just started
            one = replace(one, since_ns=host.last_seen_ns)
            groups.add("offline", "host", "not answering", OFFLINE_REMEDY, one)
    else:
        for trouble in gravest_first(troubles(entry)):
            _add(groups, entry, trouble)


def _add(groups: _Groups, entry: Entry, trouble: Trouble) -> None:
    host, gpu, known = entry.host, trouble.gpu, trouble.known
    state = None if gpu is None else gpus_shown(entry)[gpu.uuid].state
    one = Affected(
        host.name,
        trouble.words,
        host.host_id,
        None if gpu is None else gpu.uuid,
        None if gpu is None else gpu.index,
        rented=state is Availability.RENTED,
        simulated=host.simulated,
        since_ns=trouble.since_ns,
    )
    severity = Severity.TICKET if known is None else known.severity
    if state is Availability.FAULTY and (known is None or known.effect is Effect.FAULT):
        groups.add("faulty", "GPU", "faulty", trouble.remedy, one, severity)
    elif known in _HOT:
        groups.add("hot", "GPU", "too hot or slowed down", trouble.remedy, one, severity)
    elif known is ConditionCode.AGENT_DISK_FULL:
        groups.add("disk_full", "host", "with a full disk", trouble.remedy, one, severity)
    elif known is not None:
        words = known.words.split(";")[0].rstrip(".")
        groups.say(f"condition:{known.value}", "host" if gpu is None else "GPU", words, trouble.remedy, one, severity)
