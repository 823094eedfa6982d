"""What is found when a host's line is measured: the relay's signed claim, and the host's own count beside it."""

from dataclasses import dataclass

from windrow_proto.ids import HostId


@dataclass(frozen=True, slots=True)
class BandwidthClaim:
    """What the relay counted of one measurement; it signs exactly these bytes (domain CLAIM)."""

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
    """What the host counted, with the relay's claim and its signature; the lower of both counts. rtt_ns -1: unknown."""

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
