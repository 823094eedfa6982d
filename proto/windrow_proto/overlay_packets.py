"""Links of a cluster's overlay network, one between each two members that cannot reach each other directly. Pure.

 member ══packets══▶ its agent ══TLS══▶ Access ══TLS══▶ the other's agent ══packets══▶ member

Each end makes a key for one link and tells the Master its certificate; the Master passes them on, so each end trusts
that one certificate alone and the Access can read nothing. They meet at the Access as the ends of a tunnel do
(tunnels.py): the member with the lower address is the tunnel's host, and TLS's server.

Inside are frames: two bytes of length, big-endian, and one packet of IPv4; a frame without bytes says "I am here".
"""

from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Final

from windrow_proto.errors import InvalidInput

PRIVATE: Final = IPv4Network("198.19.0.0/16")
"""The address range of private networks: of the range for benchmarks (RFC 2544), which nobody routes; containers
of hosts are kept away from it."""
PREFIX_BITS: Final = 24
"""Of one private network."""
MTU: Final = 32_000
"""Bytes of one packet. The line below loses none, so that large ones cost no more, and each is a call of the kernel."""
FRAME_HEAD_BYTES: Final = 2
HERE: Final = bytes(FRAME_HEAD_BYTES)
UP: Final = b"up"
"""The report of an end to the Master once both ends have met."""
IPV4_HEAD_BYTES: Final = 20
ICMP: Final = 1
TCP: Final = 6


def private_address(network: int, rank: int) -> str:
    """Of a member in a private network. network: from 0 to 255; rank: from 0 to 253."""
    return str(PRIVATE.network_address + (network << 8) + rank + 1)


def is_private(address: str) -> bool:
    """True if this is an address of a private network."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return isinstance(found, IPv4Address) and found in PRIVATE


def packed(address: str) -> bytes:
    """Its four bytes; raises InvalidInput for what is no address of a private network."""
    if not is_private(address):
        raise InvalidInput(f"{address[:40]!r} is no address of a private network.")
    return IPv4Address(address).packed


def ends(packet: bytes | memoryview) -> tuple[bytes, bytes] | None:
    """From which address to which one a packet goes; None: it is nothing that a private network carries.

    That is whole packets of IPv4 with TCP or ICMP: of a fragment nobody could say what it is a part of.
    """
    if len(packet) < IPV4_HEAD_BYTES or packet[0] >> 4 != 4 or packet[9] not in (ICMP, TCP):
        return None
    is_part = packet[6] & 0x3F or packet[7]  # more fragments, or an offset
    if is_part or int.from_bytes(packet[2:4], "big") != len(packet):
        return None
    return bytes(packet[12:16]), bytes(packet[16:20])


def opening(packet: bytes | memoryview) -> tuple[int, int] | None:
    """The ports from and to which a packet opens a connection of TCP; None: it opens none."""
    start = (packet[0] & 0x0F) * 4
    if packet[9] != TCP or len(packet) < start + 14 or packet[start + 13] & 0x12 != 0x02:  # SYN without ACK
        return None
    return int.from_bytes(packet[start : start + 2], "big"), int.from_bytes(packet[start + 2 : start + 4], "big")


class FrameReader:
    """Takes frames apart as they come, in any pieces; keeps a part of one at most."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes | memoryview) -> list[memoryview]:
        """The packets that are whole now, in order."""
        whole = memoryview(self._rest + bytes(data) if self._rest else data)
        found, at = [], 0
        while len(whole) - at >= FRAME_HEAD_BYTES:
            size = int.from_bytes(whole[at : at + FRAME_HEAD_BYTES], "big")
            if len(whole) - at - FRAME_HEAD_BYTES < size:
                break
            at += FRAME_HEAD_BYTES
            if size:
                found.append(whole[at : at + size])
            at += size
        self._rest = bytes(whole[at:])
        return found


def frame(packet: bytes) -> bytes:
    """A packet as a frame."""
    return len(packet).to_bytes(FRAME_HEAD_BYTES, "big") + packet
