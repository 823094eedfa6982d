"""Adds up what rentals cost and earned by day, in the database, and reads the names and states that go with it.

    amount of a line until t    floor(charged * t / billed)    0 <= t <= billed, whole seconds

A line's billed time is what its charge pays for, spread evenly from its start over that time and its host's silence.
The amount of a day is the difference of two of these figures, so that the days of a line add up to its charge exactly.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    String,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    type_coerce,
    union_all,
)

from windrow_master.clusters.tables import clusters, workloads
from windrow_master.fleet.model import AdminState, LinkState, SlotState
from windrow_master.fleet.states import AdminEvent, LinkEvent, SlotEvent
from windrow_master.hybrid.purchases.tables import purchases
from windrow_master.identity.tables import accounts, api_tokens, service_accounts, users
from windrow_master.jobs.tables import jobs
from windrow_master.market.model import RentalState
from windrow_master.market.months import Cell
from windrow_master.market.occupancy import YES, Change, Fact
from windrow_master.market.prices import CPU
from windrow_master.market.tables import rental_lines, rentals
from windrow_master.store.prepared import SQLITE
from windrow_master.store.repository import Repository
from windrow_master.store.schema import Whole
from windrow_master.store.tables import audit
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, SECOND, Microcents

JOB_CHARS: Final = len("job_") + 32
"""With these an attempt's key begins: the id of its job (jobs.request.attempt_key)."""
AT_ONCE: Final = 500
"""Ids in one question."""
SOUND: Final = "nothing stands against it any more"
"""The reason of `slot.offer` where a slot can be had again (fleet/slot_leases.py)."""
_DAY_S: Final = DAY // SECOND
_HOST_ACTIONS: Final = [f"host.{event}" for event in (*AdminEvent, *LinkEvent)]
_SLOT_ACTIONS: Final = [f"slot.{event}" for event in (SlotEvent.FAULT, SlotEvent.REVERIFIED)]
_OFFERED: Final = "slot.offer"
_ADMIN_STATES: Final = frozenset(map(str, AdminState))
_LINK_STATES: Final = frozenset(map(str, LinkState))

