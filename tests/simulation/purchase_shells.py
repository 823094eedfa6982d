"""The same histories through the shipped service: its loop, its store and its sweep, in virtual time, against the cloud
in memory. The Master is killed at any moment, and its database may be put back to an earlier one."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import MutableMapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

import structlog

from tests.simulation.database import MemoryFile, Power, migrated, sharing_engines
from tests.simulation.loop import Process, SeededRng, VirtualClock, VirtualLoop, run
from tests.simulation.purchases import OTHER, SLACK_NS
from tests.support.memory_backend import Chances, Instance, MemoryBackend, MemoryCloud, Planned, Terms
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE, Finding, PurchaseId
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.model import ORPHAN_TTL_NS, Caps, Purchase, Rules
from windrow_master.hybrid.purchases.repository import PurchaseRepository
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.purchases.states import State
from windrow_master.identity.accounts import ensure_own
from windrow_master.identity.model import Principal, Role
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.crashes import CRASHED
from windrow_proto.errors import WindrowError
from windrow_proto.ids import AccountId, HostId, TokenId
from windrow_proto.keys import SigningKey
from windrow_proto.sealed import SealKey
from windrow_proto.units import HOUR, MILLISECOND, MINUTE, SECOND, Microcents, parse_money

MARKET: Final = "market-of-ours"
NAME: Final = "cloud"
ACCOUNT: Final = AccountId("account_of_somebody")
WATCH_NS: Final = 10 * SECOND
FAULTY_NS: Final = 25 * MINUTE
HEALED_NS: Final = 2 * HOUR


class NoHosts:
    """Hosts that are nothing but their ids. busy: those with work now."""

    def __init__(self) -> None:
        self.busy: set[HostId] = set()

    def bootstrap(self, uow: UnitOfWork, purchase: Purchase, life_ns: int) -> str:
        return f"#!/bin/sh\n# {purchase.purchase_id}\n"

    def redacted(self, console: str) -> str:
        return console

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        return host_id in self.busy

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        return Microcents(1)

    def __getattr__(self, name: str) -> Any:
        return lambda *_given: None


class AnyKind:
    """A kind of backend that takes whatever fields it is given."""

    def read(self, settings: object, secrets: object) -> None:
        return None


class Shell:
    """One history. broken: what a judge found, each once."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.loop, self.rng, self.clock = loop, random.Random(seed), VirtualClock(loop)
        lag = self.rng.choice((0, 10, 60)) * SECOND
        terms = Terms(list_lag_ns=lag, has_purchase_token=False, dies_at_its_end=self.rng.random() < 0.5)
        self.cloud = MemoryCloud(self.clock.wall_ns, Chances(self.rng), terms)
        self.rules = Rules(list_lag_ns=lag, boot_ns=5 * MINUTE, idle_ns=6 * MINUTE, rest_ns=MINUTE)
        self.hosts, self.power, self.backup = NoHosts(), migrated(), migrated()
        self.signing = SigningKey.from_raw(bytes(range(32)))
        self.broken: Counter[str] = Counter()
        self.store: Store | None = None
        self.purchases: PurchaseService | None = None
        self.process: Process | None = None
        self.is_restored, self.lives, self.restores = False, 0, 0
        self.heard_ns: dict[str, int] = {}
        self.foreign = [self.cloud.add_foreign({TAG_MARKET: OTHER, TAG_PURCHASE: "p"}), self.cloud.add_foreign({})]
        self.over_ns: dict[str, int] = {}

    async def play(self) -> "Shell":
        """Faults rain; then all is healed, and has to come to its end."""
        await self._start()
        begun = self.clock.wall_ns()
        while self.clock.wall_ns() < begun + FAULTY_NS:
            await self._go()
            await self._fail()
        self.cloud.faults = Planned()
        if self.process is None:
            await self._start()
        while self.clock.wall_ns() < begun + FAULTY_NS + HEALED_NS and not self._is_over():
            await self._go()
        self._check(not self._is_over(), "something that never ends")
        return self

    async def _fail(self) -> None:
        drawn = self.rng.random()
        if self.process is None:
            if drawn < 0.2:
                await self._start()
        elif drawn < 0.05:
            self._kill()
        elif drawn < 0.06:
            self.backup = _copied(self.power)
        elif drawn < 0.062:
            self._kill()
            self.power, self.is_restored = _copied(self.backup), True
        elif drawn < 0.12:
            self._later(self._buy)
        elif drawn < 0.13:
            self._later(self._end_one)

    # ----- the Master -----

    async def _start(self) -> None:
        self.lives += 1
        self.process = Process(f"master#{self.lives}")
        ready = asyncio.Event()
        self.loop.create_task(self._main(ready), name=self.process.name, context=self.process.context.copy())
        await ready.wait()

    async def _main(self, ready: asyncio.Event) -> None:
        rng, engines = SeededRng(f"{self.rng.random()}"), lambda _url: sharing_engines(self.power)
        self.store = store = Store(engines(""), self.clock, rng, InlineExecutor(), version="0", lock=None)
        latency_ns = self.rng.choice((1, 200, 3_000)) * MILLISECOND
        backends = BackendService(
            store,
            self.clock,
            SealKey.of(self.signing),
            {"memory": AnyKind()},
            lambda _kind, _settings, _secrets: MemoryBackend(self.cloud, self.clock, latency_ns=latency_ns),
            lambda: Finding("reachability", True, "In memory everything is."),
        )
        self.purchases = PurchaseService(store, self.clock, backends, self.hosts, MARKET, self.rules)
        store.write_now(lambda uow: ensure_own(uow, ACCOUNT, "somebody", frozenset({Role.RENTER})), name="account")
        caps = Caps(per_hour=parse_money("2.50"), in_all=parse_money("4"), machines=3)
        with suppress(WindrowError):
            await backends.add(operator(), NAME, "memory", {}, {"key": "secret"}, caps)
        ready.set()
        await self.purchases.controller.run()

    def _kill(self) -> None:
        assert self.process is not None
        self.loop.kill(self.process)
        self.process = self.store = self.purchases = None
        self.power = _copied(self.power)

    def _later(self, work: Any) -> None:
        assert self.process is not None
        self.loop.create_task(work(self.purchases), context=self.process.context.copy())

    async def _buy(self, purchases: PurchaseService) -> None:
        offer, hours = self.rng.choice(list(self.cloud.book)), self.rng.choice((0.1, 0.25, 0.5))
        with suppress(WindrowError):
            await purchases.buy(operator(), NAME, offer, account_id=ACCOUNT, hours=hours)

    async def _end_one(self, purchases: PurchaseService) -> None:
        for one in (await purchases.list(limit=10))[:1]:
            await purchases.end(operator(), one.purchase_id, "by hand")

    # ----- the world -----

    async def _go(self) -> None:
        await self.clock.sleep_ns(WATCH_NS)
        now = self.clock.wall_ns()
        for row in self.store.read_now(_all) if self.store is not None else ():
            if row.is_living and row.state is not State.ENDING and row.host_id is not None:
                self.heard_ns[row.machine_id] = now
        for one in self._living():
            if now - self.heard_ns.get(one.machine_id, one.made_at_ns) >= ORPHAN_TTL_NS:
                self.cloud.power_off(one.machine_id)
            elif self.rng.random() < 0.001:
                self.cloud.reclaim(one.machine_id)
            elif now - one.made_at_ns > MINUTE and int(one.machine_id[2:]) % 8 and self.store is not None:
                self._join(one)
        self.hosts.busy = {host for host in self.hosts.busy if self.rng.random() < 0.97}
        self._judge()

    def _join(self, one: Instance) -> None:
        host_id, purchase_id = HostId(f"host-{one.machine_id}"), PurchaseId(one.tags[TAG_PURCHASE])
        assert self.store is not None and self.purchases is not None
        known = self.store.read_now(lambda uow: uow[PurchaseRepository].get(purchase_id))
        if known is None or known.host_id is not None or known.state not in (State.DOUBTFUL, State.BOOTING):
            return
        fact: Any = SimpleNamespace(member=SimpleNamespace(id=host_id, purchase_id=purchase_id))
        purchases = self.purchases
        self.store.write_now(lambda uow: purchases.joined(uow, fact), name="joined")
        self.hosts.busy.add(host_id)

    # ----- judges -----

    def _judge(self) -> None:
        now = self.clock.wall_ns()
        rows = {} if self.store is None else {one.purchase_id: one for one in self.store.read_now(_all)}
        for one in self._living():
            row = rows.get(PurchaseId(one.tags[TAG_PURCHASE]))
            assert one.order is not None
            if self.store is not None and not self.is_restored:
                self._check(row is None, "machine without a purchase")
                self._check(row is not None and not row.is_living, "machine whose purchase is believed over")
            is_over = self.store is not None and (row is None or row.state is State.ENDING or not row.is_living)
            if row is not None and not is_over:  # or is again, in a database that was put back
                self.over_ns.pop(one.machine_id, None)
            over_ns = self.over_ns.setdefault(one.machine_id, now) if is_over else one.order.ends_at_ns
            past_ns = now - min(over_ns, one.order.ends_at_ns)
            self._check(past_ns > ORPHAN_TTL_NS + SLACK_NS, "machine that outlives its purchase")
        if not self.is_restored:
            self._check(len(self._living()) > 3, "cap on machines passed")
            hourly = sum(one.offer.price_per_hour for one in self._living())
            self._check(hourly > parse_money("2.50"), "cap per hour passed")
            self._check(sum(self.cloud.cost(one) for one in self._ours()) > parse_money("4"), "cap in all passed")
        for one in self.foreign:
            self._check(one.end_asked_at_ns is not None, "foreign machine touched")

    def _is_over(self) -> bool:
        if self._living() or self.store is None:
            return False
        volumes = [one for one in self.cloud.volumes() if one.tags.get(TAG_MARKET) == MARKET]
        return not volumes and not any(one.is_living for one in self.store.read_now(_all))

    def _check(self, is_broken: bool, name: str) -> None:
        if is_broken:
            self.broken[name] = 1

    def _ours(self) -> list[Instance]:
        return [one for one in self.cloud.all() if one.tags.get(TAG_MARKET) == MARKET]

    def _living(self) -> list[Instance]:
        return [one for one in self._ours() if one.ended_at_ns is None]


