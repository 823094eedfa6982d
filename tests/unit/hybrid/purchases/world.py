"""A store, the cloud in memory and the shipped service, whose turns a test calls one by one."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from tests.master_support import ManualClock, opened_store
from tests.support.memory_backend import MemoryBackend, MemoryCloud, Planned, Terms
from windrow_master.hybrid.backends.port import Finding
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.controller import LOOK_EVERY_NS
from windrow_master.hybrid.purchases.model import Caps, Purchase, Rules
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.purchases.states import State
from windrow_master.identity.accounts import ensure_own
from windrow_master.identity.model import Principal, Role
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId, TokenId
from windrow_proto.keys import SigningKey
from windrow_proto.sealed import SealKey
from windrow_proto.units import MINUTE, SECOND, Microcents, parse_money

T = TypeVar("T")
MARKET: Final = "market-of-ours"
ACCOUNT: Final = AccountId("account_renter")
OFFER: Final = "g5.xlarge/eu-central-1a/on-demand"
PLENTY: Final = Caps(per_hour=parse_money("100"), in_all=parse_money("1000"))
SECRET: Final = "do-not-tell-anybody"
RULES: Final = Rules(list_lag_ns=MINUTE)


def person(*roles: Role) -> Principal:
    """Somebody with these roles."""
    return Principal(ACCOUNT, "renter", frozenset(roles), TokenId("token"), "token", 2**62)


OPERATOR: Final = person(Role.OPERATOR)


@dataclass
class Hosts:
    """Notes what is asked of hosts. busy: those with work; asked: each call with its host or purchase."""

    busy: set[HostId] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def bootstrap(self, uow: UnitOfWork, purchase: Purchase, life_ns: int) -> str:
        return f"#!/bin/sh\n# {purchase.purchase_id}\n"

    def redacted(self, console: str) -> str:
        return console.replace("started", "[redacted]")

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        return host_id in self.busy

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        return parse_money("0.25")

    def __getattr__(self, name: str) -> Any:
        def note(_uow: UnitOfWork, about: Any, *_given: object) -> None:
            self.asked.append((name, getattr(about, "purchase_id", about)))

        return note


class AnyKind:
    """A kind of backend that takes whatever fields it is given."""

    def read(self, settings: object, secrets: object) -> None:
        return None


class World:
    """cloud: the truth. secrets: with which each connection was opened."""

    def __init__(self, store: Store, clock: ManualClock, cloud: MemoryCloud) -> None:
        self.store, self.clock, self.cloud, self.hosts = store, clock, cloud, Hosts()
        self.secrets: list[dict[str, str]] = []
        signing = SigningKey.from_raw(bytes(range(32)))
        self.backends = BackendService(
            store,
            clock,
            SealKey.of(signing),
            {"memory": AnyKind()},
            self._open,
            lambda: Finding("reachability", False, "The Master listens on loopback.", "windrow up --public"),
        )
        self.purchases = PurchaseService(store, clock, self.backends, self.hosts, MARKET, RULES)

    def _open(self, kind: str, settings: Any, secrets: Any) -> MemoryBackend:
        self.secrets.append(dict(secrets))
        return MemoryBackend(self.cloud, self.clock)

    def connect(self, caps: Caps = PLENTY, **others: Any) -> None:
        """Add the backend `cloud`."""
        self.connect_also("cloud", caps, **others)

    def connect_also(self, name: str, caps: Caps = PLENTY, **others: Any) -> None:
        """Add a backend; all of them are the same account."""
        run(self.backends.add(OPERATOR, name, "memory", {"region": "here"}, {"key": SECRET}, caps, **others))

    def buy(self, hours: float = 2, offer_id: str = OFFER) -> Purchase:
        """Have one bought; the loop has not seen it yet."""
        return run(self.purchases.buy(OPERATOR, "cloud", offer_id, account_id=ACCOUNT, hours=hours))

    def turn(self, after_ns: int = LOOK_EVERY_NS) -> None:
        """Let time pass, and the loop look."""
        self.clock.advance(after_ns)
        self.backends.queue.add("cloud")
        run(self.purchases.controller.turn())

    def turns(self, duration_ns: int) -> None:
        """Look every 15 s for so long."""
        for _ in range(duration_ns // LOOK_EVERY_NS):
            self.turn()

    def join(self, purchase: Purchase, host: str = "host_1") -> HostId:
        """Its agent joins."""
        fact: Any = SimpleNamespace(member=SimpleNamespace(id=host, purchase_id=purchase.purchase_id))
        self.store.write_now(lambda uow: self.purchases.joined(uow, fact), name="joined")
        return HostId(host)

    def state(self, purchase: Purchase) -> State:
        """Its state now."""
        return self.now(purchase).state

    def now(self, purchase: Purchase) -> Purchase:
        """It, as it is now."""
        return run(self.purchases.get(purchase.purchase_id))

    def events(self) -> list[tuple[str, str]]:
        """Kind and text of all events."""
        return self.store.read_now(lambda uow: [(one.kind, one.text) for one in uow.events.after(0, limit=1_000)])


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine."""
    return asyncio.run(work)


@contextmanager
def world(directory: Path, terms: Terms | None = None, faults: Planned | None = None) -> Iterator[World]:
    """One with the project of ACCOUNT."""
    clock = ManualClock()
    with opened_store(directory, clock) as store:
        store.write_now(lambda uow: ensure_own(uow, ACCOUNT, "renter", frozenset({Role.RENTER})), name="account")
        yield World(
            store,
            clock,
            MemoryCloud(clock.wall_ns, faults or Planned(is_stale=False), terms or Terms(list_lag_ns=60 * SECOND)),
        )