_NOTHING: Final = literal(0, Whole)
_ONE: Final = literal(1, Whole)
_PRICE: Final = rental_lines.c.price_per_hour
BILLED_S: Final = case((_PRICE > 0, rental_lines.c.charged * 3600 // _PRICE), else_=rental_lines.c.signed_ns // SECOND)
BEGIN_S: Final = func.coalesce(rental_lines.c.runs_from_ns, rental_lines.c.lease_from_ns) // SECOND
_EARNED: Final = rental_lines.c.charged - rental_lines.c.fee_charged
_SLOTS: Final = func.json_array_length(rental_lines.c.slots, type_=Whole)
_GPUS: Final = case((rentals.c.tier.startswith(f"{CPU}/"), _NOTHING), else_=_SLOTS)

SPENDING: Final[dict[str, ColumnElement[str]]] = {
    "machine": rentals.c.cluster_id,
    "job": jobs.c.job_id,
    "gpu": rentals.c.tier,
    "person": cast(rentals.c.spenders, Text),
    "project": rentals.c.renter,
}
"""What spending is divided by, and the key of each."""


_IS_LIVE: Final = rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")  # as the index of these says it
_IS_OPEN: Final = rentals.c.state == RentalState.OPEN.value
_RUNNING: Final = (
    func.sum(case((_IS_OPEN, rentals.c.price_per_hour), else_=_NOTHING)),
    func.sum(case((_IS_OPEN, _ONE), else_=_NOTHING)),
)


@dataclass(frozen=True, slots=True)
class Rented:
    """What rentals take now: set aside and not charged yet, the price of an hour of those that run, their number."""

    held: Microcents
    per_hour: Microcents
    leases: int


class BillingRepository(Repository):
    """Sums over rentals and their lines."""

    def spent(self, by: str, renter: AccountId | None, days: range) -> list[Cell]:
        """The costs of these days by one of SPENDING; renter: None: of all projects."""
        found = _lines(days, SPENDING[by], rental_lines.c.charged).join_from(rental_lines, rentals)
        if by == "job":
            job_id = func.coalesce(
                purchases.c.record["for_id"].as_string(), func.substr(clusters.c.request_key, 1, JOB_CHARS)
            )
            is_its = and_(jobs.c.job_id == job_id, jobs.c.account_id == rentals.c.renter)
            found = found.outerjoin(clusters, clusters.c.cluster_id == rentals.c.cluster_id)
            found = found.outerjoin(purchases, purchases.c.purchase_id == rentals.c.cluster_id)  # a run at a service
            found = found.outerjoin(jobs, is_its)
        return self._cells(found if renter is None else found.where(rentals.c.renter == renter), days)

    def earned_by_slot(self, provider: AccountId, days: range) -> list[Cell]:
        """The earnings of a provider in these days by slot: the key is the ids of host and slot with a blank between
        them. The slots of a line earn the same, but for a microcent. The seconds of processors are those of each."""
        slots, number, slot_id = self._slots()
        is_its = workloads.c.workload_id == rental_lines.c.workload_id
        each = case((slot_id.contains("/cpu/"), func.coalesce(workloads.c.cpus, 1)), else_=_ONE)
        key = rental_lines.c.host_id + " " + slot_id
        share = _EARNED * (number + 1) // _SLOTS - _EARNED * number // _SLOTS
        found = _lines(days, key, share, slots=each).select_from(rental_lines).join(slots, literal(True))
        found = found.outerjoin(workloads, is_its)
        return self._cells(found.where(rental_lines.c.provider == provider), days)

    def earned(self, by: str, days: range) -> list[Cell]:
        """The earnings of all providers in these days, by `project` or by `model`, and the fees beside them; the
        seconds are those of GPUs."""
        key = rental_lines.c.provider if by == "project" else rentals.c.tier
        found = _lines(days, key, _EARNED, fee=rental_lines.c.fee_charged, slots=_GPUS)
        return self._cells(found.join_from(rental_lines, rentals), days)

    def first_ns(self, renter: AccountId | None = None, provider: AccountId | None = None) -> int | None:
        """When the first of these rentals began; None: there is none."""
        query = select(func.min(rentals.c.opened_at_ns))
        if provider is not None:
            query = select(func.min(rental_lines.c.lease_from_ns)).where(rental_lines.c.provider == provider)
        if renter is not None:
            query = query.where(rentals.c.renter == renter)
        found = self._connection.scalar(query)
        return None if found is None else int(found)

    def rented_now(self, renter: AccountId | None) -> Rented:
        """What runs now of a project's rentals; renter: None: of all."""
        query = select(func.sum(rentals.c.held - rentals.c.charged), *_RUNNING).where(_IS_LIVE)
        if renter is not None:
            query = query.where(rentals.c.renter == renter)
        held, per_hour, leases = self._connection.execute(query).one()
        return Rented(Microcents(int(held or 0)), Microcents(int(per_hour or 0)), int(leases or 0))

    def earning_now(self, provider: AccountId | None) -> Microcents:
        """The price of an hour of all that runs now on a provider's hosts, fees taken off; provider: None: of all."""
        net = _PRICE - _PRICE * rentals.c.fee_permille // 1000
        query = (
            select(func.sum(net))
            .join_from(rental_lines, rentals)
            .where(rentals.c.state == RentalState.OPEN.value, rental_lines.c.final_number.is_(None))
            .where(rental_lines.c.runs_from_ns.is_not(None))
        )
        if provider is not None:
            query = query.where(rental_lines.c.provider == provider)
        return Microcents(int(self._connection.scalar(query) or 0))

    # --- names ---

    def cluster_names(self, cluster_ids: Collection[str]) -> dict[str, str]:
        """The names of clusters, as their rentals have them."""
        return self._named(rentals.c.cluster_id, rentals.c.cluster_name, cluster_ids)

    def job_names(self, job_ids: Collection[str]) -> dict[str, str]:
        """The names of jobs."""
        return self._named(jobs.c.job_id, jobs.c.request["name"].as_string(), job_ids)

    def account_names(self, account_ids: Collection[str]) -> dict[str, str]:
        """The names of projects."""
        return self._named(accounts.c.id, accounts.c.name, account_ids)

    def people(self, spender_ids: Collection[str]) -> dict[str, tuple[str, str]]:
        """The id and name of who has each of these tokens or is each of these service accounts: a user, a service
        account, or a token of a project's own."""
        names = self._named(service_accounts.c.id, service_accounts.c.name, spender_ids)
        found = {one: (one, name) for one, name in names.items()}
        query = select(api_tokens.c.id, api_tokens.c.name, users.c.id, users.c.name).outerjoin(
            users, users.c.id == api_tokens.c.user_id
        )
        for part in _parts(spender_ids):
            for token, token_name, user, name in self._connection.execute(query.where(api_tokens.c.id.in_(part))):
                found[token] = (token, f"token {token_name}") if user is None else (user, name)
        return found

    # --- states ---

    def changes(self, since_ns: int, subjects: Collection[str] | None) -> dict[str, list[Change]]:
        """The changes of hosts and slots since then, by their ids; subjects: of these alone."""
        query = (
            select(audit.c.subject, audit.c.at_ns, audit.c.action, audit.c.reason, audit.c.fields)
            .where(audit.c.number >= self._first_audit(since_ns))
            .where(audit.c.action.in_([*_HOST_ACTIONS, *_SLOT_ACTIONS, _OFFERED]))
        )
        parts = [query] if subjects is None else [query.where(audit.c.subject.in_(one)) for one in _parts(subjects)]
        found: dict[str, list[Change]] = {}
        for part in parts:
            for subject, at_ns, action, reason, fields in self._connection.execute(part):
                change = _change(action, reason, fields, at_ns)
                if at_ns >= since_ns and change is not None:
                    found.setdefault(subject, []).append(change)
        return found

    def _first_audit(self, since_ns: int) -> int:
        """The number of the first entry from then on: numbers follow time, which has no index."""
        low, high = self._connection.execute(select(func.min(audit.c.number), func.max(audit.c.number))).one()
        low, high = low or 0, (high or 0) + 1
        while low < high:
            middle = (low + high) // 2
            at_ns = self._connection.scalar(
                select(audit.c.at_ns).where(audit.c.number >= middle).order_by(audit.c.number).limit(1)
            )
            low, high = (middle + 1, high) if at_ns is not None and at_ns < since_ns else (low, middle)
        return low

    def _named(self, key: ColumnElement[str], name: ColumnElement[Any], wanted: Collection[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in _parts(wanted):
            query = select(key, func.max(name)).where(key.in_(part)).group_by(key)
            found |= {one: text for one, text in self._connection.execute(query) if text}
        return found

    def _slots(self) -> tuple[Any, ColumnElement[int], ColumnElement[str]]:
        """The slots of a line as rows: what to join, the number of each from 0, and its id."""
        if self._connection.dialect.name == SQLITE:
            each = func.json_each(rental_lines.c.slots).table_valued("key", "value", name="each")
            return each, cast(each.c.key, Whole), func.json_extract(each.c.value, "$.slot_id")
        each = func.json_array_elements(rental_lines.c.slots).table_valued("value", with_ordinality="n")
        each = each.render_derived(name="each")
        return each, cast(each.c.n, Whole) - 1, type_coerce(each.c.value.op("->>")("slot_id"), String)

    def _cells(self, lines: Select[Any], days: range) -> list[Cell]:
        """The sums of lines (see `_lines`) by key and day."""
        line, day = lines.cte("line").prefix_with("MATERIALIZED"), _calendar(days)
        spread_s = line.c.billed_s + line.c.silent_s
        span_s = case((spread_s < 1, _ONE), else_=spread_s)
        begin, end = (_within(edge - line.c.begin_s, span_s) for edge in (day.c.begin_s, day.c.end_s))
        is_of = day.c.day.between(line.c.begin_s // _DAY_S, (line.c.begin_s + span_s - 1) // _DAY_S)
        both = select(line, day.c.day, span_s.label("span_s"), begin.label("t0"), end.label("t1"))
        cut = both.select_from(line.join(day, is_of)).cte("cut").prefix_with("MATERIALIZED")
        amount, billed_s, fee = (
            _until(cut.c[name], cut.c.span_s, cut.c.t1) - _until(cut.c[name], cut.c.span_s, cut.c.t0)
            for name in ("amount", "billed_s", "fee")
        )
        sums = (func.sum(amount), func.sum(billed_s * cut.c.slots), func.sum(fee))
        rows = self._connection.execute(select(cut.c.key, cut.c.day, *sums).group_by(cut.c.key, cut.c.day))
        return [Cell(key or "", day, int(one), int(time_s), int(fees)) for key, day, one, time_s, fees in rows]


def _lines(
    days: range,
    key: ColumnElement[Any],
    amount: ColumnElement[int],
    *,
    fee: ColumnElement[int] = _NOTHING,
    slots: ColumnElement[int] = _ONE,
) -> Select[Any]:
    """The lines that may have billed time in these days: key, begin, billed time and silence in seconds, amount, fee,
    slots."""
    columns = {"key": key, "begin_s": BEGIN_S, "billed_s": BILLED_S, "silent_s": rental_lines.c.silent_ns // SECOND}
    columns |= {"amount": amount, "fee": fee, "slots": slots}
    begin_ns, end_ns = days.start * DAY, days.stop * DAY
    late_ns = func.coalesce(rental_lines.c.runs_from_ns - rental_lines.c.lease_from_ns, 0) + rental_lines.c.silent_ns
    could = and_(rental_lines.c.lease_from_ns < end_ns, rental_lines.c.lease_until_ns + late_ns > begin_ns)
    return select(*(one.label(name) for name, one in columns.items())).where(could, rental_lines.c.signed_ns > 0)


def _calendar(days: range) -> CTE:
    """The days as rows, with the seconds at which each begins and ends."""
    rows = (
        select(
            literal(day, Whole).label("day"),
            literal(day * _DAY_S, Whole).label("begin_s"),
            literal((day + 1) * _DAY_S, Whole).label("end_s"),
        )
        for day in days
    )
    return union_all(*rows).cte("calendar")


def _within(seconds: ColumnElement[int], most: ColumnElement[int]) -> ColumnElement[int]:
    return case((seconds < 0, _NOTHING), (seconds > most, most), else_=seconds)


def _until(total: ColumnElement[int], span: ColumnElement[int], seconds: ColumnElement[int]) -> ColumnElement[int]:
    """floor(total * seconds / span) without a product that 64 bits do not hold."""
    return total // span * seconds + total % span * seconds // span


def _parts(ids: Collection[str]) -> Iterable[Sequence[str]]:
    wanted = sorted(set(ids))
    return (wanted[at : at + AT_ONCE] for at in range(0, len(wanted), AT_ONCE))


def _change(action: str, reason: str, fields: Mapping[str, Any], at_ns: int) -> Change | None:
    """What an entry of the audit log says of a host or slot."""
    if action == _OFFERED:
        after = "" if reason == SOUND else YES
        return Change(at_ns, Fact.CLOSED, "" if after else YES, after)
    before, after = str(fields.get("from", "")), str(fields.get("to", ""))
    if action in _SLOT_ACTIONS:
        return Change(at_ns, Fact.FAULTY, *(YES if one == SlotState.FAULTED else "" for one in (before, after)))
    if after in _ADMIN_STATES:
        return Change(at_ns, Fact.ADMIN, before, after)
    return Change(at_ns, Fact.LINK, before, after) if after in _LINK_STATES else None
