"""Offers of providers as rows of CSV: what they say, and which rows are refused. Pure.

Three tables: `providers` (who sells, and how use is rounded), `sources` (where a price was read, when, and how long it
is believed) and `offers`. An empty cell says that the fact is not known.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents

COLUMNS: Final = {
    "providers": (
        "provider",
        "company",
        "seat",
        "billed_in",
        "tax",
        "granularity_seconds",
        "minimum_seconds",
        "billing_source",
        "egress_usd_per_gb",
        "egress_source",
        "note",
    ),
    "sources": ("source", "title", "date", "days_to_live"),
    "offers": (
        "provider",
        "offer",
        "gpu",
        "gpu_count",
        "vcpu",
        "memory_gib",
        "disk_gb",
        "region",
        "zone",
        "country",
        "kind",
        "usd_per_hour",
        "source",
    ),
}
"""The columns of each table, in their order."""

ROWS_MAX: Final = 100_000
GPUS_MAX: Final = 1_024
SIZE_MAX: Final = 1_000_000
"""The most vCPUs, GiB of memory and GB of disk."""
USD_MAX: Final = 100_000
EGRESS_USD_MAX: Final = 10
HOUR_S: Final = 3_600
"""The step and the minimum of a bill where a provider's own are not known: the dearest that is usual."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=/,()+-]{0,63}")
_TEXT: Final = re.compile(r"[^\x00-\x1f<>]{1,200}")
_COUNTRY: Final = re.compile(r"[A-Z]{2}")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


T = TypeVar("T")


class Kind(StrEnum):
    """How an offer is sold. spot: may be taken back at any time; block: for a fixed time, paid in advance."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"
    BLOCK = "block"


class BadRow(ValueError):
    """A row that is no offer; the message names its column."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Who sells. seat: country of the company, ISO 3166-1 alpha-2. billed_in: currency, ISO 4217.

    tax: `included` in its prices, `excluded`, or empty: not known.
    granularity_s: a use is billed in whole steps of this many seconds; minimum_s: the shortest one.
    billing_source: where these two were read; empty: not known, an hour each is assumed. egress_per_gb: what 10**9
    bytes cost that leave it for the internet; None: not known. egress_source: where that was read. note: what else
    there is to know of its prices.
    """

    name: str
    company: str
    seat: str
    billed_in: str
    tax: str = ""
    granularity_s: int = HOUR_S
    minimum_s: int = HOUR_S
    billing_source: str = ""
    note: str = ""
    egress_per_gb: Microcents | None = None
    egress_source: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where prices were read. read_on None: not known. days_to_live: how long they are believed."""

    key: str
    title: str
    read_on: date | None
    days_to_live: int

    def is_fresh(self, today: date) -> bool:
        """Whether its prices are believed on this day."""
        return self.read_on is not None and today <= self.read_on + timedelta(days=self.days_to_live)


