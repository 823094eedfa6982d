"""Decides whose frame goes next and what is shed: strict classes, fair turns between agents inside a class. Pure.

Evidence (class 0) and channels are never shed: when there is too much of one agent's, its reader stops reading
(`may_read`), and while half of all space is taken so do those of all whose channels wait. Above the cap, telemetry is
shed, backlog before live, always from the agent that holds most of that class. It is not lost: the agent keeps it until
the Master acknowledges it and sends it again. Channels are sent once, and a file with a piece missing is another file.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

EVIDENCE, LIVE, CHANNEL, BACKLOG = 0, 1, 2, 3
CLASSES = (EVIDENCE, LIVE, CHANNEL, BACKLOG)
SHED_ORDER = (BACKLOG, LIVE)

Route = TypeVar("Route", bound=Hashable)
Item = TypeVar("Item")


@dataclass(slots=True)
class _Turn(Generic[Item]):
    """One agent's frames of one class."""

    items: deque[tuple[int, Item]] = field(default_factory=deque)
    size: int = 0


class FairQueues(Generic[Route, Item]):
    """Frames of many agents waiting for one trunk.

    cap_bytes: all classes together; above it shedding starts. cap_route_bytes: one agent's evidence and channels;
    cap_route_all_bytes: all that one agent sent; above either `may_read` turns false for that agent. Sizes are whatever
    the caller counts, >= 0, in bytes.
    """

    def __init__(self, cap_bytes: int, cap_route_bytes: int, cap_route_all_bytes: int = 1 << 62) -> None:
        if cap_bytes <= 0 or cap_route_bytes <= 0 or cap_route_all_bytes <= 0:
            raise ValueError("caps must be positive")
        self._cap = cap_bytes
        self._cap_route = cap_route_bytes
        self._cap_route_all = cap_route_all_bytes
        self._cap_channels = cap_bytes // 2
        self._cap_least = min(cap_route_bytes, cap_route_all_bytes, self._cap_channels)
        self._turns: tuple[dict[Route, _Turn[Item]], ...] = tuple({} for _ in CLASSES)
        self._bytes = 0
        self._length = 0

    @property
    def queued_bytes(self) -> int:
        """Bytes waiting, all classes."""
        return self._bytes

    def __len__(self) -> int:
        return self._length

    def offer(self, route: Route, frame_class: int, size: int, item: Item) -> int:
        """Queue one frame; returns how many frames were shed to make space (perhaps this one)."""
        turn = self._turns[frame_class].get(route)
        if turn is None:
            turn = self._turns[frame_class][route] = _Turn()
        turn.items.append((size, item))
        turn.size += size
        self._bytes += size
        self._length += 1
        return self._shed() if self._bytes > self._cap else 0

    def may_read(self, route: Route) -> bool:
        """True if more may be read from this agent: its evidence and channels are below their cap, and all is; and
        none of its channels waits while half of all space is taken, of which the other half is for samples."""
        if self._bytes < self._cap_least:
            return True  # nearly always: not even all agents together hold what one may
        held = [turn.size if (turn := turns.get(route)) is not None else 0 for turns in self._turns]
        if held[CHANNEL] and self._bytes >= self._cap_channels:
            return False
        return held[EVIDENCE] + held[CHANNEL] < self._cap_route and sum(held) < self._cap_route_all

    def take(self, count: int, bytes_max: int = 1 << 62) -> list[tuple[Route, Item]]:
        """Up to `count` frames: evidence of all agents first, then live, channel, backlog; one per agent and turn.

        Stops at the first frame that reaches `bytes_max`, so one batch is at most that and one frame more.
        """
        taken: list[tuple[Route, Item]] = []
        taken_bytes = 0
        for turns in self._turns:
            while turns and len(taken) < count and taken_bytes < bytes_max:
                route = next(iter(turns))
                turn = turns.pop(route)
                size, item = turn.items.popleft()
                self._forget(turn, size)
                taken.append((route, item))
                taken_bytes += size
                if turn.items:
                    turns[route] = turn  # to the end of the line: its next frame waits for everybody else's
        return taken

    def drop_route(self, route: Route) -> int:
        """Forget an agent that has gone; returns how many frames went with it."""
        gone = 0
        for turns in self._turns:
            turn = turns.pop(route, None)
            if turn is not None:
                gone += len(turn.items)
                self._bytes -= turn.size
                self._length -= len(turn.items)
        return gone

    def _forget(self, turn: _Turn[Item], size: int) -> None:
        turn.size -= size
        self._bytes -= size
        self._length -= 1

    def _shed(self) -> int:
        shed = 0
        for frame_class in SHED_ORDER:
            turns = self._turns[frame_class]
            while turns and self._bytes > self._cap:
                route = max(turns, key=lambda r: turns[r].size)
                turn = turns[route]
                size, _ = turn.items.popleft()
                self._forget(turn, size)
                shed += 1
                if not turn.items:
                    del turns[route]
        return shed
