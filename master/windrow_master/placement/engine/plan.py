"""Decides where a request runs: the engine, its memory of refusals, and the sample of hosts that it compares. Pure.

    plan   refused before? ─▶ 32 hosts that fit, from the classes that cost least ─▶ none: exact scan ─▶ score ─▶ best

A decision costs the same in a fleet of 1,000 hosts and of 100,000. "No" is only said after an exact scan of all hosts;
a refused shape is remembered and proved again from the hosts on which something was freed since. A small fleet is
compared as a whole.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.gang import Gang, GangPlacement, plan_gang
from windrow_master.placement.engine.index import HostClass, Match, Pool
from windrow_master.placement.engine.mix import CPU_CLASSES, Mix, Tables, share_level
from windrow_master.placement.engine.model import (
    MILLI,
    PASSING,
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
from windrow_master.placement.engine.state import (
    CARD_PRICE,
    CPU_PRICE,
    HASH,
    LEVELS,
    OUT,
    RATIO,
    RELIABILITY,
    STEP,
    WHOLE,
    Fleet,
)

Ints = NDArray[np.int64]
Shape = tuple[object, ...]
Check = Callable[[Ints], NDArray[np.bool_]]
"""Which of these hosts pass."""
SAMPLE: Final = 32
"""Hosts that are compared: 8 lose 0.5 points of what a fleet holds, 128 win none."""
OF_LIST: Final = 8
"""Of one list at most, so that several classes are compared."""
LOOKED_MAX: Final = 320
"""Cards or hosts that are looked at before an exact scan is the cheaper way."""
WHOLE_FLEET: Final = 128
"""Up to so many hosts all that fit are compared."""
OWN_MAX: Final = 8
"""Of the asker's own hosts that are compared beside the others."""
FEW: Final = 256
"""Entries of the log that are looked through before a sample is taken."""
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

    def saved_mix(self) -> dict[str, Any]:
        """What was learnt of requests, as values for JSON."""
        return self.mix.saved(self.fleet.classes.groups)

    def restore_mix(self, saved: dict[str, Any]) -> None:
        """Begin with what was learnt before, once the hosts have joined."""
        self.mix.restore(saved, self.fleet.classes.groups)
        self._renewed()

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
        if before is not None and self._freed_to - before[0] <= FEW:
            hosts = self._freed_since(request, before[0])
        elif request.only_own or len(fleet.number) <= WHOLE_FLEET:
            hosts = self.scan(request)
        else:
            hosts = self._sample(request)
            if not len(hosts):
                hosts = self._freed_since(request, before[0] if before else -1)
        if before is not None:
            if not len(hosts):
                self._refused[shape] = (self._freed_to, before[1])
                return replace(before[1], version=self.version)
            del self._refused[shape]
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
        """Hosts that fit among those on which something was freed since; -1: of all."""
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
        hosts = _roomy(fleet, request) if hosts is None else hosts
        for passes in _checks(fleet, request).values():
            hosts = hosts[passes(hosts)]
        return hosts

    def _sample(self, request: Request) -> Ints:
        """At most 32 hosts that fit, out of the classes that cost least, a few of each, and some of the asker's own."""
        fleet = self.fleet
        match = fleet.classes.match(request.needs)
        order = self._order(request, match)
        lists = order[self._pool(request).live[order]]
        found: Ints = np.zeros(0, dtype=np.int64)
        if request.account in fleet.by_account:
            found = self.scan(request, np.array(list(fleet.by_account[request.account]), dtype=np.int64))[:OWN_MAX]
        seen: dict[int, None] = dict.fromkeys(found.tolist())
        members: list[int] = []
        if request.near and (self.weights.locality or self.weights.latency):
            near = self._members(request, lists, fleet.classes.near(request.needs, request.near))
            members = _gathered(near, SAMPLE // 2)
        source, looked = self._members(request, lists, match.masks), 0
        while True:
            more = _gathered(source, SAMPLE + OF_LIST - len(members))
            fresh = self._kept(request, members + more, seen)
            found = (np.concatenate((found, fresh)) if len(found) else fresh)[:SAMPLE]
            looked += len(more)
            if not more or len(found) == SAMPLE or looked > LOOKED_MAX:
                return found
            members = []

    def _pool(self, request: Request) -> Pool:
        fleet = self.fleet
        return fleet.ratios if not request.gpus else fleet.shares if request.is_share else fleet.wholes

    def _members(self, request: Request, lists: Ints, masks: list[int]) -> "Iterator[array[int]]":
        """A few members of each list in this order, of the classes in these masks, from where the seed says on."""
        fleet, pool = self.fleet, self._pool(request)
        found, filled, levels = pool.lists, pool.filled, pool.levels
        seed = request.seed & 0x7FFFFFFF
        for key in chain(lists[:64].tolist(), (int(key) for key in lists[64:])):
            group, level = divmod(key, levels)
            bits = filled[key] & masks[group]
            if not bits:
                continue
            for of in _numbers(bits, seed, fleet.classes.of_group[group]):
                members = found[of * levels + level]
                size = len(members)
                if size <= OF_LIST:
                    yield members
                else:
                    start = seed % size
                    over = start + OF_LIST - size
                    yield members[start:] + members[:over] if over > 0 else members[start : start + OF_LIST]

    def _kept(self, request: Request, members: list[int], seen: dict[int, None]) -> Ints:
        """The hosts of these members that fit, those apart that were seen before."""
        if request.is_share:
            width = self.fleet.cards_max
            members = [member // width for member in members]
        fresh = dict.fromkeys(members)
        hosts = np.array([at for at in fresh if at not in seen] if seen else list(fresh), dtype=np.int64)
        seen.update(fresh)
        rows = self.fleet.rows.take(hosts, axis=0)
        least = (request.cpu, request.memory, 1, request.milli if request.gpus else OUT)
        fits = np.logical_and.reduce(rows[:, :WHOLE] >= least, axis=1)
        if request.price_max is not None:
            fits &= price_of(request, rows[:, CARD_PRICE], rows[:, CPU_PRICE]) <= request.price_max
        if request.reliability_min:
            fits &= rows[:, RELIABILITY] >= request.reliability_min
        return hosts[fits]

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
        all_hosts, ties = fleet.hosts, fleet.rows[hosts, HASH]
        names = [all_hosts[one] for one in hosts.tolist()]

        def scored(count: int) -> tuple[Scored, ...]:
            ids = [one.host_id if one else "" for one in names]
            return compared.scored(ids, request.seed, count, ties)

        price = price_of(request, int(fleet.rows[at, CARD_PRICE]), int(fleet.rows[at, CPU_PRICE]))
        version, tables = self.version, self.tables.version
        return Placement(host.host_id, cards, version, tables, price, len(hosts), request, scored)

    def _refuse(self, shape: Shape, request: Request) -> Refusal:
        refusal = self.refusal(request)
        if len(self._refused) >= REFUSALS_MAX:
            del self._refused[next(iter(self._refused))]
        self._refused[shape] = (self._freed_to, refusal)
        return refusal

    def refusal(self, request: Request, more: Mapping[str, int] | None = None) -> Refusal:
        """A refusal at this version. more: reasons beside those of each host."""
        largest = self._largest(request)
        return Refusal(self.version, largest, lambda: self.excluded(request), dict(more or {}))

    def why_not(self, request: Request, host_id: str) -> str | None:
        """The first reason against one host; None if the request fits there now. Raises KeyError for no such host."""
        at = self.fleet.number[host_id]
        one = np.array([at], dtype=np.int64)
        found = next((name for name, passes in _checks(self.fleet, request).items() if not passes(one)[0]), None)
        return request.needs.obstacle(self.fleet.of_class[at].kind) if found == "class" else found

    def excluded(self, request: Request) -> tuple[tuple[Kind, str, int], ...]:
        """For each class of hosts and each reason how many hosts it keeps away: the first reason against each host."""
        fleet = self.fleet
        hosts = np.flatnonzero(fleet.columns["is_here"])
        found = []
        for name, passes in _checks(fleet, request).items():
            does = passes(hosts)
            counts = np.bincount(fleet.columns["class_number"][hosts[~does]])
            for of in np.flatnonzero(counts).tolist():
                kind = fleet.classes.all[of].kind
                reason = (request.needs.obstacle(kind) or "unverified") if name == "class" else name
                found.append((kind, reason, int(counts[of])))
            hosts = hosts[does]
        return tuple(found)

    def _largest(self, request: Request) -> Largest | None:
        """Where no host that it may have is large enough even when empty, the largest that does; None if one is."""
        columns, size = self.fleet.columns, self.fleet.size
        wanted = {"all_cards": request.gpus, "all_cpu": request.cpu, "all_memory": request.memory}
        enough = [columns[name][:size] >= least for name, least in wanted.items()]
        here = columns["is_here"][:size]
        able, done = np.flatnonzero(enough[0] & enough[1] & enough[2] & here), 0
        while done < len(able):  # the first few mostly show that there is one
            if len(self._lasting(request, able[done : 8 * done + 64])):
                return None
            done = 8 * done + 64
        hosts = self._lasting(request, np.flatnonzero(here))
        others = (enough[1] & enough[2], enough[0] & enough[2], enough[0] & enough[1])
        found = (columns[name][hosts][fits[hosts]] for name, fits in zip(wanted, others, strict=True))
        return Largest(*(int(has.max(initial=0)) for has in found))

    def _lasting(self, request: Request, hosts: Ints) -> Ints:
        """Those against which nothing stands but what passes by itself."""
        for name, passes in _checks(self.fleet, request).items():
            if name not in PASSING:
                hosts = hosts[passes(hosts)]
        return hosts


def _gathered(source: "Iterator[array[int]]", most: int) -> list[int]:
    """Members of one list after the other, until there are so many."""
    found: list[int] = []
    for members in source:
        found += members
        if len(found) >= most:
            break
    return found


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


def _roomy(fleet: Fleet, request: Request) -> Ints:
    """The hosts with the cards and processors: few where a fleet is full, so that the rest is looked up for these."""
    size, columns = fleet.size, fleet.columns
    fits = columns["is_open"][:size] & (columns["cpu"][:size] >= request.cpu)
    if request.gpus == 1:
        fits &= columns["roomiest"][:size] >= request.milli
    elif request.gpus:
        fits &= columns["whole"][:size] >= min(request.gpus, fleet.cards_max + 1)
    return np.flatnonzero(fits)


def _checks(fleet: Fleet, request: Request) -> dict[str, Check]:
    """For each reason which hosts pass, in the order in which reasons are told."""
    columns, match = fleet.columns, fleet.classes.match(request.needs)
    account = fleet.account_number.get(request.account, -1)
    own = list(fleet.by_account.get(request.account, ())) if request.account else []

    def in_class(hosts: Ints) -> NDArray[np.bool_]:
        of = columns["class_number"][hosts]
        passes: NDArray[np.bool_] = match.passes[of]
        if own:
            passes = np.logical_or(passes, np.isin(hosts, own) & match.passes_own[of])
        return passes

    def kept(hosts: Ints) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (columns["kept_for"][hosts] == 0) | (columns["kept_for"][hosts] == account)
        return found

    def gpus(hosts: Ints) -> NDArray[np.bool_]:
        has, least = ("roomiest", request.milli) if request.gpus == 1 else ("whole", request.gpus)
        return at_least(has, min(least, MILLI + 1))(hosts)

    def at_least(name: str, least: int) -> Check:
        def passes(hosts: Ints) -> NDArray[np.bool_]:
            enough: NDArray[np.bool_] = columns[name][hosts] >= least
            return enough

        return passes

    found: dict[str, Check] = {"class": in_class, "kept": kept, "closed": at_least("is_open", True)}
    if request.gpus:
        found["gpus"] = gpus
    found |= {"cpus": at_least("cpu", request.cpu), "memory": at_least("memory", request.memory)}
    found["works"] = at_least("works_left", 1)
    ceiling = request.price_max
    if ceiling is not None:
        prices = (columns["card_price"], columns["cpu_price"])
        found["price"] = lambda hosts: np.less_equal(price_of(request, *(price[hosts] for price in prices)), ceiling)
    if request.reliability_min:
        found["reliability"] = at_least("reliability", min(request.reliability_min, MILLI + 1))
    if request.only_own:
        found = {"not_own": lambda hosts: np.isin(hosts, own)} | found
    return found
