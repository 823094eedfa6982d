"""The results of measuring a host's line: the relay's signed claim, and the host's own count beside it. Pure."""

from dataclasses import dataclass
from typing import Final

from windrow_proto.ids import HostId
from windrow_proto.units import SECOND

WARM_UP_PARTS: Final = 4
"""One part in so many of the time that a direction lasts does not count at its receiver: what a shaper lets through at
once after a silence comes first, and a connection has to find its rate."""


@dataclass(slots=True)
class Arrivals:
    """The arrivals of one direction at its receiver. Times are monotonic nanoseconds; duration_ns: how long it is
    sent."""

    duration_ns: int
    total_bytes: int = 0
    began_ns: int | None = None
    warm_ns: int | None = None
    warm_bytes: int = 0

    def came(self, size: int, now_ns: int) -> None:
        """So many bytes have come."""
        self.total_bytes += size
        if self.began_ns is None:
            self.began_ns = now_ns
        if self.warm_ns is None and now_ns - self.began_ns >= self.duration_ns // WARM_UP_PARTS:
            self.warm_ns, self.warm_bytes = now_ns, self.total_bytes

    def elapsed_ns(self, now_ns: int) -> int:
        """Since the first byte."""
        return now_ns - self.began_ns if self.began_ns is not None else 0

    def bits_per_s(self, now_ns: int) -> int:
        """The rate until now, rounded down: after the warm-up where at least half came then, else of all; 0 when
        nothing has come."""
        late_bytes = self.total_bytes - self.warm_bytes
        if self.warm_ns is not None and now_ns > self.warm_ns and 2 * late_bytes >= self.total_bytes:
            return late_bytes * 8 * SECOND // (now_ns - self.warm_ns)
        elapsed_ns = self.elapsed_ns(now_ns)
        return self.total_bytes * 8 * SECOND // elapsed_ns if elapsed_ns > 0 else 0


@dataclass(frozen=True, slots=True)
class BandwidthClaim:
    """The relay's count of one measurement; it signs exactly these bytes (domain CLAIM)."""

    nonce: str
    access_id: str
    host_id: HostId
    up_bits_per_s: int
    down_bits_per_s: int
    up_bytes: int
    down_bytes: int
    duration_ns: int
    at_wall_ns: int


@dataclass(frozen=True, slots=True)
class BandwidthResult:
    """The host's count, with the relay's claim and its signature; the lower of both counts. rtt_ns -1: unknown."""

    nonce: str
    access_id: str
    region: str
    up_bits_per_s: int
    down_bits_per_s: int
    up_bytes: int
    down_bytes: int
    duration_ns: int
    at_wall_ns: int
    access_signed: bytes = b""
    access_signature: bytes = b""
    rtt_ns: int = -1
