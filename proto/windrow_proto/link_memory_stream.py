"""One stream inside one process, and its two ends: delayed, held up, broken, cut in one direction or in both.

Where it is cut its ends disagree for a while on whether it is still there. Made by MemoryNetwork (link_memory.py).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from windrow_proto.errors import LinkClosed
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import MILLISECOND, SECOND

T = TypeVar("T", bound=Message)
Wake = Callable[[int, "asyncio.Future[None]"], None]

WINDOW_BYTES: Final = 262_144
"""In flight per direction before the sender waits; what a real stream may hold (link_streams.AGENT_OPTIONS)."""
KEEPALIVE_NS: Final = 9 * SECOND
"""A stream over a partition ends after this; the real keepalive takes 6 s and 3 s."""
_LOOK_NS: Final = 250 * MILLISECOND


class Way(Enum):
    """A direction of a stream: from its dialer, or to it."""

    UP = "up"
    DOWN = "down"


BOTH: Final = frozenset(Way)


@dataclass(frozen=True, slots=True)
class Weather:
    """How the network behaves: one-way delay, uniform between the two; the chance that a message breaks its stream."""

    delay_ns_min: int = 0
    delay_ns_max: int = 0
    break_chance: float = 0.0


class Surroundings(Protocol):
    """The parts of the network that a stream needs."""

    clock: Clock
    rng: Rng
    weather: Weather
    wake: Wake | None

    def delay_ns(self) -> int:
        """A one-way delay, drawn from the weather."""


class Stream:
    """The state that both ends of one stream share. cut: in which directions nothing passes."""

    def __init__(self, dialer: str, address: str) -> None:
        self.dialer, self.address = dialer, address
        self.cut: frozenset[Way] = frozenset()
        self.ends: tuple[MemoryLink[Any], ...] = ()

    @property
    def is_over(self) -> bool:
        """True if both ends know that it has ended."""
        return all(end.is_closed for end in self.ends)

    def end(self, reason: str, cause: BaseException | None = None, is_drained_first: bool = False) -> None:
        """The accepting end is done with it: nothing is sent any more; what is under way still arrives at the dialer if
        `is_drained_first`."""
        near, far = self.ends
        far.end(ended(reason, cause))
        near.hear_end(ended(reason, cause), is_drained_first)

    def cut_off(self, ways: frozenset[Way], give_up_ns: tuple[int, int]) -> None:
        """Let nothing pass in these directions from now on; the ends notice at these times, the dialer's first."""
        if not self.cut:
            for end, at_ns in zip(self.ends, give_up_ns, strict=True):
                end.give_up_ns = at_ns
        self.cut |= ways
        for end in self.ends:
            end.is_deaf = end.way_in in self.cut
            end.notify()

    def heal(self) -> None:
        """Let everything pass again, first of all what was sent meanwhile."""
        self.cut = frozenset()
        for end in self.ends:
            end.heal()


def ended(reason: str, cause: BaseException | None = None) -> LinkClosed:
    fault = LinkClosed(f"The stream has ended: {reason}")
    fault.__cause__ = cause
    return fault


