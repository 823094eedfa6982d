"""What has no events: what holds is looked at every few seconds, and compared with what was told. Used on the loop.

A source says what it raises now, and which of the earlier ones still hold, though they could not be raised anew. In
the memory of one Master: at its start what is open says what was told, and waits such as idle times begin anew.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_master.fleet.states import SLOT_HELD
from windrow_master.fleet.view import Entry, FleetView, once_per_entry
from windrow_master.telemetry.live import LiveView
from windrow_master.telemetry.model import NS_PER_MS, SeriesKey, SeriesQuery
from windrow_master.watch.model import MASTER, OPERATORS, Clear, Raise, Signal
from windrow_master.watch.own_rules import GAUGES, OwnRule, devices, near, shown
from windrow_master.watch.rules import IDLE_NS, IDLE_RATIO, LEVELS, RULES
from windrow_proto.conditions import Stated
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import METRICS
from windrow_proto.units import MINUTE, SECOND

Key = tuple[str, str, str]
"""Rule, cause, subject."""
FRESH_NS: Final = 2 * MINUTE
"""A reading that is older says nothing of now."""
HOSTS_MAX: Final = 2_000
"""Hosts that one own rule looks at; a rule for more names a tier or a region."""
UTILISATION: Final = next(metric.number for metric in METRICS if metric.name == "gpu_utilization_ratio")
_OF_IDLE: Final = frozenset({UTILISATION})


@dataclass(slots=True)
class Level:
    """What a source found: what is raised, and the keys of what may stay as it is."""

    raises: dict[Key, Raise] = field(default_factory=dict)
    stays: set[Key] = field(default_factory=set)

    def add(self, said: Raise) -> None:
        """This holds."""
        self.raises[key_of(said)] = said


def key_of(said: Raise) -> Key:
    """What tells one signal from another."""
    return said.rule, said.cause, said.subject


def changes(told: Collection[Key], level: Level) -> list[Signal]:
    """The signals by which what was told becomes what holds."""
    new = [said for key, said in level.raises.items() if key not in told]
    over = [key for key in sorted(told) if key not in level.raises and key not in level.stays]
    return [*new, *(Clear(cause, rule, subject) for rule, cause, subject in over)]


def of_master(level: Level, stated: Iterable[Stated]) -> None:
    """The conditions of the Master and its Accesses."""
    for code, detail, _ in stated:
        rule = RULES.get(code.value)
        if rule is not None:
            named = {"title": rule.title, "cause": MASTER, "subject": MASTER, "name": "Master"}
            level.add(rule.raised(**named, text=detail, audiences=(OPERATORS,)))


class Waits:
    """Since when something holds, for what has to hold for a while."""

    def __init__(self) -> None:
        self._since_ns: dict[Key, int] = {}
        self._seen: set[Key] = set()

    def held_ns(self, key: Key, now_ns: int) -> int:
        """It holds now; returns for how long, since it was first asked."""
        self._seen.add(key)
        return max(0, now_ns - self._since_ns.setdefault(key, now_ns))

    def end_look(self) -> None:
        """Forget what did not hold in this look."""
        self._since_ns = {key: at_ns for key, at_ns in self._since_ns.items() if key in self._seen}
        self._seen = set()


def of_idle(level: Level, waits: Waits, view: FleetView, live: LiveView, now_ns: int) -> None:
    """The clusters of which no GPU is used. A host of which nothing is read changes nothing."""
    used: set[str] = set()
    idle: dict[str, list[tuple[Entry, str]]] = {}
    for entry in view:
        held = [
            (slot, str(slot.holder))
            for slot in entry.slots
            if slot.state in SLOT_HELD and slot.gpu_uuid and slot.holder
        ]
        reading = live.peek(entry.host.host_id, _OF_IDLE) if held else None
        for slot, holder in held:
            value = None
            if reading is not None and now_ns - reading.at_ns < FRESH_NS:
                value = reading.get(str(slot.card or slot.gpu_uuid), UTILISATION)
            if value is None or value > IDLE_RATIO:
                used.add(holder)
            else:
                idle.setdefault(holder, []).append((entry, str(slot.gpu_uuid)))
            if value is None:
                level.stays.add(("lease.idle", holder, holder))
    for cluster_id, gpus in idle.items():
        key = ("lease.idle", cluster_id, cluster_id)
        if cluster_id in used:
            continue
        level.stays.add(key)
        held_ns = waits.held_ns(key, now_ns)
        if held_ns >= IDLE_NS:
            count = f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''}"
            text = f"{count} on {gpus[0][0].host.name} and rented, unused for {held_ns // MINUTE} min"
            level.add(
                RULES["lease.idle"].raised(
                    cause=cluster_id, subject=cluster_id, name=cluster_id, text=text, audiences=(),
                    simulated=gpus[0][0].host.simulated,
                )
            )  # fmt: skip


def of_rules(
    level: Level, waits: Waits, rules: Iterable[OwnRule], view: FleetView, live: LiveView, now_ns: int
) -> None:
    """What holds by people's own rules of metrics. The same hosts are read once for all of the rules."""
    every = [(rule, GAUGES[rule.metric].number) for rule in rules if rule.metric is not None]
    metrics, looked = frozenset(number for _, number in every), Counter[str]()
    for entry in view if every else ():
        some = [one for one in every if looked[one[0].rule_id] < HOSTS_MAX]
        found = [(one, devices(one[0], entry.host, _tiers(entry))) for one in some]
        if not any(its for _, its in found):
            continue
        reading = live.peek(entry.host.host_id, metrics)
        if reading is not None and now_ns - reading.at_ns >= FRESH_NS:
            reading = None
        for (rule, number), its in found:
            looked[rule.rule_id] += bool(its)
            for device in its:
                value = None if reading is None else reading.get(device, number)
                key = (rule.rule_id, str(entry.host.host_id), device or str(entry.host.host_id))
                if value is None:
                    level.stays.add(key)
                elif rule.holds(value):
                    level.stays.add(key)
                    if waits.held_ns(key, now_ns) >= rule.duration_ns:
                        gpu = entry.host.gpu(GpuUuid(device)) if device else None
                        name = entry.host.name + (f", GPU {gpu.index}" if gpu is not None else "")
                        text = f"{rule.metric} is {value:g}: {rule.comparison} {rule.threshold:g}"
                        level.add(rule.raised(key[1], key[2], name, text, simulated=entry.host.simulated))


