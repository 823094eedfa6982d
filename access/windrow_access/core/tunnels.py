"""Admits connections for tunnels to an Access, and joins the two of one tunnel. Pure: bytes and times are values.

accepted ─handshake, head (10 s)─▶ grant checked, used up ─▶ waits for the other end ─▶ joined ─▶ either ends: both do
   counted as a stranger: bounded per network and in all           counted by its host
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany, Unauthenticated
from windrow_proto.tunnels import TunnelGrant, TunnelSide
from windrow_proto.units import HOUR, KIB, SECOND
from windrow_tunnel.wire import PATH, PROTOCOL

End = TypeVar("End")

USED_MAX: Final = 65_536
"""Grants remembered as used, until they are over: a thousand new tunnels a second. Beyond it new ones are refused."""


@dataclass(frozen=True, slots=True)
class TunnelLimits:
    """The limits of the listener for tunnels. strangers: connections that have not shown a good grant.

    greet_ns: TLS handshake, then request, each; the same as for agents. renter_wait_ns: the Master lets a host come
    first, so that a renter waits for what is under way only. idle_ns: of both directions; a person's lunch.
    buffer_bytes: what waits for one end to take it, beside TLS's own half megabyte, before the other is not read.
    """

    connections_max: int = 2_048
    strangers_max: int = 256
    strangers_per_network_max: int = 32
    per_host_max: int = 128
    greet_ns: int = 10 * SECOND
    renter_wait_ns: int = 10 * SECOND
    idle_ns: int = HOUR
    buffer_bytes: int = 256 * KIB


class ConnectionCounts:
    """Counts connections: strangers by network, then ends by host."""

    def __init__(self, limits: TunnelLimits) -> None:
        self._limits = limits
        self._strangers: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        self.open = 0

    def enter(self, network: str) -> bool:
        """A connection was accepted: may it stay? If so, `leave` or `known` follows once."""
        limits = self._limits
        if (
            self.open >= limits.connections_max
            or self._strangers.total() >= limits.strangers_max
            or self._strangers[network] >= limits.strangers_per_network_max
        ):
            return False
        self.open += 1
        self._strangers[network] += 1
        return True

    def leave(self, network: str) -> None:
        """A stranger has gone."""
        self.open -= 1
        _less(self._strangers, network)

    def known(self, network: str, host_id: str) -> None:
        """A stranger has shown a good grant to this host; raises TooMany, and then it stays a stranger."""
        if self._ends[host_id] >= 2 * self._limits.per_host_max:
            raise TooMany(f"{self._limits.per_host_max} tunnels to this host are open already.", subject=host_id)
        _less(self._strangers, network)
        self._ends[host_id] += 1

    def gone(self, host_id: str) -> None:
        """An end that was known has gone."""
        self.open -= 1
        _less(self._ends, host_id)

    @property
    def strangers(self) -> int:
        """Connections that have not shown a good grant."""
        return self._strangers.total()


def _less(counts: "Counter[str]", key: str) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]


def grant_in(head: bytes) -> str:
    """The grant that an HTTP/1.1 request shows; raises InvalidInput, NotFound or Unauthenticated.

    head: the request line and headers, without the empty line.
    """
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, path, version = first.split(" ")
    except ValueError as error:
        raise InvalidInput("This is no HTTP request.") from error
    if (method, version) != ("GET", "HTTP/1.1") or path != PATH:
        raise NotFound(f"This port serves only GET {PATH}, for tunnels of `windrow cluster forward`.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name.lower() in headers or name != name.strip():
            raise InvalidInput("A header is damaged or comes twice.")
        headers[name.lower()] = value.strip()
    if headers.get("upgrade") != PROTOCOL:
        raise InvalidInput(f"This relay speaks {PROTOCOL}: another release of `windrow` may be needed.")
    if "content-length" in headers or "transfer-encoding" in headers:
        raise InvalidInput("A request for a tunnel has no body.")
    kind, _, grant = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not grant:
        raise Unauthenticated("Show the Master's grant as Authorization: Bearer.")
    return grant


class JoinTable(Generic[End]):
    """Which ends wait for their others, and which grants were used."""

    def __init__(self, used_max: int = USED_MAX) -> None:
        self._waiting: dict[str, End] = {}
        self._used: dict[tuple[str, TunnelSide], int] = {}
        self._used_max = used_max

    def meet(self, grant: TunnelGrant, end: End, wall_ns: int) -> End | None:
        """An end has come with a grant that holds: the other end if it waits, else None and this one waits.

        Raises Conflict for a grant that was used before, TooMany when no more can be remembered, InvalidInput for a
        grant of neither side.
        """
        if grant.side is TunnelSide.UNSPECIFIED:
            raise InvalidInput("A grant is for a renter or for a host.")
        key = grant.tunnel_id, grant.side
        if key in self._used:
            raise Conflict("This grant was used; ask the Master for another one.", subject=grant.tunnel_id)
        if len(self._used) >= self._used_max:
            self._used = {one: ends_ns for one, ends_ns in self._used.items() if ends_ns > wall_ns}
        if len(self._used) >= self._used_max:
            raise TooMany("This relay has joined too many tunnels within a minute.", retry_after_ns=SECOND)
        self._used[key] = grant.not_after_ns
        other = self._waiting.get(grant.tunnel_id)
        if other is None:
            self._waiting[grant.tunnel_id] = end
            return None
        del self._waiting[grant.tunnel_id]
        return other

    def withdraw(self, tunnel_id: str, end: End) -> None:
        """An end waits no longer."""
        waiting = self._waiting.get(tunnel_id)
        if waiting is end:
            del self._waiting[tunnel_id]

    def __len__(self) -> int:
        return len(self._waiting)
