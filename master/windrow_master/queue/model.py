"""The values of the queue: what waits, what it needs of hosts, and what it costs its share. Pure.

Units: cards in milli (1,000 = one card), processors in milli, memory in MiB, times in wall nanoseconds.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from windrow_proto.units import DAY

MILLI: Final = 1000
FOREVER: Final = 2**63 - 1
PRIORITY_MAX: Final = 100
AGE_CAP_NS: Final = DAY
"""Waiting so long makes up for the whole range of priorities: whoever waits longer is passed by nothing that was
submitted after it to the same leaf and class."""


class Amounts(NamedTuple):
    """Amounts that shares count. gpus: cards in milli times the cost of their tier; cpus in milli; memory in MiB."""

    gpus: int = 0
    cpus: int = 0
    memory: int = 0

    def plus(self, other: "Amounts", sign: int = 1) -> "Amounts":
        """Both together; less the other with sign -1."""
        return Amounts(self[0] + sign * other[0], self[1] + sign * other[1], self[2] + sign * other[2])


NOTHING: Final = Amounts()


def cost(cards: Mapping[str, int], cpus: int, memory: int, tier_costs: Mapping[str, int]) -> Amounts:
    """Amounts in tier-normalised cost (Gavel: by measured throughput). cards: milli by tier; tier_costs: a card's, in
    permille of the tier that counts as one, 1,000 where a tier is not named. Rounded up."""
    gpus = sum(-(-milli * tier_costs.get(tier, MILLI) // MILLI) for tier, milli in cards.items())
    return Amounts(gpus, cpus, memory)


class PriorityClass(IntEnum):
    """The class of an entry; a lower number comes first."""

    URGENT = 0
    NORMAL = 1
    LOW = 2
    SPOT = 3


class When(StrEnum):
    """How the job that an entry comes after has to end."""

    ANY = "any"
    OK = "ok"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class End:
    """How and when a job ended."""

    is_ok: bool
    at_ns: int

    def satisfies(self, when: When) -> bool:
        """True if an entry that comes after it may start."""
        return when is When.ANY or self.is_ok is (when is When.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The needs of an entry on each of so many hosts: `cards` cards with `milli` of each. pools: the classes of hosts
    that will do, only: the hosts; empty: any."""

    cards: int = 0
    milli: int = MILLI
    cpus: int = 0
    memory: int = 0
    hosts: int = 1
    pools: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the queue. leaf: its node in the tree of shares. name, limit_ns: of the run; None: it has no end.
    begin_ns: not before. released_ns: when its last hold ended. array, index, at_once: its array, its place in it, and
    how many of that run at once (`1000%20`); None: all. shape: all that decides on a place beside the need: where one
    finds none, others of the same shape and need do not either."""

    entry_id: str
    leaf: str
    cost: Amounts
    need: Need
    submitted_ns: int
    priority_class: PriorityClass = PriorityClass.NORMAL
    priority: int = 0
    name: str = ""
    limit_ns: int | None = None
    begin_ns: int = 0
    released_ns: int = 0
    after: tuple[tuple[str, When], ...] = ()
    array: str = ""
    index: int = 0
    at_once: int | None = None
    held_by: str = ""
    is_top: bool = False
    shape: Hashable = None
