"""The hosts of a fleet and what is left of each, changed by deltas alone, a delta at a time in O(1). Pure.

Each amount is kept up to three times: in lists, by which deltas are carried out; in `columns`, an array for each
amount, which an exact scan reads; in `rows`, a row for each host, which lies together in memory, so that a few hosts
are compared without waiting for it. A host has a number as long as it is here; numbers of hosts that left are used
again.
"""

from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.index import Classes, HostClass, Pool
from windrow_master.placement.engine.model import (
    MILLI,
    Drain,
    GiveBack,
    Health,
    Host,
    Join,
    Kind,
    Leave,
    NotFree,
    Price,
    Take,
)

STEP: Final = 10
"""Milli of a card between two levels."""
LEVELS: Final = MILLI // STEP + 1
RATIO: Final = 64
"""Levels of processors per idle card, in half processors; the last is for hosts without an idle card."""
OUT: Final = -1
"""Milli left of a card that is not there, or cannot be used."""
ENDLESS: Final = 1 << 30
"""Of works that a host takes at once, where it sets no limit."""
SCOPES: Final = ("island", "network", "site", "region")
"""Domains beyond a host, the smallest first."""


_NOWHERE: Final = HostClass(Kind(), -1, -1, 0)
"""Of a number whose host has not told its kind yet."""


