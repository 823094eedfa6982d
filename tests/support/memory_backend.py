"""A cloud in memory, the twin of every provider: it sells machines, and loses answers, lags and refuses on order.

`MemoryCloud` is the provider, which outlives any Master: plain calls, no waiting. `MemoryBackend` is one Master's
connection to it, with time passing before and after each call. `Planned` says which call goes wrong; `Chances` leaves
that to a seed. What is true of the cloud, without lag, is in `all`, `living` and `paid_s`.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from windrow_master.hybrid.backends.port import (
    TAG_EPOCH,
    TAG_MARKET,
    TAG_PURCHASE,
    Doubtful,
    Finding,
    Leftover,
    Machine,
    MachineOffer,
    MachineState,
    Order,
    PurchaseId,
    Refused,
    RefusedFor,
    Wanted,
    in_order,
)
from windrow_master.prices.offers import Kind, billed
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, HOUR, SECOND, Bytes, Microcents, parse_money

T = TypeVar("T")

SHOWN_NS: Final = HOUR
"""So long a terminated machine is still shown, as EC2 does."""
VOLUME: Final = "volume"


class Fault(StrEnum):
    """The way in which a call goes wrong."""

    LOST = "lost"
    """It is done, and the answer is lost."""
    UNDONE = "undone"
    """It never arrived, and nobody knows."""
    LATE = "late"
    """No answer, and it is done a while later. Only of provision and terminate."""
    IGNORED = "ignored"
    """The answer is yes, and nothing is done. Only of terminate and remove."""
    CAPACITY = RefusedFor.CAPACITY
    QUOTA = RefusedFor.QUOTA
    AUTH = RefusedFor.AUTH
    PRICE = RefusedFor.PRICE
    LIMIT = RefusedFor.LIMIT


REFUSALS: Final = {Fault(reason.value): reason for reason in RefusedFor}


class Faults(Protocol):
    """Which call goes wrong, and how old an answer is."""

    def of(self, call: str) -> Fault | None:
        """The fault of this call; None: it goes well."""

    def age_ns(self, most: int) -> int:
        """The age of the picture of one machine in one list."""

    def late_ns(self, most: int) -> int:
        """How late a late call is done."""

    def volume_stays(self) -> bool:
        """The volume of a machine stays after it."""


class Planned:
    """Faults by a list for each call, in their order; every list is as old as it may be."""

    def __init__(self, *, is_stale: bool = True, volumes_stay: bool = False) -> None:
        self._next: dict[str, list[Fault | None]] = defaultdict(list)
        self.is_stale, self.volumes_stay = is_stale, volumes_stay

    def then(self, call: str, *faults: Fault | None) -> None:
        """The next calls of this name go so; None: well."""
        self._next[call] += faults

    def of(self, call: str) -> Fault | None:
        return self._next[call].pop(0) if self._next[call] else None

    def age_ns(self, most: int) -> int:
        return most if self.is_stale else 0

    def late_ns(self, most: int) -> int:
        return most

    def volume_stays(self) -> bool:
        return self.volumes_stay


COMMON: Final[Mapping[str, Mapping[Fault, float]]] = {
    "provision": {Fault.LOST: 0.15, Fault.LATE: 0.15, Fault.UNDONE: 0.05, Fault.CAPACITY: 0.05, Fault.LIMIT: 0.02},
    "terminate": {Fault.IGNORED: 0.1, Fault.UNDONE: 0.1, Fault.LOST: 0.05, Fault.LATE: 0.05, Fault.LIMIT: 0.05},
    "describe": {Fault.LOST: 0.1, Fault.LIMIT: 0.02},
    "leftovers": {Fault.LOST: 0.1},
    "remove": {Fault.LOST: 0.1, Fault.IGNORED: 0.1, Fault.UNDONE: 0.1},
}
"""The part of all calls that goes wrong in each way; far more than at any provider."""


class Chances:
    """Faults by a seed."""

    def __init__(self, rng: random.Random, rates: Mapping[str, Mapping[Fault, float]] = COMMON) -> None:
        self._rng, self._rates = rng, rates

    def of(self, call: str) -> Fault | None:
        drawn = self._rng.random()
        for fault, rate in self._rates.get(call, {}).items():
            drawn -= rate
            if drawn < 0:
                return fault
        return None

    def age_ns(self, most: int) -> int:
        return self._rng.randint(0, most)

    def late_ns(self, most: int) -> int:
        return self._rng.randint(0, most)

    def volume_stays(self) -> bool:
        return self._rng.random() < 0.2


@dataclass(slots=True)
class Instance:
    """A machine as it truly is. order None: somebody else's. ended_at_ns: when its bill stops; None: not known yet."""

    machine_id: str
    offer: MachineOffer
    made_at_ns: int
    tags: Mapping[str, str]
    order: Order | None = None
    end_asked_at_ns: int | None = None
    ended_at_ns: int | None = None
    stopped_at_ns: int | None = None
    volume_stays: bool = False
    is_volume_removed: bool = False


