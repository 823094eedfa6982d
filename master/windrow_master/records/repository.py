"""Finds and removes old records of every package, as the table of records/rules.py says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
)

from windrow_master.clusters.tables import clusters, decisions, workloads
from windrow_master.fleet.tables import commands, dead_letters, gaps
from windrow_master.identity.tables import api_tokens, join_tokens, sessions, sign_in_links
from windrow_master.market.tables import balances, receipts, rental_lines, rentals
from windrow_master.records.rules import Record
from windrow_master.store.prepared import Made
from windrow_master.store.repository import Repository
from windrow_master.store.tables import events, operations
from windrow_master.watch.notify.tables import deliveries
from windrow_master.watch.tables import alert_silences, alerts, maintenance_windows
from windrow_proto.ids import mint

_BEFORE: Final = bindparam("before_ns", type_=BigInteger)
_NO_MINT: Final = bytes(10)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The keys by which records of one kind are found and removed."""

    find: Select[Any]
    forget: Made


def _is_it(table: Table) -> ColumnElement[bool]:
    return and_(*(column == bindparam(f"was_{column.key}") for column in table.primary_key.columns))


def _kind(table: Table, is_past: ColumnElement[bool]) -> _Kind:
    find = select(*table.primary_key.columns).where(is_past)
    return _Kind(find, Made(delete(table).where(_is_it(table))))


def _done(table: Table, key: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether a row ended before: by its id, which has the time in it, so that only old rows are looked at."""
    return and_(key < bindparam("before_id"), table.c.done_at_ns < _BEFORE)


def _events() -> _Kind:
    """The oldest of all, since their numbers follow the time. The newest one stays, for SQLite gives the next one its
    number and 1: whoever follows events by their numbers would never hear of those that begin at 1 again."""
    oldest = select(events.c.number, events.c.at_ns).order_by(events.c.number).limit(bindparam("most")).subquery()
    newest = select(func.max(events.c.number)).scalar_subquery()
    is_past = and_(
        or_(oldest.c.at_ns < _BEFORE, oldest.c.number <= newest - bindparam("keep")), oldest.c.number < newest
    )
    return _Kind(select(oldest.c.number).where(is_past), Made(delete(events).where(_is_it(events))))


_ENDED_WORTH: Final = or_(api_tokens.c.expires_at_ns < _BEFORE, api_tokens.c.revoked_at_ns < _BEFORE)
_ASKED_FOR: Final = (
    select(api_tokens.c.made_by).where(api_tokens.c.made_by.is_not(None)),
    select(join_tokens.c.made_by).where(join_tokens.c.made_by.is_not(None)),
    select(sessions.c.token_id),
)
"""A token stays while anything that was made by it does: revoking it has to end that."""
_ORDERED_END: Final = select(workloads.c.delete_command).where(
    workloads.c.is_released.is_(False), workloads.c.delete_command.is_not(None)
)
_BELOW: Final = and_(
    receipts.c.is_final.is_(False),
    receipts.c.running_ns < rental_lines.c.signed_ns,
    rental_lines.c.workload_id == receipts.c.workload_id,
    rentals.c.rental_id == rental_lines.c.rental_id,
    rentals.c.rental_id < bindparam("before_id"),
    rentals.c.ended_at_ns.is_not(None),
    rental_lines.c.seen_at_ns < _BEFORE,
)
"""Running times are sums: of a rental that is closed, and so has an end, the greatest proves all those below it. It may
close long after its end, with what its host says when it comes back."""
_OVER: Final = select(clusters.c.cluster_id).where(
    clusters.c.cluster_id == decisions.c.cluster_id, clusters.c.ended_at_ns < _BEFORE
)

_KINDS: Final[Mapping[Record, _Kind]] = {
    Record.EVENTS: _events(),
    Record.SESSIONS: _kind(sessions, or_(sessions.c.expires_at_ns < _BEFORE, sessions.c.revoked_at_ns < _BEFORE)),
    Record.SIGN_IN_LINKS: _kind(
        sign_in_links, or_(sign_in_links.c.expires_at_ns < _BEFORE, sign_in_links.c.used_at_ns < _BEFORE)
    ),
    Record.JOIN_TOKENS: _kind(join_tokens, join_tokens.c.expires_at_ns < _BEFORE),
    Record.TOKENS: _kind(api_tokens, and_(_ENDED_WORTH, *(api_tokens.c.id.not_in(some) for some in _ASKED_FOR))),
    Record.OPERATIONS: _kind(operations, _done(operations, operations.c.id)),
    Record.COMMANDS: _kind(
        commands, and_(_done(commands, commands.c.command_id), commands.c.command_id.not_in(_ORDERED_END))
    ),
    Record.RECEIPTS: _kind(receipts, _BELOW),
    Record.DECISIONS: _kind(decisions, and_(decisions.c.cluster_id < bindparam("before_id"), _OVER.exists())),
    Record.GAPS: _kind(gaps, gaps.c.at_ns < _BEFORE),
    Record.DEAD_LETTERS: _kind(dead_letters, dead_letters.c.at_ns < _BEFORE),
    Record.DELIVERIES: _kind(deliveries, deliveries.c.done_at_ns < _BEFORE),
    Record.EMPTY_HOLDS: _Kind(
        select(balances.c.account).where(balances.c.balance == 0, balances.c.account.startswith("hold:")),
        Made(delete(balances).where(_is_it(balances), balances.c.balance == 0)),  # it may be filled again meanwhile
    ),
    Record.ALERTS: _kind(alerts, alerts.c.resolved_at_ns < _BEFORE),
    Record.SILENCES: _kind(alert_silences, alert_silences.c.until_ns < _BEFORE),
    Record.MAINTENANCE: _kind(maintenance_windows, maintenance_windows.c.ended_at_ns < _BEFORE),
}
_PREFIXES: Final = {
    Record.OPERATIONS: "operation",
    Record.COMMANDS: "command",
    Record.RECEIPTS: "rental",
    Record.DECISIONS: "cluster",
}
"""How the ids begin that are looked at."""


class RecordRepository(Repository):
    """Old records."""

    def past(self, what: Record, before_ns: int, most: int, keep: int) -> Sequence[Mapping[str, Any]]:
        """The keys of at most so many that ended before this time. keep: of events, so many of the newest stay at most,
        and older ones count as past whatever their age."""
        given: dict[str, Any] = {"before_ns": before_ns, "most": most, "keep": keep}
        if (prefix := _PREFIXES.get(what)) is not None:
            given["before_id"] = mint(prefix, max(0, before_ns), _NO_MINT)
        find = _KINDS[what].find.limit(most)
        names = find.compile().params
        rows = self._connection.execute(find, {name: value for name, value in given.items() if name in names})
        return [{f"was_{name}": value for name, value in row._mapping.items()} for row in rows]

    def let_go(self, what: Record, keys: Sequence[Mapping[str, Any]]) -> None:
        """Remove these."""
        _KINDS[what].forget.run_all(self._connection, keys)