def stable_hash(text: str) -> int:
    """64 bits of a text, the same everywhere."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


CPU, MEMORY, WORKS_LEFT, ROOMIEST, WHOLE, IDLE, WORKS, GROUP, CLASS, CARD_PRICE, CPU_PRICE, RELIABILITY, WATTS, HASH = (
    range(14)
)
"""Places in a row; what is left of each card follows from LEFT on."""
MOVING: Final = GROUP
"""Places before it change with each lease."""
LEFT: Final = 14


def _columns() -> dict[str, tuple[Any, int]]:
    """Type and first value of each column."""
    return {
        **dict.fromkeys(("cpu", "memory", "card_price", "cpu_price", "all_cpu", "all_memory"), (np.int64, 0)),
        **dict.fromkeys(("works_left", "kept_for", "class_number"), (np.int32, 0)),
        **dict.fromkeys(("whole", "roomiest", "reliability", "all_cards"), (np.int16, 0)),
        **dict.fromkeys((f"{scope}_of" for scope in SCOPES), (np.int32, -1)),
        **dict.fromkeys(("is_here", "is_open"), (np.bool_, 0)),
    }


class Fleet:
    """All hosts; `apply` is the only change."""

    def __init__(self, cards_max: int = 8) -> None:
        """cards_max: the most cards of one host, at most 16."""
        self.cards_max = cards_max
        self.classes = Classes()
        self.shares, self.wholes, self.ratios = Pool(LEVELS), Pool(cards_max + 1), Pool(RATIO + 1)
        self.number: dict[str, int] = {}
        self.hosts: list[Host | None] = []
        self.of_class: list[HostClass] = []
        self.cpu: list[int] = []
        self.memory: list[int] = []
        self.works_left: list[int] = []
        self.left: list[list[int]] = []
        self.used: list[list[int]] = []
        self.whole: list[int] = []
        self.idle: list[int] = []
        self.ratio: list[int] = []
        self.out: list[frozenset[int]] = []
        self.usable: list[bool] = []
        self.draining: list[bool] = []
        self.pooled: list[bool] = []
        self.leases: list[dict[str, Take]] = []
        self.by_account: dict[str, dict[int, None]] = {}
        self.account_number: dict[str, int] = {"": 0}
        self.group_cards: list[int] = []
        self.group_idle: list[int] = []
        self.freed: list[int] = []
        self._unused: list[int] = []
        self.domains: list[str] = []
        self._domains: dict[tuple[str, str], int] = {}
        self.columns: dict[str, NDArray[Any]] = {}
        self.rows: NDArray[np.int64] = np.zeros((0, LEFT + cards_max), dtype=np.int64)
        self._grow(64)

    @property
    def size(self) -> int:
        """How many numbers of hosts there are, those of hosts that left included."""
        return len(self.hosts)

    def apply(self, delta: Join | Leave | Take | GiveBack | Health | Price | Drain) -> bool:
        """Carry out one change; False if it changes nothing. Raises NotFree."""
        if isinstance(delta, Take):
            return self._take(delta)
        if isinstance(delta, GiveBack):
            return self._give_back(delta)
        if isinstance(delta, Join):
            return self._join(delta.host)
        at = self.number.get(delta.host_id)
        if at is None:
            return False
        if isinstance(delta, Leave):
            self._leave(at)
        elif isinstance(delta, Price):
            self._price(at, delta)
        elif isinstance(delta, Drain):
            if self.draining[at] is delta.is_on:
                return False
            self._unindex(at)
            self.draining[at] = delta.is_on
            self._index(at)
        else:
            return self._health(at, delta)
        return True

    def take_fits(self, at: int, take: Take) -> bool:
        """Whether the host has this free."""
        left = self.left[at]
        return (
            self.cpu[at] >= take.cpu
            and self.memory[at] >= take.memory
            and self.works_left[at] >= 1
            and len(set(take.cards)) == len(take.cards)
            and all(0 <= card < len(left) and left[card] >= take.milli for card in take.cards)
        )

    def _take(self, take: Take) -> bool:
        at = self.number.get(take.host_id)
        if at is None:
            return False
        if take.lease in self.leases[at]:
            return False
        if not take.is_bound and not self.take_fits(at, take):
            raise NotFree(f"host {take.host_id} has not free what lease {take.lease} takes")
        self.leases[at][take.lease] = take
        self._change(at, take, -1)
        return True

    def _give_back(self, delta: GiveBack) -> bool:
        at = self.number.get(delta.host_id)
        take = None if at is None else self.leases[at].pop(delta.lease, None)
        if at is None or take is None:
            return False
        self._change(at, take, 1)
        self.freed.append(at)
        return True

    def _change(self, at: int, take: Take, sign: int) -> None:
        """Add what a take holds to what is left (sign 1), or subtract it (-1), and move the host in the index."""
        columns, of, pooled = self.columns, self.of_class[at], self.pooled[at]
        left, used, whole, idle = self.left[at], self.used[at], self.whole[at], self.idle[at]
        for card in take.cards:
            if card >= len(used):
                continue  # the host has lost the card since
            used[card] -= sign * take.milli
            before, after = left[card], self._room(at, card)
            left[card] = self.rows[at, LEFT + card] = after
            if before == after:
                continue
            if pooled:
                member = at * self.cards_max + card
                if before >= 0:
                    self.shares.drop(of, before // STEP, member)
                if after >= 0:
                    self.shares.put(of, after // STEP, member)
                self.group_cards[of.group] += (after != OUT) - (before != OUT)
            whole += (after == MILLI) - (before == MILLI)
            idle += max(after, 0) - max(before, 0)
        cpu = self.cpu[at] = columns["cpu"][at] = self.cpu[at] + sign * take.cpu
        self.memory[at] = columns["memory"][at] = self.memory[at] + sign * take.memory
        self.works_left[at] = columns["works_left"][at] = self.works_left[at] + sign
        if idle != self.idle[at] or whole != self.whole[at]:
            if pooled:
                self.group_idle[of.group] += idle - self.idle[at]
                if whole != self.whole[at]:
                    self.wholes.drop(of, self.whole[at], at)
                    self.wholes.put(of, whole, at)
            self.idle[at] = idle
            self.whole[at] = columns["whole"][at] = whole
            columns["roomiest"][at] = max(left)
        self._put_row(at)
        level = _ratio(cpu, idle)
        if level != self.ratio[at]:
            if pooled:
                self.ratios.drop(of, self.ratio[at], at)
                self.ratios.put(of, level, at)
            self.ratio[at] = level

    def _room(self, at: int, card: int) -> int:
        free = MILLI - self.used[at][card]
        return OUT if free < 0 or card in self.out[at] else free

    def _join(self, host: Host) -> bool:
        if not 0 <= host.cards <= self.cards_max:
            raise ValueError(f"host {host.host_id} has {host.cards} cards, this fleet takes 0 to {self.cards_max}")
        at = self.number.get(host.host_id)
        if at is None:
            at = self._new(host.host_id)
        elif self.hosts[at] == host:
            return False
        else:
            self._unindex(at)
            self._forget_accounts(at)
        self.hosts[at] = host
        of = self.of_class[at] = self.classes.of(host.kind)
        while len(self.group_cards) < len(self.classes.groups):
            self.group_cards.append(0)
            self.group_idle.append(0)
            for pool in (self.shares, self.wholes, self.ratios):
                pool.add_group()
        for account in {host.owner, host.kept_for} - {""}:
            self.by_account.setdefault(account, {})[at] = None
        values = {
            "is_here": True,
            "all_cards": host.cards,
            "all_cpu": host.cpu,
            "all_memory": host.memory,
            "card_price": host.card_price,
            "cpu_price": host.cpu_price,
            "reliability": host.reliability,
            "kept_for": self.account_number.setdefault(host.kept_for, len(self.account_number)),
            "class_number": of.number,
        }
        prices = (host.card_price, host.cpu_price)
        tie = stable_hash(host.host_id) >> 1
        self.rows[at, MOVING:LEFT] = (of.group, of.number, *prices, host.reliability, host.watts, tie)
        names = (host.island, host.kind.network, host.site, host.kind.region or None)
        for scope, name in zip(SCOPES, names, strict=True):
            values[f"{scope}_of"] = self._domain(scope, name)
        for column, value in values.items():
            self.columns[column][at] = value
        self._index(at)
        return True

    def _domain(self, scope: str, name: str | None) -> int:
        """The number of a domain, by which `domains` has its name; -1 for none."""
        if name is None:
            return -1
        if (scope, name) not in self._domains:
            self._domains[scope, name] = len(self.domains)
            self.domains.append(name)
        return self._domains[scope, name]

    def _leave(self, at: int) -> None:
        host = self.hosts[at]
        assert host is not None
        self._unindex(at)
        self._forget_accounts(at)
        del self.number[host.host_id]
        self.hosts[at] = None
        self.leases[at] = {}
        for column, (_, first) in _columns().items():
            self.columns[column][at] = first
        self._unused.append(at)

    def _forget_accounts(self, at: int) -> None:
        host = self.hosts[at]
        assert host is not None
        for account in {host.owner, host.kept_for} - {""}:
            self.by_account[account].pop(at)
            if not self.by_account[account]:
                del self.by_account[account]

    def _price(self, at: int, delta: Price) -> None:
        host = self.hosts[at]
        assert host is not None
        self.hosts[at] = replace(host, card_price=delta.card_price, cpu_price=delta.cpu_price)
        self.rows[at, CARD_PRICE] = self.columns["card_price"][at] = delta.card_price
        self.rows[at, CPU_PRICE] = self.columns["cpu_price"][at] = delta.cpu_price
        self.freed.append(at)

    def _health(self, at: int, delta: Health) -> bool:
        if delta.reliability is not None:
            host = self.hosts[at]
            assert host is not None
            self.hosts[at] = replace(host, reliability=delta.reliability)
            self.rows[at, RELIABILITY] = self.columns["reliability"][at] = delta.reliability
        elif (delta.is_usable, delta.cards_out) == (self.usable[at], self.out[at]):
            return False
        self._unindex(at)
        self.usable[at], self.out[at] = delta.is_usable, delta.cards_out
        self._index(at)
        return True

    def _new(self, host_id: str) -> int:
        """A number for a host that was not here."""
        if self._unused:
            at = self._unused.pop()
        else:
            at = len(self.hosts)
            if at == len(self.columns["cpu"]):
                self._grow(2 * at)
            self.hosts.append(None)
            self.of_class.append(_NOWHERE)
            amounts = (self.cpu, self.memory, self.works_left, self.whole, self.idle, self.ratio)
            for one in amounts:
                one.append(0)
            self.left.append([])
            self.used.append([])
            self.out.append(frozenset())
            self.leases.append({})
            for flags in (self.usable, self.draining, self.pooled):
                flags.append(False)
            self.shares.position.extend([0] * self.cards_max)
            self.wholes.position.append(0)
            self.ratios.position.append(0)
        self.number[host_id] = at
        self.out[at], self.usable[at], self.draining[at], self.pooled[at] = frozenset(), True, False, False
        return at

    def _index(self, at: int) -> None:
        """Work out from its host and leases what is left, and put the host where the index has it."""
        host, columns, of = self.hosts[at], self.columns, self.of_class[at]
        assert host is not None
        takes = self.leases[at].values()
        self.cpu[at] = columns["cpu"][at] = host.cpu - sum(take.cpu for take in takes)
        self.memory[at] = columns["memory"][at] = host.memory - sum(take.memory for take in takes)
        most = ENDLESS if host.works_max is None else host.works_max
        self.works_left[at] = columns["works_left"][at] = most - len(takes)
        used = self.used[at] = [0] * host.cards
        for take in takes:
            for card in take.cards:
                if card < host.cards:
                    used[card] += take.milli
        left = self.left[at] = [self._room(at, card) for card in range(host.cards)]
        self.rows[at, LEFT:] = left + [OUT] * (self.cards_max - len(left))
        self.whole[at] = columns["whole"][at] = left.count(MILLI)
        self.idle[at] = sum(max(free, 0) for free in left)
        columns["roomiest"][at] = max(left, default=OUT)
        self._put_row(at)
        self.ratio[at] = _ratio(self.cpu[at], self.idle[at])
        is_open = columns["is_open"][at] = self.usable[at] and not self.draining[at]
        self.pooled[at] = bool(is_open) and not host.kept_for
        self.freed.append(at)
        if self.pooled[at]:
            for card, free in enumerate(left):
                if free >= 0:
                    self.shares.put(of, free // STEP, at * self.cards_max + card)
            self.wholes.put(of, self.whole[at], at)
            self.ratios.put(of, self.ratio[at], at)
            self._count(at, 1)

    def _unindex(self, at: int) -> None:
        if self.pooled[at]:
            of = self.of_class[at]
            for card, free in enumerate(self.left[at]):
                if free >= 0:
                    self.shares.drop(of, free // STEP, at * self.cards_max + card)
            self.wholes.drop(of, self.whole[at], at)
            self.ratios.drop(of, self.ratio[at], at)
            self._count(at, -1)
            self.pooled[at] = False

    def _count(self, at: int, sign: int) -> None:
        of = self.of_class[at]
        self.group_cards[of.group] += sign * sum(free != OUT for free in self.left[at])
        self.group_idle[of.group] += sign * self.idle[at]

    def _put_row(self, at: int) -> None:
        """What changes with each lease, from the lists."""
        amounts = (self.cpu[at], self.memory[at], self.works_left[at], max(self.left[at], default=OUT))
        self.rows[at, :MOVING] = (*amounts, self.whole[at], self.idle[at], len(self.leases[at]))

    def _grow(self, size: int) -> None:
        for name, (kind, first) in _columns().items():
            fresh = np.full(size, first, dtype=kind)
            if name in self.columns:
                fresh[: len(self.columns[name])] = self.columns[name]
            self.columns[name] = fresh
        rows = np.zeros((size, LEFT + self.cards_max), dtype=np.int64)
        rows[: len(self.rows)] = self.rows
        self.rows = rows


def _ratio(cpu: int, idle: int) -> int:
    """Half processors per idle card, as a level."""
    return RATIO if idle <= 0 else max(0, min(RATIO - 1, 2 * cpu // idle))
