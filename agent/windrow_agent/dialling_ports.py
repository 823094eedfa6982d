"""What dialling is given: who serves a connection, who knows of more Accesses, who asks what is kept back, why not."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from windrow_proto.errors import WindrowError
from windrow_proto.messages import RegionMap
from windrow_proto.ports import DialledLink, FrameLink, PingAnswer, WarmLink
from windrow_proto.units import SECOND

Serve = Callable[[FrameLink], Awaitable[None]]


@dataclass(slots=True)
class Ready:
    """A connection by a second Access that the Master has greeted already: serve it, or close its link."""

    link: DialledLink
    serve: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Second:
    """The connection to a second Access. ready: greeted there, so that it can serve at once; None: not (any more)."""

    address: str
    warm: WarmLink
    ready: Ready | None = None


Prepare = Callable[[DialledLink], Awaitable[Ready]]
Look = Callable[[], Awaitable[tuple[str, ...]]]
"""Finds addresses to try where no map helps; never raises, and may say anything."""
Judge = Callable[[RegionMap], Awaitable[bool]]
Ask = Callable[[Judge], Awaitable[None]]
"""Asks elsewhere for maps that are newer than the one known, until the judge takes one; never raises."""


class Canaries(Protocol):
    """What asks the Master, over a second Access, about the connection by the first."""

    def canary(self) -> bytes:
        """A letter to send; empty when there is nothing to ask."""

    def on_letter(self, letter: bytes) -> bool:
        """Its answer; returns whether the first Access keeps messages back."""

    def pause_ns(self) -> int:
        """At least so long between two: the Master's wish, who answers those of the whole fleet."""


async def look_nowhere() -> tuple[str, ...]:
    """There is no other place to look."""
    return ()


async def ask_nobody(judge: Judge) -> None:
    """There is nobody to ask."""


def named(error: WindrowError) -> WindrowError:
    """What the other side said, if it said anything."""
    return error.__cause__ if isinstance(error.__cause__, WindrowError) else error


def shorter(answer: PingAnswer, before: PingAnswer | None) -> PingAnswer:
    """With the shorter of two round trips: a busy machine at either end adds to one, and nothing makes one shorter."""
    return answer if before is None else replace(answer, rtt_ns=min(answer.rtt_ns, before.rtt_ns))


def told_s(error: WindrowError) -> float:
    """When the other side said to come back, in seconds from now; 0 if it did not."""
    return round(named(error).retry_after_ns / SECOND, 2)
