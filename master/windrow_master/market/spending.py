"""Reads, sets and removes spending limits, and applies them to rentals in the transaction that sets money aside or
charges it; limits.py decides.

Several requests at once are one after another in the store, each after the hold of the one before: they cannot pass a
limit together.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from windrow_master.identity import spenders
from windrow_master.identity.model import Principal, SpenderKind
from windrow_master.identity.spenders import Spender
from windrow_master.market import limits, metering
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import NO_LIMITS, Asked, Limit, Limits, SpendingLimit, Use, Used
from windrow_master.market.messages import LimitsChanged
from windrow_master.market.model import Rental, RentalId
from windrow_master.market.repository import RentalRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden
from windrow_proto.ids import AccountId
from windrow_proto.units import HOUR, Microcents, money_text

# --- for rentals, in the caller's unit of work ---


def limits_of(uow: UnitOfWork, rental: Rental) -> list[SpendingLimit]:
    """The limits that a rental counts for."""
    return uow[LimitRepository].of((rental.renter, *rental.spenders))


def used(uow: UnitOfWork, found: Sequence[SpendingLimit]) -> list[Used]:
    """These with what is taken of each now."""
    return [(one, uow[LimitRepository].use(one.spender_id)) for one in found]


def check(uow: UnitOfWork, renter: AccountId, spender_ids: Sequence[str], asked: Asked) -> None:
    """Raises SpendingLimitReached where a request of this project by these tokens would pass a limit."""
    for one, use in used(uow, uow[LimitRepository].of((renter, *spender_ids))):
        limits.check(one, use, asked, uow.now_wall_ns)


def check_counts(uow: UnitOfWork, spender_ids: Sequence[str], rental_id: RentalId) -> None:
    """Raises Forbidden where one of these tokens has limits that a rental does not count for: it makes it no larger."""
    rental = uow[RentalRepository].get(rental_id)
    counted = () if rental is None else rental.spenders
    for one in uow[LimitRepository].of(spender_ids):
        if one.spender_id not in counted:
            raise Forbidden(
                f"This does not count for {one.whose}, which has a spending limit. Ask without that token.",
                subject=one.spender_id,
            )


def funds(uow: UnitOfWork, found: Sequence[SpendingLimit], balance: Microcents) -> Microcents:
    """What may be set aside of a balance."""
    most = limits.holdable(used(uow, found), uow.now_wall_ns)
    return balance if most is None else min(balance, most)


def charged(uow: UnitOfWork, found: Sequence[SpendingLimit], amount: Microcents) -> None:
    """Count a charge for these."""
    for one in found if amount else ():
        after = limits.charged(one, amount, uow.now_wall_ns)
        uow[LimitRepository].save(after)
        for kind, percent, most in limits.marks_passed(one, after, uow.now_wall_ns):
            _tell_mark(uow, one, kind, percent, most)


def budget_charged(uow: UnitOfWork, before: Rental, after: Rental) -> None:
    """Say where a charge has reached a mark of a rental's budget."""
    percent = None if not after.budget else limits.mark_passed(before.charged, after.charged, after.budget)
    if percent is not None and after.budget is not None:
        name = after.cluster_name or after.cluster_id
        text = f"{name} has used {percent} % of its budget of {money_text(after.budget)}"
        subjects = (after.rental_id, after.cluster_id, after.renter)
        uow.event("rental.budget_reached", subjects, text, {"percent": str(percent), "name": name}, "master")


def _tell_mark(uow: UnitOfWork, one: SpendingLimit, kind: Limit, percent: int, most: Microcents) -> None:
    fields = {"percent": str(percent), "spender": one.spender_id, "limit": kind.value, "name": one.name}
    if kind is Limit.MONTHLY:
        fields["until_ns"] = str(limits.month_ends_ns(uow.now_wall_ns))
    words = "a month" if kind is Limit.MONTHLY else "in all"
    text = f"{one.whose[0].upper()}{one.whose[1:]} has used {percent} % of its limit of {money_text(most)} {words}"
    uow.event("limit.reached", (one.account_id, one.spender_id), text, fields, "master")


def cap(uow: UnitOfWork, rental: Rental) -> limits.Cap | None:
    """The most that a rental may cost by the limits that it counts for; None: no limit of money."""
    found = limits_of(uow, rental)
    return limits.cap(rental, used(uow, found), uow.now_wall_ns) if found else None


def is_capped(uow: UnitOfWork, rental: Rental) -> bool:
    """Return whether a limit of money may end what is rented."""
    return limits.chargeable(limits_of(uow, rental), uow.now_wall_ns) is not None


def passed(uow: UnitOfWork, rental_id: RentalId, soon: Microcents) -> str:
    """Return which limit what runs would pass before it could be ended, in words; empty: none. soon: what it costs
    until then."""
    rental = uow[RentalRepository].get(rental_id)
    most = None if rental is None else cap(uow, rental)
    if rental is None or most is None:
        return ""
    spent = metering.spent_of(rental, uow[RentalRepository].lines([rental_id]), uow.now_wall_ns)
    is_over = spent.began_ns is not None and max(spent.charged, spent.by_clock) + soon > most.amount
    return f"{most.words}, would be passed" if is_over else ""


def passed_by_run(uow: UnitOfWork, rental: Rental, soon: Microcents) -> str:
    """The same for a run at a service, which no host ends at its last paid second: its funds end it, too."""
    lines = uow[RentalRepository].lines([rental.rental_id])
    paid_ns = metering.paid_ns(rental, lines, uow.now_wall_ns)
    if paid_ns is not None and rental.price_per_hour * paid_ns // HOUR < soon:
        return passed(uow, rental.rental_id, soon) or "its funds run out"
    return passed(uow, rental.rental_id, soon)


