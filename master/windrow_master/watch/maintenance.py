"""Maintenance windows: declared for hosts ahead of time, told to those concerned, kept at their start and their end.

declared ──▶ notice to owners and renters (an event, of which signals.py makes an alert); nothing that would not end
             before it is placed there (`closings`)
start    ──▶ the hosts drain, open alerts about them are silenced, new ones are not told (`quiet_until`)
end      ──▶ the hosts that it drained are active again, unless somebody decided about them meanwhile; what still holds
             is told
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeVar

from windrow_master.clusters import lookup as clusters
from windrow_master.clusters.messages import HostLimit
from windrow_master.clusters.model import Cluster
from windrow_master.fleet.lookup import find_host
from windrow_master.fleet.model import AdminState, Host
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.states import AdminEvent
from windrow_master.fleet.view import Entry
from windrow_master.identity.model import Principal, Role
from windrow_master.loops import when_due
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.engine import silenced_until
from windrow_master.watch.model import OPERATORS, Alert, AlertState, Window
from windrow_master.watch.repository import AlertRepository, WindowRepository
from windrow_master.watch.states import AlertEvent, step
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, MINUTE, SECOND, time_text

T = TypeVar("T")
SPAN_NS_MAX: Final = 30 * DAY
AHEAD_NS_MAX: Final = 90 * DAY
"""A window further ahead would keep work without an end from its hosts for as long."""
HOSTS_MAX: Final = 1_000
WINDOWS_MAX: Final = 100
"""Of one owner, which are not over."""
DECLARED_MAX: Final = 10
"""Of one owner within a minute, also those that were removed: renters are told of each."""
CHANGED_NS: Final = MINUTE
"""Between two changes of a window, of which renters are told."""
NAMED_MAX: Final = 50
"""Hosts among the subjects of an event."""
LABELS: Final = ("region", "tier")
PAUSE_NS: Final = SECOND // 10


def check_span(window: Window, now_ns: int) -> None:
    """Raises InvalidInput, which names the field. The start may lie a minute back: a form takes as long."""
    if window.until_ns <= window.from_ns:
        raise InvalidInput("ends_at: A maintenance window ends after it starts.", subject="ends_at")
    if window.until_ns <= now_ns:
        raise InvalidInput("ends_at: This time is over.", subject="ends_at")
    if window.until_ns - window.from_ns > SPAN_NS_MAX:
        raise InvalidInput("ends_at: A maintenance window lasts at most 30 days.", subject="ends_at")
    if window.started_at_ns is None and window.from_ns < now_ns - MINUTE:
        raise InvalidInput("starts_at: This time is over. Leave it out for now.", subject="starts_at")
    if window.from_ns > now_ns + AHEAD_NS_MAX:
        raise InvalidInput("starts_at: A window is declared at most 90 days ahead.", subject="starts_at")


def check_alone(window: Window, others: Iterable[Window], names: Mapping[str, str]) -> None:
    """Raises Conflict where a host is in another window at the same time. names: of hosts, by id."""
    hosts = set(window.hosts)
    for one in others:
        shared = hosts.intersection(one.hosts)
        is_meanwhile = one.from_ns < window.until_ns and window.from_ns < one.until_ns
        if one.window_id != window.window_id and is_meanwhile and shared:
            name = min(names.get(host, host) for host in shared)
            said = f"{name} is in a maintenance window {span_text(one)} already ({one.window_id})."
            raise Conflict(f"{said} Change that one, or choose another time.", subject=one.window_id)


def span_text(window: Window) -> str:
    """Its times in words."""
    return f"from {time_text(window.from_ns)} until {time_text(window.until_ns)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The leases on some hosts. earliest_ns: when the last of them is over by its duration; None: some have none.
    open_ended: how many have none."""

    hosts: int
    leases: int
    open_ended: int
    earliest_ns: int | None


def planned(hosts: int, leases: Sequence[Cluster], now_ns: int) -> Plan:
    """When nothing runs any more if everything ends by its duration."""
    spans = [(one.started_at_ns or now_ns, one.request.max_duration_ns) for one in leases]
    ends = [began_ns + longest_ns for began_ns, longest_ns in spans if longest_ns is not None]
    open_ended = len(spans) - len(ends)
    return Plan(hosts, len(spans), open_ended, None if open_ended else max([now_ns, *ends]))


