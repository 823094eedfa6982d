"""People's own alert rules: checks them, and judges events and readings by them. Pure.

A rule of an event fires when `threshold` such events came within its duration. A rule of a metric fires when the value
compares so for its whole duration.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from windrow_master.fleet.model import Host
from windrow_master.store.model import EventRow
from windrow_master.watch.event_kinds import KINDS
from windrow_master.watch.model import OPERATORS, Raise
from windrow_master.watch.rules import MOMENT_NS, PAGE_AGAIN_NS
from windrow_proto.conditions import Severity
from windrow_proto.errors import InvalidInput
from windrow_proto.metrics import METRICS, Metric
from windrow_proto.metrics import Scope as MetricScope
from windrow_proto.units import DAY, SECOND

RULES_MAX: Final = 20
"""Of one owner."""
COUNT_MAX: Final = 100
"""Events that one rule counts."""
MANY: Final = 10
"""Causes of one rule at once, such as hosts: one alert is enough."""
DURATION_NS_MAX: Final = DAY
EVENT_SCOPES: Final = ("host", "cluster", "job", "access", "account")
"""Labels of an event: an id among its subjects."""
METRIC_SCOPES: Final = ("host", "gpu", "tier", "region")
"""Labels of a metric."""
_OF_HOSTS: Final = ("agent", "condition", "gpu", "host", "inventory", "slot")
"""How the kinds of events begin that are about a host, whoever's work they concern."""
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
GAUGES: Final[Mapping[str, Metric]] = {
    metric.name: metric for metric in METRICS if metric.scope is not MetricScope.WORKLOAD and not metric.counter
}
"""The metrics that rules may name: values of now, of hosts and GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRule:
    """One rule. owner: an audience, which is told. event_kind or metric: exactly one. scope: labels and the values that
    they must have. threshold: of an event the count; of a metric in its unit."""

    rule_id: str
    owner: str
    name: str
    event_kind: str | None = None
    metric: str | None = None
    scope: Mapping[str, str]
    comparison: str = ">="
    threshold: float = 1.0
    duration_ns: int
    severity: Severity
    created_at_ns: int
    created_by: str

    def raised(self, cause: str, subject: str, name: str, text: str, *, simulated: bool = False) -> Raise:
        """The signal that its owner is told of."""
        return Raise(
            rule=self.rule_id, severity=self.severity, title=f"{self.name}: {name}", remedy="", cause=cause,
            subject=subject, name=name, text=text, audiences=(self.owner,),
            lasts_ns=MOMENT_NS if self.event_kind is not None else None,
            escalate_ns=PAGE_AGAIN_NS if self.severity is Severity.PAGE else None, simulated=simulated,
            wider=self.rule_id, wider_name="many at once", wider_least=MANY,
        )  # fmt: skip

    def holds(self, value: float) -> bool:
        """Return whether a reading compares as the rule says."""
        return COMPARISONS[self.comparison](value, self.threshold)


def check(rule: OwnRule) -> None:
    """Raises InvalidInput, which names the field, for a rule that could never fire or means nothing."""
    if (rule.event_kind is None) == (rule.metric is None):
        raise InvalidInput("metric: Give either an event's kind or a metric.", subject="metric")
    labels = EVENT_SCOPES if rule.metric is None else METRIC_SCOPES
    if not rule.name.isprintable():
        raise InvalidInput("name: A name is one line.", subject="name")
    if unknown := next((label for label in rule.scope if label not in labels), None):
        said = f"scope: There is no label {shown(unknown)} here.{near(unknown, labels)}"
        raise InvalidInput(f"{said} There are: {', '.join(labels)}.", subject="scope")
    if rule.severity is Severity.INFO:
        raise InvalidInput("severity: It is page or ticket; nobody is told of info.", subject="severity")
    if not SECOND <= rule.duration_ns <= DURATION_NS_MAX:
        raise InvalidInput("duration_s: It is between a second and a day.", subject="duration_s")
    if rule.metric is not None:
        _check_metric(rule, rule.metric)
    elif rule.comparison != ">=" or not 1 <= rule.threshold <= COUNT_MAX or rule.threshold != int(rule.threshold):
        said = f"threshold: Of events it is a count from 1 to {COUNT_MAX}, and is compared by >=."
        raise InvalidInput(said, subject="threshold")
    elif rule.event_kind is not None:
        _check_event(rule, rule.event_kind)


def _check_event(rule: OwnRule, kind: str) -> None:
    if kind.startswith("alert."):
        raise InvalidInput("event: An alert is no cause of another one.", subject="event")
    if kind not in KINDS:
        alike = sorted(one for one in KINDS if one.startswith(kind.partition(".")[0] + "."))
        there_are = f" There are: {', '.join(alike)}." if alike else ""
        raise InvalidInput(f"event: There are no events {shown(kind)}.{near(kind, KINDS)}{there_are}", subject="event")
    for label, value in rule.scope.items():
        if label != "host" and not value.startswith(f"{label}_"):
            said = f"scope: Give the id of the {label}, which begins with {label}_, in place of {shown(value)}."
            raise InvalidInput(said, subject="scope")


def shown(text: str) -> str:
    """What somebody wrote, for a message: quoted, cut, in ASCII."""
    return repr(text[:40].encode("ascii", "backslashreplace").decode())


def near(text: str, known: Collection[str]) -> str:
    """A question whether the nearest of the known ones is meant; empty: none is near."""
    found = get_close_matches(text[:200], known, n=1)
    return f" Do you mean {found[0]}?" if found else ""


def _check_metric(rule: OwnRule, name: str) -> None:
    if name not in GAUGES:
        said = f"metric: There is no metric {shown(name)} that a rule can compare.{near(name, GAUGES)}"
        said += " docs/metrics.md lists them."
        raise InvalidInput(said, subject="metric")
    if rule.comparison not in COMPARISONS:
        raise InvalidInput(f"comparison: It is one of {' '.join(COMPARISONS)}.", subject="comparison")
    if "gpu" in rule.scope and GAUGES[name].scope is MetricScope.HOST:
        raise InvalidInput(f"scope: {name} is a host's metric: it has no GPU.", subject="scope")


def fits_event(rule: OwnRule, row: EventRow, concerned: frozenset[str]) -> bool:
    """Return whether an event counts for a rule. concerned: the accounts that it is about, which may see it."""
    is_in = all(value in row.subjects for value in rule.scope.values())
    return row.kind == rule.event_kind and is_in and (rule.owner == OPERATORS or rule.owner in concerned)


def cause_of(rule: OwnRule, row: EventRow) -> str:
    """What one event is about: the thing of which its kind is, or else a job, a cluster, a host. Of several events that
    are counted together, the first label of the rule, or its owner."""
    if rule.threshold > 1:
        return next(iter(rule.scope.values()), rule.owner)
    thing = row.kind.partition(".")[0]
    things = (thing, *(("host",) if thing in _OF_HOSTS else ()), "job", "cluster", "host", "access")
    found = (one for prefix in things for one in row.subjects if one.startswith(f"{prefix}_"))
    return next(found, next(iter(row.subjects), row.kind))


def is_enough(rule: OwnRule, times_ns: Sequence[int], now_ns: int) -> bool:
    """Return whether so many events came within the rule's duration."""
    return sum(now_ns - rule.duration_ns < at_ns <= now_ns for at_ns in times_ns) >= rule.threshold


