"""Numbered lists of cards or hosts, one for each class of hosts and level, with the lists that are not empty. Pure.

A level is how much is left: hundredths of a card, whole free cards of a host, processors per idle card of a host.
Classes with the same tier and model are one group: what a place there costs depends on group and level alone. For each
group and level a mask has a bit for each class whose list is not empty, so that empty ones are never walked.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.model import Kind, Needs

Wish = TypeVar("Wish")


@dataclass(slots=True)
class HostClass:
    """One class of hosts: its number, its group and its bit in the masks of that group."""

    kind: Kind
    number: int
    group: int
    bit: int


class Pool:
    """Lists by class and level; a member is in one list at a time. Put and drop are O(1). The lists are arrays: members
    lie together in memory, in a seventh of the room of a list of numbers."""

    def __init__(self, levels: int) -> None:
        """levels: how many there are."""
        self.levels = levels
        self.lists: dict[int, array[int]] = {}
        self.filled: list[int] = []
        self.live: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.position: array[int] = array("i")

    def add_group(self) -> None:
        """A new group, whose lists are empty."""
        self.filled += [0] * self.levels
        self.live = np.concatenate((self.live, np.zeros(self.levels, dtype=np.bool_)))

    def put(self, of: HostClass, level: int, member: int) -> None:
        """Append a member to a list."""
        key = of.number * self.levels + level
        found = self.lists.get(key)
        if found is None:
            self.lists[key] = array("i", (member,))
            self.position[member] = 0
            at = of.group * self.levels + level
            self.filled[at] |= of.bit
            self.live[at] = True
            return
        self.position[member] = len(found)
        found.append(member)

    def drop(self, of: HostClass, level: int, member: int) -> None:
        """Remove it; the last of the list takes its place."""
        key = of.number * self.levels + level
        found = self.lists[key]
        last = found.pop()
        if last != member:
            at = self.position[member]
            found[at] = last
            self.position[last] = at
        elif not found:
            del self.lists[key]
            at = of.group * self.levels + level
            self.filled[at] ^= of.bit
            if not self.filled[at]:
                self.live[at] = False


@dataclass(slots=True)
class Match:
    """The classes that pass the hard filters of a request.

    groups: those with a class that passes; masks: for each group the bits of its classes; passes, passes_own: by number
    of the class, the second for hosts of the asker. key: the same for matches with the same groups.
    """

    groups: NDArray[np.int64]
    masks: list[int]
    passes: NDArray[np.bool_]
    passes_own: NDArray[np.bool_]
    key: bytes


class Classes:
    """All classes of hosts that were ever seen, and which of them a request may have. A class is never forgotten."""

    MATCHES_MAX = 4096

    def __init__(self) -> None:
        self.all: list[HostClass] = []
        self.groups: list[tuple[str, str]] = []
        self.of_group: list[list[HostClass]] = []
        self._by_kind: dict[Kind, HostClass] = {}
        self._matches: dict[Needs, Match] = {}
        self._near: dict[tuple[Needs, frozenset[str]], list[int]] = {}
        self._regional: dict[object, NDArray[np.int64]] = {}

    def of(self, kind: Kind) -> HostClass:
        """The class of hosts of this kind; a new one forgets which classes were matched."""
        found = self._by_kind.get(kind)
        if found is None:
            name = (kind.tier, kind.model)
            if name not in self.groups:
                self.groups.append(name)
                self.of_group.append([])
            group = self.groups.index(name)
            found = HostClass(kind, len(self.all), group, 1 << len(self.of_group[group]))
            self._by_kind[kind] = found
            self.all.append(found)
            self.of_group[group].append(found)
            self._matches.clear()
            self._near.clear()
            self._regional.clear()
        return found

    def match(self, needs: Needs) -> Match:
        """The classes that pass; remembered."""
        found = self._matches.get(needs)
        if found is None:
            passes = np.array([needs.obstacle(one.kind) is None for one in self.all], dtype=np.bool_)
            own = np.array([needs.obstacle(one.kind, is_own=True) is None for one in self.all], dtype=np.bool_)
            masks = [sum(one.bit for one in members if passes[one.number]) for members in self.of_group]
            groups = np.array([number for number, mask in enumerate(masks) if mask], dtype=np.int64)
            found = Match(groups, masks, passes, own, groups.tobytes())
            if len(self._matches) >= self.MATCHES_MAX:
                self._matches.pop(next(iter(self._matches)))
            self._matches[needs] = found
        return found

    def near(self, needs: Needs, regions: frozenset[str]) -> list[int]:
        """The masks of the classes that pass and lie in one of these regions."""
        found = self._near.get((needs, regions))
        if found is None:
            passes = self.match(needs).passes
            found = [
                sum(one.bit for one in members if passes[one.number] and one.kind.region in regions)
                for members in self.of_group
            ]
            if len(self._near) >= self.MATCHES_MAX:
                self._near.pop(next(iter(self._near)))
            self._near[needs, regions] = found
        return found

    def regional(self, wish: Wish, points: Callable[[Wish, str], int]) -> NDArray[np.int64]:
        """Points that a wish gives each class by its region, shape (classes,); remembered by the wish."""
        found = self._regional.get(wish)
        if found is None:
            found = np.array([points(wish, one.kind.region) for one in self.all], dtype=np.int64)
            if len(self._regional) >= self.MATCHES_MAX:
                self._regional.pop(next(iter(self._regional)))
            self._regional[wish] = found
        return found
