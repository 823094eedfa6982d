"""Feeds the leading Master's engine with what changes of hosts, and has requests placed on the hosts that it nominates.

    commit ─▶ touched hosts ─▶ fresh: their rows, read beside the writer ─▶ LiveFleet
    request ─▶ fresh ─▶ nominated hosts ─▶ write: the planner on their rows, compare-and-set ─▶ placed
                 ▲─────────── again, four times, where it finds none there ◀─┘ then on the rows of all hosts

The rows decide: what is in memory is made of them at the first request, and anew once it is found to be wrong.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import structlog

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.request import placement_request
from windrow_master.clusters.snapshot import Missed, Placer
from windrow_master.clusters.terms import Terms, read_terms
from windrow_master.fleet.service import FleetService
from windrow_master.loops import ends_alone
from windrow_master.market.service import MarketService, PriceBook
from windrow_master.placement.live import NOMINATED_MAX, LiveFleet, Nominated, is_known
from windrow_master.placement.model import Candidate, Request
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

TRIES_MAX: Final = 4
"""Nominations for one request, until it is tried on all hosts."""
WHOLE_FLEET: Final = 16
"""Hosts, of which the planner's record keeps as many."""
TERMS_EVERY_NS: Final = SECOND
"""Between two looks at prices, at limits of hosts and at hosts that settle, which no commit of a host tells of."""
T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    """Rows read for the engine: of the wanted hosts, or of all (wanted None). terms: prices and limits, if due."""

    candidates: tuple[Candidate, ...]
    wanted: frozenset[HostId] | None
    terms: Terms | None


@dataclass(slots=True)
class Counts:
    """Of requests since the start. nominated: placed on a nominated host; missed: nominations on which nothing was
    found; whole: tried on all hosts; rebuilt: how often the engine was made anew from rows."""

    nominated: int = 0
    missed: int = 0
    whole: int = 0
    rebuilt: int = 0


