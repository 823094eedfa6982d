"""Decides which connections to a listener may stay, so that nobody shuts others out. Pure: time comes in as values.

    comes ──▶ WAITING ──▶ BUSY ──▶ WAITING ...     WAITING: for a head, or between two requests
                 ▲          │                      SLOW: for more of a body, or until an answer is read
                 └── SLOW ◀─┘                      BUSY: the Master's turn

When all places are taken, whoever comes gets the place of the oldest connection that only waits, of whoever holds most.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import ip_network
from typing import Final

from windrow_master.proxies import is_among
from windrow_proto.networks import Network, network_of
from windrow_proto.units import MILLISECOND, SECOND

LOCAL: Final = "local"
"""All of this machine's own addresses and trusted proxies count as one; operators come from here."""
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
RATES_KEPT: Final = 4_096
"""Networks whose rate of new connections is remembered; the one not heard of longest is forgotten."""


class Stage(IntEnum):
    """The party that has to move next on a connection; connections give way in this order."""

    WAITING = 0
    SLOW = 1
    BUSY = 2


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """The limits on the number and the rate of connections.

    in_all: connections. per_network: of one IPv4 address or IPv6 network; this machine has as many as there are.
    reserve: of all, for this machine alone. burst, refill_ns: new connections of one network, at once and then one
    each refill_ns: a TLS handshake takes about a millisecond of the one loop.
    """

    in_all: int = 2_000
    per_network: int = 256
    reserve: int = 200
    burst: int = 256
    refill_ns: int = 20 * MILLISECOND


Key = tuple[object, ...]
"""The other end of a connection, as its socket names it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a new connection: it may come in or not, and which one has to go for it."""

    is_admitted: bool
    goes: Key | None = None


@dataclass(slots=True)
class Admission:
    """Every connection of one listener."""

    limits: AdmissionLimits = field(default_factory=AdmissionLimits)
    proxies: Sequence[Network] = ()
    _stages: dict[Key, tuple[str, Stage]] = field(default_factory=dict)
    _of: dict[str, tuple[OrderedDict[Key, None], ...]] = field(default_factory=dict)
    _rates: OrderedDict[str, int] = field(default_factory=OrderedDict)

    @property
    def count(self) -> int:
        """Connections that are open."""
        return len(self._stages)

    def come(self, key: Key, address: str, now_ns: int) -> Verdict:
        """Judge a new connection; one that is admitted counts until `leave`."""
        network = LOCAL if is_among(address, (*LOOPBACK, *self.proxies)) else network_of(address)
        if network != LOCAL and not self._is_in_rate(network, now_ns):
            return Verdict(False)
        others = self.count - self._size(LOCAL)
        is_full = self.count >= self.limits.in_all
        goes: Key | None = None
        if network != LOCAL and self._size(network) >= self.limits.per_network:
            goes = self._oldest([network])
        elif is_full or (network != LOCAL and others >= self.limits.in_all - self.limits.reserve):
            networks = self._of if network == LOCAL else self._of.keys() - {LOCAL}
            goes = self._oldest(sorted(networks, key=self._size, reverse=True))
        else:
            self._add(key, network)
            return Verdict(True)
        if goes is None:
            return Verdict(False)
        self.leave(goes)
        self._add(key, network)
        return Verdict(True, goes)

    def stage(self, key: Key, stage: Stage) -> None:
        """Note whose turn it is now on a connection; for one that has left nothing changes."""
        found = self._stages.get(key)
        if found is None or found[1] is stage:
            return
        network, before = found
        del self._of[network][before][key]
        self._of[network][stage][key] = None
        self._stages[key] = network, stage

    def leave(self, key: Key) -> None:
        """It is closed; safe to say twice."""
        found = self._stages.pop(key, None)
        if found is None:
            return
        network, stage = found
        del self._of[network][stage][key]
        if not self._size(network):
            del self._of[network]

    def _add(self, key: Key, network: str) -> None:
        queues = self._of.setdefault(network, (OrderedDict(), OrderedDict(), OrderedDict()))
        queues[Stage.WAITING][key] = None
        self._stages[key] = network, Stage.WAITING

    def _size(self, network: str) -> int:
        return sum(map(len, self._of.get(network, ())))

    def _oldest(self, networks: list[str]) -> Key | None:
        """The connection that gives way: the longest in its stage, of the first of these networks that has one."""
        for stage in (Stage.WAITING, Stage.SLOW):
            for network in networks:
                for key in self._of[network][stage]:
                    return key
        return None

    def _is_in_rate(self, network: str, now_ns: int) -> bool:
        """A bucket that is `burst` deep: what is kept is when it will be full again."""
        full_ns = max(self._rates.pop(network, now_ns), now_ns)
        is_in = full_ns - now_ns <= (self.limits.burst - 1) * self.limits.refill_ns
        self._rates[network] = full_ns + (self.limits.refill_ns if is_in else 0)
        while len(self._rates) > RATES_KEPT:
            self._rates.popitem(last=False)
        return is_in


@dataclass(frozen=True, slots=True)
class Patience:
    """The time that a peer may take.

    head_ns: for a TLS handshake, and for a request's head. look_ns: between two looks at what goes on; looks: how many
    make an average; bytes_per_s: the least that a body or a reader moves in them. discarded_bytes: of a body whose
    request was answered already.
    """

    head_ns: int = 10 * SECOND
    look_ns: int = 10 * SECOND
    looks: int = 3
    bytes_per_s: int = 16 << 10
    discarded_bytes: int = 1 << 20

    def is_too_slow(self, moved: list[int]) -> bool:
        """Return whether this much in each look is too little."""
        recent = moved[-self.looks :]
        return len(recent) == self.looks and sum(recent) * SECOND < self.bytes_per_s * self.look_ns * self.looks
