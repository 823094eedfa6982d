"""Histories of bought machines: a cloud that loses answers and lags, a Master that dies at every step.

    python -m tests.simulation.purchases --histories 10000 --shells 300

`History` drives the pure core (states, decide, caps) with a Master of a few lines, so that ten thousand are quick;
tests/simulation/purchase_shells.py does the same with the shipped service. Two designs that must not pass are played
beside it: one that writes a purchase down after the call, and one that believes an empty list at once.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from tests.support.memory_backend import Chances, Instance, MemoryCloud, Planned, Terms
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE, Doubtful, Order, PurchaseId, Refused
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.decide import Effect, Look, begun, decide, moved
from windrow_master.hybrid.purchases.model import ORPHAN_TTL_NS, BackendRow, Caps, Cost, Purchase, Rules
from windrow_master.hybrid.purchases.states import Event, State
from windrow_master.hybrid.purchases.sweep import sweep
from windrow_proto.errors import QuotaExceeded
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents, parse_money

T = TypeVar("T")

MARKET: Final = "market-of-ours"
OTHER: Final = "market-of-others"
START_NS: Final = 1_790_000_000 * SECOND
TURN_NS: Final = 30 * SECOND
SWEEP_NS: Final = 5 * MINUTE
FAULTY_NS: Final = 50 * MINUTE
HEALED_NS: Final = 3 * HOUR
"""After it everything has to be over; it mostly is long before."""
SLACK_NS: Final = 2 * MINUTE
"""From the word of a provider that a machine ends, late answers included, to its end."""
DIES: Final = 0.04
"""The chance of the Master at every step."""
NAME: Final = "cloud"


class Design(StrEnum):
    """How purchases are made safe. The last two are controls: they must fail."""

    SHIPPED = "shipped"
    RECORD_AFTER = "record after the call"
    BELIEVE_EMPTY = "an empty list is believed at once"


SHOWN_BY: Final = {
    Design.RECORD_AFTER: "machine without a purchase",
    Design.BELIEVE_EMPTY: "machine whose purchase is believed over",
}
"""The fault by which each control has to fail."""


class Hasty(Rules):
    """The rules of a Master that has no doubts."""

    @property
    def doubt_ns(self) -> int:
        return 0


class Died(Exception):
    """The Master is killed here."""


@dataclass
class Tally:
    """What many histories found."""

    histories: int = 0
    with_orphans: int = 0
    machines: int = 0
    longest_ns: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    seeds: dict[str, int] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)

    def add(self, seed: int, one: "History") -> None:
        self.histories += 1
        self.machines += len(one.ours())
        self.longest_ns = max(self.longest_ns, one.longest_ns)
        self.with_orphans += bool(one.broken)
        self.broken += one.broken
        self.ends.update(str(row.state) for row in one.rows.values())
        for name in one.broken:
            self.seeds.setdefault(name, seed)

    def text(self) -> str:
        found = ", ".join(f"{n:,} {name} (seed {self.seeds[name]})" for name, n in self.broken.most_common()) or "none"
        longest = self.longest_ns // SECOND
        return (
            f"{self.histories:,} histories, {self.machines:,} machines, {self.with_orphans:,} histories with a fault; "
            f"longest past its end {longest} s; faults: {found}; ends: {dict(self.ends.most_common())}"
        )


class History:
    """One history. rows, book: what is on the Master's disk."""

    def __init__(self, seed: int, design: Design = Design.SHIPPED) -> None:
        self.rng, self.design, self.now = random.Random(seed), design, START_NS
        lag, late = self.rng.choice((0, 10, 60)) * SECOND, self.rng.choice((5, 30)) * SECOND
        self.cloud = MemoryCloud(
            lambda: self.now,
            Chances(self.rng),
            Terms(list_lag_ns=lag, late_ns=late, has_purchase_token=False, dies_at_its_end=self.rng.random() < 0.5),
        )
        kind = Hasty if design is Design.BELIEVE_EMPTY else Rules
        self.rules = kind(list_lag_ns=lag, boot_ns=6 * MINUTE, idle_ns=10 * MINUTE, rest_ns=MINUTE)
        caps = Caps(per_hour=parse_money("2.50"), in_all=parse_money("6"), machines=self.rng.choice((2, 3)), vcpus=12)
        self.row = BackendRow(name=NAME, kind="memory", settings={}, caps=caps, created_at_ns=START_NS)
        self.rows: dict[PurchaseId, Purchase] = {}
        self.book: list[Cost] = []
        self.broken: Counter[str] = Counter()
        self.longest_ns = 0
        self.is_restored = False
        self._wishes = sorted(self.rng.randrange(FAULTY_NS) for _ in range(self.rng.randint(2, 6)))
        self._alive_ns = START_NS
        """From when the Master runs again."""
        self._heard_ns: dict[str, int] = {}
        """When each machine last heard of it: the host of one that is ended hears nothing any more."""
        self._swept_ns = 0
        self._backup: tuple[dict[PurchaseId, Purchase], list[Cost]] | None = None
        self._calls: list[tuple[int, Order]] = []
        """Of a Master that was paused between its check and its call, and makes it all the same."""
        self._over_ns: dict[str, int] = {}
        self._epoch, self._numbers = 1, 0
        self._foreign = [
            self.cloud.add_foreign({TAG_MARKET: OTHER, TAG_PURCHASE: "purchase-1"}),
            self.cloud.add_foreign({}),
            self.cloud.add_foreign({TAG_PURCHASE: "purchase-2"}),
        ]

    def play(self) -> "History":
        """Faults rain for a while; then the Master runs and the cloud answers, until all is over."""
        while self.now < START_NS + FAULTY_NS:
            self._go(is_faulty=True)
        self.cloud.faults = Planned()
        self._alive_ns = min(self._alive_ns, self.now)
        while self.now < START_NS + FAULTY_NS + HEALED_NS and (self._living() or self._volumes() or self._open()):
            self._go(is_faulty=False)
        self._check(bool(self._living()), "machine that is never ended")
        self._check(bool(self._volumes()), "volume that is never removed")
        self._check(any(row.is_living for row in self.rows.values()), "purchase that never ends")
        return self

    def ours(self) -> list[Instance]:
        """All machines that were ever made for this market."""
        return [one for one in self.cloud.all() if one.tags.get(TAG_MARKET) == MARKET]

    # ----- time -----

    def _go(self, *, is_faulty: bool) -> None:
        self.now += TURN_NS
        self._machines()
        if is_faulty and self.rng.random() < 0.01:
            self._backup = dict(self.rows), list(self.book)
        if is_faulty and self._backup is not None and self.rng.random() < 0.004:
            (self.rows, self.book), self.is_restored = (dict(self._backup[0]), list(self._backup[1])), True
            self._restart()
        for at_ns, order in [one for one in self._calls if one[0] <= self.now]:
            self._calls.remove((at_ns, order))
            self._provision(order)
        if self.now >= self._alive_ns:
            try:
                self._turn(is_faulty=is_faulty)
                self._heard_ns.update(dict.fromkeys(self._in_touch(), self.now))
            except Died:
                self._restart()
        self._judge()

    def _restart(self) -> None:
        """The Master is away for a while, mostly a short one; the next one has a new term and swept nothing."""
        away = self.rng.choice((0, 0, 30, 30, 120, 900, 2_700)) * SECOND
        self._alive_ns, self._swept_ns, self._epoch = self.now + away, 0, self._epoch + 1

    def _step(self, *, is_faulty: bool) -> None:
        if is_faulty and self.rng.random() < DIES:
            raise Died

    def _machines(self) -> None:
        """Agents join, work comes and goes; a machine that has heard of no Master for too long switches itself off."""
        for one in self._living():
            up_ns = self.now - one.made_at_ns
            if self.now - self._heard_ns.get(one.machine_id, one.made_at_ns) >= ORPHAN_TTL_NS:
                self.cloud.power_off(one.machine_id)
            elif self.rng.random() < 0.002:
                self.cloud.reclaim(one.machine_id)
            purchase = self.rows.get(PurchaseId(one.tags[TAG_PURCHASE]))
            if purchase is None or purchase.host_id is not None or self.now < self._alive_ns:
                continue
            is_open = purchase.state in (State.ASKING, State.DOUBTFUL, State.BOOTING)
            if is_open and up_ns > MINUTE and int(one.machine_id[2:]) % 8:
                self.rows[purchase.purchase_id] = replace(purchase, host_id=HostId(f"host-{one.machine_id}"))

    def _in_touch(self) -> list[str]:
        rows = [one for one in self.rows.values() if one.is_living and one.state is not State.ENDING]
        return [one.machine_id for one in rows if one.host_id is not None]

    # ----- the Master -----

    def _turn(self, *, is_faulty: bool) -> None:
        while is_faulty and self._wishes and self._wishes[0] <= self.now - START_NS:
            self._wishes.pop(0)
            self._want()
            self._step(is_faulty=is_faulty)
        if self.now - self._swept_ns >= SWEEP_NS:
            self._sweep()
        if self._swept_ns:
            for row in [one for one in self.rows.values() if one.state is State.WANTED]:
                self._ask(row, is_faulty=is_faulty)
        self._look(is_faulty=is_faulty)

    def _want(self) -> None:
        self._numbers += 1
        offer, hours = self.rng.choice(list(self.cloud.book.values())), self.rng.choice((0.2, 0.5, 1.0))
        dearest = costs.dearest(offer.price_per_hour)
        wish = Purchase(
            purchase_id=PurchaseId(f"purchase-{self._epoch}-{self._numbers}"),
            backend=NAME,
            account_id=AccountId("account_of_somebody"),
            bought_by="account/operator",
            offer=offer,
            state=State.WANTED,
            state_since_ns=self.now,
            created_at_ns=self.now,
            ends_at_ns=self.now + int(hours * HOUR),
            dearest_per_hour=dearest,
            reserved=costs.worst_case(offer, dearest, int(hours * HOUR)),
        )
        try:
            costs.check_caps(self.row, wish, [one for one in self.rows.values() if one.is_living], self._spent())
        except QuotaExceeded:
            return
        self.rows[wish.purchase_id] = wish

    def _ask(self, wanted: Purchase, *, is_faulty: bool) -> None:
        asking = begun(wanted, self.now, self._epoch)
        if asking.state is not State.ASKING:
            self.rows[wanted.purchase_id] = asking
            return
        if self.design is Design.RECORD_AFTER:
            del self.rows[wanted.purchase_id]
        else:
            self.rows[wanted.purchase_id] = asking
        order = Order(
            purchase_id=asking.purchase_id,
            market_id=MARKET,
            epoch=self._epoch,
            offer=asking.offer,
            user_data="",
            dearest_per_hour=asking.dearest_per_hour,
            ends_at_ns=asking.ends_at_ns,
        )
        if is_faulty and self.rng.random() < DIES:  # deposed while it was paused: it calls when it wakes
            self._calls.append((self.now + self.rng.randrange(int(self.rules.call_ns)), order))
            raise Died
        answer = self._provision(order)
        self._step(is_faulty=is_faulty)
        if isinstance(answer, Refused):
            after = replace(moved(asking, Event.REFUSE, self.now, answer.said), refused_for=answer.reason)
        elif answer is None:
            after = moved(asking, Event.DOUBT, self.now)
        else:
            after = moved(replace(asking, machine_id=answer), Event.FOUND, self.now)
        self.rows[after.purchase_id] = after

    def _provision(self, order: Order) -> str | Refused | None:
        try:
            return self.cloud.provision(order).machine_id
        except Refused as refused:
            return refused
        except Doubtful:
            return None

    def _look(self, *, is_faulty: bool) -> None:
        try:
            machines = self.cloud.describe(MARKET)
        except (Refused, Doubtful):
            machines = None
        self._step(is_faulty=is_faulty)
        seen = {one.purchase_id: one for one in reversed(machines or ())}
        for before in list(self.rows.values()):
            is_busy = self.rng.random() < 0.7
            look = Look(machines is not None, self.now, seen.get(before.purchase_id), is_busy)
            decision = decide(before, look, self.rules, self.now)
            self.rows[before.purchase_id] = decision.purchase
            if Effect.BOOK in decision.effects:
                earlier = [one for one in self.book if one.purchase_id == before.purchase_id]
                self.book.append(costs.entry(decision.purchase, earlier, Microcents(0), self.now))
            if Effect.TERMINATE in decision.effects:
                self._step(is_faulty=is_faulty)
                self._terminate(decision.purchase.machine_id)

    def _terminate(self, machine_id: str) -> None:
        try:
            self.cloud.terminate(machine_id)
        except (Refused, Doubtful):
            return

    def _sweep(self) -> None:
        async def living() -> Mapping[PurchaseId, str]:
            return {one.purchase_id: one.machine_id for one in self.rows.values() if one.is_living}

        try:
            done(sweep(AtOnce(self.cloud), MARKET, living))
            self._swept_ns = self.now
        except (Refused, Doubtful):
            return

    # ----- judges -----

    def _judge(self) -> None:
        living = self._living()
        for one in living:
            assert one.order is not None
            row = self.rows.get(one.order.purchase_id)
            if not self.is_restored:
                self._check(row is None, "machine without a purchase")
                self._check(row is not None and not row.is_living, "machine whose purchase is believed over")
            is_over = row is None or row.state is State.ENDING or not row.is_living
            if not is_over:  # or is again, in a database that was put back
                self._over_ns.pop(one.machine_id, None)
            over_ns = self._over_ns.setdefault(one.machine_id, self.now) if is_over else one.order.ends_at_ns
            self._late(min(over_ns, one.order.ends_at_ns))
        if not self.is_restored and self.design is Design.SHIPPED:
            caps, cost = self.row.caps, sum(self.cloud.cost(one) for one in self.ours())
            self._check(len(living) > (caps.machines or 0), "cap on machines passed")
            self._check(sum(one.offer.price_per_hour for one in living) > (caps.per_hour or 0), "cap per hour passed")
            self._check(cost > (caps.in_all or 0), "cap in all passed")
        for one in self._foreign:
            self._check(one.end_asked_at_ns is not None, "foreign machine touched")

    def _late(self, over_ns: int) -> None:
        self.longest_ns = max(self.longest_ns, self.now - over_ns)
        self._check(self.now - over_ns > ORPHAN_TTL_NS + SLACK_NS, "machine that outlives its purchase")

    def _check(self, is_broken: bool, name: str) -> None:
        if is_broken:
            self.broken[name] = 1

    def _living(self) -> list[Instance]:
        return [one for one in self.ours() if one.ended_at_ns is None]

    def _volumes(self) -> list[Instance]:
        return [one for one in self.cloud.volumes() if one.tags.get(TAG_MARKET) == MARKET]

    def _open(self) -> bool:
        return bool(self._calls) or any(row.is_living for row in self.rows.values())

    def _spent(self) -> costs.Spent:
        total = Microcents(sum(one.cost for one in self.book))
        return costs.Spent(total, total)


