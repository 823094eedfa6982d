"""The whole market on one loop: the shipped shells on machines that fail by a seed, renters who come and go.

    renters ─▶ Master (store on a disk whose power can be cut) ◀═ trunk ═ two Accesses ◀═ link ═ N hosts with agents
                       ▲ every one of them may be killed, cut off, reset, and its clock may be wrong

A history: everybody joins, faults rain while renters rent, then everything is healed and settles, and is judged.
"""

import asyncio
import gc
import hashlib
import random
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

import structlog

from tests.simulation.books import Books
from tests.simulation.caps import Watch, tightened
from tests.simulation.faults import Faults
from tests.simulation.hush import Hush
from tests.simulation.identities import Folder, identity_of
from tests.simulation.loop import SeededRng, VirtualClock, VirtualLoop
from tests.simulation.machines import AccessMachine, HostMachine, MasterMachine
from tests.simulation.order import read_trunks, urgent_waiting
from tests.simulation.pair import pair, supervise
from tests.simulation.proofs import remembered
from tests.simulation.renters import Renter
from tests.simulation.talks import Talker
from tests.simulation.witness import Trace, Witness
from windrow_master.app.wiring import Master
from windrow_master.clusters import launch
from windrow_master.fleet.states import AdminEvent
from windrow_master.identity.model import Account, JoinRequest, MemberRole, Principal, Role
from windrow_master.identity.repository import AccountRepository
from windrow_master.market import ledger
from windrow_master.market import service as market_service
from windrow_master.store.unit import UnitOfWork
from windrow_proto.crashes import CRASHED
from windrow_proto.enrol import Identity
from windrow_proto.errors import WindrowError
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.keys import DOMAIN_JOIN, SigningKey, TlsKey, certificate_facts
from windrow_proto.link_memory import MemoryNetwork, Weather
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MILLISECOND, MINUTE, SECOND

FAIR = Weather(1 * MILLISECOND, 12 * MILLISECOND, 0.0)
RETURN_NS = 150 * SECOND
"""After the last fault: agents and Accesses back off up to 15 s, then twice 30 s of reconcile, and some for a start."""
LAST_LOOK_NS = 5 * SECOND
"""Before the end the operator looks at every host, and a moment is left for what follows."""
BAD = (CRASHED, "after_commit_failed", "telemetry_housekeeping_failed", "host_reading_failed")
"""How the names end of what a shell logs when it met a bug of its own."""
LOUD = ("error", "critical", "exception")


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a history. faulty_ns: for how long faults rain; settle_ns: what is left to recover afterwards."""

    seed: int
    hosts: int = 20
    accesses: int = 2
    renters: int = 4
    faulty_ns: int = 10 * MINUTE
    settle_ns: int = 7 * MINUTE
    fault_every_ns: int = 12 * SECOND
    faults: tuple[str, ...] = ()
    """Names of faults.KINDS to draw from; all that are drawn by themselves where it is empty."""
    withhold_chance: float = 0.1
    """That an Access keeps back a creation, to play it later."""
    turns_chance: float = 0.2
    """That a renter stops or starts a cluster at a step."""
    lease_ns: int | None = None
    """How long a host may go on alone, where the product's half hour is longer than a history."""
    hold_ns: int | None = None
    """How long a hold pays ahead, likewise."""
    fills_disk: bool = False
    """The Master's log and database share a disk that may be filled."""
    hosts_only: bool = False
    """The Master comes back from an old copy: what it forgot is its own, the hosts must keep their promises."""
    copies: bool = False
    """Hosts are copied: what a copy says of its host is believed, so identities and the Master's books are judged."""
    masters: int = 1
    """More than one share a database, and one of them leads (pair.py)."""
    sample_ns: int = 5 * SECOND
    """Between two samples of a host, at the least; the product's hosts take one each second."""
    tight: bool = False
    """Caps are so small that queues and disks are full now and then: the same code with other constants (caps.py)."""