# --- what others ask ---


LOUD: Final = ("host.quarantined", "claim.", "disputed.")
"""The beginnings of rules about hosts that say what is not so."""


def quiet_until(uow: UnitOfWork, rule: str, cause: str, audiences: tuple[str, ...]) -> int | None:
    """Until when silences and maintenance windows cover an alert; None: it may be told. That a host lies is no work on
    it, and is told in a window of its owner."""
    now_ns, silence_ns = uow.now_wall_ns, silenced_until(uow, rule, cause, audiences)
    found = [one for one in uow[WindowRepository].open() if one.runs(now_ns) and one.covers(cause)]
    if rule.startswith(LOUD):
        found = [one for one in found if one.owner == OPERATORS]
    ends = [one.until_ns for one in found]
    return max([*ends, *([] if silence_ns is None else [silence_ns])], default=None)


def closings(uow: UnitOfWork, limits: Mapping[HostId, HostLimit]) -> Mapping[HostId, HostLimit]:
    """The limits of hosts, with the next maintenance of each. A placement asks at each request, of ten thousands of
    hosts: what the same windows say is kept."""
    ahead = [one for one in uow[WindowRepository].open() if one.from_ns > uow.now_wall_ns]
    closed = _closed(tuple(_Ahead(one.window_id, one.from_ns, one.hosts) for one in ahead))
    if not limits:
        return closed
    more = {host: replace(one, closes_at_ns=closed.get(host, one).closes_at_ns) for host, one in limits.items()}
    return {**closed, **more}


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A window that has not begun. Its hosts never change, and are not compared."""

    window_id: str
    from_ns: int
    hosts: tuple[str, ...] = field(compare=False)


@lru_cache(maxsize=1)
def _closed(ahead: tuple[_Ahead, ...]) -> Mapping[HostId, HostLimit]:
    """The limits by these windows; of a host in several the first one counts."""
    limits = [(one.hosts, HostLimit(closes_at_ns=one.from_ns)) for one in sorted(ahead, key=lambda one: -one.from_ns)]
    return {HostId(host): limit for hosts, limit in limits for host in hosts}


class MaintenanceService:
    """Maintenance windows of this market."""

    def __init__(self, store: Store, clock: Clock, fleet: FleetService) -> None:
        self._store, self._clock, self._fleet = store, clock, fleet
        self._queue = WorkQueue[str](clock)

    async def run(self) -> None:
        """Begin and end windows at their times, until cancelled."""
        self._queue.add("due")
        await when_due(self.turn, self._queue, PAUSE_NS, "maintenance")

    async def turn(self) -> None:
        """Begin and end what is due."""
        self._queue.take()
        due_ns = await self._store.write(self._step, name="maintenance.turn")
        if due_ns is not None:
            self._queue.add("due", self._clock.monotonic_ns() + max(0, due_ns - self._clock.wall_ns()))

    # --- what people ask ---

    async def open(self, host_id: str | None = None) -> Sequence[Window]:
        """Those that are not over, of one host or of all."""
        found = await self._store.read(lambda uow: uow[WindowRepository].open())
        return [one for one in found if host_id is None or host_id in one.hosts]

    async def plan(self, principal: Principal, named: Sequence[str], scope: Mapping[str, str]) -> Plan:
        """The leases on these hosts, and when they are over. Raises what `add` does."""
        ids = list(self._chosen(principal, named, scope))

        def read(uow: UnitOfWork) -> Plan:
            held = {one.cluster_id: one for host in ids for one in clusters.holding(uow, HostId(host))}
            return planned(len(ids), list(held.values()), uow.now_wall_ns)

        return await self._store.read(read)

    async def add(self, principal: Principal, named: Sequence[str], scope: Mapping[str, str], wanted: Window) -> Window:
        """Declare a window. named: hosts by id or name, and those with all labels of the scope; what else the window
        is without, the caller gives. Raises InvalidInput, NotFound, Conflict, TooMany."""
        names, owner = self._chosen(principal, named, scope), _owner(principal)

        def change(uow: UnitOfWork) -> Window:
            repository, now_ns = uow[WindowRepository], uow.now_wall_ns
            others = repository.open()
            if sum(one.owner == owner for one in others) >= WINDOWS_MAX:
                raise TooMany(f"There are {WINDOWS_MAX} maintenance windows already. Remove one.", subject=owner)
            if repository.declared_since(owner, now_ns - MINUTE) >= DECLARED_MAX:
                raise TooMany(f"You declared {DECLARED_MAX} windows within a minute. Wait one.", subject=owner)
            window = replace(
                wanted, window_id=uow.mint("maintenance"), hosts=tuple(names), owner=owner,
                created_by=principal.actor, created_at_ns=now_ns,
            )  # fmt: skip
            check_span(window, now_ns)
            check_alone(window, others, names)
            repository.add(window)
            self._tell(uow, window, principal.actor, "declared", f"Maintenance {span_text(window)}{_why(window)}")
            return window

        return await self._written(change, "maintenance.add")

    async def set_end(self, principal: Principal, window_id: str, until_ns: int) -> Window:
        """Move the end of a window. Raises InvalidInput, NotFound, Conflict, TooMany."""

        def change(uow: UnitOfWork) -> Window:
            before = _own(uow, principal, window_id)
            last = uow.events.newest(window_id, kind="maintenance.changed", limit=1)
            if last and uow.now_wall_ns - last[0].at_ns < CHANGED_NS:
                raise TooMany("This window was changed within the last minute. Wait one.", subject=window_id)
            window = replace(before, until_ns=until_ns)
            check_span(window, uow.now_wall_ns)
            check_alone(window, uow[WindowRepository].open(), {})
            uow[WindowRepository].save(window)
            for host in self._drained(uow, before):
                self._fleet.hosts.save(uow, replace(host, admin_reason=_reason(window)))
            _let_go(uow, before)
            self._tell(uow, window, principal.actor, "changed", f"It is {span_text(window)} now{_why(window)}")
            return window

        return await self._written(change, "maintenance.change")

    async def remove(self, principal: Principal, window_id: str) -> None:
        """Remove a window, or end it now. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            window = _own(uow, principal, window_id)
            said = "It does not take place." if window.started_at_ns is None else "It ended early."
            self._end(uow, window)
            self._tell(uow, window, principal.actor, "removed", said)

        await self._written(change, "maintenance.remove")

    # --- inside ---

    async def _written(self, change: Callable[[UnitOfWork], T], name: str) -> T:
        found = await self._store.write(change, name=name)
        self._queue.add("due")
        return found

    def _chosen(self, principal: Principal, named: Sequence[str], scope: Mapping[str, str]) -> dict[str, str]:
        """The names of the hosts that are meant, by id."""
        mine = [one for one in self._fleet.view if _decides(principal, one.host)]
        found: dict[str, str] = {}
        for text in named:
            fits = [one.host for one in mine if text in (one.host.host_id, one.host.name)]
            if len(fits) != 1:
                known = f"{len(fits)} hosts are" if fits else "No host that you may decide about is"
                said = f"hosts: {known} named {_shown(text)}. List hosts: windrow host ls"
                raise (Conflict if fits else NotFound)(said, subject="hosts")
            found[fits[0].host_id] = fits[0].name
        if unknown := next((label for label in scope if label not in LABELS), None):
            said = f"scope: There is no label {_shown(unknown)} of hosts. There are: {', '.join(LABELS)}."
            raise InvalidInput(said, subject="scope")
        if scope:
            found |= {one.host.host_id: one.host.name for one in mine if _has(one, scope)}
        if not found:
            said = "No host that you may decide about has these labels." if scope else "Name hosts, or labels of hosts."
            raise InvalidInput(f"hosts: {said}", subject="hosts")
        if len(found) > HOSTS_MAX:
            raise InvalidInput(f"hosts: A window is of at most {HOSTS_MAX:,} hosts.", subject="hosts")
        return found

    def _step(self, uow: UnitOfWork) -> int | None:
        """Begin and end what is due; returns when the next is."""
        repository, now_ns = uow[WindowRepository], uow.now_wall_ns
        for window in repository.open():
            if window.until_ns <= now_ns:
                self._end(uow, window)
            elif window.from_ns <= now_ns and window.started_at_ns is None:
                self._begin(uow, window)
        left = repository.open()
        return min((one.from_ns if one.started_at_ns is None else one.until_ns for one in left), default=None)

    def _begin(self, uow: UnitOfWork, window: Window) -> None:
        hosts = [host for one in window.hosts if (host := find_host(uow, HostId(one))) is not None]
        drained = [host.host_id for host in hosts if host.admin_state is AdminState.ACTIVE]
        for host_id in drained:
            self._fleet.hosts.decide(uow, host_id, AdminEvent.DRAIN, "master", _reason(window))
        uow[WindowRepository].save(replace(window, started_at_ns=uow.now_wall_ns, drained=tuple(drained)))
        for alert in _alerts_of(uow, window):
            if alert.state in (AlertState.FIRING, AlertState.ACKNOWLEDGED):
                after, _ = step(alert, AlertEvent.SILENCE, uow.now_wall_ns, until_ns=window.until_ns)
                uow[AlertRepository].save(after)
                uow[AlertRepository].note(alert.alert_id, uow.now_wall_ns, "master", "silenced", _reason(window))
        self._tell(uow, window, "master", "began", f"Maintenance until {time_text(window.until_ns)} began")

    def _end(self, uow: UnitOfWork, window: Window) -> None:
        for host in self._drained(uow, window):
            said = "its maintenance is over"
            self._fleet.hosts.decide(uow, host.host_id, AdminEvent.ACTIVATE, "master", said, is_sound=False)
        uow[WindowRepository].save(replace(window, ended_at_ns=uow.now_wall_ns))
        _let_go(uow, window)

    def _drained(self, uow: UnitOfWork, window: Window) -> list[Host]:
        """The hosts that it drained, and about which nobody decided since."""
        found = [find_host(uow, HostId(one)) for one in window.drained]
        mark = AdminState.DRAINING, _reason(window)
        return [one for one in found if one is not None and (one.admin_state, one.admin_reason) == mark]

    def _tell(self, uow: UnitOfWork, window: Window, actor: str, kind: str, text: str) -> None:
        """Write an event, which wakes the alerts, too."""
        fields = {"from_ns": str(window.from_ns), "until_ns": str(window.until_ns), "hosts": str(len(window.hosts))}
        uow.audit(actor, f"maintenance.{kind}", window.window_id, window.reason, fields)
        subjects = (window.window_id, *window.hosts[:NAMED_MAX])
        uow.event(f"maintenance.{kind}", subjects, text, fields, actor)


