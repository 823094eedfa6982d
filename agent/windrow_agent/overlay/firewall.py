"""The firewall of an overlay network: only the workload may open connections, although it shares its host's network.

A connection is judged when it is opened. What is sent without one is answered by the kernels with a reset.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_agent.core.listeners import Socket, answering, dialling, parse_all
from windrow_proto.overlay_packets import opening

WAITING_MAX: Final = 256
"""Openings that wait to be judged; one more is lost, and sent again after a second."""
TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")

Owned = Callable[[], Awaitable[frozenset[int]]]
"""The inodes of all sockets of the workload's processes, now."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An opening that waits: what to do if it is allowed."""

    is_outward: bool
    ports: tuple[int, int]
    go_on: Callable[[], None]

    @property
    def own_port(self) -> int:
        """On this host."""
        return self.ports[0] if self.is_outward else self.ports[1]


class Firewall:
    """Judges the openings of one network; `run` beside it."""

    def __init__(self, address: str, owned: Owned) -> None:
        self.refused = 0
        self._address, self._owned = address, owned
        self._waiting: list[_Asked] = []
        self._wake = asyncio.Event()

    def pass_through(self, packet: bytes | memoryview, is_outward: bool, go_on: Callable[[bytes], None]) -> bool:
        """True if the packet may pass at once; else `go_on` is called with it once it may, if ever."""
        ports = opening(packet)
        if ports is None:
            return True
        if len(self._waiting) < WAITING_MAX:
            kept = bytes(packet)
            self._waiting.append(_Asked(is_outward, ports, lambda: go_on(kept)))
            self._wake.set()
        return False

    async def run(self) -> None:
        """Judge what waits, all of it in one look, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked, self._waiting = self._waiting, []
            sockets = await asyncio.to_thread(_sockets, frozenset(one.own_port for one in asked))
            owned = await self._owned()
            for one in asked:
                if self._is_own(one, sockets, owned):
                    one.go_on()
                else:
                    self.refused += 1

    def _is_own(self, asked: _Asked, sockets: tuple[Socket, ...], owned: frozenset[int]) -> bool:
        source, target = asked.ports
        if asked.is_outward:
            found = dialling(sockets, self._address, source, target)
        else:
            found = answering(sockets, self._address, target)
        return bool(found) and found <= owned


def _sockets(ports: frozenset[int]) -> tuple[Socket, ...]:
    found: list[Socket] = []
    for table in TABLES:
        try:
            found += parse_all(Path(table).read_text(), ports)
        except OSError:
            continue
    return tuple(found)