def devices(rule: OwnRule, host: Host, tiers: Mapping[str, str]) -> list[str]:
    """The devices of a host that a metric's rule is about: the ids of GPUs, or "" for the host itself. tiers: of each
    GPU. An account's rule is about its own hosts."""
    if rule.owner not in (OPERATORS, host.owner_account) or rule.metric is None:
        return []
    wanted = rule.scope
    if wanted.get("host", host.host_id) not in (host.host_id, host.name):
        return []
    if wanted.get("region", host.region) != host.region:
        return []
    if GAUGES[rule.metric].scope is MetricScope.HOST:
        return [""] if wanted.get("tier", host.tier) == host.tier else []
    gpus = [str(gpu.uuid) for gpu in host.inventory.gpus] if host.inventory is not None else []
    named = [one for one in gpus if wanted.get("gpu", one) == one]
    return [one for one in named if "tier" not in wanted or tiers.get(one, "") == wanted["tier"]]


@dataclass(frozen=True, slots=True)
class Firing:
    """A span in which a rule would have fired. until_ns: None: it still would."""

    name: str
    from_ns: int
    until_ns: int | None


def replay_events(rule: OwnRule, rows: Iterable[EventRow], now_ns: int) -> list[Firing]:
    """The spans in which a rule would have fired. rows: those that fit, the oldest first."""
    found: list[Firing] = []
    span_of: dict[str, int] = {}
    times: list[int] = []
    first = 0
    for row in rows:
        times.append(row.at_ns)
        while times[first] <= row.at_ns - rule.duration_ns:
            first += 1
        if len(times) - first < rule.threshold:
            continue
        until_ns, place = row.at_ns + MOMENT_NS, span_of.get(cause := cause_of(rule, row))
        if place is not None and (found[place].until_ns or 0) >= row.at_ns:
            found[place] = replace(found[place], until_ns=until_ns)
        else:
            span_of[cause] = len(found)
            found.append(Firing(row.text, row.at_ns, until_ns))
    return [replace(one, until_ns=None) if (one.until_ns or 0) > now_ns else one for one in found]


def replay_metric(rule: OwnRule, name: str, points: Iterable[tuple[int, float | None]], step_ns: int) -> list[Firing]:
    """The same of one series. points: the start of each step in wall nanoseconds, and the mean; None breaks nothing."""
    found: list[Firing] = []
    since_ns: int | None = None
    last_ns = 0
    for at_ns, value in points:
        if value is None:
            continue
        last_ns = at_ns + step_ns
        if rule.holds(value):
            since_ns = at_ns if since_ns is None else since_ns
        elif since_ns is not None:
            if at_ns - since_ns >= rule.duration_ns:
                found.append(Firing(name, since_ns + rule.duration_ns, at_ns))
            since_ns = None
    if since_ns is not None and last_ns - since_ns >= rule.duration_ns:
        found.append(Firing(name, since_ns + rule.duration_ns, None))
    return found