@dataclass(slots=True)
class Terms:
    """How this cloud is. late_ns: so much later a late call is done, at most. dies_at_its_end: the dead man of the
    machine works, and ends it at the end that was ordered. power_off: the state of a machine that switched itself
    off; at some providers that is still paid for."""

    list_lag_ns: int = 60 * SECOND
    late_ns: int = 30 * SECOND
    boot_ns: int = 40 * SECOND
    ending_ns: int = 20 * SECOND
    has_purchase_token: bool = True
    dies_at_its_end: bool = True
    power_off: MachineState = MachineState.TERMINATED
    machines_max: int = 1_000
    capacity: dict[str, int] = field(default_factory=dict)
    """The machines that an offer may still have, by its id; not there: as many as wanted."""


def memory_offers() -> list[MachineOffer]:
    """Offers of two zones, as they could be of EC2."""
    sizes = (("g5.xlarge", "a10g", 1, 4, 16, "1.006", "0.402"), ("m7i.xlarge", "cpu", 0, 4, 16, "0.2016", "0.0805"))
    return [
        MachineOffer(
            offer_id=f"{name}/{zone}/{kind}",
            kind=kind,
            gpu=gpu,
            gpu_count=gpus,
            cpus=cpus,
            memory_bytes=Bytes(gib * GIB),
            region="eu-central-1",
            zone=zone,
            country="DE",
            price_per_hour=parse_money(usd),
            currency="USD",
            priced_on=date(2026, 11, 1),
        )
        for name, gpu, gpus, cpus, gib, *prices in sizes
        for zone in ("eu-central-1a", "eu-central-1b")
        for kind, usd in zip((Kind.ON_DEMAND, Kind.SPOT), prices, strict=True)
    ]


