"""What purchases cost: in the worst case, until now, in the end; and whether the caps allow one more. Pure.

Amounts are rounded as the provider's bill is (prices/offers.py). The worst case is reserved before a provider is asked,
so that two purchases at once pass no cap together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.hybrid.backends.port import MachineOffer, PurchaseId
from windrow_master.hybrid.purchases.model import (
    LIVING_MAX,
    NOTHING,
    OVERRUN_S,
    BackendRow,
    Buyer,
    Caps,
    Cost,
    Owed,
    Purchase,
)
from windrow_master.hybrid.purchases.states import State
from windrow_master.prices.offers import billed
from windrow_proto.errors import InvalidInput, QuotaExceeded
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, SECOND, Microcents, money_text

DEARER_PERCENT: Final = 10
"""So much may a price have risen between the quote and the launch; more is asked about again."""
DAY_HOURS: Final = 24
MARGIN_PERCENT_MAX: Final = 1_000
_MONEY: Final = ("per_hour", "per_day", "in_all")


@dataclass(frozen=True, slots=True)
class Spent:
    """Entries of the book of one backend: those of this day, and all of them."""

    today: Microcents = NOTHING
    in_all: Microcents = NOTHING


def dearest(price_per_hour: Microcents) -> Microcents:
    """The most that an hour may cost when the machine is launched, rounded down."""
    return Microcents(price_per_hour * (100 + DEARER_PERCENT) // 100)


def worst_case(offer: MachineOffer, dearest_per_hour: Microcents, duration_ns: int) -> Microcents:
    """The most that a machine may cost which is to end after this time, its overrun included."""
    used_s = -(-duration_ns // SECOND) + OVERRUN_S
    return billed(dearest_per_hour, used_s, offer.billing.granularity_s, offer.billing.minimum_s)


def cost_of(offer: MachineOffer, duration_ns: int) -> Microcents:
    """Return the cost of a machine of this offer for this time, by the provider's billing rule."""
    rule = offer.billing
    return billed(offer.price_per_hour, duration_ns / SECOND, rule.granularity_s, rule.minimum_s)


def wanted(
    purchase_id: PurchaseId,
    backend: str,
    account_id: AccountId,
    bought_by: str,
    offer: MachineOffer,
    duration_ns: int,
    now_ns: int,
    for_id: str = "",
    expected_ns: int | None = None,
) -> Purchase:
    """A purchase as it begins, with its cost in the worst case, and as it is expected. expected_ns: so long it is
    thought to be paid for; None: nothing says it."""
    most_per_hour = dearest(offer.price_per_hour)
    return Purchase(
        purchase_id=purchase_id,
        backend=backend,
        account_id=account_id,
        bought_by=bought_by,
        offer=offer,
        state=State.WANTED,
        state_since_ns=now_ns,
        created_at_ns=now_ns,
        ends_at_ns=now_ns + duration_ns,
        dearest_per_hour=most_per_hour,
        reserved=worst_case(offer, most_per_hour, duration_ns),
        forecast=None if expected_ns is None else cost_of(offer, expected_ns),
        for_id=for_id,
        is_kept=bool(for_id),
    )