class MemoryLink(Generic[T]):
    """One end of a stream. Made by MemoryNetwork."""

    def __init__(self, network: Surroundings, stream: Stream, is_dialer: bool) -> None:
        self._network, self._stream, self._is_dialer = network, stream, is_dialer
        self._arriving: deque[tuple[int, int, T]] = deque()
        self._arriving_bytes = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._held_up = 0  # senders that wait for space
        self._fault: LinkClosed | None = None
        self._is_drained_first = False
        self._unheard: LinkClosed | None = None  # that the other end has ended, which a cut keeps back
        self.way_in = Way.DOWN if is_dialer else Way.UP
        self.is_deaf = False
        """True if what the other end says does not come through."""
        self.give_up_ns: int | None = None
        """When the keepalive of this end notices that the stream is cut."""
        self.peer: MemoryLink[T] = self

    def end(self, fault: LinkClosed, is_drained_first: bool = False) -> None:
        """Over, as this end knows."""
        if self._fault is None:
            self._fault, self._is_drained_first = fault, is_drained_first
        self.notify()

    def hear_end(self, fault: LinkClosed, is_drained_first: bool = False) -> None:
        """The other end says that it is over: known at once, or when what is cut lets it through."""
        if self.is_deaf:
            self._unheard = self._unheard or fault
        else:
            self.end(fault, is_drained_first)

    def heal(self) -> None:
        """Deliver the messages that were kept back, the end of the stream last."""
        self.is_deaf, self.give_up_ns = False, None
        unheard, self._unheard = self._unheard, None
        if unheard is not None:
            self.end(unheard, is_drained_first=True)
        self.notify()

    def notify(self) -> None:
        """Let whoever waits at this end look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _announce(self, at_ns: int) -> None:
        """A message comes at this time: who waits for it looks then, or at once, and then sleeps until it is there."""
        if self._network.wake is None:
            self.notify()
            return
        for waiter in self._waiters:
            self._network.wake(at_ns, waiter)

    async def send(self, message: T) -> None:
        """Hand over one message; waits while the peer is slow. A cancelled send ends the stream."""
        data, network, peer = message.SerializeToString(), self._network, self.peer
        size = len(data)
        while True:
            if self._fault is not None:
                self._raise()
            if peer._arriving_bytes == 0 or peer._arriving_bytes + size <= WINDOW_BYTES:
                break
            await self._wait_for_room()
        chance = network.weather.break_chance
        if chance and network.rng.uniform() < chance:
            self.end(ended("the connection was reset"))
            peer.hear_end(ended("the connection was reset"))
            self._raise()
        at, arriving = network.clock.monotonic_ns() + network.delay_ns(), peer._arriving
        is_first = not arriving
        if not is_first:
            at = max(at, arriving[-1][0])
        arriving.append((at, size, type(message).FromString(data)))
        peer._arriving_bytes += size
        if is_first:
            peer._announce(at)

    async def _wait_for_room(self) -> None:
        self._held_up += 1
        try:
            await self._wait()
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            self._held_up -= 1

    async def receive(self) -> T:
        """The next message, in the order sent; cancelled, it loses nothing."""
        while True:
            is_over = self._fault is not None
            if is_over and not (self._arriving and self._is_drained_first):
                self._raise()
            if self._arriving and not self.is_deaf:
                at, size, message = self._arriving[0]
                early = at - self._network.clock.monotonic_ns()
                if early > 0 and not is_over:
                    await self._network.clock.sleep_ns(early)
                    continue
                self._arriving.popleft()
                self._arriving_bytes -= size
                if self.peer._held_up:
                    self.peer.notify()
                return message
            await self._wait()

    async def _wait(self) -> None:
        """Until something may have changed; where the stream is cut, whoever waits is the keepalive."""
        wake = self._network.wake
        if self.give_up_ns is not None:
            if self._network.clock.monotonic_ns() >= self.give_up_ns:
                self.end(ended("keepalive was not answered"))
                self._is_drained_first = False  # what the other end still sent does not cross, whoever ended it
                self.peer.hear_end(ended("the other end was not answered"))
                return
            if wake is None:
                await self._network.clock.sleep_ns(_LOOK_NS)
                return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if wake is not None and self.give_up_ns is not None:
            wake(self.give_up_ns, waiter)
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _raise(self) -> None:
        fault = self._fault
        if fault is not None:
            raise LinkClosed(fault.detail) from fault.__cause__

    @property
    def fault(self) -> LinkClosed | None:
        """Returns the error that the stream ended with, as this end knows it."""
        return self._fault

    @property
    def is_closed(self) -> bool:
        """True if the stream has ended, as this end knows."""
        return self._fault is not None

    async def close(self) -> None:
        """End the stream both ways; safe to call twice."""
        self.end(ended("an end closed it"))
        self.peer.hear_end(ended("an end closed it"), is_drained_first=not self._is_dialer)
