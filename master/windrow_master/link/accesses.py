"""Keeps the Accesses behind the trunks: their addresses for agents, their health, and telling one that it is
drained."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from windrow_master.accesses.model import LOAD_FULL
from windrow_master.accesses.news import AccessNews
from windrow_master.link.wire import Trunk
from windrow_master.network.nearest_access import TunnelPlace
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.messages import AccessPoint
from windrow_proto.ports import Clock
from windrow_proto.tunnels import worker_name
from windrow_proto.units import MINUTE, time_text
from windrow_proto.wire_fields import clean_text

DEPARTED_KEPT_NS: Final = 5 * MINUTE
"""An Access that went stays in the map, as draining, for the time of a restart."""
DEPARTED_LISTED_MAX: Final = 256
"""Of those that went since this Master started, operators see the latest so many."""
TOLD_MAX: Final = 5
"""Workers in one sentence."""
EVENT_NAME_MAX: Final = 64
"""Of an event in an Access's log."""


class Accesses:
    """Accesses as the Master sees them. trunks: all that are attached, in the order they came, so that a history can be
    played again; the hub keeps them."""

    def __init__(self, trunks: dict[Trunk, None], clock: Clock, is_drained: Callable[[str], bool]) -> None:
        self.trunks, self._clock, self.is_drained = trunks, clock, is_drained
        self._departed: dict[str, tuple[AccessPoint, int]] = {}
        self._news: Callable[[AccessNews], None] | None = None
        self._left: dict[str, Mapping[str, Any]] = {}

    def came(self, trunk: Trunk) -> None:
        """A worker of this Access is attached."""
        self._departed.pop(trunk.access_id, None)
        self._left.pop(trunk.access_id, None)
        self._tell_news(trunk, is_attached=True)

    def went(self, trunk: Trunk) -> None:
        """A worker's trunk has ended; with the last of them the Access is gone."""
        if any(other.access_id == trunk.access_id for other in self.trunks):
            return
        self._departed[trunk.access_id] = trunk.point(draining=True), self._clock.monotonic_ns()
        facts = {"address": trunk.address, "version": trunk.version, "left_at": time_text(self._clock.wall_ns())}
        self._left[trunk.access_id] = {"access_id": trunk.access_id, "region": trunk.region, **facts}
        if len(self._left) > DEPARTED_LISTED_MAX:
            del self._left[next(iter(self._left))]
        self._tell_news(trunk, is_attached=False)

    def on_news(self, listener: Callable[[AccessNews], None]) -> None:
        """Call `listener` on the loop when an Access has come, or its last worker has gone."""
        self._news = listener

    def _tell_news(self, trunk: Trunk, *, is_attached: bool) -> None:
        if self._news is not None:
            drained = self.is_drained(trunk.access_id)
            hosts = sum(not route.is_second for route in trunk.routes.values())
            self._news(AccessNews(trunk.access_id, trunk.region, is_attached, drained, hosts))

    def forget(self) -> bool:
        """Let those leave the map that went long ago; returns whether there were any."""
        now_ns = self._clock.monotonic_ns()
        gone = [a for a, (_, at_ns) in self._departed.items() if now_ns - at_ns > DEPARTED_KEPT_NS]
        for access_id in gone:
            del self._departed[access_id]
        return bool(gone)

    def tell(self, access_id: str) -> None:
        """Say to every worker of an Access whether it is drained."""
        for trunk in self.trunks:
            if trunk.access_id == access_id:
                trunk.put_drain(self.is_drained(access_id))

    def points(self) -> tuple[AccessPoint, ...]:
        """Return how agents find each Access; those drained and those that went a moment ago are draining."""
        points: dict[str, AccessPoint] = {access_id: point for access_id, (point, _) in self._departed.items()}
        points |= {one.access_id: one.point(draining=self.is_drained(one.access_id)) for one in self.trunks}
        return tuple(points[access_id] for access_id in sorted(points))

    def serving(self) -> tuple[str, ...]:
        """Return the Accesses that take hosts now."""
        return tuple(point.access_id for point in self.points() if not point.draining)

    def regions(self) -> Mapping[str, str]:
        """The region of each, those among them that left a moment ago."""
        return {one.access_id: one.region for one in self.points()}

    def tunnel_places(self) -> tuple[TunnelPlace, ...]:
        """Return the workers for tunnels to hosts that are connected elsewhere: of each Access that takes them, is
        not drained and has capacity, the worker with the least load."""
        found: dict[str, TunnelPlace] = {}
        for one in self.trunks:
            is_able = one.tunnels_of_others and one.tunnel_address and one.tunnel_host_address
            if not is_able or one.load.load_permille >= LOAD_FULL or self.is_drained(one.access_id):
                continue
            named = one.access_id, worker_name(one.access_id, one.worker), one.tunnel_address, one.tunnel_host_address
            place, least = TunnelPlace(*named, one.load.load_permille), found.get(one.access_id)
            if least is None or (place.load_permille, place.worker) < (least.load_permille, least.worker):
                found[one.access_id] = place
        return tuple(found[access_id] for access_id in sorted(found))

    def service_place(self, access_id: str) -> str:
        """DOMAIN:PORT under which services are asked for, of this Access if it has one, else of the first that has;
        every one leads to every service. Empty: there is none. Safe to call from any thread."""
        places = {one.access_id: one.service_place for one in tuple(self.trunks) if one.service_place}
        return places.get(access_id) or (places[min(places)] if places else "")

    def summaries(self) -> list[dict[str, Any]]:
        """Return how each attached Access fares, for operators."""
        found: dict[str, list[Trunk]] = {}
        for trunk in self.trunks:
            found.setdefault(trunk.access_id, []).append(trunk)
        return [Trunk.summary(access_id, trunks) for access_id, trunks in sorted(found.items())]

    def conditions(self) -> Iterable[Stated]:
        """Code, detail and since when, for health: of bugs that Accesses say that they have met."""
        met = [trunk for trunk in self.trunks if trunk.load.HasField("bugs")]
        if met:
            said = [
                f"{trunk.access_id} {trunk.load.bugs.count} times, the last one logged as "
                f"`{clean_text(trunk.load.bugs.last, EVENT_NAME_MAX)}`"
                for trunk in met
            ]
            more = f"; and {len(met) - TOLD_MAX} more" if len(met) > TOLD_MAX else ""
            yield (
                ConditionCode.ACCESS_BUG_MET,
                f"Since their start relays have met a bug: {'; '.join(said[:TOLD_MAX])}{more}. Each ended only what "
                "met it.",
                max(0, min(self._clock.wall_ns(), max(trunk.load.bugs.last_ns for trunk in met))),
            )

    def departed(self) -> list[Mapping[str, Any]]:
        """Those that went since this Master started and are not back: id, region, address, version, when."""
        return [self._left[access_id] for access_id in sorted(self._left)]
