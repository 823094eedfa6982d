"""Distinct types for every id, minted from given time and randomness and parsed once at the border. Pure.

Minting is pure: who calls it brings the clock and the random bytes.
"""

import re
from typing import Final, NewType

MPS_PREFIX: Final = "MPS-"
"""How the names of parts of a card begin that MPS keeps apart; those of MIG begin as the driver names them, MIG-."""

HostId = NewType("HostId", str)
"""`host_` and a UUIDv7, minted by the Master at joining, never derived from a key."""
AccessId = NewType("AccessId", str)
AccountId = NewType("AccountId", str)
TokenId = NewType("TokenId", str)
ClusterId = NewType("ClusterId", str)
WorkloadId = NewType("WorkloadId", str)
"""The part of a cluster that one host runs: one container or one process tree."""
CommandId = NewType("CommandId", str)
OperationId = NewType("OperationId", str)
ReceiptId = NewType("ReceiptId", str)
TransferId = NewType("TransferId", str)
EventId = NewType("EventId", str)
SlotId = NewType("SlotId", str)
"""`<gpu uuid>` for a whole GPU, `<host id>/cpu/<n>` for a carved share of a host's processors."""
GpuUuid = NewType("GpuUuid", str)
BootId = NewType("BootId", bytes)
"""Sixteen random bytes drawn when an agent process starts."""

NO_ID: Final = "not like an id (4 or more of 0-9 a-f alone, or beginning with job_, host_, GPU- and the like)"
"""The rule of `resembles_id`, for people."""

_PREFIXED = re.compile(r"^[a-z]{2,12}_[0-9a-f]{32}$")
_LIKE: Final = re.compile(
    r"[0-9a-f]{4,}|((access|account|cluster|command|host|job|receipt|token|volume|workload)_|(GPU|MIG|MPS)-).*",
    re.IGNORECASE | re.DOTALL,
)
_PART: Final = re.compile(r"[0-9a-f]{4,32}")
_RANDOM: Final = 16
"""Characters at the end of an id that are random: a screen shows the first of them."""


def mint(prefix: str, now_ns: int, entropy: bytes) -> str:
    """Make an id: `prefix`, an underscore and a UUIDv7 in hexadecimal without dashes (RFC 9562 section 5.7).

    now_ns: wall clock in nanoseconds since 1970, >= 0; ids minted later sort later (to the millisecond).
    entropy: at least 10 random bytes.
    """
    if len(entropy) < 10:
        raise ValueError("an id needs at least 10 random bytes")
    milliseconds = now_ns // 1_000_000 & (1 << 48) - 1
    random_bits = int.from_bytes(entropy[:10], "big")
    high = milliseconds << 16 | 0x7 << 12 | random_bits >> 68 & 0xFFF
    value = high << 64 | 0b10 << 62 | random_bits & (1 << 62) - 1
    return f"{prefix}_{value:032x}"


def is_id(text: str, prefix: str) -> bool:
    """True if `text` has the form of an id of this kind."""
    return text.startswith(prefix + "_") and _PREFIXED.match(text) is not None


def resembles_id(text: str) -> bool:
    """True if people who read this name could take it for an id, or for the start of one: no new name may be so."""
    return _LIKE.fullmatch(text) is not None


def starts(text: str, whole: str) -> bool:
    """True if this is the start of that id, or of the part of it that screens show; the kind may be left out."""
    kind, _, body = whole.rpartition("_")
    part = text.lower().removeprefix(f"{kind}_")
    return _PART.fullmatch(part) is not None and (body.startswith(part) or body[-_RANDOM:].startswith(part))


def cpu_slot(host_id: HostId, number: int) -> SlotId:
    """The slot id of one carved processor share of a host; `number` counts from 0."""
    return SlotId(f"{host_id}/cpu/{number}")
