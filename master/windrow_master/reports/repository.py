"""Reads what reports are the sums of: rental lines, names, the ledger; and keeps the schedules of reports."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, insert, literal_column, select, update

from windrow_master.billing.repository import BEGIN_S, BILLED_S, JOB_CHARS
from windrow_master.clusters.tables import clusters
from windrow_master.fleet.tables import hosts, slots
from windrow_master.identity.tables import accounts, organisations
from windrow_master.jobs.tables import jobs
from windrow_master.market.model import RentalState
from windrow_master.market.tables import rental_lines, rentals, transfers
from windrow_master.reports.model import Dimension
from windrow_master.reports.schedule import Schedule
from windrow_master.reports.tables import report_schedules
from windrow_master.store.repository import Repository
from windrow_master.store.schema import Whole
from windrow_proto.units import SECOND

AT_ONCE: Final = 500
"""Ids in one question."""
_IS_ITS_JOB: Final = and_(
    jobs.c.job_id == func.substr(clusters.c.request_key, 1, JOB_CHARS), jobs.c.account_id == clusters.c.account_id
)
_KIND: Final = case(
    (jobs.c.job_id.is_not(None), "job"), else_=func.coalesce(clusters.c.request["kind"].as_string(), "box")
)
_LINES: Final = (
    select(
        rental_lines.c.workload_id,
        rental_lines.c.rental_id,
        rentals.c.renter,
        rental_lines.c.provider,
        rental_lines.c.host_id,
        rentals.c.tier,
        _KIND.label("kind"),
        BEGIN_S.label("begin_s"),
        (rental_lines.c.silent_ns // SECOND).label("silent_s"),
        BILLED_S.label("billed_s"),
        rental_lines.c.charged,
        rental_lines.c.fee_charged,
        func.json_array_length(rental_lines.c.slots, type_=Whole).label("slots"),
    )
    .join_from(rental_lines, rentals)
    .outerjoin(clusters, clusters.c.cluster_id == rentals.c.cluster_id)
    .outerjoin(jobs, _IS_ITS_JOB)
    .where(rental_lines.c.signed_ns > 0)
)
_LATE_NS: Final = rental_lines.c.silent_ns + func.coalesce(
    rental_lines.c.runs_from_ns - rental_lines.c.lease_from_ns, 0
)
_IS_OPEN: Final = rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")  # as the index of these says it
_NAMED: Final[Mapping[Dimension, tuple[ColumnElement[str], ColumnElement[str]]]] = {
    Dimension.PROJECT: (accounts.c.id, accounts.c.name),
    Dimension.PROVIDER: (accounts.c.id, accounts.c.name),
    Dimension.ORGANISATION: (organisations.c.id, organisations.c.name),
    Dimension.HOST: (hosts.c.host_id, hosts.c.name),
}


class LineRow(NamedTuple):
    """One rental line. kind: of its work; slots: how many it has."""

    workload_id: str
    rental_id: str
    project: str
    provider: str
    host: str
    tier: str
    kind: str
    begin_s: int
    silent_s: int
    billed_s: int
    charged: int
    fee: int
    slots: int


class ReportRepository(Repository):
    """The rows below every figure of a report."""

    def lines(self, after: str, begin_ns: int, limit: int) -> list[LineRow]:
        """Those that may have billed time from then on, in the order of their workloads, behind one of these."""
        could = rental_lines.c.lease_until_ns + _LATE_NS > begin_ns
        query = _LINES.where(could, rental_lines.c.workload_id > after).order_by(rental_lines.c.workload_id)
        return self._lines(query.limit(limit))

    def lines_since(self, rental_id: str, open_ids: Collection[str]) -> list[LineRow]:
        """Those of rentals behind this one, and of these."""
        found = self._lines(_LINES.where(rentals.c.rental_id > rental_id))
        for part in _parts([one for one in open_ids if one <= rental_id]):
            found += self._lines(_LINES.where(rentals.c.rental_id.in_(part)))
        return found

    def last_rental(self) -> str:
        """The newest rental's id; empty: there is none."""
        return str(self._connection.scalar(select(func.max(rentals.c.rental_id))) or "")

    def open_rentals(self) -> set[str]:
        """The rentals that may still be charged."""
        return set(self._connection.scalars(select(rentals.c.rental_id).where(_IS_OPEN)))

    def _lines(self, query: Select[Any]) -> list[LineRow]:
        return [LineRow._make(row) for row in self._connection.execute(query)]

    def regions(self) -> dict[str, str]:
        """The region of each host now."""
        return _pairs(self._connection.execute(select(hosts.c.host_id, hosts.c.region)))

    def organisations(self) -> dict[str, str]:
        """The organisation of each project that has one."""
        query = select(accounts.c.id, accounts.c.organisation_id).where(accounts.c.organisation_id.is_not(None))
        return _pairs(self._connection.execute(query))

    def shares(self) -> dict[str, int]:
        """The thousandths of a GPU that a slot of each tier is, for the tiers of parts of GPUs."""
        query = select(slots.c.tier, func.max(slots.c.share_milli)).where(slots.c.share_milli < 1000)
        return {tier: int(share) for tier, share in self._connection.execute(query.group_by(slots.c.tier))}

    def names(self, dimension: Dimension, ids: Collection[str]) -> dict[str, str]:
        """The names of these, where they have any."""
        if dimension not in _NAMED:
            return {}
        key, name = _NAMED[dimension]
        found: dict[str, str] = {}
        for part in _parts(ids):
            found |= _pairs(self._connection.execute(select(key, name).where(key.in_(part))))
        return found

    def rentals_of(self, workload_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The rental of each of these workloads, and the name of its cluster."""
        query = select(rental_lines.c.workload_id, rentals.c.rental_id, rentals.c.cluster_name).join_from(
            rental_lines, rentals
        )
        found: dict[str, tuple[str, str]] = {}
        for part in _parts(workload_ids):
            its = query.where(rental_lines.c.workload_id.in_(part))
            found |= {one: (rental, name) for one, rental, name in self._connection.execute(its)}
        return found

    def ledger(self, accounts_in: Collection[str] | None, from_ns: int, to_ns: int) -> dict[str, tuple[int, int]]:
        """Of each kind of transfers in this time: what these ledger accounts gave, and what they got, in microcents.
        accounts_in: None: the sum of all transfers, as given and as got."""
        when = and_(transfers.c.at_ns >= from_ns, transfers.c.at_ns < to_ns)
        found: dict[str, tuple[int, int]] = {}
        for place, column in enumerate((transfers.c.debit, transfers.c.credit)):
            query = select(transfers.c.kind, func.sum(transfers.c.amount)).where(when).group_by(transfers.c.kind)
            if accounts_in is not None:
                query = query.where(column.in_(accounts_in))
            for kind, amount in self._connection.execute(query):
                sides = [*found.get(kind, (0, 0))]
                sides[place] = int(amount)
                found[kind] = sides[0], sides[1]
        return found


class ScheduleRepository(Repository):
    """Schedules of reports."""

    def add(self, schedule: Schedule) -> None:
        """Add one."""
        self._connection.execute(insert(report_schedules).values(**asdict(schedule)))

    def get(self, schedule_id: str) -> Schedule | None:
        """One, or None."""
        query = select(report_schedules).where(report_schedules.c.schedule_id == schedule_id)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else Schedule(**row)

    def of_user(self, account_id: str, user_id: str) -> Sequence[Schedule]:
        """Those of a user in a project, by their ids."""
        of = report_schedules.c
        query = select(report_schedules).where(of.account_id == account_id, of.user_id == user_id)
        return [Schedule(**row) for row in self._connection.execute(query.order_by(of.schedule_id)).mappings()]

    def due(self, now_ns: int, limit: int) -> Sequence[Schedule]:
        """Those that are due, the longest due first."""
        of = report_schedules.c
        query = select(report_schedules).where(of.due_at_ns <= now_ns).order_by(of.due_at_ns).limit(limit)
        return [Schedule(**row) for row in self._connection.execute(query).mappings()]

    def went(self, schedule: Schedule, due_at_ns: int, sent_at_ns: int | None, problem: str) -> bool:
        """Note that it was its turn, and when the next one is; False: somebody else did so already, or it is gone."""
        of = report_schedules.c
        values = {"due_at_ns": due_at_ns, "sent_at_ns": sent_at_ns, "problem": problem}
        is_it = and_(of.schedule_id == schedule.schedule_id, of.due_at_ns == schedule.due_at_ns)
        return self._connection.execute(update(report_schedules).where(is_it).values(**values)).rowcount > 0

    def remove(self, schedule_id: str) -> None:
        """Remove one."""
        self._connection.execute(delete(report_schedules).where(report_schedules.c.schedule_id == schedule_id))

    def forget(self, account_id: str) -> None:
        """Remove those of a project."""
        self._connection.execute(delete(report_schedules).where(report_schedules.c.account_id == account_id))


def _pairs(rows: Iterable[Any]) -> dict[str, str]:
    return {row[0]: row[1] for row in rows}


def _parts(ids: Collection[str]) -> Iterable[Sequence[str]]:
    wanted = sorted(set(ids))
    return (wanted[at : at + AT_ONCE] for at in range(0, len(wanted), AT_ONCE))