def operator() -> Principal:
    """Somebody who may buy."""
    return Principal(
        *(AccountId("account_operator"), "operator", frozenset({Role.OPERATOR}), TokenId("token"), "token", 2**62)
    )


def shell(seed: int) -> Shell:
    """Play one."""
    crashes: list[str] = []

    def note(_logger: object, _method: str, said: MutableMapping[str, Any]) -> Any:
        if str(said.get("event", "")).endswith((CRASHED, "after_commit_failed")):
            crashes.append(f"{said['event']}: {said.get('exc_info') and repr(sys.exc_info()[1])}")
        raise structlog.DropEvent

    structlog.configure(processors=[note], cache_logger_on_first_use=False)
    try:

        async def history(loop: VirtualLoop) -> Shell:
            played = await Shell(seed, loop).play()
            await loop.thaw()
            return played

        played = run(seed, history)
    finally:
        structlog.reset_defaults()
    played.broken.update(crashes)
    return played


def shells(count: int, first: int = 1) -> dict[str, int]:
    """Play so many; returns each fault with the first seed that shows it."""
    found: dict[str, int] = {}
    for seed in range(first, first + count):
        for name in shell(seed).broken:
            found.setdefault(name, seed)
    return found


def _all(uow: UnitOfWork) -> list[Purchase]:
    return list(uow[PurchaseRepository].page(None, None, 1_000))


def _copied(power: Power) -> Power:
    """What a process that was killed leaves: all that it wrote."""
    return Power(
        {path: MemoryFile(bytearray(file.content), bytearray(file.content)) for path, file in power.files.items()}
    )