class MemoryCloud:
    """The provider. `clock_ns`: its wall clock. `book`: its offers by their ids, whose prices a test may change."""

    def __init__(
        self,
        clock_ns: Callable[[], int],
        faults: Faults | None = None,
        terms: Terms | None = None,
        offers: Sequence[MachineOffer] = (),
    ) -> None:
        self._now, self.faults, self.terms = clock_ns, faults or Planned(), terms or Terms()
        self.book = {offer.offer_id: offer for offer in offers or memory_offers()}
        self._made: dict[str, Instance] = {}
        self._late: list[tuple[int, Callable[[int], object]]] = []
        self.calls: list[str] = []
        """The name of each call that came, in order."""

    # ----- the truth, for judges -----

    def all(self) -> Sequence[Instance]:
        """Every machine that was ever made."""
        self._settle()
        return list(self._made.values())

    def living(self) -> Sequence[Instance]:
        """The machines that are paid for now."""
        return [one for one in self.all() if one.ended_at_ns is None]

    def volumes(self) -> Sequence[Instance]:
        """The machines that have ended, and whose volumes are paid for now."""
        return [one for one in self.all() if self._has_volume(one, self._now())]

    def paid_s(self, one: Instance) -> int:
        """Seconds of its bill until now, unrounded."""
        end = self._now() if one.ended_at_ns is None else one.ended_at_ns
        return max(0, end - one.made_at_ns) // SECOND

    def cost(self, one: Instance) -> Microcents:
        """Its bill until now, by the billing rule of its offer."""
        rule = one.offer.billing
        return billed(one.offer.price_per_hour, self.paid_s(one), rule.granularity_s, rule.minimum_s)

    def add_foreign(self, tags: Mapping[str, str], offer_id: str = "") -> Instance:
        """A machine that somebody else made, with these tags."""
        offer = self.book[offer_id] if offer_id else next(iter(self.book.values()))
        return self._add(offer, tags, None, self._now())

    def reclaim(self, machine_id: str) -> None:
        """The provider takes the machine back, now."""
        self._end(self._made[machine_id], self._now(), ending_ns=0)

    def power_off(self, machine_id: str) -> None:
        """The machine switches itself off, as its dead man does."""
        self._power_off(self._made[machine_id], self._now())

    # ----- the verbs -----

    def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        return self._call("offers", lambda _now: in_order(wanted, self.book.values()))

    def provision(self, order: Order) -> Machine:
        def make(at_ns: int) -> Instance:
            known = self._of_purchase(order) if self.terms.has_purchase_token else None
            return known or self._add(order.offer, order.tags, order, at_ns)

        self._settle()
        if not (self.terms.has_purchase_token and self._of_purchase(order)):
            self._refuse(order)
        return self._shown(self._call("provision", make, is_late=True), self._now())

    def describe(self, market_id: str) -> Sequence[Machine]:
        def look(now: int) -> list[Machine]:
            found = []
            for one in self._made.values():
                at_ns = now - self.faults.age_ns(self.terms.list_lag_ns)
                is_over = one.ended_at_ns is not None and one.ended_at_ns + SHOWN_NS <= at_ns
                if one.tags.get(TAG_MARKET) == market_id and one.made_at_ns <= at_ns and not is_over:
                    found.append(self._shown(one, at_ns))
            return found

        return self._call("describe", look)

    def terminate(self, machine_id: str) -> None:
        def end(at_ns: int) -> None:
            if machine_id in self._made:
                self._end(self._made[machine_id], at_ns, ending_ns=self.terms.ending_ns)

        self._call("terminate", end, is_late=True)

    def leftovers(self, market_id: str) -> Sequence[Leftover]:
        def look(now: int) -> list[Leftover]:
            return [
                Leftover(VOLUME, f"vol-{one.machine_id}", market_id, PurchaseId(one.tags.get(TAG_PURCHASE, "")))
                for one in self._made.values()
                if one.tags.get(TAG_MARKET) == market_id and self._has_volume(one, now)
            ]

        return self._call("leftovers", look)

    def remove(self, leftover: Leftover) -> None:
        def delete(_now: int) -> None:
            one = self._made.get(leftover.leftover_id.removeprefix("vol-"))
            if one is not None:
                one.is_volume_removed = True

        self._call("remove", delete)

    # ----- inside -----

    def _call(self, name: str, act: Callable[[int], T], *, is_late: bool = False) -> T:
        """Do it, unless the fault of this call wants it otherwise."""
        self._settle()
        self.calls.append(name)
        fault, now = self.faults.of(name), self._now()
        if fault in REFUSALS:
            raise Refused(REFUSALS[fault], f"The cloud in memory refuses {name}: {fault}.")
        if fault is Fault.LATE and is_late:
            self._late.append((now + self.faults.late_ns(self.terms.late_ns), act))
        if fault in (Fault.LATE, Fault.UNDONE):
            raise Doubtful(f"no answer to {name}")
        if fault is Fault.IGNORED:
            return None  # type: ignore[return-value]  # only of the calls that return nothing
        done = act(now)
        if fault is Fault.LOST:
            raise Doubtful(f"the answer to {name} was lost")
        return done

    def _settle(self) -> None:
        """Do what was late and is due, and let die what is at its end."""
        now = self._now()
        due = sorted((one for one in self._late if one[0] <= now), key=lambda one: one[0])
        self._late = [one for one in self._late if one[0] > now]
        for at_ns, act in due:
            act(at_ns)
        for one in self._made.values():
            if self.terms.dies_at_its_end and one.order is not None and one.order.ends_at_ns <= now:
                self._power_off(one, max(one.order.ends_at_ns, one.made_at_ns))
            if one.end_asked_at_ns is not None and one.ended_at_ns is None:
                over = one.end_asked_at_ns + self.terms.ending_ns
                one.ended_at_ns = over if over <= now else None

    def _power_off(self, one: Instance, at_ns: int) -> None:
        if self.terms.power_off is MachineState.TERMINATED:
            self._end(one, at_ns, ending_ns=0)
        elif one.stopped_at_ns is None:
            one.stopped_at_ns = at_ns

    def _end(self, one: Instance, at_ns: int, *, ending_ns: int) -> None:
        if one.ended_at_ns is None and one.end_asked_at_ns is None:
            one.end_asked_at_ns = at_ns
        if one.ended_at_ns is None and not ending_ns:
            one.ended_at_ns = at_ns

    def _add(self, offer: MachineOffer, tags: Mapping[str, str], order: Order | None, at_ns: int) -> Instance:
        one = Instance(f"m-{len(self._made) + 1:06d}", offer, at_ns, dict(tags), order)
        one.volume_stays = self.faults.volume_stays()
        self._made[one.machine_id] = one
        return one

    def _refuse(self, order: Order) -> None:
        """Raises Refused where no such machine may be had for that money."""
        offer, living = self.book.get(order.offer.offer_id), self.living()
        taken = sum(one.offer.offer_id == order.offer.offer_id for one in living)
        if offer is None or taken >= self.terms.capacity.get(offer.offer_id, len(living) + 1):
            raise Refused(RefusedFor.CAPACITY, f"There is no {order.offer.offer_id} now.")
        if len(living) >= self.terms.machines_max:
            raise Refused(RefusedFor.QUOTA, f"This account may have {self.terms.machines_max} machines.")
        if offer.price_per_hour > order.dearest_per_hour:
            raise Refused(RefusedFor.PRICE, f"{offer.offer_id} costs more now.")

    def _of_purchase(self, order: Order) -> Instance | None:
        return next(
            (one for one in self._made.values() if one.order and one.order.purchase_id == order.purchase_id), None
        )

    def _has_volume(self, one: Instance, now: int) -> bool:
        return one.volume_stays and not one.is_volume_removed and one.ended_at_ns is not None and one.ended_at_ns <= now

    def _shown(self, one: Instance, at_ns: int) -> Machine:
        state = self._state(one, at_ns)
        is_over = state is MachineState.TERMINATED
        return Machine(
            machine_id=one.machine_id,
            state=state,
            said=f"{state} in memory",
            market_id=one.tags.get(TAG_MARKET, ""),
            purchase_id=PurchaseId(one.tags.get(TAG_PURCHASE, "")),
            epoch=int(one.tags.get(TAG_EPOCH, "0")),
            offer_id=one.offer.offer_id,
            zone=one.offer.zone,
            launched_at_ns=one.made_at_ns,
            ended_at_ns=one.ended_at_ns if is_over else None,
        )

    def _state(self, one: Instance, at_ns: int) -> MachineState:
        if one.ended_at_ns is not None and one.ended_at_ns <= at_ns:
            return MachineState.TERMINATED
        if one.end_asked_at_ns is not None and one.end_asked_at_ns <= at_ns:
            return MachineState.STOPPING
        if one.stopped_at_ns is not None and one.stopped_at_ns <= at_ns:
            return MachineState.STOPPED
        return MachineState.PENDING if at_ns < one.made_at_ns + self.terms.boot_ns else MachineState.RUNNING