@dataclass(frozen=True, slots=True)
class Offer:
    """A machine that a provider rents out, priced in US dollars.

    gpu: the model class (fleet/gpus), or `cpu`; gpu_count: 0 for `cpu`. country: of the data centre, ISO 3166-1
    alpha-2; empty: not known. per_hour: of the whole machine.
    """

    provider: Provider
    name: str
    gpu: str
    gpu_count: int
    vcpu: float | None
    memory_gib: float | None
    disk_gb: int | None
    region: str
    zone: str
    country: str
    kind: Kind
    per_hour: Microcents
    source: Source

    @property
    def key(self) -> str:
        """Names the offer; two prices of the same machine differ in their source."""
        return "/".join((self.provider.name, self.name, self.zone or self.region or "any", self.kind, self.source.key))

    @property
    def per_gpu_hour(self) -> Microcents:
        """The price of one of its GPUs for an hour, rounded down; of one vCPU where it has no GPU."""
        return Microcents(self.per_hour // max(1, self.gpu_count or int(self.vcpu or 1)))

    def cost(self, seconds: float) -> Microcents:
        """What a use of this length costs, by the provider's steps and minimum, rounded down to a microcent."""
        return billed(self.per_hour, seconds, self.provider.granularity_s, self.provider.minimum_s)


def billed(per_hour: Microcents, seconds: float, step_s: int, minimum_s: int) -> Microcents:
    """The cost of a use. It is billed in whole steps, and at least the minimum; rounded down to a microcent."""
    steps = -(-max(int(-(-seconds // 1)), minimum_s) // step_s)
    return Microcents(steps * step_s * per_hour // HOUR_S)


def providers(text: str) -> Mapping[str, Provider]:
    """The providers of a table. Raises BadRow."""
    return _by_name("providers", "provider", text, _provider)


def sources(text: str) -> Mapping[str, Source]:
    """The sources of a table. Raises BadRow."""
    return _by_name("sources", "source", text, _source)


def offers(
    text: str, sellers: Mapping[str, Provider], read_in: Mapping[str, Source], known_gpus: Iterable[str]
) -> tuple[list[Offer], list[str]]:
    """The offers of a table, and one sentence about each row that is refused. Raises BadRow where the text is no such
    table, or has more than ROWS_MAX rows."""
    found, refused, classes = list[Offer](), list[str](), frozenset(known_gpus)
    known: dict[str, int] = {}
    for number, row in enumerate(_rows("offers", text), 2):
        try:
            offer = _offer(row, sellers, read_in, classes)
            if (first := known.setdefault(offer.key, number)) != number:
                raise BadRow(f"the same offer is in row {first}")
            found.append(offer)
        except BadRow as wrong:
            refused.append(f"row {number}: {wrong}")
    return found, refused


def _by_name(table: str, key: str, text: str, read: Callable[[Mapping[str, str]], T]) -> Mapping[str, T]:
    """The rows of a table by their names. Raises BadRow that names the row."""
    found: dict[str, T] = {}
    for number, row in enumerate(_rows(table, text), 2):
        try:
            if row[key] in found:
                raise BadRow(f"{key} is there twice: {row[key][:40]!r}")
            found[row[key]] = read(row)
        except BadRow as wrong:
            raise BadRow(f"row {number} of {table}: {wrong}") from None
    return found


def _rows(table: str, text: str) -> Iterator[Mapping[str, str]]:
    lines = csv.reader(io.StringIO(text), strict=True)
    columns = COLUMNS[table]
    try:
        if tuple(next(lines, ())) != columns:
            raise BadRow(f"the first line of {table} is not {','.join(columns)}")
        for number, cells in enumerate(lines, 2):
            if number > ROWS_MAX + 1:
                raise BadRow(f"{table} has more than {ROWS_MAX:,} rows")
            if len(cells) != len(columns):
                raise BadRow(f"row {number} of {table} has {len(cells)} cells and not {len(columns)}")
            yield dict(zip(columns, cells, strict=True))
    except csv.Error as broken:
        raise BadRow(f"{table} is no CSV: {broken}") from None


def _provider(row: Mapping[str, str]) -> Provider:
    step = _whole(row, "granularity_seconds", 1, 30 * 86_400)
    egress = _number(row, "egress_usd_per_gb", EGRESS_USD_MAX)
    if row["tax"] not in ("included", "excluded", ""):
        raise BadRow(f"tax is included, excluded or empty: {row['tax'][:40]!r}")
    return Provider(
        name=_matched(row, "provider", _NAME),
        company=_matched(row, "company", _TEXT),
        seat=_matched(row, "seat", _COUNTRY),
        billed_in=_matched(row, "billed_in", _CURRENCY),
        tax=row["tax"],
        granularity_s=step or HOUR_S,
        minimum_s=_whole(row, "minimum_seconds", 1, 30 * 86_400) or step or HOUR_S,
        billing_source=row["billing_source"],
        note=row["note"],
        egress_per_gb=None if egress is None else Microcents(int(egress * MICROCENTS_PER_UNIT)),
        egress_source=row["egress_source"],
    )


def _source(row: Mapping[str, str]) -> Source:
    try:
        read_on = date.fromisoformat(row["date"]) if row["date"] else None
    except ValueError:
        raise BadRow(f"date is not like 2026-01-31: {row['date'][:40]!r}") from None
    days = _whole(row, "days_to_live", 1, 3_650) or 0
    return Source(_matched(row, "source", _NAME), _matched(row, "title", _TEXT), read_on, days)


def _offer(
    row: Mapping[str, str], sellers: Mapping[str, Provider], read_in: Mapping[str, Source], classes: frozenset[str]
) -> Offer:
    gpu, count = row["gpu"], _whole(row, "gpu_count", 0, GPUS_MAX)
    if gpu not in classes:
        raise BadRow(f"gpu is no class that this market knows: {gpu[:40]!r}")
    if count is None or (count == 0) != (gpu == "cpu"):
        raise BadRow(f"gpu_count does not fit {gpu}: {row['gpu_count'][:40]!r}")
    if row["provider"] not in sellers:
        raise BadRow(f"provider is not known: {row['provider'][:40]!r}")
    if row["source"] not in read_in:
        raise BadRow(f"source is not known: {row['source'][:40]!r}")
    if row["kind"] not in tuple(Kind):
        raise BadRow(f"kind is not one of {', '.join(Kind)}: {row['kind'][:40]!r}")
    usd = _number(row, "usd_per_hour", USD_MAX)
    if not usd:
        raise BadRow("usd_per_hour is missing, or 0")
    disk = _number(row, "disk_gb", SIZE_MAX)
    return Offer(
        provider=sellers[row["provider"]],
        name=_matched(row, "offer", _NAME),
        gpu=gpu,
        gpu_count=count,
        vcpu=_size(row, "vcpu"),
        memory_gib=_size(row, "memory_gib"),
        disk_gb=None if disk is None else int(disk),
        region=_matched(row, "region", _NAME, may_miss=True),
        zone=_matched(row, "zone", _NAME, may_miss=True),
        country=_matched(row, "country", _COUNTRY, may_miss=True),
        kind=Kind(row["kind"]),
        per_hour=Microcents(int(usd * MICROCENTS_PER_UNIT)),
        source=read_in[row["source"]],
    )


def _matched(row: Mapping[str, str], column: str, form: re.Pattern[str], *, may_miss: bool = False) -> str:
    value = row[column]
    if not (form.fullmatch(value) or (may_miss and not value)):
        raise BadRow(f"{column} is missing or has characters that it may not have: {value[:40]!r}")
    return value


def _number(row: Mapping[str, str], column: str, most: int) -> Decimal | None:
    value = row[column]
    if not value:
        return None
    found = Decimal(value) if _DECIMAL.fullmatch(value) else None
    if found is None or not 0 <= found <= most:
        raise BadRow(f"{column} is not a number from 0 to {most:,}: {value[:40]!r}")
    return found


def _size(row: Mapping[str, str], column: str) -> float | None:
    found = _number(row, column, SIZE_MAX)
    return None if found is None else float(found)


def _whole(row: Mapping[str, str], column: str, least: int, most: int) -> int | None:
    found = _number(row, column, most)
    if found is None:
        return None
    if found != found.to_integral_value() or found < least:
        raise BadRow(f"{column} is not a whole number from {least:,} to {most:,}: {row[column][:40]!r}")
    return int(found)