def with_margin(price: Microcents, margin_percent: int) -> Microcents:
    """The price that the work pays, rounded up."""
    return Microcents(-(-price * (100 + margin_percent) // 100))


def used_ns(purchase: Purchase, until_ns: int) -> tuple[int, int]:
    """From when to when its machine is paid for, by the provider's clock; from the asking on where the provider does
    not say when it was launched. For no longer than since it was asked for: a machine may lie about its times."""
    asked = purchase.asked_at_ns or purchase.created_at_ns
    begun = purchase.launched_at_ns or asked
    ended = purchase.ended_at_ns or purchase.gone_since_ns or until_ns
    return begun, begun + max(0, min(ended - begun, until_ns - asked))


def cost_until(purchase: Purchase, now_ns: int) -> Microcents:
    """What it has cost until now; nothing where there is no machine."""
    if not purchase.machine_id:
        return NOTHING
    begun, ended = used_ns(purchase, now_ns)
    return cost_of(purchase.offer, ended - begun)


def entry(purchase: Purchase, earlier: Iterable[Cost], paid: Microcents, now_ns: int) -> Cost:
    """The entry of the book for one that is gone: all that it cost, less what earlier entries say."""
    known = list(earlier)
    begun, ended = used_ns(purchase, now_ns)
    rule, used_s = purchase.offer.billing, -(-(ended - begun) // SECOND)
    steps = -(-max(used_s, rule.minimum_s) // rule.granularity_s)
    return Cost(
        purchase_id=purchase.purchase_id,
        backend=purchase.backend,
        account_id=purchase.account_id,
        at_ns=now_ns,
        from_ns=begun,
        to_ns=ended,
        billed_s=steps * rule.granularity_s - sum(one.billed_s for one in known),
        idle_s=purchase.idle_ns // SECOND - sum(one.idle_s for one in known),
        cost=Microcents(cost_until(purchase, now_ns) - sum(one.cost for one in known)),
        currency=purchase.offer.currency,
        paid=Microcents(paid - sum(one.paid for one in known)),
    )


def day_of(at_ns: int) -> int:
    """The first moment of the day, UTC."""
    return at_ns - at_ns % DAY


def owed(row: BackendRow, living: Sequence[Purchase], spent: Spent, now_ns: int) -> Owed:
    """What a backend costs now."""
    machines = [one for one in living if one.machine_id]
    ongoing = sum(cost_until(one, now_ns) for one in machines)
    return Owed(
        backend=row.name,
        currency=row.caps.currency,
        per_hour=Microcents(sum(one.offer.price_per_hour for one in machines)),
        today=Microcents(
            spent.today + sum(min(cost_until(one, now_ns), DAY_HOURS * one.dearest_per_hour) for one in machines)
        ),
        in_all=Microcents(spent.in_all + ongoing),
        reserved=Microcents(sum(one.reserved for one in living)),
        living=len(living),
        vcpus=sum(one.offer.cpus for one in living),
    )


def check_caps(row: BackendRow, wanted: Purchase, living: Sequence[Purchase], spent: Spent) -> None:
    """Raise QuotaExceeded where one more passes a cap of its backend, with what it is, InvalidInput where it is in
    another currency. living: of this backend, those that are in doubt too."""
    caps, all_of_them = row.caps, [*living, wanted]
    if len(living) >= LIVING_MAX:
        raise _reached(row, "of any backend", f"{len(all_of_them):,} purchases", f"{LIVING_MAX:,}")
    if wanted.offer.currency != caps.currency:
        said = f"The offer is in {wanted.offer.currency} and the caps of {row.name} in {caps.currency}."
        raise InvalidInput(said, subject=row.name)
    amounts = {"per_hour": sum(one.dearest_per_hour for one in all_of_them), **_amounts(all_of_them, wanted, spent)}
    for name, amount in amounts.items():
        most: Microcents | None = getattr(caps, name)
        if most is not None and amount > most:
            would = f"{money_text(Microcents(amount))} {caps.currency}"
            raise _reached(row, name, would, f"{money_text(most)} {caps.currency}")
    for name, count in (("machines", len(all_of_them)), ("vcpus", sum(one.offer.cpus for one in all_of_them))):
        limit: int | None = getattr(caps, name)
        if limit is not None and count > limit:
            raise _reached(row, name, str(count), str(limit))


def check_buyer(buyer: Buyer, wanted: Purchase, living: Sequence[Purchase], spent: Spent) -> None:
    """Raise QuotaExceeded where one more passes what its project may spend at a backend. living, spent: of this project
    there."""
    for cap, amount in _amounts([*living, wanted], wanted, spent).items():
        most = getattr(buyer, cap)
        if most is not None and amount > most:
            currency = wanted.offer.currency
            said = f"This project may spend {money_text(most)} {currency} at {buyer.backend} ({cap})"
            would = (
                f"{said}; with this purchase, what is reserved included, it would be {money_text(Microcents(amount))}."
            )
            raise QuotaExceeded(f"{would} Wait, or ask an operator of this market for more.", subject=buyer.backend)


def check_is_capped(caps: Caps) -> None:
    """Raise InvalidInput where nothing limits the money, or a limit is below 0."""
    if all(getattr(caps, name) is None for name in _MONEY):
        raise InvalidInput("Say how much it may spend: per hour, per day or in all.", subject="per_hour")
    for name in (*_MONEY, "machines", "vcpus"):
        value = getattr(caps, name)
        if value is not None and value < 0:
            raise InvalidInput(f"{name}: It is 0 or more.", subject=name)
    if len(caps.currency) != 3 or not (caps.currency.isascii() and caps.currency.isupper()):
        raise InvalidInput("currency: It has three capital letters, for example USD.", subject="currency")


def _amounts(all_of_them: Sequence[Purchase], wanted: Purchase, spent: Spent) -> dict[str, int]:
    """The sums that the caps per day and in all are compared with: the book, and the most that each of these can cost.
    A machine that could not be ended in time counts with all that it has cost so far. wanted: the new purchase."""
    most = [(max(one.reserved, cost_until(one, wanted.created_at_ns)), one.dearest_per_hour) for one in all_of_them]
    per_day = sum(min(cost, DAY_HOURS * per_hour) for cost, per_hour in most)
    return {"per_day": spent.today + per_day, "in_all": spent.in_all + sum(cost for cost, _ in most)}


def _reached(row: BackendRow, cap: str, would: str, most: str) -> QuotaExceeded:
    said = f"{row.name} may have {most} ({cap}); with this purchase, what is reserved included, it would be {would}."
    return QuotaExceeded(f"{said} End a purchase, or raise the cap: windrow backend cap {row.name}", subject=row.name)
