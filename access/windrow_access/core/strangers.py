"""Decides which connections may wait although nobody known speaks on them. Pure: what is open and the time come in as
values.

A connection is a stranger from its acceptance until a call of a known host runs on it: before and during the TLS
handshake, with a wrong certificate or none, idle, or with a call that was refused. gRPC admits and keeps them by number
only, so that one address could keep everybody else out.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from urllib.parse import unquote

from windrow_access.core.admission import Limits
from windrow_proto import networks
from windrow_proto.units import SECOND

FILES_KEPT = 256
"""Open files that are no agents' connections: trunk, logs, certificate, gRPC's own. Where the system allows fewer files
than there may be connections, gRPC closes what comes above, and the rest of the process goes on."""
Endpoint = tuple[str, int]
"""A plain address and a port."""
ADDRESSES_KEPT = 16_384
"""Spellings remembered: to read one takes longer than to ask the system for it."""


@dataclass(frozen=True, slots=True)
class StrangerLimits:
    """How long and how many.

    age_ns: a handshake takes milliseconds, 5 s over a bad line; an agent gives up dialling after 5 s. per_network_max:
    hosts behind one address that come back together; more than the 400 that admission takes of one at once.
    in_all_max: handshakes of about two seconds on one core; agents wait for three, to begin with.
    The listener is shut while so many came within so long, of one network so many at most: with 32 in 0.1 s that is 320
    a second, handshakes of half a core, and no network shuts it alone (fresh_*); while so many, counted as those, are
    not served yet that came within the time that an agent dials for, or all would be served too late (young_*); while
    so many wait for gRPC to read what they said (unread_max); and while everything here is so late (late_ns).
    """

    age_ns: int = 15 * SECOND
    per_network_max: int = 512
    in_all_max: int = 1_024
    fresh_ns: int = SECOND // 10
    fresh_max: int = 32
    fresh_per_network: int = 8
    young_ns: int = 3 * SECOND
    young_max: int = 128
    unread_max: int = 32
    late_ns: int = SECOND // 10


@dataclass(frozen=True, slots=True)
class Stranger:
    """One such connection. name: the caller's for it; since_ns: monotonic, when it was first seen as a stranger;
    is_unread: it has said something that nobody has read yet."""

    name: str
    endpoint: Endpoint
    since_ns: int
    is_unread: bool = False


def endpoint_of(peer: str) -> Endpoint:
    """The other end of a connection, by what gRPC calls it (`ipv4:10.0.0.1:5000`, `ipv6:%5B::1%5D:5000`)."""
    address, _, port = unquote(peer).rpartition(":")
    address = address.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")
    return plain_address(address), int(port) if port.isdigit() else 0


@lru_cache(maxsize=ADDRESSES_KEPT)
def plain_address(address: str) -> str:
    """An IP address in one spelling: without a zone, IPv4 as such; other text is itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


network_of = lru_cache(maxsize=ADDRESSES_KEPT)(networks.network_of)


def overstaying(strangers: Iterable[Stranger], limits: StrangerLimits, now_ns: int) -> tuple[Stranger, ...]:
    """Returns the connections to cut: the too old; above each network's number its oldest; above all of them those of
    the networks that hold most. The newest stay, so that an honest handshake among a flood has its milliseconds."""
    cut: list[Stranger] = []
    turns: dict[str, int] = {}
    waiting: list[tuple[int, Stranger]] = []
    for stranger in sorted(strangers, key=lambda one: one.since_ns, reverse=True):
        if now_ns - stranger.since_ns > limits.age_ns:
            cut.append(stranger)
            continue
        network = network_of(stranger.endpoint[0])
        turn = turns[network] = turns.get(network, -1) + 1
        if turn >= limits.per_network_max:
            cut.append(stranger)
        else:
            waiting.append((turn, stranger))
    waiting.sort(key=lambda one: one[0])
    return (*cut, *(stranger for _, stranger in waiting[limits.in_all_max :]))


def is_crowded(strangers: Collection[Stranger], limits: StrangerLimits, now_ns: int, late_ns: int) -> bool:
    """True if nobody else should be let in at the moment. late_ns: how late what was due here was done.

    A thousand handshakes at once take as long as their sum, each of them, and who dials has given up by then and dials
    again: all work would be for nobody. A connection that waits before the listener costs nothing, and the peer's
    system tries again by itself.
    """

    def came_within(period_ns: int) -> int:
        came = Counter(network_of(one.endpoint[0]) for one in strangers if now_ns - one.since_ns < period_ns)
        return sum(min(limits.fresh_per_network, count) for count in came.values())

    return (
        late_ns >= limits.late_ns
        or came_within(limits.fresh_ns) >= limits.fresh_max
        or came_within(limits.young_ns) >= limits.young_max
        or sum(one.is_unread for one in strangers) >= limits.unread_max
    )


def connections_max(files: int, limits: Limits, strangers: StrangerLimits) -> int:
    """Connections that gRPC holds at once, at least one: all agents, those kept warm and all strangers, as far as open
    files reach."""
    return max(1, min(limits.routes_max + limits.warm_max + strangers.in_all_max, files - FILES_KEPT))
