"""Finds the address of this host that leads to a workload's own listening socket. Pure: the kernel's tables come in as
text.

A process workload shares the host's network, so that a port of its own and one of the host's look the same. Only where
every socket that could answer belongs to the workload is there an address to dial.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

LISTEN: Final = "0A"
"""State of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening TCP socket."""

    address: IPv4Address | IPv6Address
    port: int
    inode: int


def parse(table: str) -> Iterable[Listener]:
    """The listening sockets of /proc/net/tcp or /proc/net/tcp6; lines that are none are passed over.

    Addresses there are words of 32 bit in the machine's order, which is taken to be little-endian.
    """
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != LISTEN:
            continue
        words, _, port = fields[1].partition(":")
        raw = b"".join(bytes.fromhex(words[n : n + 8])[::-1] for n in range(0, len(words), 8))
        yield Listener(ip_address(raw), int(port, 16), int(fields[9]))


@dataclass(frozen=True, slots=True)
class Socket:
    """One TCP socket in any state. remote_port: 0 while it has no other end."""

    address: IPv4Address | IPv6Address
    port: int
    remote_port: int
    inode: int
    is_listening: bool


def parse_all(table: str, ports: Collection[int]) -> Iterable[Socket]:
    """The sockets of these tables at these ports of this host, whatever they do; addresses as `parse` reads them."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10:
            continue
        (words, _, port), (_, _, remote) = fields[1].partition(":"), fields[2].partition(":")
        if int(port, 16) not in ports:
            continue  # there may be many thousands
        raw = b"".join(bytes.fromhex(words[n : n + 8])[::-1] for n in range(0, len(words), 8))
        yield Socket(ip_address(raw), int(port, 16), int(remote, 16), int(fields[9]), fields[3] == LISTEN)


def answering(sockets: Iterable[Socket], text: str, port: int) -> frozenset[int]:
    """The inodes of the sockets of which one takes a connection to this address and port."""
    listeners = (Listener(one.address, one.port, one.inode) for one in sockets if one.is_listening)
    return frozenset(_answering([one for one in listeners if one.port == port], text))


def dialling(sockets: Iterable[Socket], text: str, port: int, remote_port: int) -> frozenset[int]:
    """The inodes of the sockets that go from this address and port to such a port elsewhere."""
    target, ends = ip_address(text), (port, remote_port)
    found = (one for one in sockets if (one.port, one.remote_port) == ends and not one.is_listening)
    return frozenset(one.inode for one in found if target in (one.address, getattr(one.address, "ipv4_mapped", None)))


def dialled(listeners: Iterable[Listener], port: int, own: Collection[int]) -> tuple[str, ...]:
    """The addresses at which this port is the workload's, the usual first. own: the inodes of its sockets.

    A socket bound to an address answers for it before one bound to all; of several at the same one any may answer.
    """
    found = [one for one in listeners if one.port == port]
    candidates: dict[str, None] = {}
    for one in found:
        if one.inode in own:
            for address in _reached(one.address):
                candidates[address] = None
    usual = ("127.0.0.1", "::1")
    order = sorted(candidates, key=lambda text: usual.index(text) if text in usual else len(usual))
    return tuple(text for text in order if _answering(found, text) <= set(own))


def _reached(address: IPv4Address | IPv6Address) -> tuple[str, ...]:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_unspecified:
        # One bound to all of IPv6 mostly answers for IPv4, too.
        return ("127.0.0.1",) if address.version == 4 else ("127.0.0.1", "::1")
    return (str(address),)


def _answering(found: Iterable[Listener], text: str) -> set[int]:
    """The inodes of the sockets of which one answers at this address."""
    target = ip_address(text)
    exact = {one.inode for one in found if target in (one.address, getattr(one.address, "ipv4_mapped", None))}
    return exact or {one.inode for one in found if one.address.is_unspecified}
