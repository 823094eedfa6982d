"""Gangs: all members at once or none, in the smallest domain that holds them. Pure.

The domains, smallest first: one host, an NVLink island, a network, a site, a region, and anywhere if that will do.
How many members each host can take is counted over all hosts at one moment, so that nothing is held while it is looked
for and two gangs never wait for each other: of two that need the same hosts the first takes all of them, and the other
is refused and holds none.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.model import MILLI, Refusal, Request, Take
from windrow_master.placement.engine.score import compare, shuffled
from windrow_master.placement.engine.state import HASH, LEFT, SCOPES, Fleet

if TYPE_CHECKING:
    from windrow_master.placement.engine.plan import Engine

Ints = NDArray[np.int64]
DOMAINS: Final = ("host", *SCOPES, "anywhere")
SCORED_MAX: Final = 512
"""Hosts of a domain that are scored: the tightest ones, at least twice the members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Members that run together: each asks for the same. widest: the largest domain that will do, of DOMAINS. is_apart:
    each on a host of its own; else several may share one. Raises ValueError."""

    member: Request
    members: int
    widest: str = "region"
    is_apart: bool = True

    def __post_init__(self) -> None:
        if self.members < 1:
            raise ValueError(f"a gang has at least one member, not {self.members}")
        if self.widest not in DOMAINS:
            raise ValueError(f"a domain is one of {', '.join(DOMAINS)}, not {self.widest!r}")


@dataclass(frozen=True, slots=True)
class Member:
    """The place of one member. island, network: its own domains, which the launcher is told."""

    host_id: str
    cards: tuple[int, ...]
    island: str | None
    network: str | None


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """A gang fits: the kind of domain and its name (of a host its id; anywhere: empty), and a place for each member.
    Members of one island, network and host are beside each other."""

    domain: str
    name: str
    members: tuple[Member, ...]
    version: int
    gang: Gang

    def takes(self, lease: str) -> tuple[Take, ...]:
        """The deltas that carry it out; member n holds the lease `LEASE/n`."""
        asked = self.gang.member
        return tuple(
            Take(
                host_id=one.host_id,
                lease=f"{lease}/{rank}",
                cpu=asked.cpu,
                memory=asked.memory,
                cards=one.cards,
                milli=asked.milli if one.cards else 0,
            )
            for rank, one in enumerate(self.members)
        )


def plan_gang(engine: "Engine", gang: Gang) -> GangPlacement | Refusal:
    """Find all members a place, or say why not. O(hosts): some 2 ms at 100,000."""
    fleet, asked = engine.fleet, gang.member
    hosts = engine.scan(asked)
    room = members_of(fleet, asked, hosts)
    if gang.is_apart:
        room = np.minimum(room, 1)
    widest = DOMAINS.index(gang.widest)
    if (not gang.is_apart or gang.members == 1) and len(hosts):
        enough = hosts[room >= gang.members]
        if len(enough):
            best = compare(fleet, engine.tables, engine.weights, asked, enough[:SCORED_MAX])
            return _placed(engine, gang, "host", np.array([best.hosts[best.best]]))
    for scope in SCOPES[:widest]:
        found = _in_scope(engine, gang, hosts, room, scope)
        if found is not None:
            return _placed(engine, gang, scope, found)
    if gang.widest == "anywhere" and int(room.sum()) >= gang.members:
        return _placed(engine, gang, "anywhere", _chosen(engine, gang, hosts, room))
    most = int(room.sum())
    if most < gang.members:
        return engine.refusal(asked, {"gang": gang.members - most})
    return engine.refusal(asked, {f"no_{gang.widest}": gang.members})


def members_of(fleet: Fleet, asked: Request, hosts: Ints) -> Ints:
    """How many members each of these hosts can take, by cards, processors, memory and works."""
    columns = fleet.columns
    room = columns["works_left"][hosts].astype(np.int64)
    if asked.cpu:
        room = np.minimum(room, columns["cpu"][hosts] // asked.cpu)
    if asked.memory:
        room = np.minimum(room, columns["memory"][hosts] // asked.memory)
    if asked.is_share:
        room = np.minimum(room, (np.maximum(fleet.rows[hosts, LEFT:], 0) // asked.milli).sum(1))
    elif asked.gpus:
        room = np.minimum(room, columns["whole"][hosts] // asked.gpus)
    return room


def _in_scope(engine: "Engine", gang: Gang, hosts: Ints, room: Ints, scope: str) -> Ints | None:
    """The hosts of the domain of this kind that holds all members with the least room to spare."""
    of = engine.fleet.columns[f"{scope}_of"][hosts]
    inside = of >= 0
    if not inside.any():
        return None
    sums = np.bincount(of[inside], weights=room[inside]).astype(np.int64)
    enough = np.flatnonzero(sums >= gang.members)
    if not len(enough):
        return None
    tightest = enough[sums[enough] == sums[enough].min()]
    if len(tightest) > 1:  # the domain with the first host in the order of the request
        members = np.flatnonzero(np.isin(of, tightest))
        first = members[shuffled(engine.fleet.rows[hosts[members], HASH], gang.member.seed).argmin()]
        tightest = of[first : first + 1]
    chosen = of == tightest[0]
    return _chosen(engine, gang, hosts[chosen], room[chosen])


def _chosen(engine: "Engine", gang: Gang, hosts: Ints, room: Ints) -> Ints:
    """Hosts for all members, the fewest where they may share: a host comes as often as it has members."""
    columns = engine.fleet.columns
    kept = max(SCORED_MAX, 2 * gang.members)
    spare = columns["whole"][hosts].astype(np.int64) if gang.is_apart else -room
    if len(hosts) > kept:
        near = np.lexsort((shuffled(engine.fleet.rows[hosts, HASH], gang.member.seed), spare))[:kept]
        hosts, room, spare = hosts[near], room[near], spare[near]
    scores = compare(engine.fleet, engine.tables, engine.weights, gang.member, hosts).scores
    ties = shuffled(engine.fleet.rows[hosts, HASH], gang.member.seed)
    order = np.lexsort((ties, -scores) if gang.is_apart else (ties, -scores, -room))
    found = np.repeat(hosts[order], room[order])[: gang.members]
    return found[np.lexsort((columns["network_of"][found], columns["island_of"][found]))]


def _placed(engine: "Engine", gang: Gang, domain: str, hosts: Ints) -> GangPlacement:
    fleet, asked = engine.fleet, gang.member
    if domain == "host":
        hosts = np.repeat(hosts, gang.members)
    taken: dict[int, list[int]] = {}
    members = []
    for at in hosts.tolist():
        host = fleet.hosts[at]
        assert host is not None
        left = taken.setdefault(at, list(fleet.left[at]))
        wanted = asked.milli if asked.is_share else MILLI
        cards = sorted((free, card) for card, free in enumerate(left) if free >= wanted)[: asked.gpus]
        for _, card in cards:
            left[card] -= wanted
        places = tuple(sorted(card for _, card in cards))
        members.append(Member(host.host_id, places, host.island, host.kind.network))
    number = int(fleet.columns[f"{domain}_of"][hosts[0]]) if domain in SCOPES else -1
    name = members[0].host_id if domain == "host" else fleet.domains[number] if number >= 0 else ""
    return GangPlacement(domain, name, tuple(members), engine.version, gang)
