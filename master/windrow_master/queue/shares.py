"""Shares the fleet between nodes of a tree: installation, organisations, projects, members. Pure.

    rank of siblings: those inside their guarantee first, then by dominant share of their usage, divided by weight

The tree is ranked level by level (Slurm's Fair Tree), so that a thousand projects of an organisation are one leaf
beside other organisations. A dominant share is the largest of a node's shares of cards, processors and memory (DRF,
Ghodsi 2011). Usage is the integral of what was held, halved every half-life: with U at some time and r held from then
on, after t it is U d + r (1 - d) H / ln 2, where d = 2^(-t/H). So a start, a stop and a charge cost O(depth), and a
look at a node O(1), however much time has passed. What is held counts besides as if it had been held for COMMIT of the
mean life, or all that is free at one moment would go to one node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Final

from windrow_master.queue.model import NOTHING, Amounts
from windrow_master.spec import require
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.units import DAY

ROOT: Final = "installation"
WHOLE: Final = 1_000_000
"""Shares are parts per million of the installation."""
HALF_LIFE_NS: Final = 7 * DAY
COMMIT: Final = 0.05
DEPTH_MAX: Final = 8
PLACES: Final = 7
"""Of usage as siblings are compared by it: at the usual half-life 0.09 s of the whole installation."""

Vector = tuple[float, float, float]
Rank = tuple[bool, float, str]
Extra = Mapping[str, Amounts]
"""Amounts that nodes would hold beside what they hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node and its rules. guarantee, ceiling: parts per million of the installation. is_borrowing: it may have more
    than its guarantee while others leave it free."""

    node_id: str
    parent: str | None
    guarantee: int = 0
    ceiling: int = WHOLE
    weight: int = 1
    is_borrowing: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The rules of a node as people set them; what nobody set is as the fields say. may_use_urgent: entries below it
    may have that class."""

    node_id: str
    guarantee: int = 0
    ceiling: int = WHOLE
    weight: int = 1
    is_borrowing: bool = True
    may_use_urgent: bool = False

    def node(self, parent: str) -> Node:
        """As the tree has it."""
        return Node(
            node_id=self.node_id,
            parent=parent,
            guarantee=self.guarantee,
            ceiling=self.ceiling,
            weight=self.weight,
            is_borrowing=self.is_borrowing,
        )


@dataclass(slots=True)
class _State:
    """used: in amounts x nanoseconds at a time; held: now."""

    node: Node
    path: tuple[str, ...]
    children: set[str] = field(default_factory=set)
    held: Amounts = NOTHING
    used: Vector = (0.0, 0.0, 0.0)
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A node as people see it: shares of the installation, 0 to 1. used: of the half-life's worth; held: now."""

    node: Node
    held: float
    used: float
    rank: Rank


