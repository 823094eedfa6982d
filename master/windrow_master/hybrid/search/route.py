"""Puts the places that could be bought for some work in the order in which they are tried. Pure.

    spot first, if it was asked for ─▶ by cost: the cheapest backend, in it the cheapest type, zone by zone
                                       by speed: services, which start in seconds, before machines

Work that was interrupted on a spot machine goes to one that is not taken back.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.gpus import CPU_CLASS
from windrow_master.hybrid.backends.port import MachineOffer, Wanted, machine_of
from windrow_master.hybrid.places import REST_S, START_S, memory_of, wanted_of
from windrow_master.hybrid.purchases.costs import with_margin
from windrow_master.hybrid.routing import is_gpu
from windrow_master.hybrid.search.model import Candidate
from windrow_master.prices.offers import Kind
from windrow_master.spec import Resources
from windrow_proto.units import DAY, GIB, HOUR, MINUTE, SECOND, Bytes, Microcents, money_text

ROUND_MAX: Final = 12
"""Places that are tried in one round."""
DEARER_MAX: Final = 4
"""So many times the price of the cheapest place may another one cost: whoever wants two processors gets no machine with
eight GPUs."""
USUAL_NS: Final = 4 * HOUR
"""The length of work that says none, and of whose name none has run before; a longer one moves then."""
AROUND_NS: Final = 30 * MINUTE
"""Beside the running time: a machine boots, and results are brought in."""
LONGEST_NS: Final = 31 * DAY
LEAST_NS: Final = 10 * MINUTE
"""The least that the budget has to pay for, where it is not known how long work runs."""
USABLE: Final = 0.9
"""Of a machine's memory, and of a GPU's: the rest is its system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The wishes of some work. limit_ns: after which each attempt is ended; usual_ns: as long as its like ran; None:
    not known. left: of its budget; None: it has none. until_ns: its deadline. was_interrupted: on a spot machine."""

    resources: Resources
    optimize: str | None = None
    spot: bool = False
    limit_ns: int | None = None
    usual_ns: int | None = None
    left: Microcents | None = None
    until_ns: int | None = None
    was_interrupted: bool = False

    @property
    def kinds(self) -> frozenset[Kind]:
        """How it may be sold."""
        return frozenset({Kind.ON_DEMAND, Kind.SPOT} if self.spot else {Kind.ON_DEMAND})

    @property
    def wanted(self) -> Wanted:
        """The question to a backend."""
        asked = self.resources
        memory = Bytes(math.ceil((asked.memory_bytes or 0) / USABLE))
        return Wanted(gpus=asked.gpus, cpus=asked.cpus, memory_bytes=memory, kinds=self.kinds)


def fits(asked: Resources, offer: MachineOffer) -> bool:
    """True where an offer has what is asked for, as far as a backend is not asked about it. What wants no GPU gets
    none; of what names a GPU or a tier, an offer has to be it for sure."""
    named = asked.tier.partition("/")[0] if asked.tier else wanted_of(asked.gpu_model) if asked.gpu_model else None
    if named is not None and not is_gpu(offer.gpu or CPU_CLASS, named or "?"):
        return False
    if asked.gpu_memory_bytes is not None and (memory_of(offer.gpu) or 0) * USABLE * GIB < asked.gpu_memory_bytes:
        return False
    has_place = asked.country is None or offer.country == asked.country
    return has_place and bool(offer.gpu_count) == bool(asked.gpus) and offer.price_per_hour >= 0


def duration_ns(wish: Wish, price_per_hour: Microcents, now_ns: int) -> int | None:
    """How long a place of this price is bought for; None: the budget does not pay for it, or the deadline is too
    near."""
    known_ns = wish.limit_ns or (wish.usual_ns and wish.usual_ns * 3 // 2)
    longest_ns = known_ns or USUAL_NS
    if wish.until_ns is not None:
        longest_ns = min(longest_ns, wish.until_ns - now_ns)
    if wish.left is not None and price_per_hour:
        paid_ns = wish.left * HOUR // price_per_hour
        if paid_ns < (longest_ns if known_ns else min(longest_ns, LEAST_NS)):
            return None
        longest_ns = min(longest_ns, paid_ns)
    return min(longest_ns + AROUND_NS, LONGEST_NS) if longest_ns > 0 else None


def expected_ns(wish: Wish, kind: Kind, *, is_service: bool) -> int | None:
    """How long a place is thought to be paid for: its start, the work, and as long as a machine without work is kept;
    None: nothing says how long the work takes."""
    work_ns = wish.usual_ns or wish.limit_ns
    if work_ns is None:
        return None
    around_s = 0.0 if is_service else START_S["", "spot" if kind is Kind.SPOT else ""][0] + REST_S
    return work_ns + int(around_s * SECOND)


def candidates(
    wish: Wish, backend: str, margin_percent: int, offers: Iterable[MachineOffer], now_ns: int, *, is_service: bool
) -> list[Candidate]:
    """The places of one backend that the work could have: within its budget and highest price."""
    asked, found = wish.resources, list[Candidate]()
    for offer in offers:
        price = with_margin(offer.price_per_hour, margin_percent)
        is_dear = asked.max_price_per_hour is not None and price > asked.max_price_per_hour
        for_ns = duration_ns(wish, price, now_ns)
        if not is_dear and for_ns is not None and fits(asked, offer) and wish.wanted.takes(offer):
            made = Candidate(
                backend=backend,
                offer=offer,
                price_per_hour=price,
                duration_ns=for_ns,
                expected_ns=expected_ns(wish, offer.kind, is_service=is_service),
                is_service=is_service,
            )
            found.append(made)
    return found


def why_none(wish: Wish, margin_percent: int, offers: Iterable[MachineOffer]) -> str:
    """Why none of these offers is a place for the work, in words."""
    fitting = [one for one in offers if fits(wish.resources, one) and wish.wanted.takes(one)]
    if not fitting:
        return "no offer has what it asks for"
    least = min(fitting, key=lambda one: one.price_per_hour)
    price = money_text(with_margin(least.price_per_hour, margin_percent))
    cost = f"the cheapest that fits costs {price} {least.currency} an hour"
    return f"{cost}, which its budget, highest price or deadline does not allow for"


def in_order(
    wish: Wish, places: Sequence[Candidate], tried: Collection[tuple[str, str]], unfit: Collection[tuple[str, str]] = ()
) -> list[Candidate]:
    """The places that are tried next, the first one first. tried: in this round; unfit: on which the work could not
    start. Each backend's types come in turn, the cheapest first, and of a type its zones."""
    first_kind = Kind.SPOT if wish.spot and not wish.was_interrupted else Kind.ON_DEMAND
    least = min((one.price_per_hour for one in places), default=0)
    left = [one for one in places if one.key not in tried and one.key not in unfit]
    left = [one for one in left if one.price_per_hour <= DEARER_MAX * least]
    of_backend, of_type = dict[object, int](), dict[object, int]()
    for one in left:
        backend, kind = (one.backend, one.offer.kind), (one.backend, one.offer.kind, machine_of(one.offer))
        of_backend[backend] = min(of_backend.get(backend, one.price_per_hour), one.price_per_hour)
        of_type[kind] = min(of_type.get(kind, one.price_per_hour), one.price_per_hour)

    def rank(one: Candidate) -> tuple[object, ...]:
        machine = machine_of(one.offer)
        return (
            wish.optimize == "speed" and not one.is_service,
            one.offer.kind is not first_kind,
            of_backend[one.backend, one.offer.kind],
            one.backend,
            of_type[one.backend, one.offer.kind, machine],
            machine,
            one.price_per_hour,
            one.offer.offer_id,
        )

    return sorted(left, key=rank)[: max(0, ROUND_MAX - len(tried))]
