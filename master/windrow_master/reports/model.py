"""The values of a report: measures, dimensions, a query, and its answer. Pure.

    source      measures                                       dimensions
    rentals     cost, earnings, fees, held, used, wasted,      all
                unmeasured
    time        offered                                        provider, host, tier, model, region, day
    incidents   incidents                                      the same, and kind
    both        occupancy = held / offered                     as of time

held = used + wasted + unmeasured. Money is in microcents, hours are in nanoseconds of GPUs; a part of a GPU counts as
its share, and processors count in money alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.reports.days import Days
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import AccountId


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a report may be. cells: more is data for a program, which asks for a shorter time; lines: of rentals,
    which take 150 MB and some seconds; page: lines of one read, a tenth of a second."""

    cells: int = 10_000
    lines: int = 1_000_000
    page: int = 20_000


LIMITS: Final = Limits()


class Dimension(StrEnum):
    """What sums are of. project: who pays; organisation: of that project; provider: who is paid. kind: of work, such as
    box or job, or of an incident."""

    ORGANISATION = "organisation"
    PROJECT = "project"
    PROVIDER = "provider"
    HOST = "host"
    TIER = "tier"
    MODEL = "model"
    REGION = "region"
    KIND = "kind"
    DAY = "day"


class Measure(StrEnum):
    """What is summed."""

    COST = "cost"
    EARNINGS = "earnings"
    FEES = "fees"
    HELD = "held"
    USED = "used"
    WASTED = "wasted"
    UNMEASURED = "unmeasured"
    OFFERED = "offered"
    OCCUPANCY = "occupancy"
    INCIDENTS = "incidents"


class Source(StrEnum):
    """The rows that a measure is the sum of."""

    RENTALS = "rentals"
    TIME = "time"
    INCIDENTS = "incidents"


class View(StrEnum):
    """Whose figures: what the caller's projects spend, what the caller's hosts do, or everything."""

    PROJECT = "project"
    HOSTS = "hosts"
    ALL = "all"


MONEY: Final = frozenset({Measure.COST, Measure.EARNINGS, Measure.FEES})
USE: Final = frozenset({Measure.USED, Measure.WASTED, Measure.UNMEASURED})
"""Measures that the utilisation of GPUs is read for."""
OF_RENTALS: Final = (Measure.COST, Measure.EARNINGS, Measure.FEES, Measure.HELD, *sorted(USE))
SOURCES: Final[Mapping[Measure, tuple[Source, ...]]] = {
    **dict.fromkeys(OF_RENTALS, (Source.RENTALS,)),
    Measure.OFFERED: (Source.TIME,),
    Measure.OCCUPANCY: (Source.RENTALS, Source.TIME),
    Measure.INCIDENTS: (Source.INCIDENTS,),
}
_OF_TIME: Final = frozenset(Dimension) - {Dimension.ORGANISATION, Dimension.PROJECT, Dimension.KIND}
DIMENSIONS: Final[Mapping[Source, frozenset[Dimension]]] = {
    Source.RENTALS: frozenset(Dimension),
    Source.TIME: _OF_TIME,
    Source.INCIDENTS: _OF_TIME | {Dimension.KIND},
}
SEEN: Final[Mapping[View, tuple[frozenset[Measure], frozenset[Dimension]]]] = {
    View.PROJECT: (frozenset({Measure.COST, Measure.HELD}) | USE, frozenset(Dimension) - {Dimension.PROVIDER}),
    View.HOSTS: (
        frozenset(Measure) - {Measure.COST, Measure.FEES},
        frozenset(Dimension) - {Dimension.ORGANISATION, Dimension.PROJECT, Dimension.PROVIDER},
    ),
    View.ALL: (frozenset(Measure), frozenset(Dimension)),
}
"""The measures and dimensions of each view: a provider learns no renter's name, a renter nobody's earnings."""
UNITS: Final[Mapping[Measure, str]] = {
    **dict.fromkeys(Measure, "GPU hours"),
    **dict.fromkeys(MONEY, "money"),
    Measure.OCCUPANCY: "ratio",
    Measure.INCIDENTS: "incidents",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose figures, as far as the caller may see them. accounts: of PROJECT and HOSTS."""

    view: View
    accounts: tuple[AccountId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One report. by: none, one or two dimensions. filters: only what has this value of a dimension (not of day)."""

    scope: Scope
    measures: tuple[Measure, ...]
    by: tuple[Dimension, ...]
    days: Days
    filters: Mapping[Dimension, str]

    def check(self) -> None:
        """Raises InvalidInput for what cannot be asked, Forbidden for what this view does not show."""
        if not self.measures or len(self.by) > 2 or len(set(self.by)) < len(self.by):
            raise InvalidInput("A report has one measure or more, and at most two different dimensions.", subject="by")
        measures, dimensions = SEEN[self.scope.view]
        asked = {*self.by, *self.filters}
        for one in (*(set(self.measures) - measures), *(asked - dimensions)):
            raise Forbidden(f"The view {self.scope.view} does not show {one}.", subject=one)
        for measure in self.measures:
            for source in SOURCES[measure]:
                for one in sorted(asked - DIMENSIONS[source]):
                    raise InvalidInput(f"{measure} cannot be divided by {one}. Leave one of them out.", subject=one)


Values = dict[Measure, int]
"""Whole numbers: microcents, nanoseconds or a count. The occupancy is the quotient of two of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The sums of one combination of keys. names: of the keys, for people."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    values: Values


@dataclass(frozen=True, slots=True)
class Report:
    """An answer. cells: by day where that is the first dimension, else the greatest of the first measure first."""

    query: Query
    cells: Sequence[Cell]
    totals: Values


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row that a figure is the sum of: a rental on one host, the time of one slot, or an incident. id: of the
    rental, slot or subject. values: its part of each measure."""

    source: Source
    id: str
    name: str
    keys: Mapping[Dimension, str]
    at_ns: int
    values: Values
    workload_id: str = ""


def ratio(values: Values) -> float | None:
    """The occupancy of a cell, from 0 to 1; None of no time. More can be held than offered where hosts are gone."""
    offered = values.get(Measure.OFFERED, 0)
    return min(1.0, values.get(Measure.HELD, 0) / offered) if offered else None


def summed(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """The measures that are added up for these."""
    parts = [one for one in measures if one is not Measure.OCCUPANCY]
    if Measure.OCCUPANCY in measures:
        parts += [one for one in (Measure.HELD, Measure.OFFERED) if one not in parts]
    return tuple(parts)
