"""Tracks in memory when each host was last heard and through which Access, and collects the changes to write down.

Used on the loop only. Nothing here touches the store: the fleet's service drains `changes` into one write.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_master.fleet import liveness
from windrow_master.fleet.liveness import Breaker, Presence
from windrow_master.fleet.model import Host, LinkState
from windrow_master.fleet.states import LinkEvent
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Heartbeat
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

CLOCK_SKEW_NS: Final = 5 * SECOND
ASK_AGAIN_NS: Final = 60 * SECOND
"""Between two questions for the same thing, should a host not answer as hoped."""
MOVES_MIN: Final = 64
MOVES_TURNS: Final = 10
"""Of hosts that came another way and are otherwise as they were, so many are written down in one turn, or a tenth of
all: what a move takes of the Master, the hosts of a dead Access want for the way back."""


@dataclass(frozen=True, slots=True)
class Route:
    """Through what a host is connected now."""

    access_id: str
    region: str
    address: str
    boot_id: BootId


@dataclass(frozen=True, slots=True)
class Live:
    """The live facts of a connected host that are not worth a row. rtts_ns: to each Access that it has measured;
    is_whole: see Change."""

    presence: Presence
    route: Route | None = None
    is_open: bool = False
    last_seen_ns: int | None = None
    rtt_ns: int | None = None
    rtts_ns: Mapping[str, int] = field(default_factory=dict)
    spool_bytes: int = 0
    sampling_age_ns: int | None = None
    conditions: tuple[str, ...] | None = None
    is_whole: bool = True
    observed_digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of one host to write down. is_whole: the conditions are all that there are; False: its agent has
    just started, and has not looked at its runtimes yet."""

    host_id: HostId
    event: LinkEvent | None = None
    route: Route | None = None
    conditions: tuple[str, ...] | None = None
    seen_ns: int | None = None
    is_whole: bool = True

    @property
    def is_move(self) -> bool:
        """True if it says nothing but the way by which the host is connected."""
        return self.event is None and self.conditions is None

    def merged(self, newer: "Change") -> "Change":
        """Both, the newer one where they differ."""
        return Change(
            self.host_id,
            newer.event or self.event,
            newer.route or self.route,
            self.conditions if newer.conditions is None else newer.conditions,
            newer.seen_ns or self.seen_ns,
            self.is_whole if newer.conditions is None else newer.is_whole,
        )