class Shares:
    """The tree, its usage and what is held. Nodes that are put again keep their usage."""

    def __init__(self, capacity: Amounts, nodes: Iterable[Node] = (), half_life_ns: int = HALF_LIFE_NS) -> None:
        """Nodes in any order. Raises InvalidInput, NotFound or Conflict for a tree that cannot be."""
        self.capacity, self.half_life_ns = capacity, half_life_ns
        self._mean_ns = half_life_ns / log(2)
        self._states = {ROOT: _State(Node(node_id=ROOT, parent=None, guarantee=WHOLE), (ROOT,))}
        left = {one.node_id: one for one in nodes}
        while left:
            ready = [one for one in left.values() if one.parent not in left]
            require("parent", bool(ready), f"no circle, as of {', '.join(sorted(left)[:4])}")
            for one in ready:
                self.put(left.pop(one.node_id))

    def put(self, node: Node) -> None:
        """Add a node, or change its rules; O(siblings). Raises InvalidInput, or NotFound for a parent that is gone."""
        known, parent = self._states.get(node.node_id), self._parent(node)
        require("weight", node.weight > 0, "above 0")
        require("guarantee", 0 <= node.guarantee <= WHOLE, "0 to 100 %")
        require("ceiling", node.guarantee <= node.ceiling <= WHOLE, "between the guarantee and 100 %")
        require("parent", known is None or known.node.parent == node.parent, "the one that it has: shares do not move")
        require("parent", len(parent.path) < DEPTH_MAX, f"at most {DEPTH_MAX - 1} levels deep")
        beside = sum(self._states[one].node.guarantee for one in parent.children if one != node.node_id)
        left = parent.node.guarantee - beside
        way = "" if node.parent == ROOT else f"raise the guarantee of {node.parent}, or "
        said = f"at most {share_text(left)}, which {node.parent} has left. To give more, {way}lower another share in it"
        require("guarantee", node.guarantee <= left, said)
        if known is not None:
            below = sum(self._states[one].node.guarantee for one in known.children)
            require("guarantee", node.guarantee >= below, f"at least {share_text(below)}, which is given on below it")
        self.take(node)

    def take(self, node: Node) -> bool:
        """As `put`, of rules that somebody has checked: several that change may come in any order. A leaf whose parent
        is another one moves there, with what it holds and has used; True if it did. Raises NotFound for a parent that
        is gone."""
        known, parent = self._states.get(node.node_id), self._parent(node)
        if known is None:
            parent.children.add(node.node_id)
            self._states[node.node_id] = _State(node, (*parent.path, node.node_id))
            return False
        is_moved = known.node.parent != node.parent
        if is_moved:
            self._move(known, parent)
        known.node = node
        return is_moved

    def _parent(self, node: Node) -> _State:
        parent = self._states.get(node.parent or "")
        if parent is None or node.node_id == ROOT:
            raise NotFound(f"The share {node.node_id} has no parent {node.parent}: it is deleted, or was never there.")
        return parent

    def _move(self, leaf: _State, parent: _State) -> None:
        assert not leaf.children, f"{leaf.node.node_id} moves, and others are below it"
        before, after = self._up(leaf.node.node_id)[1:], [self._states[one] for one in parent.path]
        at_ns = max(one.at_ns for one in (leaf, *before, *after))
        for state in {id(one): one for one in (leaf, *before, *after)}.values():
            self._advance(state, at_ns)
        for states, sign in ((before, -1), (after, 1)):
            for state in states:
                state.held = state.held.plus(leaf.held, sign)
                used = [max(0.0, had + sign * its) for had, its in zip(state.used, leaf.used, strict=True)]
                state.used = used[0], used[1], used[2]
        before[0].children.remove(leaf.node.node_id)
        parent.children.add(leaf.node.node_id)
        leaf.path = (*parent.path, leaf.node.node_id)

    def drop(self, node_id: str) -> None:
        """Delete a node. Raises Conflict while it has children or holds something."""
        state = self._state(node_id)
        if state.children or state.held != NOTHING or node_id == ROOT:
            raise Conflict(f"The share {node_id} has children, or work that runs. End these first.", subject=node_id)
        self._states[state.path[-2]].children.remove(node_id)
        del self._states[node_id]

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._states

    def ids(self) -> list[str]:
        """All nodes."""
        return list(self._states)

    def children(self, node_id: str) -> frozenset[str]:
        """The nodes right below it; none of one that is deleted."""
        return frozenset(self._states[node_id].children if node_id in self._states else ())

    def path(self, node_id: str) -> tuple[str, ...]:
        """From the installation down to the node."""
        return self._state(node_id).path

    def start(self, leaf: str, amounts: Amounts, now_ns: int) -> None:
        """It holds so much more from now on."""
        self._hold(leaf, amounts, 1, now_ns)

    def stop(self, leaf: str, amounts: Amounts, now_ns: int) -> None:
        """It holds so much less from now on."""
        self._hold(leaf, amounts, -1, now_ns)

    def charge(self, leaf: str, amounts: Amounts, from_ns: int, to_ns: int, now_ns: int) -> None:
        """It held this in the past, and no more: what a new Master reads from the rows of leases."""
        parts = [self._mean_ns * (self._decay(now_ns - to_ns) - self._decay(now_ns - from_ns)) * one for one in amounts]
        for state in self._up(leaf):
            self._advance(state, now_ns)
            state.used = state.used[0] + parts[0], state.used[1] + parts[1], state.used[2] + parts[2]

    def rank(self, node_id: str, now_ns: int, extra: Amounts = NOTHING) -> Rank:
        """Sorts siblings, the first to be served first: those that have used the same but for a moment by their ids, as
        after every restart. extra: what it would hold besides."""
        state = self._states[node_id]
        used, held = self._used(state, now_ns), state.held.plus(extra)
        is_above = not state.node.guarantee or self._share(held) * WHOLE >= state.node.guarantee
        more = COMMIT * self._mean_ns
        usage = used[0] + more * held[0], used[1] + more * held[1], used[2] + more * held[2]
        return is_above, round(self._share(usage) / self._mean_ns / state.node.weight, PLACES), state.node.node_id

    def over(self, leaf: str, amounts: Amounts, extra: Extra) -> str | None:
        """The uppermost node that would pass its ceiling, or its guarantee where it does not borrow; None: it may."""
        for node_id, most in self._caps(leaf):
            held = self._states[node_id].held.plus(extra.get(node_id, NOTHING)).plus(amounts)
            if self._share(held) * WHOLE > most:
                return node_id
        return None

    def never(self, leaf: str, amounts: Amounts) -> str | None:
        """The node whose ceiling this passes even with nothing else running; None: waiting can help."""
        share = self._share(amounts) * WHOLE
        return next((node_id for node_id, most in self._caps(leaf) if share > most), None)

    def is_guaranteed(self, leaf: str, amounts: Amounts) -> bool:
        """True if a run of so much is inside a guarantee: without it, its leaf or a node above would be below its own.
        Such a run is never preempted."""
        return any(self._share(one.held.plus(amounts, -1)) * WHOLE < one.node.guarantee for one in self._up(leaf)[:-1])

    def part(self, amounts: Amounts) -> float:
        """The part of the installation that this is, by its largest amount."""
        return self._share(amounts)

    def standing(self, node_id: str, now_ns: int) -> Standing:
        """The node as people see it."""
        state = self._state(node_id)
        used = self._share(self._used(state, now_ns)) / self._mean_ns
        return Standing(node=state.node, held=self._share(state.held), used=used, rank=self.rank(node_id, now_ns))

    def _hold(self, leaf: str, amounts: Amounts, sign: int, now_ns: int) -> None:
        for state in self._up(leaf):
            self._advance(state, now_ns)
            state.held = state.held.plus(amounts, sign)
            assert min(state.held) >= 0, f"{leaf} gives back more than it holds"

    def _advance(self, state: _State, now_ns: int) -> None:
        state.used, state.at_ns = self._used(state, now_ns), now_ns

    def _used(self, state: _State, now_ns: int) -> Vector:
        decay, used, held = self._decay(now_ns - state.at_ns), state.used, state.held
        more = self._mean_ns * (1 - decay)
        return used[0] * decay + held[0] * more, used[1] * decay + held[1] * more, used[2] * decay + held[2] * more

    def _decay(self, passed_ns: int) -> float:
        return float(2.0 ** -(max(0, passed_ns) / self.half_life_ns))

    def _share(self, amounts: Amounts | Vector) -> float:
        """The dominant share. With nothing of an amount in the fleet a milli of it is all."""
        gpus, cpus, memory = self.capacity
        return max(amounts[0] / (gpus or 1), amounts[1] / (cpus or 1), amounts[2] / (memory or 1))

    def _caps(self, leaf: str) -> list[tuple[str, int]]:
        """The nodes of its path that have a most, from the top. A ceiling of the whole is none: the fleet itself is."""
        nodes = [self._states[one].node for one in self._state(leaf).path[1:]]
        mosts = ((one.node_id, one.ceiling if one.is_borrowing else one.guarantee) for one in nodes)
        return [(node_id, most) for node_id, most in mosts if most < WHOLE]

    def _state(self, node_id: str) -> _State:
        if node_id not in self._states:
            raise NotFound(f"There is no share {node_id}.", subject=node_id)
        return self._states[node_id]

    def _up(self, leaf: str) -> list[_State]:
        """From the leaf to the installation."""
        return [self._states[one] for one in reversed(self._state(leaf).path)]


def share_text(parts: int) -> str:
    """Parts per million as people write them: 12.5 %."""
    return f"{parts / (WHOLE // 100):g} %"
