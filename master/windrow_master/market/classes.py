"""Groups what can be rented into machine classes, narrowed to what a renter looks for, and sums up what was paid. Pure.

A class is what hosts that are alike offer: one tier, so many GPUs on one host, one region. Each GPU is looked at by
itself first, with the facts of its host, so that the numbers of a class are those of what was asked for alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Final, TypeVar

from windrow_master.market.model import NOTHING, Listing, PriceUnit
from windrow_master.market.offers import PriceBook, least_users, unit_of
from windrow_proto.ids import ClusterId, GpuUuid, HostId
from windrow_proto.metrics import GPU_MATRIX, GPU_MEMORY
from windrow_proto.model import Isolation
from windrow_proto.units import DAY, Bytes, Microcents

N = TypeVar("N", bound=float)
_WORDS: Final = re.compile(r"[a-z0-9.]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a renter looks for; the default is everything. Where a fact is not known, a bound on it is not kept.

    model: words that are all in the tier's class or in the card's name; min_gpus: GPUs, or processors, of one host, and
    with is_free so many free now; prices: of one GPU or processor per hour; driver: this version or a newer one.
    """

    unit: PriceUnit | None = None
    is_simulated: bool | None = None
    model: str = ""
    min_memory_bytes: int = 0
    min_gpus: int = 1
    min_price: Microcents = NOTHING
    max_price: Microcents | None = None
    region: str | None = None
    min_reliability: float = 0.0
    min_up_bps: int = 0
    min_down_bps: int = 0
    driver: str = ""
    is_verified: bool = False
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside listings: the reliability of hosts, from 0 to 1, and the benchmarks of cards by name."""

    reliability: Mapping[HostId, float] = field(default_factory=dict)
    speeds: Mapping[GpuUuid, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """How many GPUs, or hosts whose processors are offered, have one price. free: of hosts, those with any left."""

    price_per_hour: Microcents
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class MachineClass:
    """One class as it can be had now.

    on_one_host: GPUs, or processors, of each host; free_on_one_host: the most that one of them has free. Memory,
    reliability and bandwidth are the least of all that is counted, speeds the lower median; None: nothing is known.
    host_id: a host that has enough of it free, the cheapest; None: none has. holders: who rents all of it, empty while
    any is free; ends_at_ns: when the first of these ends at the latest.
    """

    tier: str
    unit: PriceUnit
    simulated: bool
    name: str
    region: str
    on_one_host: int
    free_on_one_host: int
    free: int
    total: int
    hosts: int
    verified_hosts: int
    prices: tuple[PriceLevel, ...]
    price_per_hour: Microcents
    memory_bytes: Bytes | None
    isolation: Isolation
    runtimes: tuple[str, ...]
    container_users: str
    drivers: tuple[str, ...]
    reliability: float | None
    up_bps: int | None
    down_bps: int | None
    memory_bytes_per_s: float | None
    matrix_operations_per_s: float | None
    host_id: HostId | None
    holders: tuple[ClusterId, ...] = ()
    ends_at_ns: int | None = None


Priced = tuple[Listing, Microcents]
EVERYTHING: Final = Wanted()


def classes(
    listings: Iterable[Listing], book: PriceBook, known: Known, wanted: Wanted = EVERYTHING
) -> tuple[MachineClass, ...]:
    """Return the classes of what fits, by tier, size and region; real ones first."""
    found = [one for one in listings if one.tier]
    sizes = _sizes(found)
    groups: dict[tuple[bool, str, int, str], list[Priced]] = {}
    for one in found:
        size = sizes[one.host_id, one.tier]
        price = book.price(one.owner, one.tier, one.share_milli)
        if size >= wanted.min_gpus and _fits(one, price, known, wanted):
            groups.setdefault((one.simulated, one.tier, size, one.region), []).append((one, price))
    made = [_class(size, group, known, wanted) for (_, _, size, _), group in sorted(groups.items())]
    return tuple(one for one in made if not wanted.is_free or one.free_on_one_host >= wanted.min_gpus)


def with_end(row: MachineClass, ends: Mapping[ClusterId, int]) -> MachineClass:
    """Return a class with when the first of its holders ends. ends: by cluster, of those whose end is known."""
    return replace(row, ends_at_ns=min((ends[one] for one in row.holders if one in ends), default=None))


def _sizes(listings: Sequence[Listing]) -> dict[tuple[HostId, str], int]:
    """How many GPUs or processors each host has of each tier."""
    sizes: dict[tuple[HostId, str], int] = {}
    for one in listings:
        key = one.host_id, one.tier
        sizes[key] = sizes.get(key, 0) + _count(one)
    return sizes


def _count(one: Listing) -> int:
    return 1 if one.is_gpu else one.cpus


def _fits(one: Listing, price: Microcents, known: Known, wanted: Wanted) -> bool:
    return (
        wanted.unit in (None, unit_of(one.tier))
        and wanted.is_simulated in (None, one.simulated)
        and (not wanted.model or is_model(wanted.model, one.tier, one.name))
        and (one.memory_bytes or 0) >= wanted.min_memory_bytes
        and wanted.min_price <= price
        and (wanted.max_price is None or price <= wanted.max_price)
        and wanted.region in (None, one.region)
        and known.reliability.get(one.host_id, 0.0) >= wanted.min_reliability
        and (one.up_bps or 0) >= wanted.min_up_bps
        and (one.down_bps or 0) >= wanted.min_down_bps
        and (one.is_verified or not wanted.is_verified)
        and (not wanted.driver or _version(one.driver) >= _version(wanted.driver))
    )


def is_model(wanted: str, tier: str, name: str) -> bool:
    """Return whether each word of what is wanted is a word of the tier's class or of the card's name: `a10` is no
    `a100`, and `h100` is `h100-pcie`, too."""
    tier_class = tier.partition("/")[0]
    there = {tier_class, tier_class.partition(":")[0], *_words(tier_class), *_words(name)}
    return wanted.strip().lower() in there or set(_words(wanted)) <= there


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _class(size: int, group: Sequence[Priced], known: Known, wanted: Wanted) -> MachineClass:
    listings = [one for one, _ in group]
    first, free = listings[0], [priced for priced in group if priced[0].is_free]
    hosts = {one.host_id for one in listings}
    on_host = _free_on_hosts(free)
    speeds = [known.speeds.get(one.card, {}) for one in listings if one.card is not None and not _is_part(one)]
    return MachineClass(
        tier=first.tier,
        unit=unit_of(first.tier),
        simulated=first.simulated,
        name=first.name,
        region=first.region,
        on_one_host=size,
        free_on_one_host=max((count for count, _ in on_host.values()), default=0),
        free=len(free),
        total=len(group),
        hosts=len(hosts),
        verified_hosts=len({one.host_id for one in listings if one.is_verified}),
        prices=_levels(group),
        price_per_hour=min(price for _, price in free or group),
        memory_bytes=_least(one.memory_bytes for one in listings),
        isolation=first.isolation,
        runtimes=tuple(sorted({runtime for one in listings for runtime in one.runtimes})),
        container_users=least_users(one.container_users for one in listings),
        drivers=tuple(sorted({one.driver for one in listings if one.driver}, key=_version)),
        reliability=_least(known.reliability.get(host_id) for host_id in hosts),
        up_bps=_least(one.up_bps for one in listings),
        down_bps=_least(one.down_bps for one in listings),
        memory_bytes_per_s=_middle(speeds, GPU_MEMORY),
        matrix_operations_per_s=_middle(speeds, GPU_MATRIX),
        host_id=_host(on_host, wanted.min_gpus),
        holders=() if free else tuple(dict.fromkeys(holder for one in listings for holder in one.holders)),
    )


def _is_part(one: Listing) -> bool:
    """A part of a card is not as fast as its card."""
    return ":" in one.tier


def _free_on_hosts(free: Iterable[Priced]) -> dict[HostId, tuple[int, Microcents]]:
    """How much each host has free, and the highest price of these."""
    found: dict[HostId, tuple[int, Microcents]] = {}
    for one, price in free:
        count, before = found.get(one.host_id, (0, NOTHING))
        found[one.host_id] = count + (1 if one.is_gpu else one.cpus_free), max(before, price)
    return found


def _host(on_host: Mapping[HostId, tuple[int, Microcents]], least: int) -> HostId | None:
    """The cheapest that has enough free; of equal ones the one with most."""
    enough = [(price, -count, host_id) for host_id, (count, price) in on_host.items() if count >= least]
    return min(enough)[2] if enough else None


def _levels(group: Iterable[Priced]) -> tuple[PriceLevel, ...]:
    found: dict[Microcents, list[bool]] = {}
    for one, price in group:
        found.setdefault(price, []).append(one.is_free)
    return tuple(PriceLevel(price, sum(free), len(free)) for price, free in sorted(found.items()))


def _least(values: Iterable[N | None]) -> N | None:
    return min((one for one in values if one is not None), default=None)


def _middle(speeds: Iterable[Mapping[str, float]], name: str) -> float | None:
    found = [one[name] for one in speeds if name in one]
    return median_low(found) if found else None


# --- what was paid ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaidDay:
    """The prices of one GPU per hour at which rentals of a tier began on one UTC day."""

    day_at_ns: int
    lowest: Microcents
    median: Microcents
    highest: Microcents
    rentals: int


def paid_by_day(begun: Iterable[tuple[int, Microcents]]) -> tuple[PaidDay, ...]:
    """Return the days on which any began, oldest first. begun: when in wall time, and the price of one GPU."""
    days: dict[int, list[Microcents]] = {}
    for at_ns, price in begun:
        days.setdefault(at_ns // DAY, []).append(price)
    return tuple(
        PaidDay(day * DAY, min(prices), median_low(prices), max(prices), len(prices))
        for day, prices in sorted(days.items())
    )
