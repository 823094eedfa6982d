"""Tests whether this host can be in an overlay network: makes one for a moment, and begins a connection to it.

A firewall on the host itself that drops what comes to it drops what comes from a device of ours, too. So nothing less
than an answer of the kernel says that it works.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Final

from windrow_agent.runtimes.tun_device import NAME, Device, cannot
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.overlay_packets import IPV4_HEAD_BYTES, TCP, ends, private_address
from windrow_proto.units import MILLISECOND, seconds

NETWORK: Final = 255
"""None of a cluster's: those have the numbers of blocks of ports, of which there are 190."""
ANSWER_NS: Final = 500 * MILLISECOND
"""For this very machine's kernel to answer; it takes microseconds."""
_SYN, _SYN_ACK, _PORT, _WINDOW = 0x02, 0x12, 40_000, 65_535
_at_once = asyncio.Lock()


async def refusal() -> str:
    """Why this host can be in no private network; empty: it can."""
    if why := cannot():
        return why
    async with _at_once:
        own, peer = private_address(NETWORK, 0), private_address(NETWORK, 1)
        try:
            device = Device(own)
        except RuntimeUnavailable as error:
            return error.detail
        try:
            with socket.create_server((own, 0)) as listener:
                return await _answered(device, begun(peer, own, _PORT, listener.getsockname()[1]))
        except OSError as error:
            return f"a private address cannot be used: {error.strerror}"
        finally:
            device.close()


async def _answered(device: Device, opening: bytes) -> str:
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(device.fd, came.set)
    try:
        device.write(memoryview(opening))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds(ANSWER_NS)):
                while True:
                    await came.wait()
                    came.clear()
                    if any(_is_answer(packet) for packet in device.packets(16)):
                        return ""
    finally:
        loop.remove_reader(device.fd)
    return f"the host's own firewall drops what comes from devices named {NAME}*; let that in"


def _is_answer(packet: bytes) -> bool:
    is_ours = ends(packet) is not None and packet[9] == TCP and len(packet) > IPV4_HEAD_BYTES + 13
    return is_ours and packet[IPV4_HEAD_BYTES + 13] & _SYN_ACK == _SYN_ACK


def begun(source: str, target: str, source_port: int, target_port: int) -> bytes:
    """The packet that opens a connection from one address to another."""
    addresses = IPv4Address(source).packed + IPv4Address(target).packed
    segment = struct.pack("!HHIIBBHHH", source_port, target_port, 1, 0, 5 << 4, _SYN, _WINDOW, 0, 0)
    pseudo = addresses + struct.pack("!BBH", 0, TCP, len(segment))
    segment = segment[:16] + struct.pack("!H", _checksum(pseudo + segment)) + segment[18:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, IPV4_HEAD_BYTES + len(segment), 0, 0, 64, TCP, 0) + addresses
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + segment


def _checksum(data: bytes) -> int:
    """As RFC 1071 has it, of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
