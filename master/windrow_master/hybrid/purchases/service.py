"""Buys machines, looks at them, ends them: the leader's loop, which asks once, and ends again and again.

buy: caps, the row ─▶ the loop: "asking" and the join token are committed ─▶ provision ─▶ its answer, or doubt
every look: the provider's list ─▶ decide (decide.py) ─▶ one transaction ─▶ terminate, again until it is gone
every sweep: what has our tag and no living purchase is ended (sweep.py)
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeVar

import structlog

from windrow_master.clusters.messages import HostKeptFor, HostLimit, HostLimits, HostsKept
from windrow_master.fleet.messages import HostLeaving, InstanceOf
from windrow_master.hybrid.backends.port import (
    Backend,
    Doubtful,
    Machine,
    MachineOffer,
    Order,
    PurchaseId,
    Refused,
    machine_of,
)
from windrow_master.hybrid.backends.port import Wanted as WantedOffer
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.backends import BackendService, find_backend, find_buyer, said
from windrow_master.hybrid.purchases.decide import Decision, Effect, Look, asked_to_end, begun, decide, moved
from windrow_master.hybrid.purchases.model import (
    CONSOLE_MAX,
    HOURS_MAX,
    NOTHING,
    BackendRow,
    Buyer,
    Cost,
    Owed,
    Purchase,
    Rules,
    SweepResult,
    run_host,
)
from windrow_master.hybrid.purchases.repository import BackendRepository, PurchaseRepository
from windrow_master.hybrid.purchases.states import FINAL, USABLE, Event, State
from windrow_master.hybrid.purchases.sweep import nothing_lives, sweep
from windrow_master.identity.accounts import check_may_begin, find_account
from windrow_master.identity.messages import HostJoined
from windrow_master.identity.model import Principal, Role
from windrow_master.jobs.handover import MAY_STAY
from windrow_master.jobs.messages import PlaceOf
from windrow_master.jobs.model import AttemptPlace
from windrow_master.jobs.runs import is_there
from windrow_master.loops import ends_alone, when_due
from windrow_master.prices.offers import Kind
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound
from windrow_proto.ids import AccountId, HostId
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents, money_text, seconds

log = structlog.get_logger(__name__)
T = TypeVar("T")

LOOK_EVERY_NS: Final = 15 * SECOND
"""Of a backend with living purchases."""
SWEEP_EVERY_NS: Final = 5 * MINUTE
TURNS_APART_NS: Final = SECOND
STARTS_KNOWN: Final = 200
"""The latest purchases whose start says how long the next one takes."""
_TOLD: Final = {
    State.WANTED: "{offer} is to be bought at {backend} for {account}",
    State.DOUBTFUL: "{backend} gave no answer about {offer}: its list will tell",
    State.BOOTING: "{backend} gave a machine: {offer}, {machine}",
    State.JOINED: "The agent of {machine} has joined",
    State.DRAINING: "{machine} at {backend} takes no more work: {reason}",
    State.ENDING: "{machine} at {backend} is ended: {reason}",
    State.GONE: "{machine} at {backend} is gone",
    State.REFUSED: "{backend} refused {offer}: {reason}",
    State.NEVER_MADE: "{offer} at {backend} was not bought: {reason}",
}
"""The events of a purchase, by its new state."""


class Hosts(Protocol):
    """The hosts that machines become, and their bootstrap; in the caller's transaction."""

    def bootstrap(self, uow: UnitOfWork, purchase: Purchase, life_ns: int) -> str:
        """User data with a join token for this purchase alone."""

    def revoke(self, uow: UnitOfWork, purchase: Purchase) -> None:
        """Make its join token worthless."""

    def redacted(self, console: str) -> str:
        """The text without secrets."""

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        """True while it has work."""

    def price(self, uow: UnitOfWork, purchase: Purchase, margin_percent: int) -> None:
        """Let hosts like its own cost what it costs, and the margin."""

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        """The sum that renters paid for it."""

    def drain(self, uow: UnitOfWork, host_id: HostId, at_ns: int, reason: str) -> None:
        """Let nothing new start on it, and its work move: it will be gone at this wall time."""

    def lose(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """It is gone now: its work is lost, its leases end."""

    def quarantine(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """Use it for nothing."""

    def check_instance(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Compare the machine that its agent says it is on with the one that was bought."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The book of one purchase, summed up."""

    spent: Microcents = NOTHING
    paid: Microcents = NOTHING
    billed_s: int = 0
    idle_s: int = 0


class PurchaseService:
    """The machines of this market that belong to others. market_id: the tag of all that it buys."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        backends: BackendService,
        hosts: Hosts,
        market_id: str,
        rules: Rules | None = None,
    ) -> None:
        self._store, self._clock, self.backends, self._hosts = store, clock, backends, hosts
        self.market_id: Final = market_id
        self._rules = rules or Rules()
        self._under_way: dict[str, bool] = {}
        """The backends that are being looked after; True: one is due again already."""
        self._listeners: list[Callable[[Purchase], None]] = []

    def on_change(self, listener: Callable[[Purchase], None]) -> None:
        """Call `listener` on the loop whenever a purchase has changed its state, or its host has joined."""
        self._listeners.append(listener)

    def _changed(self, purchase: Purchase) -> None:
        for listener in self._listeners:
            listener(purchase)

    # --- for people ------------------------------------------------------------------------------------------------

    async def buy(
        self,
        principal: Principal,
        backend: str,
        offer_id: str,
        *,
        account_id: str,
        hours: float,
        region: str = "",
    ) -> Purchase:
        """Have one machine bought for the work of an account, for so many hours at most. Raises Forbidden, NotFound,
        InvalidInput, QuotaExceeded where a cap would be passed; nothing is bought then."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator buys machines.")
        if not 0 < hours <= HOURS_MAX:
            raise InvalidInput(f"hours: They are above 0 and at most {HOURS_MAX}.", subject="hours")
        wanted = WantedOffer(offer_id=offer_id, regions=frozenset({region} if region else ()))
        offer = _only(await self.backends.offers(backend, wanted), offer_id, backend)
        if offer.is_run:
            raise InvalidInput(f"{backend} runs jobs, and sells no machine: windrow job submit --backend {backend}")

        def change(uow: UnitOfWork) -> Purchase:
            row, account = find_backend(uow, backend), find_account(uow, account_id)
            if account is None:
                raise NotFound("There is no such project. List them: windrow account ls", subject=account_id[:64])
            return self._want(uow, row, account.id, offer, int(hours * HOUR), principal.actor)

        return await self._store.write(change, name="purchase.want")

    def buy_for(
        self,
        uow: UnitOfWork,
        *,
        for_id: str,
        account_id: AccountId,
        backend: BackendRow,
        offer: MachineOffer,
        duration_ns: int,
    ) -> Purchase:
        """Have a machine bought for a job, or a machine that waits, which has it first. Raises Forbidden where its
        project may not buy there, QuotaExceeded where a cap would be passed."""
        buyer = find_buyer(uow, backend.name, account_id)
        return self._want(uow, backend, account_id, offer, duration_ns, "master", for_id, buyer)

    def _want(
        self,
        uow: UnitOfWork,
        row: BackendRow,
        account_id: AccountId,
        offer: MachineOffer,
        duration_ns: int,
        actor: str,
        for_id: str = "",
        buyer: Buyer | None = None,
    ) -> Purchase:
        self._store.admit()
        check_may_begin(uow, account_id)
        purchase_id, now_ns = PurchaseId(uow.mint("purchase")), uow.now_wall_ns
        purchase = costs.wanted(purchase_id, row.name, account_id, actor, offer, duration_ns, now_ns, for_id)
        rows, day_ns = uow[PurchaseRepository], costs.day_of(now_ns)
        living = rows.living(row.name)
        costs.check_caps(row, purchase, living, rows.spent(row.name, day_ns))
        if buyer is not None:
            own = [one for one in living if one.account_id == account_id]
            costs.check_buyer(buyer, purchase, own, rows.spent(row.name, day_ns, account_id))
        fields = {"offer": offer.offer_id, "account": account_id, "reserved": money_text(purchase.reserved)}
        uow.audit(actor, "purchase.want", purchase.purchase_id, f"for {for_id}" if for_id else "asked for", fields)
        self._save(uow, None, purchase, actor)
        uow.after_commit(lambda: self.backends.queue.add(row.name))
        return purchase

    def drop(self, uow: UnitOfWork, purchase_id: str, reason: str) -> None:
        """End one that whatever it was bought for does not need any more."""
        self._end("master", purchase_id, reason, uow)

    def release(self, uow: UnitOfWork, purchase_id: str) -> None:
        """What it was bought for has run there: it takes all work of its project."""
        purchase = _load(uow, purchase_id)
        if purchase.is_kept:
            uow[PurchaseRepository].save(replace(purchase, is_kept=False))

    async def list(
        self,
        account_id: AccountId | None = None,
        before: str | None = None,
        limit: int = 100,
        states: Collection[State] = (),
        backend: str | None = None,
    ) -> Sequence[Purchase]:
        """Those of an account (None: of all), the latest first, from the one after `before`."""
        return await self._store.read(
            lambda uow: uow[PurchaseRepository].page(account_id, before, limit, states, backend)
        )

    async def get(self, purchase_id: str) -> Purchase:
        """One. Raises NotFound."""
        return await self._store.read(lambda uow: _load(uow, purchase_id))

    async def end(self, principal: Principal, purchase_id: str, reason: str) -> Purchase:
        """Have one ended: its work has a moment to leave. Raises NotFound, Forbidden."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")
        return await self._store.write(partial(self._end, principal.actor, purchase_id, reason), name="purchase.end")

    async def stop_all(self, principal: Principal, backend: str) -> Sequence[Purchase]:
        """Have all machines of a backend ended, and no more bought there until its caps are set again."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")

        def change(uow: UnitOfWork) -> Sequence[Purchase]:
            row = find_backend(uow, backend)
            uow[BackendRepository].save(replace(row, caps=replace(row.caps, machines=0)))
            uow.audit(principal.actor, "backend.stop_all", f"backend/{backend}", "asked for")
            living = uow[PurchaseRepository].living(backend)
            return [self._end(principal.actor, one.purchase_id, "all of its backend are ended", uow) for one in living]

        return await self._store.write(change, name="backend.stop_all")

    async def owed(self) -> Sequence[Owed]:
        """What each backend costs now."""

        def read(uow: UnitOfWork) -> Sequence[Owed]:
            rows, day_ns = uow[PurchaseRepository], costs.day_of(uow.now_wall_ns)
            return [
                costs.owed(one, rows.living(one.name), rows.spent(one.name, day_ns), uow.now_wall_ns)
                for one in uow[BackendRepository].all()
            ]

        return await self._store.read(read)

    async def costs(self, purchase_id: str) -> Sequence[Cost]:
        """Its entries of the book: none before it is gone. Raises NotFound."""
        purchase = await self.get(purchase_id)
        return await self._store.read(lambda uow: uow[PurchaseRepository].costs([purchase.purchase_id]))

    async def starts(self) -> Sequence[tuple[str, int]]:
        """The latest machines that have joined: `KIND/spot` or `KIND/on-demand` of each by the kind of its backend, and
        the nanoseconds from the asking to its host."""
        return await self._store.read(lambda uow: uow[PurchaseRepository].starts(STARTS_KNOWN))

    def cost_now(self, purchase: Purchase) -> Microcents:
        """What a living one has cost until now."""
        return costs.cost_until(purchase, self._clock.wall_ns())

    async def totals(self, purchase_ids: Sequence[PurchaseId]) -> Mapping[PurchaseId, Totals]:
        """The book of each of these, summed up; without those that have no entry yet."""
        found: dict[PurchaseId, Totals] = {}
        for one in await self._store.read(lambda uow: uow[PurchaseRepository].costs(purchase_ids)):
            so_far = found.get(one.purchase_id, Totals())
            spent, paid = Microcents(so_far.spent + one.cost), Microcents(so_far.paid + one.paid)
            billed_s, idle_s = so_far.billed_s + one.billed_s, so_far.idle_s + one.idle_s
            found[one.purchase_id] = Totals(spent, paid, billed_s, idle_s)
        return found

    async def sweep(self, principal: Principal, backend: str, market_id: str | None = None) -> SweepResult:
        """End what has this market's tag (or that of one that is no more) and no living purchase. Raises NotFound,
        Forbidden, and what a provider's refusal becomes."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")
        row, wanted = await self.backends.get(backend), market_id or self.market_id
        try:
            return await self._sweep(row, wanted, principal.actor)
        except (Refused, Doubtful) as error:
            raise said(error, backend) from error

    # --- for the packages below --------------------------------------------------------------------------------------

    def joined(self, uow: UnitOfWork, fact: HostJoined) -> None:
        """A host has joined; where it was bought, it belongs to its purchase."""
        purchase_id, host_id = fact.member.purchase_id, HostId(fact.member.id)
        if not purchase_id:
            return
        purchase = uow[PurchaseRepository].get(purchase_id)
        is_awaited = purchase is not None and purchase.state in (State.ASKING, State.DOUBTFUL, State.BOOTING)
        if purchase is None or not is_awaited or purchase.host_id not in (None, host_id):
            if purchase is None or purchase.host_id != host_id:
                self._hosts.quarantine(uow, host_id, f"it was bought by {purchase_id}, which awaits no host")
            return
        after = replace(purchase, host_id=host_id, joined_at_ns=uow.now_wall_ns)
        uow[PurchaseRepository].save(after)
        uow.after_commit(lambda: self.backends.queue.add(purchase.backend))
        uow.after_commit(lambda: self._changed(after))

    def run_began(self, uow: UnitOfWork, purchase_id: str) -> None:
        """The job of a run is there: who ends it from now on lets the job leave first."""
        purchase = _load(uow, purchase_id)
        if purchase.state is State.BOOTING:
            self._save(uow, purchase, moved(purchase, Event.JOIN, uow.now_wall_ns))

    def leaving(self, uow: UnitOfWork, fact: HostLeaving) -> None:
        """A host says that its provider takes it back; the fleet has drained it already. Where it may stay, its work
        goes on, and it is ended as soon as that is over."""
        if fact.why == MAY_STAY:
            return
        purchase = uow[PurchaseRepository].of_host(fact.host_id)
        if purchase is not None and purchase.state in USABLE:
            after = moved(purchase, Event.DRAIN, uow.now_wall_ns, f"its provider takes it back ({fact.why})")
            self._save(uow, purchase, after, f"host/{fact.host_id}")

    def instance_of(self, uow: UnitOfWork, question: InstanceOf) -> str:
        """The machine that a host has to be on; empty: not known, or its kind says none to agents."""
        purchase = uow[PurchaseRepository].of_host(question.host_id)
        row = None if purchase is None else uow[BackendRepository].get(purchase.backend)
        return purchase.machine_id if purchase is not None and row is not None and row.kind != "ssh" else ""

    def limits(self, uow: UnitOfWork, question: HostLimits) -> Mapping[HostId, HostLimit]:
        """Each bought host works for the account that it was bought for, and for no other."""
        found = uow[PurchaseRepository].of_hosts(question.hosts)
        return {host_id: HostLimit(only_for=account_id, kept_for=kept_for) for host_id, account_id, kept_for in found}

    def hosts_kept(self, uow: UnitOfWork, question: HostsKept) -> frozenset[HostId]:
        """The hosts that were bought for other entries of the queue, which have not run there yet."""
        found = uow[PurchaseRepository].of_hosts()
        return frozenset(host_id for host_id, _, kept_for in found if kept_for not in ("", question.entry_id))

    def host_kept_for(self, uow: UnitOfWork, question: HostKeptFor) -> HostId | None:
        """The host that was bought for an entry of the queue, once it has joined."""
        return uow[PurchaseRepository].kept_for(question.entry_id)

    def place_of(self, uow: UnitOfWork, question: PlaceOf) -> AttemptPlace | None:
        """The place that a host is, where it was bought."""
        if all(host_id != question.host_id for host_id, _, _ in uow[PurchaseRepository].of_hosts()):
            return None
        purchase = uow[PurchaseRepository].of_host(question.host_id)
        if purchase is None:
            return None
        margin = find_backend(uow, purchase.backend).margin_percent
        return place_at(purchase.backend, purchase.offer, margin, purchase_id=purchase.purchase_id)

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look after all purchases until cancelled; with no backend it sleeps."""
        for row in await self._store.read(lambda uow: uow[BackendRepository].all()):
            self.backends.queue.add(row.name)
        async with asyncio.TaskGroup() as group:
            await when_due(partial(self._begin_looks, group), self.backends.queue, TURNS_APART_NS, "purchases")

    async def turn(self) -> None:
        """Look after the backends that are due, to the end."""
        async with asyncio.TaskGroup() as group:
            await self._begin_looks(group)

    async def _begin_looks(self, group: asyncio.TaskGroup) -> None:
        """Begin with the backends that are due, each once at a time; no provider that is slow holds up another."""
        for name in self.backends.queue.take():
            if name in self._under_way:
                self._under_way[name] = True
            else:
                self._under_way[name] = False
                group.create_task(self._look_to_the_end(name))

    async def _look_to_the_end(self, name: str) -> None:
        try:
            await self._look_after(name)
        finally:
            if self._under_way.pop(name):
                self.backends.queue.add(name)

    async def _look_after(self, name: str) -> None:
        """Look at what lives, sweep when that is due, then ask for what is wanted; one backend's trouble is its own."""
        next_ns = LOOK_EVERY_NS
        with ends_alone("purchases", backend=name):
            row = await self._store.read(lambda uow: uow[BackendRepository].get(name))
            if row is None:
                return
            backend, swept_ns = self.backends.opened(row), self.backends.swept_ns.get(name)
            is_due = swept_ns is None or self._clock.monotonic_ns() - swept_ns >= SWEEP_EVERY_NS
            await self._look(row, backend, is_due)
            if is_due:
                await self._sweep_now(row)
            living = await self._store.read(lambda uow: uow[PurchaseRepository].living(name))
            async with asyncio.TaskGroup() as group:
                for one in living:
                    # Nothing is bought where this Master could not see yet what there is.
                    if one.state is State.WANTED and name in self.backends.swept_ns:
                        group.create_task(self._ask(row, backend, one.purchase_id))
            next_ns = LOOK_EVERY_NS if living else SWEEP_EVERY_NS
        self.backends.queue.add(name, self._clock.monotonic_ns() + next_ns)

    async def _sweep_now(self, row: BackendRow) -> None:
        with ends_alone("sweep", backend=row.name):
            try:
                await self._sweep(row, self.market_id, "master")
            except (Refused, Doubtful) as error:
                log.warning("sweep_failed", backend=row.name, said=str(error)[:300])

    async def _ask(self, row: BackendRow, backend: Backend, purchase_id: PurchaseId) -> None:
        """Ask the provider, once. What is asked is committed before, and this Master's term is checked with it. Where
        this Master dies, or meets a bug, the next look finds it asking, and doubts."""
        with ends_alone("purchase", purchase=purchase_id):
            order = await self._store.write(partial(self._begin, purchase_id), name="purchase.ask")
            if order is None:
                return
            try:
                answer: Machine | Refused | None = await self._within(backend.provision(order))
            except Refused as refused:
                answer = refused
            except Doubtful as doubt:
                log.warning("purchase_in_doubt", purchase=purchase_id, said=str(doubt)[:300])
                answer = None
            await self._store.write(partial(self._answered, purchase_id, answer), name="purchase.answered")
        self.backends.queue.add(row.name)

    def _begin(self, purchase_id: PurchaseId, uow: UnitOfWork) -> Order | None:
        purchase = _load(uow, purchase_id)
        if purchase.state is not State.WANTED:  # it was ended meanwhile
            return None
        try:
            check_may_begin(uow, purchase.account_id)
            if purchase.for_id:
                find_buyer(uow, purchase.backend, purchase.account_id)
        except (Conflict, Forbidden) as error:  # since it was wanted
            self._save(uow, purchase, moved(purchase, Event.END, uow.now_wall_ns, error.detail or error.code))
            return None
        asking = begun(purchase, uow.now_wall_ns, uow.epoch)
        self._save(uow, purchase, asking)
        if asking.state is not State.ASKING:
            return None
        self._hosts.price(uow, asking, find_backend(uow, asking.backend).margin_percent)
        return Order(
            purchase_id=purchase_id,
            market_id=self.market_id,
            epoch=uow.epoch,
            offer=asking.offer,
            user_data=self._hosts.bootstrap(uow, asking, min(self._rules.boot_ns, HOUR)),
            dearest_per_hour=asking.dearest_per_hour,
            ends_at_ns=asking.ends_at_ns,
        )

    def _answered(self, purchase_id: PurchaseId, answer: Machine | Refused | None, uow: UnitOfWork) -> None:
        purchase = _load(uow, purchase_id)
        if isinstance(answer, Refused):
            after = moved(purchase, Event.REFUSE, uow.now_wall_ns, f"{answer.reason}: {answer.said[:300]}")
            after = replace(after, refused_for=answer.reason)
        elif answer is None:
            after = moved(purchase, Event.DOUBT, uow.now_wall_ns)
        else:
            known = replace(purchase, machine_id=answer.machine_id, zone=answer.zone)
            known = replace(known, launched_at_ns=answer.launched_at_ns)
            after = moved(known, Event.FOUND, uow.now_wall_ns)
        self._save(uow, purchase, after)

    async def _look(self, row: BackendRow, backend: Backend, is_sweep_due: bool) -> None:
        """Look at the living purchases of a backend, and do what is due for each. Before a sweep it is looked in any
        case: a machine whose purchase was believed over is ended as a purchase, and stands in the book."""
        at_ns, machines = self._clock.wall_ns(), None
        if not is_sweep_due and not await self._store.read(lambda uow: uow[PurchaseRepository].machines(row.name)):
            return
        try:
            machines = await self._within(backend.describe(self.market_id))
        except (Refused, Doubtful) as error:
            log.warning("purchases_not_seen", backend=row.name, said=str(error)[:300])
        rules = replace(self._rules, list_lag_ns=backend.list_lag_ns)
        decisions = partial(self._decisions, row, rules, machines, at_ns)
        if await self._store.read(decisions):  # a write only where there is something to do
            judge = partial(self._judge, row, rules, machines, at_ns)
            calls = await self._store.write(judge, name="purchase.look")
            async with asyncio.TaskGroup() as group:
                for purchase, effects in calls:
                    group.create_task(self._call(backend, purchase, effects))

    def _decisions(
        self, row: BackendRow, rules: Rules, machines: Sequence[Machine] | None, at_ns: int, uow: UnitOfWork
    ) -> Sequence[tuple[Purchase, Decision]]:
        """Decide about each purchase that lives, and each that was believed over and has a machine; returns those for
        which there is anything to do, as they were, with their decisions."""
        rows, seen = uow[PurchaseRepository], dict[PurchaseId, Machine]()
        ours = [one for one in machines or () if one.market_id == self.market_id]
        for machine in ours:
            seen.setdefault(machine.purchase_id, machine)
        living = list(rows.living(row.name))
        known = {one.purchase_id for one in living}
        late = (rows.get(purchase_id) for purchase_id in seen if purchase_id not in known)
        found = list[tuple[Purchase, Decision]]()
        for one in (*living, *(each for each in late if each is not None and each.backend == row.name)):
            is_busy = one.host_id is not None and self._hosts.is_busy(uow, one.host_id)
            is_busy |= one.offer.is_run and is_there(uow, one.for_id, one.purchase_id)
            look = Look(machines is not None, at_ns, _of(one, ours, seen), is_busy)
            decision = decide(one, look, rules, uow.now_wall_ns)
            if decision.purchase != one or decision.effects:
                found.append((one, decision))
        return found

    def _judge(
        self, row: BackendRow, rules: Rules, machines: Sequence[Machine] | None, at_ns: int, uow: UnitOfWork
    ) -> Sequence[tuple[Purchase, Sequence[Effect]]]:
        """The same, written down; returns what is to be called for."""
        found = self._decisions(row, rules, machines, at_ns, uow)
        for before, decision in found:
            self._apply(uow, row, before, decision)
        return [(decision.purchase, decision.effects) for _, decision in found]

    def _apply(self, uow: UnitOfWork, row: BackendRow, before: Purchase, decision: Decision) -> None:
        """Write a decision, and do what belongs into its transaction."""
        after, rows = decision.purchase, uow[PurchaseRepository]
        if after != before:
            self._save(uow, before, after)
        if after.host_id is not None and Effect.DRAIN_HOST in decision.effects:
            self._hosts.drain(uow, after.host_id, uow.now_wall_ns + self._rules.drain_ns, after.reason)
        if after.host_id is not None and Effect.LOSE_HOST in decision.effects:
            self._hosts.lose(uow, after.host_id, after.reason)
        if Effect.BOOK in decision.effects:
            host_id = run_host(after.purchase_id) if after.offer.is_run else after.host_id
            paid = NOTHING if host_id is None else self._hosts.paid(uow, host_id)
            rows.add_cost(costs.entry(after, rows.costs([after.purchase_id]), paid, uow.now_wall_ns))
            uow.after_commit(partial(self._forget_sweep, row.name))  # what it leaves behind goes now

    def _forget_sweep(self, name: str) -> None:
        self.backends.swept_ns.pop(name, None)

    async def _call(self, backend: Backend, purchase: Purchase, effects: Sequence[Effect]) -> None:
        """Make the calls of a decision; what fails is made again after the next look."""
        if Effect.KEEP_CONSOLE in effects:
            with ends_alone("console", purchase=purchase.purchase_id):
                text = self._hosts.redacted(await self._within(backend.console(purchase.machine_id)))

                def keep(uow: UnitOfWork) -> None:
                    known = _load(uow, purchase.purchase_id)
                    uow[PurchaseRepository].save(replace(known, console=text[-CONSOLE_MAX:]))

                await self._store.write(keep, name="purchase.console")
        if Effect.TERMINATE in effects:
            try:
                await self._within(backend.terminate(purchase.machine_id))
            except (Refused, Doubtful) as error:
                log.warning("purchase_not_ended", purchase=purchase.purchase_id, said=str(error)[:300])

    async def _sweep(self, row: BackendRow, market_id: str, actor: str) -> SweepResult:
        async def living() -> Mapping[PurchaseId, str]:
            # A write, since a Master whose term is over may end nothing. Of all backends: two may be one account.
            return await self._store.write(lambda uow: uow[PurchaseRepository].machines(), name="purchase.sweep")

        alive = living if market_id == self.market_id else nothing_lives
        result = await self._within(sweep(self.backends.opened(row), market_id, alive))

        def note(uow: UnitOfWork) -> None:
            known = uow[BackendRepository].get(row.name)
            if known is not None:
                uow[BackendRepository].save(replace(known, swept_at_ns=uow.now_wall_ns))
            for one in result.ended:
                text = f"{one.machine_id} at {row.name} belongs to no purchase and is ended: {one.said}"
                subjects = (f"backend/{row.name}", *((one.purchase_id,) if one.purchase_id else ()))
                uow.audit(actor, "backend.swept", f"backend/{row.name}", one.said, {"machine": one.machine_id})
                uow.event("backend.swept", subjects, text, {"market": market_id}, actor)

        await self._store.write(note, name="purchase.swept")
        if market_id == self.market_id:
            self.backends.swept_ns[row.name] = self._clock.monotonic_ns()
        return result

    # --- inside ------------------------------------------------------------------------------------------------------

    def _end(self, actor: str, purchase_id: str, reason: str, uow: UnitOfWork) -> Purchase:
        purchase = _load(uow, purchase_id)
        decision = asked_to_end(purchase, uow.now_wall_ns, reason[:200] or "asked for")
        if decision.purchase != purchase:
            uow.audit(actor, "purchase.end", purchase.purchase_id, reason[:200])
            self._apply(uow, find_backend(uow, purchase.backend), purchase, decision)
            uow.after_commit(lambda: self.backends.queue.add(purchase.backend))
        return decision.purchase

    def _save(self, uow: UnitOfWork, before: Purchase | None, after: Purchase, actor: str = "master") -> None:
        """Write a purchase, and tell what is new about it."""
        uow[PurchaseRepository].save(after)
        if after.host_id is not None and before is not None and before.machine_id != after.machine_id:
            self._hosts.check_instance(uow, after.host_id)
        if before is not None and before.state is after.state:
            return
        uow.after_commit(lambda: self._changed(after))
        if after.state in (State.ENDING, *FINAL):
            self._hosts.revoke(uow, after)
        text = _TOLD.get(after.state)
        if text is not None:
            machine, offer = after.machine_id or "its machine", after.offer.offer_id
            words = {"backend": after.backend, "account": after.account_id, "reason": after.reason}
            subjects = (after.purchase_id, after.account_id, *((after.host_id,) if after.host_id else ()))
            told = text.format(offer=offer, machine=machine, **words)
            uow.event(f"purchase.{after.state}", subjects, told, {"offer": offer}, actor)

    async def _within(self, call: Awaitable[T]) -> T:
        """The answer of a provider. Raises Doubtful where there is none in time."""
        try:
            async with asyncio.timeout(seconds(self._rules.call_ns)):
                return await call
        except TimeoutError:
            raise Doubtful("no answer in time") from None


def _load(uow: UnitOfWork, purchase_id: str) -> Purchase:
    found = uow[PurchaseRepository].get(purchase_id)
    if found is None:
        raise NotFound("There is no such purchase. List them: windrow purchase ls", subject=purchase_id[:64])
    return found


def _of(purchase: Purchase, machines: Sequence[Machine], seen: Mapping[PurchaseId, Machine]) -> Machine | None:
    """The machine of a purchase in a list: the one that it has, or the first with its tag. Others are the sweep's."""
    own = (one for one in machines if one.machine_id == purchase.machine_id)
    return next(own, None) if purchase.machine_id else seen.get(purchase.purchase_id)


def place_at(
    backend: str, offer: MachineOffer, margin_percent: int, *, purchase_id: str = "", run_id: str = ""
) -> AttemptPlace:
    """The place that an attempt has which runs on this offer, bought as a machine or as a run; its price with the
    operator's margin."""
    return AttemptPlace(
        backend=backend,
        is_service=bool(run_id),
        machine=machine_of(offer),
        region=offer.region,
        zone=offer.zone,
        is_spot=offer.kind is Kind.SPOT,
        price_per_hour=costs.with_margin(offer.price_per_hour, margin_percent),
        currency=offer.currency,
        purchase_id=purchase_id,
        run_id=run_id,
    )


def _only(offers: Sequence[MachineOffer], offer_id: str, backend: str) -> MachineOffer:
    """The offer of this id, with a price that is one."""
    offer = next((one for one in offers if one.offer_id == offer_id), None)
    if offer is None:
        said_so = f"{backend} has no offer {offer_id[:100]} now. List them: windrow backend offers {backend}"
        raise NotFound(said_so, subject=offer_id[:100])
    if offer.price_per_hour < 0:
        raise InvalidInput(f"The price of {offer_id[:100]} is below 0.", subject=offer_id[:100])
    return offer
