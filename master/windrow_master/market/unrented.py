"""Explains why nobody rents a slot that is there to be rented: in words, the most telling first. Pure.

What is said is what the Master knows: whether it can be had at all, its price against that of others in its tier, how
much was rented there of late, its verification, what keeps its grade down. It guesses nothing of what renters think.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.tiers import tier_words
from windrow_proto.units import Microcents, money_text

DEMAND_DAYS: Final = 7
"""Over which rentals are counted: a week has all of its weekdays."""
GRADE_MARKS: Final = ("C: ", "B: ")
"""How a tier's reasons begin that keep its grade down."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot without a lease, and what is around it.

    hindrance: why it cannot be had now, empty where it can; price, prices: per hour, its own and those of the other
    slots of its tier; free: of these, how many nobody rents; rentals: begun in its tier in DEMAND_DAYS; verification:
    what its host's lacks, empty where nothing; tier_reasons: as the tier gives them.
    """

    tier: str
    hindrance: str
    price: Microcents
    prices: Sequence[Microcents] = ()
    free: int = 0
    rentals: int = 0
    verification: str = ""
    tier_reasons: Sequence[str] = ()
    simulated: bool = False


def median(prices: Sequence[Microcents]) -> Microcents | None:
    """The lower median; None of nothing."""
    return sorted(prices)[(len(prices) - 1) // 2] if prices else None


def reasons(slot: Slot) -> tuple[str, ...]:
    """Return why it is not rented, at least one reason."""
    if not slot.tier:
        return ("It has no grade yet, and so no price: its host has joined and was not measured.",)
    found = [f"It cannot be had now: {slot.hindrance}."] if slot.hindrance else []
    if slot.simulated:
        found.append("Its host is simulated: only who asks for simulated hosts gets it.")
    found += [*_dear(slot), *_demand(slot)]
    if slot.verification:
        found.append(f"Its host is not verified: {slot.verification}")
    return (*found, *grades(slot.tier_reasons))


def grades(tier_reasons: Sequence[str]) -> tuple[str, ...]:
    """Return what keeps a grade down, a sentence each."""
    return tuple(f"Grade {one}." for one in tier_reasons if one.startswith(GRADE_MARKS))


def _tier(slot: Slot) -> str:
    return tier_words(slot.tier)


def _dear(slot: Slot) -> list[str]:
    middle = median(slot.prices)
    mine = money_text(slot.price)
    if middle is None:
        return [f"It is the only one of {_tier(slot)}: there is no price beside its {mine} an hour."]
    if middle <= 0 or slot.price <= middle:
        others = f"the median of {len(slot.prices)} others of {_tier(slot)}, {money_text(middle)} an hour"
        return [f"Its price is not the reason: {mine} is not above {others}."]
    above = slot.price * 100 // middle - 100
    return [
        f"Its price of {mine} an hour is {above} % above the median of {len(slot.prices)} others of {_tier(slot)}, "
        f"{money_text(middle)}."
    ]


def _demand(slot: Slot) -> list[str]:
    if not slot.rentals:
        return [f"Nobody rented {_tier(slot)} in the last {DEMAND_DAYS} days."]
    rentals = "1 rental" if slot.rentals == 1 else f"{slot.rentals} rentals"
    said = f"{rentals} of {_tier(slot)} began in the last {DEMAND_DAYS} days"
    beside = f"{slot.free} of the {len(slot.prices)} others there are free, too"
    beside = beside if slot.free else "all others are taken"
    return [f"{said}; {beside}."]