def every_ns(rules: Iterable[OwnRule]) -> int:
    """The time between two looks at what these rules are about."""
    return SOON_EVERY_NS if any(rule.duration_ns < MINUTE for rule in rules) else SLOW_EVERY_NS


def series_of(rule: OwnRule, view: FleetView, most: int) -> tuple[tuple[SeriesKey, ...], dict[SeriesKey, str], bool]:
    """The series that a rule of a metric is about, at most so many, with their names; whether these are all."""
    found: dict[SeriesKey, str] = {}
    assert rule.metric is not None, "the caller knows"
    number = GAUGES[rule.metric].number
    for entry in view:
        for device in devices(rule, entry.host, _tiers(entry)):
            if len(found) == most:
                return tuple(found), found, False
            found[SeriesKey(entry.host.host_id, device, number)] = f"{entry.host.name} {device}".rstrip()
    return tuple(found), found, True


def named(rule: OwnRule, view: FleetView) -> OwnRule:
    """The rule with the id of a host in place of its name, where it is about events. Raises InvalidInput where a label
    fits nothing that there is now, such as a name with a typing error."""
    mine = [one for one in view if rule.metric is None or rule.owner in (OPERATORS, one.host.owner_account)]
    scope = dict(rule.scope)
    for label, value in rule.scope.items() if rule.metric is not None else ():
        _check_label(label, value, {one for entry in mine for one in _labels(entry)[label]})
    if rule.metric is None and "host" in scope:
        hosts = {text: one.host.host_id for one in mine for text in (one.host.name, one.host.host_id)}
        _check_label("host", scope["host"], hosts)
        scope["host"] = hosts[scope["host"]]
    return replace(rule, scope=scope)


def _check_label(label: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        said = f"scope: There is no {label} {shown(value)} that this rule can be about.{near(value, known)}"
        raise InvalidInput(said, subject="scope")


def _labels(entry: Entry) -> Mapping[str, Collection[str]]:
    host, tiers = entry.host, _tiers(entry)
    gpus = [str(gpu.uuid) for gpu in host.inventory.gpus] if host.inventory is not None else []
    return {"host": (host.host_id, host.name), "gpu": gpus, "tier": (host.tier, *tiers.values()),
            "region": (host.region,)}  # fmt: skip


def query_of(keys: tuple[SeriesKey, ...], from_ns: int, to_ns: int, step_ns: int) -> SeriesQuery:
    """A question for these series; the ends are whole steps."""
    step_ms = step_ns // NS_PER_MS
    return SeriesQuery(keys, from_ns // step_ns * step_ms, to_ns // step_ns * step_ms, step_ms)


@once_per_entry
def _tiers(entry: Entry) -> dict[str, str]:
    return {str(slot.gpu_uuid): slot.tier for slot in entry.slots if slot.gpu_uuid is not None}


def rules_looked_at(own: Iterable[OwnRule]) -> tuple[str, ...]:
    """The codes of all rules that are levels."""
    return (*LEVELS, *(rule.rule_id for rule in own if rule.metric is not None))


EVERY_NS: Final = 2 * SECOND
"""Between two looks at the Master's own conditions."""
SLOW_EVERY_NS: Final = 30 * SECOND
"""Between two looks at readings for own rules, each of which reads many hosts."""
SOON_EVERY_NS: Final = 15 * SECOND
"""The same while a rule fires after less than a minute."""
IDLE_EVERY_NS: Final = MINUTE
