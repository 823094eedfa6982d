"""Recognises the programs of this Master's own user on this machine, by the owner of their socket in the kernel's
table.

Whoever is this user can read cli.json and so has every right already; here they have those of the registry alone. Not
recognised are browsers (they say so, or name another host), whatever came through a proxy, other users, and other
network namespaces, whose sockets this table does not have.
"""

import ipaddress
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.types import Scope

from windrow_master.api.own_names import LOOPBACK_NAMES, name_of
from windrow_master.identity.model import Principal
from windrow_proto.ids import AccountId, TokenId

LOCAL: Final = Principal(AccountId("local"), "local", frozenset(), TokenId("local"), "local", (1 << 63) - 1)
"""The service account of this user's programs. It has no role, so that it may do only what a route lets it."""
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""One line per socket: its own address, the other end's, its state, ..., the user id of its owner (proc(5))."""
ESTABLISHED: Final = "01"
FOREIGN: Final = frozenset({b"origin", b"forwarded", b"via", b"x-real-ip"})
FOREIGN_STARTS: Final = (b"sec-fetch-", b"x-forwarded-")
"""Headers of browsers' and of proxies' requests."""


class LocalUser:
    """Knows this user's own requests. Blocking for as long as the kernel writes its table, under a millisecond."""

    def __init__(self, uid: int, tables: Sequence[Path] = TABLES) -> None:
        self._uid, self._tables = uid, tables

    def sends(self, scope: Scope) -> bool:
        """True if this user's program sent the request, over loopback, to a loopback name."""
        names = [name for name, _ in scope["headers"]]
        if any(name in FOREIGN or name.startswith(FOREIGN_STARTS) for name in names):
            return False
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or name_of(hosts[0]) not in LOOPBACK_NAMES:
            return False
        client, server = scope.get("client"), scope.get("server")
        if not client or not server or server[1] is None:
            return False
        return self._owner(client[0], client[1], server[0], server[1]) == self._uid

    def _owner(self, address: str, port: int, server: str, server_port: int) -> int | None:
        """The user id of who holds the other end of a connection to us; None: nobody on this machine, over loopback."""
        try:
            ends = [ipaddress.ip_address(one) for one in (address, server)]
        except ValueError:
            return None
        if not all(one.is_loopback for one in ends):
            return None
        wanted = [f"{_kernel_text(one)}:{at:04X}" for one, at in zip(ends, (port, server_port), strict=True)]
        for table in self._tables:
            for line in _lines(table):
                parts = line.split()
                if parts[1:3] == wanted and parts[3] == ESTABLISHED:
                    return int(parts[7])
        return None


def _kernel_text(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The address as the kernel's table writes it: words of 32 bits in the machine's own byte order."""
    words = (address.packed[at : at + 4] for at in range(0, len(address.packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()[1:]
    except OSError:
        return []