class MemoryBackend:
    """One Master's connection to the cloud. latency_ns: passes before and again after each call, so that a Master may
    die with its call done and its answer not read."""

    kind = "memory"

    def __init__(self, cloud: MemoryCloud, clock: Clock, *, latency_ns: int = 0) -> None:
        self.cloud, self._clock, self._latency_ns = cloud, clock, latency_ns
        self.list_lag_ns = cloud.terms.list_lag_ns

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        return await self._ask(lambda: self.cloud.offers(wanted))

    async def provision(self, order: Order) -> Machine:
        return await self._ask(lambda: self.cloud.provision(order))

    async def describe(self, market_id: str) -> Sequence[Machine]:
        return await self._ask(lambda: self.cloud.describe(market_id))

    async def terminate(self, machine_id: str) -> None:
        await self._ask(lambda: self.cloud.terminate(machine_id))

    async def leftovers(self, market_id: str) -> Sequence[Leftover]:
        return await self._ask(lambda: self.cloud.leftovers(market_id))

    async def remove(self, leftover: Leftover) -> None:
        await self._ask(lambda: self.cloud.remove(leftover))

    async def console(self, machine_id: str) -> str:
        is_known = any(one.machine_id == machine_id for one in self.cloud.all())
        return f"{machine_id} started.\n" if is_known else ""

    async def check(self) -> Sequence[Finding]:
        return [Finding("credentials", True, "The cloud in memory asks for none.")]

    async def close(self) -> None:
        """Nothing is held."""

    async def _ask(self, call: Callable[[], T]) -> T:
        await self._clock.sleep_ns(self._latency_ns)
        try:
            return call()
        finally:
            await self._clock.sleep_ns(self._latency_ns)
