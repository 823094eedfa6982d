"""Which connections may wait although nobody known speaks on them. Pure: what is open and the time come in as values.

A connection is a stranger from its acceptance until a call of a known host runs on it: before and during the TLS
handshake, with a wrong certificate or none, idle, or with a call that was refused. gRPC admits and keeps them by number
only, so that one address could keep everybody else out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import unquote

from windrow_access.core.admission import Limits
from windrow_proto.units import SECOND

FILES_KEPT = 256
"""Open files that are no agents' connections: trunk, logs, certificate, gRPC's own. Where the system allows fewer files
than there may be connections, gRPC closes what comes above, and the rest of the process goes on."""
Endpoint = tuple[str, int]
"""A plain address and a port."""
IPV6_PREFIX = 64
"""What one customer is given at least: whoever has one IPv6 address has all of these."""


@dataclass(frozen=True, slots=True)
class StrangerLimits:
    """How long and how many.

    age_ns: a handshake takes milliseconds, 5 s over a bad line; an agent gives up dialling after 5 s. per_network_max:
    hosts behind one address that come back together; more than the 400 that admission takes of one at once.
    in_all_max: handshakes of about seven seconds on one core, which is longer than agents wait.
    """

    age_ns: int = 15 * SECOND
    per_network_max: int = 512
    in_all_max: int = 4_096


@dataclass(frozen=True, slots=True)
class Stranger:
    """One such connection. name: the caller's for it; since_ns: monotonic, when it was first seen as a stranger."""

    name: str
    endpoint: Endpoint
    since_ns: int


def endpoint_of(peer: str) -> Endpoint:
    """The other end of a connection, by what gRPC calls it (`ipv4:10.0.0.1:5000`, `ipv6:%5B::1%5D:5000`)."""
    address, _, port = unquote(peer).rpartition(":")
    address = address.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")
    return plain_address(address), int(port) if port.isdigit() else 0


def plain_address(address: str) -> str:
    """An IP address in one spelling: without a zone, IPv4 as such; other text is itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def network_of(address: str) -> str:
    """Who is counted as one, by a plain address: an IPv4 address, or an IPv6 network; other text is itself."""
    return str(ip_network((address, IPV6_PREFIX), strict=False)) if ":" in address else address


def overstaying(strangers: Iterable[Stranger], limits: StrangerLimits, now_ns: int) -> tuple[Stranger, ...]:
    """Whom to cut: the too old; above each network's number its oldest; above all of them those of the networks that
    hold most. The newest stay, so that an honest handshake among a flood has its milliseconds."""
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


def connections_max(files: int, limits: Limits, strangers: StrangerLimits) -> int:
    """Connections that gRPC holds at once, at least one: all agents, those kept warm and all strangers, as far as open
    files reach."""
    return max(1, min(limits.routes_max + limits.warm_max + strangers.in_all_max, files - FILES_KEPT))