class PresenceBook:
    """Presence of every host since this Master started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        self._hosts: dict[HostId, Live] = {}
        self._changes: dict[HostId, Change] = {}
        self.breaker = Breaker()
        self._listeners: list[Callable[[HostId], None]] = []

    def on_return(self, listener: Callable[[HostId], None]) -> None:
        """Call `listener` whenever a host is heard that was not online."""
        self._listeners.append(listener)

    def learn(self, host: Host) -> None:
        """A host as its row says, where nothing newer is known."""
        if host.host_id not in self._hosts:
            presence = Presence(host.host_id, host.link_state, host.access_id)
            route = Route(host.access_id, host.region, host.address, host.boot_id) if host.boot_id else None
            self._hosts[host.host_id] = Live(presence, route, last_seen_ns=host.last_seen_ns)

    def get(self, host_id: HostId) -> Live | None:
        """Return the live facts of one host."""
        return self._hosts.get(host_id)

    def opened(self, host_id: HostId, route: Route) -> None:
        """A proven hello came through this route."""
        live = self._hosts.get(host_id) or Live(Presence(host_id, LinkState.UNSEEN))
        if live.route != route:
            self._note(Change(host_id, route=route))
        self._hosts[host_id] = replace(live, route=route, is_open=True)

    def closed(self, host_id: HostId, boot_id: BootId, access_id: str) -> None:
        """That route is gone; no verdict, since the agent may be on its way. A newer route is left alone."""
        live = self._hosts.get(host_id)
        if live is None or live.route is None:
            return
        if (live.route.boot_id, live.route.access_id) == (boot_id, access_id):
            self._hosts[host_id] = replace(live, is_open=False)

    def heard(self, host_id: HostId, heartbeat: Heartbeat) -> None:
        """A proven heartbeat."""
        live = self._hosts.get(host_id)
        if live is None or live.route is None:
            return
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        before = live.presence
        conditions = tuple(heartbeat.conditions)
        if abs(heartbeat.wall_ns - wall_ns) > CLOCK_SKEW_NS:
            conditions = (*conditions, ConditionCode.CLOCK_SKEW.value)
        if before.link is not LinkState.ONLINE:
            self._note(Change(host_id, event=LinkEvent.HEARD, seen_ns=wall_ns))
            for listener in self._listeners:
                listener(host_id)
        is_whole = bool(heartbeat.inventory_hash)  # an agent makes its inventory when it has looked
        if (live.conditions, live.is_whole) != (conditions, is_whole):
            self._note(Change(host_id, conditions=conditions, is_whole=is_whole))
        self._hosts[host_id] = Live(
            presence=liveness.heard(before, live.route.access_id, now_ns),
            route=live.route,
            is_open=live.is_open,
            last_seen_ns=wall_ns,
            rtt_ns=heartbeat.access_rtt_ns if heartbeat.access_rtt_ns >= 0 else None,
            rtts_ns=dict(heartbeat.rtts) or live.rtts_ns,  # told where it has changed
            spool_bytes=heartbeat.spool_bytes,
            sampling_age_ns=heartbeat.sampling_age_ns if heartbeat.sampling_age_ns >= 0 else None,
            conditions=conditions,
            is_whole=is_whole,
            observed_digest=heartbeat.observed_digest,
        )

    def judge(self, interval_ns: int) -> None:
        """Pass the verdicts that are due now."""
        now_ns = self._clock.monotonic_ns()
        presences = [live.presence for live in self._hosts.values()]
        if not any(liveness.is_quiet(one, interval_ns=interval_ns, now_ns=now_ns) for one in presences):
            return  # nearly always, and asked each second
        self.breaker = liveness.trip(self.breaker, presences, interval_ns=interval_ns, now_ns=now_ns)
        for host_id, live in self._hosts.items():
            event = liveness.verdict(
                live.presence,
                interval_ns=interval_ns,
                started_ns=self._started_ns,
                now_ns=now_ns,
                breaker=self.breaker,
            )
            if event is not None:
                link = LinkState.LOST if event is LinkEvent.SILENT_LONG else LinkState.SUSPECT
                self._hosts[host_id] = replace(live, presence=replace(live.presence, link=link))
                self._note(Change(host_id, event=event, seen_ns=live.last_seen_ns))

    def leaving(self, host_id: HostId) -> None:
        """This host said that it will be gone: its silence is not the network's."""
        live = self._hosts.get(host_id)
        if live is not None:
            self._hosts[host_id] = replace(live, presence=replace(live.presence, is_leaving=True))

    def gone(self, host_id: HostId) -> None:
        """Its provider says that this host has ended; written down already."""
        live = self._hosts.get(host_id)
        if live is not None:
            self._changes.pop(host_id, None)
            self._hosts[host_id] = replace(live, presence=replace(live.presence, link=LinkState.LOST), is_open=False)

    def connected(self) -> frozenset[HostId]:
        """Hosts with an open route."""
        return frozenset(host_id for host_id, live in self._hosts.items() if live.is_open)

    def measured(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """The region of each host that is connected, and its round trips in nanoseconds by Access."""
        for live in self._hosts.values():
            if live.is_open and live.route is not None:
                yield live.route.region, live.rtts_ns

    def take_changes(self) -> tuple[Change, ...]:
        """Return the changes to write down now; the caller gives back (`put_back`) what it could not write."""
        moves = [change for change in self._changes.values() if change.is_move]
        later = moves[max(MOVES_MIN, len(self._hosts) // MOVES_TURNS) :]
        waiting = {change.host_id: change for change in later}
        changes = tuple(change for host_id, change in self._changes.items() if host_id not in waiting)
        self._changes = waiting
        return changes

    def put_back(self, changes: tuple[Change, ...]) -> None:
        """These were not written; newer ones go first."""
        for change in changes:
            newer = self._changes.get(change.host_id)
            self._changes[change.host_id] = change if newer is None else change.merged(newer)

    @property
    def has_changes(self) -> bool:
        """True if there is anything to write down."""
        return bool(self._changes)

    def _note(self, change: Change) -> None:
        before = self._changes.get(change.host_id)
        self._changes[change.host_id] = change if before is None else before.merged(change)