def monthly_limit(uow: UnitOfWork, account_id: AccountId) -> Microcents | None:
    """What a project may spend in a month; None: as much as it has."""
    found = uow[LimitRepository].get(account_id)
    return None if found is None else found.limits.max_monthly_cost


def idle_ns(uow: UnitOfWork, renter: AccountId, spender_ids: Sequence[str]) -> int | None:
    """For how long a new machine of this project, asked for by these tokens, may be unused; None: for ever."""
    found = (one.limits.idle_ns for one in uow[LimitRepository].of((renter, *spender_ids)))
    return min((one for one in found if one is not None), default=None)


# --- for what ends ---


def forget_names(uow: UnitOfWork, spender_ids: Sequence[str]) -> None:
    """Let the ids of these stand for their names. Their limits stay for what still runs."""
    uow[LimitRepository].forget_names(spender_ids)


def forget_account(uow: UnitOfWork, account_id: AccountId) -> None:
    """Remove the limits of a project, of its tokens and service accounts."""
    uow[LimitRepository].forget_account(account_id)


# --- for people ---


@dataclass(frozen=True, slots=True)
class LimitView:
    """A spender, its limits, and what is used of them so far. limit: without limits where there is no row."""

    spender: Spender
    limit: SpendingLimit
    use: Use
    month: str
    month_spent: Microcents
    is_set: bool


class SpendingService:
    """Spending limits of projects, tokens and service accounts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def is_limited(self, principal: Principal) -> bool:
        """Return whether the caller's token, or one by which it was made, has a limit of its own."""
        return await self._store.read(lambda uow: bool(uow[LimitRepository].of(principal.spenders)))

    async def list(self, principal: Principal) -> Sequence[LimitView]:
        """Those of the caller's project, limited or not, and all others that the caller sees: of its tokens and service
        accounts, and of other projects of the organisation; by their ids."""

        def read(uow: UnitOfWork) -> list[LimitView]:
            ids = spenders.projects_seen(uow, principal)
            rows = [one.spender_id for one in uow[LimitRepository].of_projects(ids)]
            return [_view(uow, one) for one in spenders.seen(uow, principal, sorted({ids[0], *rows}))]

        return await self._store.read(read)

    async def get(self, principal: Principal, kind: SpenderKind, wanted: str) -> LimitView:
        """One spender's, limited or not. Raises NotFound."""
        return await self._store.read(lambda uow: _view(uow, spenders.find(uow, principal, kind, wanted)))

    async def set(self, principal: Principal, kind: SpenderKind, wanted: str, given: Limits) -> LimitView:
        """Let these be the limits of a spender, in place of those that there were; none of them ends them. Raises
        NotFound, Forbidden."""

        def change(uow: UnitOfWork) -> LimitView:
            spender = spenders.find(uow, principal, kind, wanted)
            spenders.check_limits(principal, spender)
            if given == NO_LIMITS:
                _remove(uow, principal, spender)
            else:
                row = replace(_row(uow, spender), limits=given, set_at_ns=uow.now_wall_ns, set_by=principal.actor)
                uow[LimitRepository].save(row)
                _tell(uow, principal, spender, given, f"The spending of {row.whose} was limited")
            return _view(uow, spender)

        return await self._store.write(change, name="limit.set")

    async def remove(self, principal: Principal, kind: SpenderKind, wanted: str) -> None:
        """Let a spender spend as much as there is; repeated it changes nothing. Raises NotFound, Forbidden."""

        def change(uow: UnitOfWork) -> None:
            spender = spenders.find(uow, principal, kind, wanted)
            spenders.check_limits(principal, spender)
            _remove(uow, principal, spender)

        await self._store.write(change, name="limit.remove")


def _row(uow: UnitOfWork, spender: Spender) -> SpendingLimit:
    """A spender's row; of one without limits what it would be, added up from the ledger."""
    known = uow[LimitRepository].get(spender.id)
    if known is not None:
        return known
    now_ns = uow.now_wall_ns
    spent, month_spent = uow[LimitRepository].spent(spender.id, limits.month_began_ns(now_ns))
    counted = spent, limits.month_of(now_ns), month_spent
    return SpendingLimit(spender.id, spender.account_id, spender.name, NO_LIMITS, *counted, now_ns, "")


def _view(uow: UnitOfWork, spender: Spender) -> LimitView:
    row, use = _row(uow, spender), uow[LimitRepository].use(spender.id)
    month = limits.month_of(uow.now_wall_ns), limits.spent_in_month(row, uow.now_wall_ns)
    return LimitView(spender, row, use, *month, row.limits != NO_LIMITS)


def _remove(uow: UnitOfWork, principal: Principal, spender: Spender) -> None:
    if uow[LimitRepository].remove(spender.id):
        said = f"The spending of the {spender.kind.words} {spender.name} is no longer limited"
        _tell(uow, principal, spender, NO_LIMITS, said)


def _tell(uow: UnitOfWork, principal: Principal, spender: Spender, given: Limits, said: str) -> None:
    """Write down who limited what, and let what runs be looked at again."""
    shown = {name: str(value) for name, value in asdict(given).items() if value is not None}
    shown |= {name: money_text(Microcents(int(value))) for name, value in shown.items() if name.endswith("_cost")}
    fields = {"project": spender.account_id, **shown}
    uow.audit(principal.actor, "limit.set" if shown else "limit.remove", spender.id, said, fields)
    kind = "limit.set" if shown else "limit.removed"
    uow.event(kind, (spender.account_id, spender.id), said, fields, principal.actor)
    live = uow[RentalRepository].live()
    its = [one.cluster_id for one in live if spender.id in (one.renter, *one.spenders)]
    uow.publish(LimitsChanged(its))
