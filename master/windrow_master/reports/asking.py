"""Reads a report's query from words, as the API, the command and schedules write it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from windrow_master.reports.days import UTC_NAME, days_of
from windrow_master.reports.model import Dimension, Measure, Query, Scope, View
from windrow_proto.errors import InvalidInput

NONE: Final = "none"
"""The value of a filter for what has no value of its dimension."""
Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query in words. measures, by: with commas between them; view: empty: the widest that the caller sees; first,
    last: dates, in place of a period; filters: values by dimension, also by day."""

    measures: str = ""
    by: str = ""
    period: str = ""
    first: str = ""
    last: str = ""
    time_zone: str = UTC_NAME
    filters: Mapping[str, str] = field(default_factory=dict)
    view: str = ""

    @property
    def wanted_view(self) -> View | None:
        """Whose figures. Raises InvalidInput."""
        return _word(View, "view", self.view) if self.view else None

    def query(self, scope: Scope, now_ns: int) -> Query:
        """The query, checked. Raises InvalidInput, Forbidden."""
        usual = Measure.EARNINGS if scope.view is View.HOSTS else Measure.COST
        days = days_of(self.time_zone, now_ns, self.period or None, self.first, self.last)
        filters = {
            _word(Dimension, "filter", name): "" if value == NONE else value for name, value in self.filters.items()
        }
        day = filters.pop(Dimension.DAY, None)
        found = Query(
            scope=scope,
            measures=tuple(dict.fromkeys(_word(Measure, "measure", one) for one in _split(self.measures))) or (usual,),
            by=tuple(_word(Dimension, "by", one) for one in _split(self.by)),
            days=days if day is None else days.only(day),
            filters=filters,
        )
        found.check()
        return found


def words_of(query: Query, keys: Mapping[Dimension, str] | None = None) -> dict[str, str]:
    """The parameters by which API and console give this query again; keys: of one cell, whose rows are asked for."""
    filters = {**query.filters, **(keys or {})}
    words = {
        "measure": ",".join(query.measures),
        "by": "" if keys is not None else ",".join(query.by),
        "from": query.days.first.isoformat(),
        "to": query.days.last.isoformat(),
        "time_zone": query.days.zone,
        "view": query.scope.view.value,
        **{one.value: value or NONE for one, value in filters.items()},
    }
    return {name: value for name, value in words.items() if value}


def _split(text: str) -> Sequence[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _word(kind: type[Word], name: str, text: str) -> Word:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidInput(f"{name}: {text[:40]} is none of {known}.", subject=name) from None