@dataclass
class World:
    """One history while it runs."""

    plan: Plan
    loop: VirtualLoop
    directory: Path
    crashes: list[str] = field(default_factory=list)
    accesses: list[AccessMachine] = field(default_factory=list)
    hosts: list[HostMachine] = field(default_factory=list)
    renters: list[Renter] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)
    healed_ns: int | None = None
    copied: dict[str, HostMachine] = field(default_factory=dict)
    """The copy of a host, by the host's id."""

    def __post_init__(self) -> None:
        self.seed = self.plan.seed
        self.luck = random.Random(f"{self.seed}|world")
        self.clock = VirtualClock(self.loop)
        self.trace = Trace(self.clock.monotonic_ns)
        self.witness = Witness(self.trace, self.clock.monotonic_ns)
        self.network = MemoryNetwork(self.clock, SeededRng(f"{self.seed}|network"), FAIR, self.loop.wake_at)
        alone = self.plan.masters == 1
        self.masters = [MasterMachine(self, self.directory)] if alone else pair(self, self.directory, self.plan.masters)
        self.hush, self.watch = Hush(self.seed), Watch(self)
        self.talker = Talker(self, random.Random(f"{self.seed}|talker"))
        self.trace.look = self.watch.look
        self.witness.order.waiting = partial(urgent_waiting, self)

    @property
    def master(self) -> MasterMachine:
        """The one that leads, or believes so since last; the first where none does."""
        leading = [(m.rooms.store.epoch, m) for m in self.masters if m.rooms is not None]
        return max(leading, key=lambda pair: pair[0])[1] if leading else self.masters[0]

    def tap(self, rooms: Master) -> None:
        """Let the trace see what this life of the Master writes."""
        write = rooms.store.write

        def tapped(fn: object, *, name: str, **options: object) -> object:
            self.trace.add(f"write {name}")
            self.watch.asked_to_write()
            return write(fn, name=name, **options)  # type: ignore[arg-type]

        rooms.store.write = tapped  # type: ignore[method-assign,assignment]
        read_trunks(rooms, self.witness.order)

    def count(self, what: str) -> None:
        """A fault has really happened."""
        self.happened[what] = self.happened.get(what, 0) + 1
        self.trace.add(f"fault {what}")

    # --- a history ----------------------------------------------------------------------------------------------------

    async def play(self, is_last: bool) -> None:
        """From the joining to the end of the settling. is_last: nothing comes after it in this process."""
        async with self.network:
            try:
                await self._join()
                for access in self.accesses:
                    access.start()
                for host in self.hosts:
                    host.start()
                async with asyncio.TaskGroup() as tasks:
                    at_work = (*(renter.run for renter in self.renters), self.talker.run)
                    renting = [tasks.create_task(run()) for run in at_work]
                    await self.clock.sleep_ns(20 * SECOND)
                    faults = Faults(self)
                    await faults.rain(self.plan.faulty_ns)
                    await faults.heal()
                    self.healed_ns = self.clock.monotonic_ns()
                    for task in renting:
                        task.cancel()
                await self._settle()
                self._close_books()
            finally:
                with warnings.catch_warnings():
                    # What is cut off in the middle of a step leaves coroutines that nobody awaits.
                    warnings.simplefilter("ignore", RuntimeWarning)
                    await self.loop.thaw()
                    for host in (*self.hosts, *self.copied.values()):
                        host.service = None  # it holds such, too
                    if not is_last:
                        gc.collect()

    async def _join(self) -> None:
        for master in self.masters:
            master.start()
        if len(self.masters) > 1:
            self.loop.create_task(supervise(self))
        while self.master.rooms is None:
            await asyncio.sleep(0.01)
        rooms = self.master.rooms
        await asyncio.sleep(0.1)
        owner = rooms.identity.first_account()
        operator = principal(owner)
        for number in range(1, self.plan.accesses + 1):
            peer, identity = await self._member(rooms, operator, MemberRole.ACCESS, f"access-{number}")
            self.accesses.append(AccessMachine(self, number, peer, identity.signing))
        for number in range(self.plan.hosts):
            peer, identity = await self._member(rooms, operator, MemberRole.HOST, f"simulated-{number:04d}")
            skew_ns = self.luck.choice((0, 0, 1, -1, 7, -90)) * SECOND
            self.hosts.append(HostMachine(self, number, f"host-{number:02d}", peer, Folder(identity), skew_ns))
        for number in range(self.plan.renters):
            account = await rooms.store.write(lambda uow, n=number: _account(uow, rooms, n), name="account.make")  # type: ignore[misc]
            luck, turning = (random.Random(f"{self.seed}|{what}|{number}") for what in ("renter", "turning"))
            self.renters.append(Renter(self, principal(account), luck, turning))

    async def _member(
        self, rooms: Master, operator: Principal, role: MemberRole, name: str
    ) -> tuple[PeerFacts, Identity]:
        signing = SigningKey.from_raw(self.hush.key(SeededRng(f"{self.seed}|key|{name}").random_bytes(32)))
        _, text = await rooms.identity.make_join_token(operator, role)
        csr = TlsKey.generate().csr_pem(name)
        proof = signing.sign(DOMAIN_JOIN, hashlib.sha256(text.encode()).digest() + csr)
        answer = await rooms.identity.join(
            JoinRequest(text, csr, signing.public, proof, name, role, role is MemberRole.HOST, ())
        )
        facts = certificate_facts(answer.certificate_pem.encode())
        peer = PeerFacts(role.value, answer.id, answer.generation, facts.not_after_ns, f"{name}:1", facts.sha256)
        return peer, identity_of(answer, signing)

    async def _settle(self) -> None:
        """Two reconcile periods after everybody is back it must be right; at the end nothing may be left."""
        from tests.simulation import judges

        if self.plan.settle_ns == 0:
            return
        await self.clock.sleep_ns(RETURN_NS)
        self.verdicts += judges.ask(self, judges.SETTLED, "healed")
        for renter in self.renters:
            await renter.leave()
        await self.clock.sleep_ns(self.plan.settle_ns - LAST_LOOK_NS)
        for host in self.hosts:
            await self.reverify(host)
        await self.clock.sleep_ns(LAST_LOOK_NS)
        self.verdicts += judges.ask(self, judges.ENDED, "settled")

    async def reverify(self, host: HostMachine) -> None:
        """The operator says that this host's cards are sound, which holds for those that have no fault now."""
        try:
            await self.master.ask(lambda rooms: rooms.fleet.decide(host.host_id, AdminEvent.ACTIVATE, "operator", ""))
        except (WindrowError, TimeoutError):
            return  # the Master is away, or the host's state does not allow it

    def _close_books(self) -> None:
        """Cut the Master's power a last time and judge what is on its disks."""
        from tests.simulation import judges

        always = judges.ALWAYS
        if self.plan.hosts_only or self.plan.copies:
            always = judges.HOSTS_ONLY if self.plan.hosts_only else judges.COPIES
        self.verdicts += judges.at_power_cut(self)
        for master in self.masters:
            if master.is_up:
                master.kill(self.luck)
        self.verdicts += judges.ask(self, always, "end")
        books = Books.now(self)
        for line in judges.phases(books):
            self.trace.add(line)
        books.close()
        self.verdicts += [f"crash: {said}" for said in self.crashes]


