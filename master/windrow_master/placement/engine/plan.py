"""Decides where a request runs: the engine, its memory of refusals, and the sample of hosts that it compares. Pure.

    plan   refused before? ─▶ 32 hosts that fit, from the classes that cost least ─▶ none: exact scan ─▶ score ─▶ best

A decision costs the same in a fleet of 1,000 hosts and of 100,000. "No" is only said after an exact scan of all hosts;
a refused shape is remembered and proved again from the hosts on which something was freed since. A small fleet is
compared as a whole.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.gang import Gang, GangPlacement, plan_gang
from windrow_master.placement.engine.index import HostClass, Match, Pool
from windrow_master.placement.engine.mix import CPU_CLASSES, Mix, Tables, share_level
from windrow_master.placement.engine.model import (
    MILLI,
    Asked,
    Delta,
    Kind,
    Largest,
    Placement,
    Refusal,
    Request,
    Scored,
    Weights,
)
from windrow_master.placement.engine.score import compare, price_of
from windrow_master.placement.engine.state import LEVELS, RATIO, STEP, Fleet

Ints = NDArray[np.int64]
Shape = tuple[object, ...]
SAMPLE: Final = 32
"""Hosts that are compared: 8 lose 0.5 points of what a fleet holds, 128 win none."""
OF_LIST: Final = 6
"""Of one list at most, so that several classes are compared."""
LOOKED_MAX: Final = 2048
"""Cards or hosts that are looked at before an exact scan is the cheaper way."""
WHOLE_FLEET: Final = 128
"""Up to so many hosts all that fit are compared."""
OWN_MAX: Final = 8
"""Of the asker's own hosts that are compared beside the others."""
REFUSALS_MAX: Final = 4096
FREED_MAX: Final = 1 << 16
"""Entries of the log of what was freed; refusals older than the log are proved by a scan."""
ORDERS_MAX: Final = 1024