class AtOnce:
    """The verbs of a sweep on the cloud, without waiting."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud

    def __getattr__(self, name: str) -> Any:
        async def call(*given: object) -> Any:
            return getattr(self._cloud, name)(*given)

        return call


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as over:
        result: T = over.value
        return result
    raise AssertionError("it waits")


def histories(count: int, design: Design = Design.SHIPPED, first: int = 1) -> Tally:
    """Play so many histories of one design."""
    tally = Tally()
    for seed in range(first, first + count):
        tally.add(seed, History(seed, design).play())
    return tally


def main() -> int:
    """Play the histories that are asked for, and the controls; 0 where all is as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--controls", type=int, default=500)
    parser.add_argument("--shells", type=int, default=0)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    given, is_good = parser.parse_args(), True
    for design in Design:
        began = time.monotonic()
        count = given.histories if design is Design.SHIPPED else given.controls
        tally = histories(count, design, given.first)
        is_good &= not count or (not tally.broken if design is Design.SHIPPED else SHOWN_BY[design] in tally.broken)
        print(f"{design}: {tally.text()} [{time.monotonic() - began:.0f} s]", flush=True)
    if given.shells:
        from tests.simulation.purchase_shells import shells  # a whole Master's imports

        began = time.monotonic()
        broken = shells(given.shells, given.first)
        is_good &= not broken
        print(f"shells: {given.shells} histories, faults: {broken or 'none'} [{time.monotonic() - began:.0f} s]")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