def principal(account: Account) -> Principal:
    """An account as it asks."""
    return Principal(account.id, account.name, account.roles, TokenId("token_sim"), "sim", 1 << 62)


def _account(uow: UnitOfWork, rooms: Master, number: int) -> Account:
    account = Account(AccountId(uow.mint("account")), f"renter {number}", frozenset({Role.RENTER}), uow.now_wall_ns)
    uow[AccountRepository].add(account)
    rooms.market.open_account(uow, account.id)
    return account


@contextmanager
def listening(world: World) -> Iterator[None]:
    """Keep the shells' logs quiet, and take down what only a bug says; for the judge of secrets, all that is said."""
    kept = structlog.get_config()

    def listen(_logger: object, method: str, event: dict[str, object]) -> str:
        world.hush.logged.append(repr(event))
        if method in LOUD and (str(event["event"]).endswith(BAD) or event.get("exc_info")):
            error = event.get("exc_info")
            world.crashes.append(f"{event} {error!r}")
        raise structlog.DropEvent

    structlog.configure(
        processors=[listen],  # type: ignore[list-item]  # it never returns
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**kept)


@contextmanager
def terms(plan: Plan) -> Iterator[None]:
    """Let leases and holds last as long as the plan says: the same code with other constants."""
    with ExitStack() as stack:
        if plan.lease_ns is not None:
            for module in (launch, market_service):
                stack.enter_context(mock.patch.object(module, "LEASE_NS", plan.lease_ns))
        if plan.hold_ns is not None:
            low_ns = plan.hold_ns - 10 * SECOND
            stack.enter_context(mock.patch.object(launch, "HOLD_NS", plan.hold_ns))
            stack.enter_context(mock.patch.object(ledger, "HOLD_NS", plan.hold_ns))
            stack.enter_context(mock.patch.object(ledger, "HOLD_LOW_NS", low_ns))
            stack.enter_context(mock.patch.object(ledger.hold_amount, "__defaults__", (plan.hold_ns,)))
            changed = {**(ledger.holding.__kwdefaults__ or {}), "ahead_ns": plan.hold_ns}
            stack.enter_context(mock.patch.object(ledger.holding, "__kwdefaults__", changed))
        yield


def play(plan: Plan, directory: Path, keep_trace: bool = False, is_last: bool = False) -> World:
    """Play one history and return it, judged: `verdicts` is empty when every promise held.

    is_last: the process ends with it, and leaves its memory to the system.
    """
    from tests.simulation import loop as loops

    worlds: list[World] = []

    async def history(loop: VirtualLoop) -> None:
        world = World(plan, loop, directory)
        world.trace.keeps_all = keep_trace
        worlds.append(world)
        loop.set_exception_handler(lambda _, context: world.crashes.append(str(context.get("message"))))
        with listening(world), terms(plan), tightened(plan.tight), remembered():
            await world.play(is_last)

    with _collecting_seldom(is_last):
        loops.run(plan.seed, history)
    return worlds[0]


@contextmanager
def _collecting_seldom(is_last: bool) -> Iterator[None]:
    """Look for cycles less often, and not in what was there before: histories keep much of what they make.

    What is left of the history before is put away first: frozen, it would be kept for as long as the process lives.
    """
    kept, is_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    if not (is_last or is_frozen):
        gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*kept)
        gc.unfreeze()
        if is_frozen:
            gc.collect()
            gc.freeze()