class Engine:
    """A fleet, the mix of what was asked, and the answers. `apply` is the only change."""

    def __init__(self, weights: Weights | None = None, cards_max: int = 8) -> None:
        """cards_max: the most cards of one host, at most 16."""
        self.weights = weights or Weights()
        self.fleet = Fleet(cards_max)
        self.mix = Mix(cards_max, self.weights)
        self.version = 0
        self.scans = 0
        self._freed_from = 0
        self._refused: dict[Shape, tuple[int, Refusal]] = {}
        self._orders: dict[tuple[int, int, bytes], Ints] = {}

    @property
    def tables(self) -> Tables:
        """What the score looks up now."""
        fleet = self.fleet
        if len(self.mix.tables.shortage) < len(fleet.group_cards):
            self._renewed()
        return self.mix.tables

    def _renewed(self) -> None:
        self.mix.renew(self.fleet.group_cards, self.fleet.group_idle)
        self._orders.clear()

    def apply(self, delta: Delta) -> bool:
        """Carry out one change; False if it changes nothing. Raises NotFree; ValueError for a host that cannot be."""
        fleet = self.fleet
        if isinstance(delta, Asked):
            match = fleet.classes.match(delta.request.needs)
            if self.mix.learn(delta.request, match.groups, fleet.group_cards, fleet.group_idle):
                self._orders.clear()
        elif not fleet.apply(delta):
            return False
        self.version += 1
        if len(fleet.freed) > FREED_MAX:
            half = len(fleet.freed) // 2
            del fleet.freed[:half]
            self._freed_from += half
        return True

    def plan(self, request: Request) -> Placement | Refusal:
        """Where it goes now, or why nowhere. Changes nothing but what is remembered of refusals."""
        fleet = self.fleet
        shape = self._shape(request)
        before = self._refused.get(shape)
        if before is not None:
            hosts = self._freed_since(request, before[0])
            if not len(hosts):
                self._refused[shape] = (self._freed_to, before[1])
                return before[1]
            del self._refused[shape]
        elif request.only_own or len(fleet.number) <= WHOLE_FLEET:
            hosts = self.scan(request)
        else:
            hosts = self._sample(request)
            if not len(hosts):
                hosts = self._some(self.scan(request), request.seed)
        if not len(hosts):
            return self._refuse(shape, request)
        return self._best(request, hosts)

    def plan_gang(self, gang: Gang) -> GangPlacement | Refusal:
        """Where all members go now, or why they cannot."""
        return plan_gang(self, gang)

    def _shape(self, request: Request) -> Shape:
        account = request.account if request.account in self.fleet.by_account or request.only_own else ""
        size = (request.cpu, request.memory, request.gpus, request.milli if request.gpus else 0)
        return (*size, request.needs, account, request.only_own, request.price_max, request.reliability_min)

    @property
    def _freed_to(self) -> int:
        return self._freed_from + len(self.fleet.freed)

    def _freed_since(self, request: Request, at: int) -> Ints:
        """The hosts that fit among those on which something was freed since."""
        if at == self._freed_to:
            return np.zeros(0, dtype=np.int64)
        if at < self._freed_from or self._freed_to - at > self.fleet.size // 4 + SAMPLE:
            return self._some(self.scan(request), request.seed)
        fresh = np.unique(np.array(self.fleet.freed[at - self._freed_from :], dtype=np.int64))
        return self._some(self.scan(request, fresh), request.seed)

    @staticmethod
    def _some(hosts: Ints, seed: int) -> Ints:
        """At most four times the sample, from a place on that the seed says."""
        if len(hosts) <= 4 * SAMPLE:
            return hosts
        return hosts[(np.arange(4 * SAMPLE) + seed) % len(hosts)]

    def scan(self, request: Request, hosts: Ints | None = None) -> Ints:
        """All hosts that fit, exactly; of these if they are given. O(hosts): 1 ms at 100,000."""
        fleet = self.fleet
        if hosts is None and request.only_own:
            hosts = np.array(list(fleet.by_account.get(request.account, ())), dtype=np.int64)
        if hosts is None:
            self.scans += 1
        reasons = _fits(fleet, request, fleet.classes.match(request.needs), hosts)
        fits = np.logical_and.reduce(list(reasons.values()))
        found = np.flatnonzero(fits)
        return found if hosts is None else hosts[found]

    def _sample(self, request: Request) -> Ints:
        """At most 32 hosts that fit, out of the classes that cost least, a few of each, and some of the asker's own."""
        fleet = self.fleet
        match = fleet.classes.match(request.needs)
        found: dict[int, None] = {}
        if request.account in fleet.by_account:
            own = np.array(list(fleet.by_account[request.account]), dtype=np.int64)
            found.update(dict.fromkeys(self.scan(request, own)[:OWN_MAX].tolist()))
        order = self._order(request, match)
        near = request.near and (self.weights.locality or self.weights.latency)
        if near:
            self._walk(request, order, fleet.classes.near(request.needs, request.near), SAMPLE // 2, found)
        self._walk(request, order, match.masks, SAMPLE, found)
        return np.fromiter(found, dtype=np.int64, count=len(found))

    def _pool(self, request: Request) -> Pool:
        fleet = self.fleet
        return fleet.ratios if not request.gpus else fleet.shares if request.is_share else fleet.wholes

    def _walk(self, request: Request, order: Ints, masks: list[int], most: int, found: dict[int, None]) -> None:
        """Add hosts until there are so many, list by list in this order."""
        fleet, pool = self.fleet, self._pool(request)
        cpu, memory, works, left = fleet.cpu, fleet.memory, fleet.works_left, fleet.left
        wants_cpu, wants_memory = request.cpu, request.memory
        milli = request.milli if request.is_share else 0
        is_limited = request.price_max is not None or request.reliability_min > 0
        lists, filled, levels, width = pool.lists, pool.filled, pool.levels, fleet.cards_max
        seed, looked = request.seed & 0x7FFFFFFF, 0
        for key in order[pool.live[order]].tolist():
            group, level = divmod(key, levels)
            bits = filled[key] & masks[group]
            for of in _numbers(bits, seed, fleet.classes.of_group[group]):
                members = lists[of * levels + level]
                size, got = len(members), 0
                if size > 2 * OF_LIST:
                    start = seed % size
                    members = members[start : start + 2 * OF_LIST] + members[: max(0, start + 2 * OF_LIST - size)]
                looked += len(members)
                for member in members:
                    at = member // width if milli else member
                    if cpu[at] < wants_cpu or memory[at] < wants_memory or works[at] < 1:
                        continue
                    if milli and left[at][member % width] < milli:
                        continue
                    if at in found or (is_limited and not self._within(request, at)):
                        continue
                    found[at] = None
                    got += 1
                    if got == OF_LIST:
                        break
                if len(found) >= most or (looked > LOOKED_MAX and not found):
                    return

    def _within(self, request: Request, at: int) -> bool:
        """Whether a host keeps the price ceiling and the reliability floor."""
        fleet, ceiling = self.fleet, request.price_max
        if ceiling is not None and price_of(request, fleet.card_price[at], fleet.cpu_price[at]) > ceiling:
            return False
        return fleet.reliability[at] >= request.reliability_min

    def _order(self, request: Request, match: Match) -> Ints:
        """The lists to walk, those first where any host loses least: known from the tables alone."""
        milli = request.milli if request.gpus else 0
        key = (request.gpus, milli, match.key)
        found = self._orders.get(key)
        if found is None:
            if len(self._orders) >= ORDERS_MAX:
                self._orders.clear()
            found = self._orders[key] = list_order(self.tables, request, match.groups, self.fleet.cards_max)
        return found

    def _best(self, request: Request, hosts: Ints) -> Placement:
        fleet = self.fleet
        compared = compare(fleet, self.tables, self.weights, request, hosts)
        at = int(hosts[compared.best])
        if compared.cards is not None:
            cards: tuple[int, ...] = (int(compared.cards[compared.best]),)
        else:
            free = (card for card, left in enumerate(fleet.left[at]) if left == MILLI)
            cards = tuple(card for card, _ in zip(free, range(request.gpus), strict=False))
        host = fleet.hosts[at]
        assert host is not None
        all_hosts, hashes = fleet.hosts, fleet.columns["hash"]
        names, ties = [all_hosts[one] for one in hosts.tolist()], hashes[hosts]

        def scored(count: int) -> tuple[Scored, ...]:
            ids = [one.host_id if one else "" for one in names]
            return compared.scored(ids, request.seed, count, ties)

        price = price_of(request, fleet.card_price[at], fleet.cpu_price[at])
        version, tables = self.version, self.tables.version
        return Placement(host.host_id, cards, version, tables, price, len(hosts), request, scored)

    def _refuse(self, shape: Shape, request: Request) -> Refusal:
        refusal = self.refusal(request)
        if len(self._refused) >= REFUSALS_MAX:
            del self._refused[next(iter(self._refused))]
        self._refused[shape] = (self._freed_to, refusal)
        return refusal

    def refusal(self, request: Request, more: Mapping[str, int] | None = None) -> Refusal:
        """Why it does not fit: each host counts for the first reason against it. more: reasons beside these."""
        fleet, size = self.fleet, self.fleet.size
        match = fleet.classes.match(request.needs)
        reasons = _fits(fleet, request, match, None)
        names = (*reasons, "")
        first = np.full(size, len(reasons), dtype=np.int64)
        for place, passes in reversed(list(enumerate(reasons.values()))):
            first[~passes] = place
        known = np.fromiter(fleet.number.values(), dtype=np.int64, count=len(fleet.number))
        of = fleet.columns["class_number"][known]
        counts = np.bincount(of * len(names) + first[known])
        totals: dict[str, int] = {}
        by_class: list[tuple[Kind, str, int]] = []
        for key in np.flatnonzero(counts).tolist():
            kind, name, count = fleet.classes.all[key // len(names)].kind, names[key % len(names)], int(counts[key])
            if name:
                reason = (request.needs.obstacle(kind) or "unverified") if name == "class" else name
                totals[reason] = totals.get(reason, 0) + count
                by_class.append((kind, reason, count))
        largest = self._largest(request, known[match.passes_own[of]] if len(of) else known)
        return Refusal(self.version, totals | dict(more or {}), tuple(by_class), largest)

    def _largest(self, request: Request, hosts: Ints) -> Largest | None:
        """Where none of these hosts is large enough even when empty, the largest that does; None if one is."""
        columns = self.fleet.columns
        sizes = [columns[name][hosts] for name in ("all_cards", "all_cpu", "all_memory")]
        cards, cpu, memory = (
            has >= wanted for has, wanted in zip(sizes, (request.gpus, request.cpu, request.memory), strict=True)
        )
        if (cards & cpu & memory).any():
            return None
        others = (cpu & memory, cards & memory, cards & cpu)
        return Largest(*(int(has[fits].max(initial=0)) for has, fits in zip(sizes, others, strict=True)))


def _numbers(bits: int, seed: int, members: list[HostClass]) -> list[int]:
    """The numbers of the classes with these bits, from one on that the seed says; at most as many as a sample."""
    if not bits & (bits - 1):
        return [members[bits.bit_length() - 1].number] if bits else []
    turn = seed % bits.bit_length()
    upper = bits >> turn << turn
    found: list[int] = []
    for rest in (upper, bits ^ upper):
        while rest and len(found) < SAMPLE:
            low = rest & -rest
            rest ^= low
            found.append(members[low.bit_length() - 1].number)
    return found


def list_order(tables: Tables, request: Request, groups: Ints, cards_max: int) -> Ints:
    """The lists (group x levels + level) that may hold a host for this request, by what any host there would lose, the
    least first."""
    top = groups * CPU_CLASSES + CPU_CLASSES - 1
    price = (tables.shortage[groups] * request.gpu_milli)[:, None]
    if not request.gpus:
        levels, width = np.arange(RATIO, -1, -1), RATIO + 1
        cost = np.broadcast_to(np.arange(RATIO + 1), (len(groups), RATIO + 1))
    elif request.is_share:
        levels, width = np.arange(request.milli // STEP, LEVELS), LEVELS
        then = np.maximum(levels - share_level(request.milli), 0)
        shares = tables.shares.reshape(-1, LEVELS)[top]
        wholes = tables.wholes.reshape(-1, cards_max + 1)[top]
        cost = tables.worth[levels] - tables.worth[then] - shares[:, then] + shares[:, levels] + price
        cost[:, -1] += wholes[:, cards_max] - wholes[:, cards_max - 1]
    else:
        levels, width = np.arange(request.gpus, cards_max + 1), cards_max + 1
        wholes = tables.wholes.reshape(-1, cards_max + 1)[top]
        cost = wholes[:, levels] - wholes[:, levels - request.gpus] + price
    keys = groups[:, None] * width + levels[None, :]
    found: Ints = keys.ravel()[np.argsort(cost, axis=None, kind="stable")]
    return found


def _fits(fleet: Fleet, request: Request, match: Match, hosts: Ints | None) -> dict[str, NDArray[np.bool_]]:
    """For each reason whether it lets each host pass, of these hosts or of all numbers, shape (hosts,)."""
    size, columns = fleet.size, fleet.columns

    def column(name: str) -> NDArray[np.int64]:
        found: NDArray[np.int64] = columns[name][:size] if hosts is None else columns[name][hosts]
        return found

    of = column("class_number")
    passes = match.passes[of] if len(match.passes) else np.zeros(len(of), dtype=np.bool_)
    account = fleet.account_number.get(request.account, -1)
    own = fleet.by_account.get(request.account, {}) if request.account else {}
    if own:
        ours = np.isin(np.arange(size) if hosts is None else hosts, list(own))
        passes = np.where(ours, match.passes_own[of], passes)
    kept = column("kept_for")
    found = {"class": passes, "kept": (kept == 0) | (kept == account), "closed": column("is_open").astype(np.bool_)}
    if request.gpus > fleet.cards_max:
        found["gpus"] = np.zeros(len(of), dtype=np.bool_)
    elif request.gpus:
        found["gpus"] = column("roomiest") >= request.milli if request.gpus == 1 else column("whole") >= request.gpus
    found["cpus"] = column("cpu") >= request.cpu
    found["memory"] = column("memory") >= request.memory
    found["works"] = column("works_left") >= 1
    if request.price_max is not None:
        found["price"] = price_of(request, column("card_price"), column("cpu_price")) <= request.price_max
    if request.reliability_min:
        found["reliability"] = column("reliability") >= request.reliability_min
    return found