def _owner(principal: Principal) -> str:
    return OPERATORS if Role.OPERATOR in principal.roles else principal.account_id


def _decides(principal: Principal, host: Host) -> bool:
    is_theirs = Role.OPERATOR in principal.roles or host.owner_account == principal.account_id
    return is_theirs and host.admin_state is not AdminState.RETIRED


def _has(entry: Entry, scope: Mapping[str, str]) -> bool:
    tiers = {entry.host.tier, *(slot.tier for slot in entry.slots)}
    return scope.get("region", entry.host.region) == entry.host.region and scope.get("tier", entry.host.tier) in tiers


def _own(uow: UnitOfWork, principal: Principal, window_id: str) -> Window:
    found = uow[WindowRepository].get(window_id)
    if found is None or _owner(principal) not in (OPERATORS, found.owner):
        said = "There is no such maintenance window of yours. List them: windrow maintenance ls"
        raise NotFound(said, subject=window_id[:64])
    if found.ended_at_ns is not None:
        raise Conflict("This maintenance window is over.", subject=window_id[:64])
    return found


def _reason(window: Window) -> str:
    """What is said of a host while it lasts; by it the end knows that nobody decided about the host meanwhile."""
    return f"maintenance until {time_text(window.until_ns)}{_why(window)}"


def _why(window: Window) -> str:
    return f": {window.reason}" if window.reason else ""


def _shown(text: str) -> str:
    return repr(text[:40].encode("ascii", "backslashreplace").decode())


def _alerts_of(uow: UnitOfWork, window: Window) -> list[Alert]:
    return [one for one in uow[AlertRepository].open_alerts() if window.covers(one.cause)]


def _let_go(uow: UnitOfWork, window: Window) -> None:
    """End the silence of its alerts now; another window, or the changed one, may cover them."""
    for alert in _alerts_of(uow, window):
        if alert.state is AlertState.SILENCED and alert.silenced_until_ns == window.until_ns:
            uow[AlertRepository].save(replace(alert, silenced_until_ns=uow.now_wall_ns))