class Nominations:
    """The engine and its feed. Used on the loop."""

    def __init__(self, store: Store, clock: Clock, fleet: FleetService, market: MarketService, placer: Placer) -> None:
        self._store, self._clock, self._fleet, self._market, self._placer = store, clock, fleet, market, placer
        self.live, self.counts = LiveFleet(), Counts()
        self._is_built = False
        self._touched: set[HostId] = set()
        self._settling: set[HostId] = set()
        self._terms: Terms = PriceBook(()), {}
        self._terms_due_ns = 0
        self._reading = asyncio.Lock()
        fleet.on_touch(self._touched.add)

    async def placed(
        self,
        account_id: AccountId,
        request: ClusterRequest,
        act: Callable[[Nominated | None], Awaitable[T]],
        *,
        is_proof: bool = False,
        is_preview: bool = False,
        but: Collection[HostId] = (),
    ) -> T:
        """Return what `act` does with nominated hosts, which raises Missed where the request fits on none of them;
        in the end what it does with None, which stands for all hosts. is_preview: nothing is to be taken. but: hosts
        that are not nominated."""
        tried = set(but)
        asked = self._asked(account_id, request, is_proof)
        for turn in range(TRIES_MAX):
            is_first = not (is_preview or turn)
            found = None if asked is None else await self._nominate(asked, tried, not is_preview, is_first)
            if found is None:
                break
            try:
                done = await act(found)
            except Missed:
                self.counts.missed += 1
                tried.update(found.hosts)
                await self._look_again(found)
            else:
                self.counts.nominated += 1
                return done
            finally:
                self.live.let_go(found)
        self.counts.whole += 1
        return await act(None)

    async def placed_copies(
        self,
        account_id: AccountId,
        request: ClusterRequest,
        count: int,
        act: Callable[[Sequence[Nominated | None]], Awaitable[Sequence[T]]],
    ) -> Sequence[T]:
        """Return what `act` does with nominated hosts for so many copies of a request, for fewer where the engine has
        no place for more; None stands for all hosts, of a small fleet. The place of each is kept meanwhile."""
        if len(self._fleet.view) <= WHOLE_FLEET:
            return await act([None] * count)
        asked, found = self._asked(account_id, request, False), list[Nominated]()
        try:
            while asked is not None and len(found) < count:
                turn = replace(asked, tie_seed=self._placer.tie_seed(account_id, len(found)))
                one = await self._nominate(turn, (), holds=True, learns=True, most=1)  # the one that is kept for it
                if one is None:
                    break
                found.append(one)
            done = await act(found) if found else ()
        finally:
            for one in found:
                self.live.let_go(one)
        self.counts.nominated += len(done)
        return done

    async def fresh(self) -> None:
        """Have what was committed until now. Raises what reading the store does."""
        async with self._reading:  # who comes while another reads finds most of it done
            is_due = self._clock.monotonic_ns() >= self._terms_due_ns
            if self._is_built and not self._touched and not is_due:
                return
            touched = self._touched.copy()
            self._touched -= touched
            wanted = frozenset(touched | (self._settling if is_due else set())) if self._is_built else None
            try:
                read = await self._store.read(lambda uow: self._read(uow, wanted, with_terms=is_due or wanted is None))
            except BaseException:
                self._touched |= touched  # for the next who reads
                raise
            self._take(read)

    def differing(self, uow: UnitOfWork) -> list[HostId]:
        """Catch up, and return the hosts that the engine then has otherwise than one made of all rows; for judges."""
        if not self._is_built:
            return []
        self._take(self._read(uow, frozenset(self._touched | self._settling), with_terms=True))
        self._touched.clear()
        return self.live.differs(self._placer.candidates(uow, 1))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _asked(self, account_id: AccountId, request: ClusterRequest, is_proof: bool) -> Request | None:
        """The request as the engine is asked; None: it is not. A small fleet is looked at as a whole, and says of each
        host why not there."""
        if request.volumes or len(self._fleet.view) <= WHOLE_FLEET:
            return None
        try:
            asked = placement_request(request, account_id, self._placer.tie_seed(account_id), is_proof)
        except ValueError:
            return None  # whoever acts says what is wrong with it
        return asked if is_known(asked) else None

    async def _nominate(
        self, request: Request, but: Collection[HostId], holds: bool, learns: bool, most: int = NOMINATED_MAX
    ) -> Nominated | None:
        """As of LiveFleet; None, too, where the store cannot be read or the engine fails, which then begins anew."""
        found, is_sound = None, False
        with ends_alone("nominate"):
            await self.fresh()
            found, is_sound = self.live.nominate(request, but, holds=holds, learns=learns, most=most), True
        self._is_built &= is_sound
        return found

    async def _look_again(self, found: Nominated) -> None:
        """The planner found no place on these hosts: read them once more. One that no commit has told of, and that is
        known otherwise than its rows say, shows that something was not heard: begin anew."""
        with ends_alone("nominated_again"):
            async with self._reading:
                wanted = frozenset(found.hosts) - self._touched
                read = await self._store.read(lambda uow: self._read(uow, wanted, with_terms=False))
                quiet = [one for one in read.candidates if one.host_id not in self._touched]
                wrong = [one.host_id for one in quiet if self.live.put(one)]
                if wrong:
                    log.warning("placement_index_wrong", hosts=wrong)
                    self._is_built = False

    def _read(self, uow: UnitOfWork, wanted: frozenset[HostId] | None, *, with_terms: bool) -> _Read:
        terms: Terms | None = None
        if with_terms:
            terms, wanted = read_terms(uow, self._market, self._terms, wanted)
        candidates = self._placer.candidates(uow, 1, None if wanted is None else sorted(wanted))
        return _Read(candidates, wanted, terms)

    def _take(self, read: _Read) -> None:
        if not self._is_built:
            self.live.clear()
            self.counts.rebuilt += 1
        known = {one.host_id for one in read.candidates}
        gone = (self.live.hosts() if read.wanted is None else read.wanted) - known
        for one in read.candidates:
            self.live.put(one)
        for host_id in gone:
            self.live.drop(host_id)
        self._is_built = True
        settling = {one.host_id for one in read.candidates if one.link_state == "online" and not one.is_settled}
        self._settling = (self._settling - known - gone) | settling
        if read.terms is not None:
            self._terms, self._terms_due_ns = read.terms, self._clock.monotonic_ns() + TERMS_EVERY_NS
