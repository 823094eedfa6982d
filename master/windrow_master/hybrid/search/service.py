"""Searches a place elsewhere for work that finds no room here: the leader's loop, one try after another.

asked for ─▶ its turn in the queue, no room ─▶ offers of the backends that its project may use ─▶ route.py
    ─▶ a purchase for it ─▶ its host joins, kept for it ─▶ the queue starts it there
    └─▶ refused, never made, never joined: the next place; none is left: a pause, then all of them anew
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypedDict

import structlog

from windrow_master.clusters.messages import CheapestElsewhere, ElsewhereAsked, NoRoom
from windrow_master.clusters.service import ClusterService
from windrow_master.fleet.gpus import CPU_CLASS
from windrow_master.hybrid.backends.port import Doubtful, MachineOffer, Refused, Wanted
from windrow_master.hybrid.purchases.backends import BackendService, may_not_buy
from windrow_master.hybrid.purchases.costs import with_margin
from windrow_master.hybrid.purchases.model import BackendRow, Purchase
from windrow_master.hybrid.purchases.repository import BackendRepository, BuyerRepository, PurchaseRepository
from windrow_master.hybrid.purchases.service import PurchaseService, place_at
from windrow_master.hybrid.search.decide import Decision, decide, paused, seen_of, tried, tried_now, unfit
from windrow_master.hybrid.search.model import Candidate, Doing, Search, Try, TryState
from windrow_master.hybrid.search.ports import Runs
from windrow_master.hybrid.search.repository import SearchRepository
from windrow_master.hybrid.search.route import Wish, candidates, in_order, why_none
from windrow_master.hybrid.search.subjects import Work, is_job, work_of
from windrow_master.hybrid.search.words import Told, thing, told
from windrow_master.jobs.model import JobId, JobRequest
from windrow_master.jobs.service import JobService
from windrow_master.loops import ends_alone, when_due
from windrow_master.queue.service import QueueService
from windrow_master.spec import ANY_BACKEND, Resources
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import (
    Conflict,
    Forbidden,
    InsufficientFunds,
    InvalidInput,
    QuotaExceeded,
    SpendingLimitReached,
    Unavailable,
)
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND, Microcents, seconds

log = structlog.get_logger(__name__)

TURNS_APART_NS: Final = SECOND // 4
LOOK_AGAIN_NS: Final = MINUTE
"""For a search to which nothing happens."""
AT_ONCE: Final = 8
"""Searches that are looked at at once: each may ask a provider for its offers."""
PRICES_NS: Final = MINUTE
"""So long the offers of a backend are believed."""
OFFERS_NS: Final = 30 * SECOND
"""For a backend to tell its offers."""
CheckFunds = Callable[[UnitOfWork, AccountId, Sequence[str], Microcents], None]
NOT_PRICED: Final = "The prices of places elsewhere are being read."


@dataclass(frozen=True, slots=True)
class _Found:
    """All that is known of a search: rows are the backends that its project may use, purchases those of its open
    tries."""

    search: Search
    work: Work
    rows: Sequence[BackendRow]
    purchases: Mapping[str, Purchase | None]


class _What(TypedDict):
    """What is bought, and for whom."""

    account_id: AccountId
    backend: BackendRow
    offer: MachineOffer
    duration_ns: int
    expected_ns: int | None


class SearchService:
    """The searches of all accounts. Used on the loop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        jobs: JobService,
        clusters: ClusterService,
        purchases: PurchaseService,
        queue: QueueService,
        runs: Runs,
        check_funds: CheckFunds,
    ) -> None:
        """check_funds: raises InsufficientFunds or SpendingLimitReached where a renter could not begin at a price."""
        self._store, self._clock, self._jobs, self._clusters = store, clock, jobs, clusters
        self._purchases, self._queue, self._runs = purchases, queue, runs
        self._check_funds = check_funds
        self._backends: BackendService = purchases.backends
        self._due = WorkQueue[str](clock)
        self._living: set[str] = set()
        self._no_room: set[str] = set()
        """Those that had their turn in the queue in vain since their work last began."""
        self._offers: dict[tuple[str, Wanted], tuple[int, Sequence[MachineOffer]]] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)
        purchases.on_change(self._purchase_changed)
        jobs.on_change(self._work_changed)
        clusters.on_step(self._work_changed)

    # --- what jobs, clusters and people ask --------------------------------------------------------------------------

    def asked(self, uow: UnitOfWork, fact: ElsewhereAsked) -> None:
        """Work is submitted that may run elsewhere. Raises Forbidden where its project may not buy there, InvalidInput
        where there is no such backend."""
        if not _rows(uow, fact.account_id, fact.backend):
            raise may_not_buy(uow, fact.backend, fact.account_id)
        for entry_id in fact.entry_ids:
            uow[SearchRepository].save(Search(entry_id=entry_id, account_id=fact.account_id))
            uow.after_commit(partial(self._begin, entry_id))

    def no_room(self, uow: UnitOfWork, fact: NoRoom) -> None:
        """An entry had its turn, and there was no room for it; nor is there for those of its project that are alike."""
        search = uow[SearchRepository].get(fact.entry_id)
        if search is not None:
            uow.after_commit(partial(self._note_no_room, fact.entry_id))

    def cheapest(self, uow: UnitOfWork, question: CheapestElsewhere) -> Microcents | None:
        """The price of the cheapest place elsewhere. Raises Unavailable while it is not known."""
        search = uow[SearchRepository].get(question.entry_id)
        if search is None:
            return None
        if search.priced_at_ns is None:
            raise Unavailable(NOT_PRICED)
        return search.best_per_hour

    async def find(self, entry_id: str) -> Search | None:
        """The search of a job or machine; None: it may not run elsewhere."""
        return await self._store.read(lambda uow: uow[SearchRepository].get(entry_id))

    async def tries(self, entry_id: str) -> Sequence[Try] | None:
        """The tries of a job or machine, the oldest first; None: it may not run elsewhere."""
        search = await self.find(entry_id)
        return None if search is None else search.tries

    def told(self, uow: UnitOfWork, entry_ids: Collection[str]) -> Mapping[str, Told]:
        """What happens elsewhere for each of these entries of the queue for which something does."""
        found = uow[SearchRepository].of_ids([one for one in entry_ids if one in self._living])
        said = {entry_id: told(search, uow.now_wall_ns) for entry_id, search in found.items()}
        return {entry_id: one for entry_id, one in said.items() if one is not None}

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry searches on, until cancelled; without any it sleeps."""
        await self.begin()
        await when_due(self.turn, self._due, TURNS_APART_NS, "searches")

    async def begin(self) -> None:
        """Take up all searches that go on, by their rows."""
        for entry_id in await self._store.read(lambda uow: uow[SearchRepository].living_ids()):
            self._begin(entry_id)

    async def turn(self) -> None:
        """Look at the searches that are due."""
        async with asyncio.TaskGroup() as group:
            for entry_id in self._due.take():
                group.create_task(self._look_alone(entry_id))

    async def _look_alone(self, entry_id: str) -> None:
        async with self._at_once:
            next_ns = LOOK_AGAIN_NS
            with ends_alone("search", entry=entry_id):
                next_ns = await self._look(entry_id)
        if entry_id in self._living:
            self._due.add(entry_id, self._clock.monotonic_ns() + next_ns)

    async def _look(self, entry_id: str) -> int:
        """Do what is next for one; returns when to look again, unless something happens."""
        found = await self._store.read(partial(self._read, entry_id))
        if found is None:
            self._forget(entry_id)
            return LOOK_AGAIN_NS
        decision = self._decide(found, self._clock.wall_ns())
        if decision.search != found.search or decision.ends or decision.frees:
            changed = await self._store.write(partial(self._noted, entry_id), name="search.look")
            if changed is None:
                self._forget(entry_id)
                return LOOK_AGAIN_NS
            found, decision = changed
        doing = found.work.subject.doing
        if doing is Doing.OVER:
            self._forget(entry_id)
            return LOOK_AGAIN_NS
        if doing is Doing.RUNNING:
            self._no_room.discard(entry_id)
        if found.search.priced_at_ns is None and found.work.request.optimize == "cost" and doing is Doing.WAITING:
            await self._price(found)
        if decision.is_next_due:
            await self._next(found)
        if not is_job(entry_id):
            await self._clusters.waiting.put_again(ClusterId(entry_id))
        await self._tell(entry_id)
        wait_ns = found.search.next_at_ns - self._clock.wall_ns()
        return min(LOOK_AGAIN_NS, wait_ns) if wait_ns > 0 else LOOK_AGAIN_NS

    def _read(self, entry_id: str, uow: UnitOfWork) -> _Found | None:
        search, work = uow[SearchRepository].get(entry_id), work_of(uow, entry_id)
        if search is None or search.has_ended or work is None:
            return None
        rows = _rows(uow, search.account_id, work.request.backend or "")
        ids = [search.open_try.purchase_id] if search.open_try is not None else []
        return _Found(search, work, rows, {one: uow[PurchaseRepository].get(one) for one in ids})

    def _decide(self, found: _Found, now_ns: int) -> Decision:
        seen = {purchase_id: seen_of(one) for purchase_id, one in found.purchases.items()}
        has_room = found.search.entry_id not in self._no_room
        return decide(found.search, found.work.subject, seen, has_room, now_ns)

    def _noted(self, entry_id: str, uow: UnitOfWork) -> tuple[_Found, Decision] | None:
        """Write down what is new of a search, and what follows for its purchases."""
        found = self._read(entry_id, uow)
        if found is None:
            return None
        decision = self._decide(found, uow.now_wall_ns)
        uow[SearchRepository].save(decision.search)
        by_id = {one.purchase_id: one for one in found.search.tries}
        for purchase_id, reason in decision.ends:
            if by_id[purchase_id].place.is_service:
                self._runs.drop(uow, purchase_id, reason)
            else:
                self._purchases.drop(uow, purchase_id, reason)
        for purchase_id in decision.frees:
            self._purchases.release(uow, purchase_id)
        for one in decision.failed:
            self._tell_failed(uow, found, one)
        return replace(found, search=decision.search), decision

    def _tell_failed(self, uow: UnitOfWork, found: _Found, one: Try) -> None:
        said = f"{found.work.subject.name} has no place at {one.place.text}: {one.said}"
        self._event(uow, found.search, "try_failed", said)

    def _event(self, uow: UnitOfWork, search: Search, what: str, said: str) -> None:
        kind = "job" if is_job(search.entry_id) else "cluster"
        uow.event(f"{kind}.{what}", (search.entry_id, search.account_id), said, actor="master")

    # --- the next place ----------------------------------------------------------------------------------------------

    async def _places(self, found: _Found) -> tuple[Wish, list[Candidate], list[str]]:
        """The places that could be bought now, and what was said by backends that tell none."""
        wish, places, said = found.work.wish, list[Candidate](), list[str]()
        if isinstance(found.work.request, JobRequest):
            wish = replace(wish, usual_ns=await self._usual_ns(found))
        now_ns = self._clock.wall_ns()
        for row in found.rows:
            is_service = row.kind in self._runs.kinds
            if is_service and (why := self._why_not(found.work)):
                said.append(f"{row.name}: {why}")
                continue
            try:
                offers = await self._offers_of(row, wish.wanted, is_service=is_service)
            except (Refused, Doubtful, TimeoutError) as error:
                said.append(f"{row.name}: {str(error)[:200] or 'it gave no answer in time'}")
                continue
            fit = candidates(wish, row.name, row.margin_percent, offers, now_ns, is_service=is_service)
            places += fit
            if not fit:
                said.append(f"{row.name}: {why_none(wish, row.margin_percent, offers)}")
        return wish, places, said

    def _why_not(self, work: Work) -> str:
        if not isinstance(work.request, JobRequest):
            return "a machine is no run"
        return self._runs.why_not(work.request)

    async def _usual_ns(self, found: _Found) -> int | None:
        return await self._jobs.usual_ns(found.search.account_id, found.work.subject.name)

    async def _offers_of(self, row: BackendRow, wanted: Wanted, *, is_service: bool) -> Sequence[MachineOffer]:
        now_ns, key = self._clock.monotonic_ns(), (row.name, wanted)
        known = self._offers.get(key)
        if known is not None and now_ns - known[0] < PRICES_NS:
            return known[1]
        self._offers = {each: of for each, of in self._offers.items() if now_ns - of[0] < PRICES_NS}
        async with asyncio.timeout(seconds(OFFERS_NS)):
            asks = self._runs.offers(row, wanted) if is_service else self._backends.opened(row).offers(wanted)
            offers = await asks
        self._offers[key] = now_ns, offers
        return offers

    async def _price(self, found: _Found) -> None:
        """Note the price of the cheapest place, so that it can be compared with those here."""
        _, places, _ = await self._places(found)
        best = min((one.price_per_hour for one in places), default=None)

        def note(uow: UnitOfWork) -> None:
            search = uow[SearchRepository].get(found.search.entry_id)
            if search is not None:
                uow[SearchRepository].save(replace(search, best_per_hour=best, priced_at_ns=uow.now_wall_ns))

        await self._store.write(note, name="search.priced")

    async def _next(self, found: _Found) -> None:
        """Try the next place; where none is left, pause."""
        entry_id = found.search.entry_id
        wish, places, said = await self._places(found)
        capped = set[str]()
        for place in in_order(wish, places, tried_now(found.search), unfit(found.search)):
            if place.backend in capped:
                continue  # its cheapest was too much already
            if await self._store.write(partial(self._try, entry_id, place), name="search.try"):
                return
            capped.add(place.backend)
        await self._store.write(partial(self._pause, entry_id, "; ".join(said)), name="search.pause")

    def _try(self, entry_id: str, place: Candidate, uow: UnitOfWork) -> bool:
        """Buy at this place; False where it may not, which is a try, too. True also where nothing is to be bought
        any more."""
        found = self._read(entry_id, uow)
        if found is None or not self._decide(found, uow.now_wall_ns).is_next_due:
            return True
        row = next((one for one in found.rows if one.name == place.backend), None)
        if row is None:
            return False
        search, offer_id = found.search, place.offer.offer_id
        try:
            with uow.attempt():
                if place.is_service:
                    self._check_funds(uow, search.account_id, found.work.spenders, place.price_per_hour)
                else:
                    self._check_begins(uow, found, row, place)
                bought_id = self._buy(uow, search, row, place)
        except (
            Conflict,
            Forbidden,
            InsufficientFunds,
            InvalidInput,
            QuotaExceeded,
            SpendingLimitReached,
        ) as error:
            where = place_at(place.backend, place.offer, row.margin_percent)
            search = tried(search, where, offer_id, uow.now_wall_ns, TryState.FAILED, error.detail or error.code)
            uow[SearchRepository].save(search)
            self._tell_failed(uow, found, search.tries[-1])
            return False
        ids = {"run_id": bought_id} if place.is_service else {"purchase_id": bought_id}
        where = place_at(place.backend, place.offer, row.margin_percent, **ids)
        uow[SearchRepository].save(tried(search, where, offer_id, uow.now_wall_ns))
        uow.after_commit(lambda: self._due.add(entry_id))
        return True

    def _check_begins(self, uow: UnitOfWork, found: _Found, row: BackendRow, place: Candidate) -> None:
        """Raise what starting the work there would, beside all that the machines will do which were bought for others
        of its project: nothing is bought that may not begin then."""
        search, work = found.search, found.work
        asked = [_asked(work, place.offer, row)]
        for one_row in found.rows:
            for one in uow[PurchaseRepository].living(one_row.name):
                is_other = one.account_id == search.account_id and one.for_id != search.entry_id
                other = work_of(uow, one.for_id) if is_other and one.is_kept and not one.offer.is_run else None
                if other is not None and other.subject.doing in (Doing.WAITING, Doing.LATER):
                    asked.append(_asked(other, one.offer, one_row))
        self._clusters.check_begins(uow, search.account_id, work.spenders, asked)

    def _buy(self, uow: UnitOfWork, search: Search, row: BackendRow, place: Candidate) -> str:
        what = _What(
            account_id=search.account_id,
            backend=row,
            offer=place.offer,
            duration_ns=place.duration_ns,
            expected_ns=place.expected_ns,
        )
        if place.is_service:
            return self._runs.begin(uow, job_id=search.entry_id, **what)
        return self._purchases.buy_for(uow, for_id=search.entry_id, **what).purchase_id

    def _pause(self, entry_id: str, said: str, uow: UnitOfWork) -> None:
        found = self._read(entry_id, uow)
        if found is None or not self._decide(found, uow.now_wall_ns).is_next_due:
            return
        after = paused(found.search, uow.now_wall_ns, said)
        uow[SearchRepository].save(after)
        if after.said != found.search.said or tried_now(found.search):  # else the last round said the same
            text = f"{found.work.subject.name} has no place elsewhere either; it is looked for again in 5 min"
            self._event(uow, found.search, "no_place_elsewhere", text + (f": {after.said}" if after.said else ""))

    # --- what is told ------------------------------------------------------------------------------------------------

    async def _tell(self, entry_id: str) -> None:
        """Say to whoever waits what happens elsewhere for it, and have its own host tried."""
        found = await self._store.read(partial(self._read, entry_id))
        if found is None or found.work.subject.doing is not Doing.WAITING:
            return
        if (one := found.search.open_try) is not None:
            said = f"{thing(one)} at {one.place.text}"
        elif found.search.next_at_ns > self._clock.wall_ns():
            why = f": {found.search.said}" if found.search.said else ""
            said = f"there is no room here, and no place elsewhere{why}"
        else:
            return
        if said != found.work.subject.reason:
            source = self._jobs.controller if is_job(entry_id) else self._clusters.waiting
            await source.tell([entry_id], said)

    def _begin(self, entry_id: str) -> None:
        self._living.add(entry_id)
        self._due.add(entry_id)

    def _forget(self, entry_id: str) -> None:
        self._living.discard(entry_id)
        self._no_room.discard(entry_id)
        self._due.drop(entry_id)

    def _note_no_room(self, entry_id: str) -> None:
        for one in (entry_id, *self._queue.ready_like(entry_id)):
            if one not in self._no_room and one in self._living:
                self._no_room.add(one)
                self._due.add(one)

    def _work_changed(self, entry_id: JobId | ClusterId) -> None:
        if entry_id in self._living:
            self._due.add(entry_id)

    def _purchase_changed(self, purchase: Purchase) -> None:
        if purchase.for_id not in self._living:
            return
        self._due.add(purchase.for_id)
        if is_job(purchase.for_id):  # its own host may have come, or gone
            self._jobs.controller.look_again(JobId(purchase.for_id))


def _asked(work: Work, offer: MachineOffer, row: BackendRow) -> tuple[Resources, str, Microcents]:
    """Of work that starts on a machine of this offer: what it asks for, its tier, and its part of the price."""
    asked, gpus = work.request, offer.gpu_count
    part, parts = (asked.gpus, gpus) if gpus else (asked.cpus, max(1, offer.cpus))
    price = -(-with_margin(offer.price_per_hour, row.margin_percent) * min(part, parts) // parts)
    return asked, offer.gpu if gpus else CPU_CLASS, Microcents(price)


def _rows(uow: UnitOfWork, account_id: AccountId, backend: str) -> list[BackendRow]:
    """The backends that work of a project which names this one may use."""
    names = [one.backend for one in uow[BuyerRepository].of_account(account_id)]
    rows = (uow[BackendRepository].get(name) for name in names if backend in (name, ANY_BACKEND))
    return [row for row in rows if row is not None]


def forget_searches(uow: UnitOfWork, account_id: AccountId) -> None:
    """Delete those of a project that is deleted."""
    uow[SearchRepository].forget(account_id)
