"""Looks after purchases: the leader's loop, which asks a provider once, and ends again and again.

a purchase is wanted ─▶ "asking" and the join token are committed ─▶ provision ─▶ its answer, or doubt
every look: the provider's list ─▶ decide (decide.py) ─▶ one transaction ─▶ terminate, again until it is gone
every sweep: what has our tag and no living purchase is ended (sweep.py)
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import structlog

from windrow_master.hybrid.backends.port import Backend, Doubtful, Machine, Order, PurchaseId, Refused
from windrow_master.hybrid.purchases.backends import BackendService, find_backend, find_buyer
from windrow_master.hybrid.purchases.decide import Decision, Effect, Look, begun, decide, moved
from windrow_master.hybrid.purchases.model import CONSOLE_MAX, BackendRow, Purchase, Rules, SweepResult
from windrow_master.hybrid.purchases.ports import Hosts
from windrow_master.hybrid.purchases.repository import BackendRepository, PurchaseRepository
from windrow_master.hybrid.purchases.states import Event, State
from windrow_master.hybrid.purchases.sweep import nothing_lives, sweep
from windrow_master.hybrid.purchases.transitions import Transitions, find_purchase
from windrow_master.identity.accounts import check_may_begin
from windrow_master.jobs.runs import is_there
from windrow_master.loops import ends_alone, when_due
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR, MINUTE, SECOND, seconds

log = structlog.get_logger(__name__)
T = TypeVar("T")

LOOK_EVERY_NS: Final = 15 * SECOND
"""Between two looks at the machines of a backend that has living purchases."""
SWEEP_EVERY_NS: Final = 5 * MINUTE
TURNS_APART_NS: Final = SECOND


class PurchaseController:
    """The loop over the purchases of each backend. market_id: the tag of all that is bought."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        backends: BackendService,
        hosts: Hosts,
        transitions: Transitions,
        market_id: str,
        rules: Rules,
    ) -> None:
        self._store, self._clock, self._backends, self._hosts = store, clock, backends, hosts
        self._transitions, self._market_id, self._rules = transitions, market_id, rules
        self._under_way: dict[str, bool] = {}
        """The backends that are being looked after; True: one is due again already."""

    async def run(self) -> None:
        """Look after all purchases until cancelled; with no backend it sleeps."""
        for row in await self._store.read(lambda uow: uow[BackendRepository].all()):
            self._backends.queue.add(row.name)
        async with asyncio.TaskGroup() as group:
            await when_due(partial(self._begin_looks, group), self._backends.queue, TURNS_APART_NS, "purchases")

    async def turn(self) -> None:
        """Look after the backends that are due, to the end."""
        async with asyncio.TaskGroup() as group:
            await self._begin_looks(group)

    async def _begin_looks(self, group: asyncio.TaskGroup) -> None:
        """Begin with the backends that are due, each once at a time; no provider that is slow holds up another."""
        for name in self._backends.queue.take():
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
                self._backends.queue.add(name)

    async def _look_after(self, name: str) -> None:
        """Look at what lives, sweep when that is due, then ask for what is wanted; one backend's trouble is its own."""
        next_ns = LOOK_EVERY_NS
        with ends_alone("purchases", backend=name):
            row = await self._store.read(lambda uow: uow[BackendRepository].get(name))
            if row is None:
                return
            backend, swept_ns = self._backends.opened(row), self._backends.swept_ns.get(name)
            is_due = swept_ns is None or self._clock.monotonic_ns() - swept_ns >= SWEEP_EVERY_NS
            await self._look(row, backend, is_due)
            if is_due:
                await self._sweep_now(row)
            living = await self._store.read(lambda uow: uow[PurchaseRepository].living(name))
            async with asyncio.TaskGroup() as group:
                for one in living:
                    # Nothing is bought where this Master could not see yet what there is.
                    if one.state is State.WANTED and name in self._backends.swept_ns:
                        group.create_task(self._ask(row, backend, one.purchase_id))
            next_ns = LOOK_EVERY_NS if living else SWEEP_EVERY_NS
        self._backends.queue.add(name, self._clock.monotonic_ns() + next_ns)

    async def _sweep_now(self, row: BackendRow) -> None:
        with ends_alone("sweep", backend=row.name):
            try:
                await self.sweep(row, self._market_id, "master")
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
        self._backends.queue.add(row.name)

    def _begin(self, purchase_id: PurchaseId, uow: UnitOfWork) -> Order | None:
        purchase = find_purchase(uow, purchase_id)
        if purchase.state is not State.WANTED:  # it was ended meanwhile
            return None
        try:
            check_may_begin(uow, purchase.account_id)
            if purchase.for_id:
                find_buyer(uow, purchase.backend, purchase.account_id)
        except (Conflict, Forbidden) as error:  # since it was wanted
            self._transitions.save(
                uow, purchase, moved(purchase, Event.END, uow.now_wall_ns, error.detail or error.code)
            )
            return None
        asking = begun(purchase, uow.now_wall_ns, uow.epoch)
        self._transitions.save(uow, purchase, asking)
        if asking.state is not State.ASKING:
            return None
        self._hosts.price(uow, asking, find_backend(uow, asking.backend).margin_percent)
        return Order(
            purchase_id=purchase_id,
            market_id=self._market_id,
            epoch=uow.epoch,
            offer=asking.offer,
            user_data=self._hosts.bootstrap(uow, asking, min(self._rules.boot_ns, HOUR)),
            dearest_per_hour=asking.dearest_per_hour,
            ends_at_ns=asking.ends_at_ns,
        )

    def _answered(self, purchase_id: PurchaseId, answer: Machine | Refused | None, uow: UnitOfWork) -> None:
        purchase = find_purchase(uow, purchase_id)
        if isinstance(answer, Refused):
            after = moved(purchase, Event.REFUSE, uow.now_wall_ns, f"{answer.reason}: {answer.said[:300]}")
            after = replace(after, refused_for=answer.reason)
        elif answer is None:
            after = moved(purchase, Event.DOUBT, uow.now_wall_ns)
        else:
            known = replace(purchase, machine_id=answer.machine_id, zone=answer.zone)
            known = replace(known, launched_at_ns=answer.launched_at_ns)
            after = moved(known, Event.FOUND, uow.now_wall_ns)
        self._transitions.save(uow, purchase, after)

    async def _look(self, row: BackendRow, backend: Backend, is_sweep_due: bool) -> None:
        """Look at the living purchases of a backend, and do what is due for each. Before a sweep it is looked in any
        case: a machine whose purchase was believed over is ended as a purchase, and stands in the book."""
        at_ns, machines = self._clock.wall_ns(), None
        if not is_sweep_due and not await self._store.read(lambda uow: uow[PurchaseRepository].machines(row.name)):
            return
        try:
            machines = await self._within(backend.describe(self._market_id))
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
        ours = [one for one in machines or () if one.market_id == self._market_id]
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
            self._transitions.apply(uow, row, before, decision)
        return [(decision.purchase, decision.effects) for _, decision in found]

    async def _call(self, backend: Backend, purchase: Purchase, effects: Sequence[Effect]) -> None:
        """Make the calls of a decision; what fails is made again after the next look."""
        if Effect.KEEP_CONSOLE in effects:
            with ends_alone("console", purchase=purchase.purchase_id):
                text = self._hosts.redacted(await self._within(backend.console(purchase.machine_id)))

                def keep(uow: UnitOfWork) -> None:
                    known = find_purchase(uow, purchase.purchase_id)
                    uow[PurchaseRepository].save(replace(known, console=text[-CONSOLE_MAX:]))

                await self._store.write(keep, name="purchase.console")
        if Effect.TERMINATE in effects:
            try:
                await self._within(backend.terminate(purchase.machine_id))
            except (Refused, Doubtful) as error:
                log.warning("purchase_not_ended", purchase=purchase.purchase_id, said=str(error)[:300])

    async def sweep(self, row: BackendRow, market_id: str, actor: str) -> SweepResult:
        """End what has the tag of this market, and no living purchase. Raises Refused, Doubtful."""

        async def living() -> Mapping[PurchaseId, str]:
            # A write, since a Master whose term is over may end nothing. Of all backends: two may be one account.
            return await self._store.write(lambda uow: uow[PurchaseRepository].machines(), name="purchase.sweep")

        alive = living if market_id == self._market_id else nothing_lives
        result = await self._within(sweep(self._backends.opened(row), market_id, alive))

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
        if market_id == self._market_id:
            self._backends.swept_ns[row.name] = self._clock.monotonic_ns()
        return result

    async def _within(self, call: Awaitable[T]) -> T:
        """The answer of a provider. Raises Doubtful where there is none in time."""
        try:
            async with asyncio.timeout(seconds(self._rules.call_ns)):
                return await call
        except TimeoutError:
            raise Doubtful("no answer in time") from None


def _of(purchase: Purchase, machines: Sequence[Machine], seen: Mapping[PurchaseId, Machine]) -> Machine | None:
    """The machine of a purchase in a list: the one that it has, or the first with its tag. Others are the sweep's."""
    own = (one for one in machines if one.machine_id == purchase.machine_id)
    return next(own, None) if purchase.machine_id else seen.get(purchase.purchase_id)
