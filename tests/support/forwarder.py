"""The process that moves packets between the networks of slow_link.py; run as a script, with nothing but Python's own.

    python forwarder.py SEED DEVICE...        descriptors of TUN devices, of addresses that end with 1, 2, ...

A line of JSON on standard input sets what one direction is like and is answered with that direction's counts. It ends
with its standard input, that is with whoever started it, and after LIFE_S in any case.
"""

import heapq
import json
import os
import random
import select
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

LIFE_S = 3_600.0
QUEUE_S = 1.0
"""Packets that wait longer than this for their turn on a line of limited rate are dropped, as by a full router."""
MTU = 1500
BURST = 64
"""Packets taken from one device before the next one has its turn."""


@dataclass(frozen=True, slots=True)
class Line:
    """One direction between two networks. delay_ms, jitter_ms: >= 0; loss: 0 to 1; kbit_s: 0 is without limit;
    burst_s: so many seconds of that rate go through at once after as long a silence, as providers' shapers let them."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    kbit_s: float = 0.0
    burst_s: float = 0.0


@dataclass(slots=True)
class _Way:
    """One direction and what is on it. Times are monotonic seconds."""

    line: Line = field(default_factory=Line)
    free_at: float = 0.0
    last_at: float = 0.0
    passed: int = 0
    lost: int = 0
    refused: int = 0

    def due(self, size: int, now: float, chance: random.Random) -> float | None:
        """When a packet of `size` bytes that came now arrives; None: never."""
        line, leaves_at = self.line, now
        if line.kbit_s:
            begins_at = max(now - line.burst_s, self.free_at)
            if begins_at - now > QUEUE_S:
                self.refused += 1
                return None
            self.free_at = begins_at + size * 8 / (line.kbit_s * 1000)
            leaves_at = max(now, self.free_at)
        if line.loss and chance.random() < line.loss:
            self.lost += 1
            return None
        self.passed += 1
        wait_ms = line.delay_ms + (chance.uniform(0.0, line.jitter_ms) if line.jitter_ms else 0.0)
        self.last_at = max(self.last_at, leaves_at + wait_ms / 1000)
        return self.last_at

    def obey(self, order: dict[str, Any]) -> dict[str, int]:
        """Change this direction if the order says so; returns its counts."""
        if "line" in order:
            self.line = Line(**order["line"])
        return {"passed": self.passed, "lost": self.lost, "refused": self.refused}


class _Forwarder:
    """Moves packets until told to end."""

    def __init__(self, seed: int, devices: Sequence[int]) -> None:
        self._chance = random.Random(seed)
        self._devices = dict(enumerate(devices, start=1))
        self._ways: dict[tuple[int, int], _Way] = {}
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def run(self) -> None:
        """Until standard input ends or LIFE_S is over."""
        ends_at = time.monotonic() + LIFE_S
        poll = select.epoll()
        numbers = {device: number for number, device in self._devices.items()}
        for one in (*numbers, sys.stdin.fileno()):
            poll.register(one, select.EPOLLIN)
        while (now := time.monotonic()) < ends_at:
            self._deliver(now)
            wait_s = self._waiting[0][0] - now if self._waiting else 1.0
            for ready, _ in poll.poll(max(0.0, min(wait_s, 1.0))):
                if ready in numbers:
                    self._take(numbers[ready], ready)
                elif not self._obey():
                    return

    def _deliver(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._waiting)
            with suppress(OSError):  # a device whose queue is full drops, as any would
                os.write(self._devices[target], packet)

    def _take(self, source: int, device: int) -> None:
        for _ in range(BURST):
            try:
                packet = os.read(device, MTU + 64)
            except OSError:
                return
            if len(packet) < 20 or packet[0] >> 4 != 4:
                continue  # what the kernel asks of IPv6 by itself
            target = packet[19]
            if target not in self._devices or target == source:
                continue
            now = time.monotonic()
            at = self._way(source, target).due(len(packet), now, self._chance)
            if at is not None:
                self._count += 1
                heapq.heappush(self._waiting, (at, self._count, target, packet))

    def _way(self, source: int, target: int) -> _Way:
        return self._ways.setdefault((source, target), _Way())

    def _obey(self) -> bool:
        """Carry out one order; returns whether to go on."""
        line = sys.stdin.readline()
        if not line:
            return False
        order = json.loads(line)
        sys.stdout.write(json.dumps(self._way(*order["way"]).obey(order)) + "\n")
        sys.stdout.flush()
        return True


if __name__ == "__main__":
    _Forwarder(int(sys.argv[1]), [int(word) for word in sys.argv[2:]]).run()
