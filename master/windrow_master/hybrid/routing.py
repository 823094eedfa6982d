"""Which place suits a workload best: places are filtered, priced, scored and ordered, each with its reasons. Pure.

A place is a tier of this market, a registered resource, or an offer of the price book. What a place lacks excludes it;
the rest is a sum of four terms from 0 to 1, by the weights that docs/resources.md prints for the selection of
resources: high 3, medium 2.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.prices.offers import billed
from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents, money_text

HIGH, MEDIUM = 3.0, 2.0
WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "balanced": {"locality": HIGH, "availability": HIGH, "cost": MEDIUM, "latency": MEDIUM},
    "cost": {"locality": HIGH, "availability": HIGH, "cost": 4 * MEDIUM, "latency": MEDIUM},
    "speed": {"locality": HIGH, "availability": 3 * HIGH, "cost": MEDIUM, "latency": MEDIUM},
}
"""By what the work is optimised for. The first row is the document's; the others weigh one term more."""
PREFERRED: Final = 0.05
"""Of the whole score, for the provider that was preferred."""

HALF_TRANSFER_S: Final = 600.0
"""Seconds of moving data, or of waiting, that halve their term."""
HALF_COST: Final = Microcents(MICROCENTS_PER_UNIT)
"""The cost of one GPU, or without GPUs of one processor, for an hour that halves its term."""
HALF_LATENCY_MS: Final = 100.0
UNKNOWN_LATENCY: Final = 0.5
RESTART_S: Final = 360.0
"""From the end of a machine that was taken back to the first new step on another: its start and the last checkpoint.
Replay of shared traces, 6 minutes."""
HOURS_SPREAD: Final = {"given": (0.85, 1.25), "history": (0.7, 1.5)}
"""How much less and more the run may take in 8 of 10 cases, by where its length is from. Our judgement."""


_NOTHING: Final = Microcents(0)


class Where(StrEnum):
    """What kind of place it is."""

    MARKET = "market"
    RESOURCE = "resource"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be run.

    gpus: of one host; 0: none. cpus: processors, what is paid for without GPUs. gpu: the model class; with a dash at
    its end, each class whose name begins so, as `a100-`; None: any.
    gpu_memory_gib: of one GPU. hours: how long it runs; None: not known. hours_from: `given` or `history`.
    checkpoint_minutes: between two; None: it makes none. interruptible: it may be moved while it runs. dataset_gb: to
    be brought to the place, 10**9 bytes; results_gb: to be brought home. resource_type: one of the registry's; None:
    any place. allowed_providers: empty: all. countries: where the data centre may stand, ISO 3166-1; empty: anywhere.
    """

    gpus: int = 1
    cpus: int = 1
    gpu: str | None = None
    gpu_memory_gib: float | None = None
    hours: float | None = None
    hours_from: str = "given"
    interruptible: bool = False
    checkpoint_minutes: float | None = None
    dataset_gb: float = 0.0
    results_gb: float = 0.0
    framework: str | None = None
    max_cost: Microcents | None = None
    max_cost_per_hour: Microcents | None = None
    optimize: str = "balanced"
    resource_type: str | None = None
    required_provider: str | None = None
    preferred_provider: str | None = None
    allowed_providers: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Somewhere the work could run.

    backend: names it in answers. gpu_memory_gib: of one GPU; None: not known. cpus: None: not known. per_hour: of as
    much of it as the work needs. step_s, minimum_s: a use is billed in whole steps of so many seconds, and at least so
    many. start_s: seconds until the program starts, in the middle and in 9 of 10 cases. rest_s: so long it is kept, and
    paid for, after the program. interruptions_per_hour: how often it is taken back. bandwidth_gbps: Gbit/s for the
    data. egress_per_gb: what 10**9 bytes that leave it cost; None: not known. note: what else speaks against it. host:
    the id of the host that it is, where it is one. buys: the backend where a machine for it can be
    bought; empty: none. not_usable: why it is not chosen by itself. not_priced: why its price
    does not count. as_of: the day of its price.
    """

    backend: str
    where: Where
    resource_type: str
    provider: str
    offer: str
    gpu: str
    gpu_count: int
    gpu_memory_gib: float | None = None
    cpus: float | None = None
    per_hour: Microcents
    step_s: int = 1
    minimum_s: int = 0
    start_s: tuple[float, float]
    rest_s: float = 0.0
    interruptions_per_hour: float = 0.0
    bandwidth_gbps: float | None = None
    egress_per_gb: Microcents | None = _NOTHING
    latency_ms: float | None = None
    frameworks: tuple[str, ...] = ()
    country: str = ""
    status: str = "available"
    host: str = ""
    buys: str = ""
    not_usable: str = ""
    not_priced: str = ""
    note: str = ""
    source: str = ""
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the run costs: in the middle, and the bounds of 8 of 10 cases."""

    total: Microcents
    low: Microcents
    high: Microcents


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A place that could do the work. score: 0 to 100. terms: each from 0 to 1. cost None: its length is not known."""

    place: Place
    score: float
    terms: Mapping[str, float]
    cost: Cost | None
    confidence: str
    transfer_s: float
    pros: tuple[str, ...]
    cons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A place that cannot do the work, and why."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """count: suitable places where the cost of the run is known. least: the lowest of these costs."""

    count: int = 0
    least: Microcents = _NOTHING


@dataclass(frozen=True, slots=True)
class Route:
    """The answer, the best first. chosen: the best that can be used now."""

    ranked: Sequence[Recommendation]
    refused: Sequence[Refused]
    totals: Totals = Totals()

    @property
    def chosen(self) -> Recommendation | None:
        return next((one for one in self.ranked if not one.place.not_usable), None)


def order(one: Recommendation) -> tuple[float, str]:
    """By which recommendations are sorted: the best first; ties go by name."""
    return -one.score, one.place.backend


def recommend(work: Work, places: Iterable[Place], totals: Totals | None = None) -> Route:
    """Put the places in order for this work. The order of `places` does not matter. totals: those of an answer of which
    `places` are a part; None: of these."""
    fit, refused = list[Place](), list[Refused]()
    for place in places:
        reason = excluded(work, place)
        if reason:
            refused.append(Refused(place, reason))
        else:
            fit.append(place)
    costs = [cost_of(work, place) for place in fit]
    known = [cost.total for cost in costs if cost is not None]
    totals = totals or Totals(len(known), min(known, default=_NOTHING))
    ranked = [_recommendation(work, place, cost, totals) for place, cost in zip(fit, costs, strict=True)]
    ranked.sort(key=order)
    refused.sort(key=lambda one: one.place.backend)
    return Route(ranked, refused, totals)


def excluded(work: Work, place: Place) -> str:
    """Why this place cannot do the work, in words; empty if it can."""
    return next((reason for test in TESTS if (reason := test(work, place))), "")


def _is_lacking(work: Work, place: Place) -> str:
    if work.gpus > place.gpu_count:
        return f"{work.gpus} {'GPU is' if work.gpus == 1 else 'GPUs are'} wanted; it has {place.gpu_count}."
    if work.gpu is not None and work.gpus and not is_gpu(place.gpu, work.gpu):
        return f"The GPU wanted is {work.gpu.removesuffix('-')}; it has {place.gpu or 'another'}."
    if work.gpu_memory_gib is not None and work.gpus:
        if place.gpu_memory_gib is None:
            return "The memory of its GPUs is not known."
        if place.gpu_memory_gib < work.gpu_memory_gib:
            return f"A GPU with {work.gpu_memory_gib:g} GiB is wanted; its have {place.gpu_memory_gib:g}."
    if place.cpus is not None and work.cpus > place.cpus:
        return f"{work.cpus} {'CPU is' if work.cpus == 1 else 'CPUs are'} wanted; it has {place.cpus:g}."
    if work.framework and place.frameworks and work.framework not in place.frameworks:
        return f"{work.framework} is not among its frameworks: {', '.join(place.frameworks)}."
    return ""


def is_gpu(gpu: str, wanted: str) -> bool:
    """Whether a model class is what is wanted, as Work.gpu says it."""
    return gpu == wanted or (wanted.endswith("-") and gpu.startswith(wanted))


def _is_elsewhere(work: Work, place: Place) -> str:
    if work.resource_type and place.resource_type != work.resource_type:
        return f"{work.resource_type} is wanted; it is {place.resource_type}."
    if work.required_provider and place.provider.casefold() != work.required_provider.casefold():
        return f"The provider wanted is {work.required_provider}."
    if work.allowed_providers and place.provider.casefold() not in work.allowed_providers:
        return f"{place.provider} is not among the allowed: {', '.join(work.allowed_providers)}."
    if work.countries and place.country not in work.countries:
        where = f"in {place.country}" if place.country else "in an unknown country"
        return f"Its data centre is {where}; allowed: {', '.join(work.countries)}."
    return ""


def _is_taken(work: Work, place: Place) -> str:
    if place.status != "available":
        return f"It is {place.status}."
    if place.not_priced:
        return place.not_priced
    if place.interruptions_per_hour and not work.interruptible:
        return "It may be taken back at any time, and the work is not said to be interruptible."
    return ""


def _is_dear(work: Work, place: Place) -> str:
    if work.max_cost_per_hour is not None and place.per_hour > work.max_cost_per_hour:
        return f"It costs {money_text(place.per_hour)} an hour; the limit is {money_text(work.max_cost_per_hour)}."
    cost = cost_of(work, place)
    if work.max_cost is not None and cost is not None and cost.total > work.max_cost:
        return f"The run would cost {money_text(cost.total)}; the limit is {money_text(work.max_cost)}."
    return ""


TESTS: Final = (_is_elsewhere, _is_lacking, _is_taken, _is_dear)
"""In this order; the first reason is told."""


def transfer_s(work: Work, place: Place) -> float:
    """Seconds to bring the data to the place; 0 where there is none, or the speed is not known."""
    if not work.dataset_gb or not place.bandwidth_gbps:
        return 0.0
    return work.dataset_gb * 8 / place.bandwidth_gbps


def egress_of(work: Work, place: Place) -> Microcents | None:
    """What it costs to bring the results home; None: not known."""
    if not work.results_gb:
        return _NOTHING
    return None if place.egress_per_gb is None else Microcents(int(work.results_gb * place.egress_per_gb))


def cost_of(work: Work, place: Place) -> Cost | None:
    """What the run costs there, with start, transfer, expected restarts, the rest of the machine, and the results' way
    home where its price is known; None where its length is not known.

    Restarts are counted as a Poisson process: of its mean, and of the mean with 1.28 standard deviations less and more,
    which is 8 of 10 cases of a normal distribution.
    """
    if work.hours is None:
        return None
    less, more = HOURS_SPREAD[work.hours_from]
    around = transfer_s(work, place) + place.rest_s + (place.start_s[0] if place.where is Where.ELSEWHERE else 0)
    lost_s = RESTART_S + 30 * (work.checkpoint_minutes or 2 * 60 * work.hours)  # half of what is between two

    def bill(hours: float, deviations: float) -> Microcents:
        expected = hours * place.interruptions_per_hour
        restarts = max(0.0, expected + deviations * math.sqrt(expected))
        seconds = hours * 3600 + around + restarts * lost_s
        return Microcents(billed(place.per_hour, seconds, place.step_s, place.minimum_s) + egress)

    egress = egress_of(work, place) or 0
    return Cost(bill(work.hours, 0), bill(work.hours * less, -1.28), bill(work.hours * more, 1.28))


def _recommendation(work: Work, place: Place, cost: Cost | None, totals: Totals) -> Recommendation:
    moving = transfer_s(work, place)
    unit_hours = (work.gpus or work.cpus) * (work.hours or 1)
    per_unit_hour = (cost.total if cost else place.per_hour * (work.hours or 1)) / unit_hours
    terms = {
        "locality": 1 / (1 + moving / HALF_TRANSFER_S),
        "availability": 1 / (1 + place.start_s[0] / HALF_TRANSFER_S),
        "cost": 1 / (1 + per_unit_hour / HALF_COST),
        "latency": UNKNOWN_LATENCY if place.latency_ms is None else 1 / (1 + place.latency_ms / HALF_LATENCY_MS),
    }
    weights = WEIGHTS[work.optimize]
    score = sum(weights[name] * term for name, term in terms.items()) / sum(weights.values())
    if work.preferred_provider and place.provider.casefold() == work.preferred_provider.casefold():
        score += PREFERRED
    pros, cons = _words(work, place, cost, moving, totals)
    rounded = {name: round(term, 4) for name, term in terms.items()}
    return Recommendation(
        place, round(100 * min(1.0, score), 1), rounded, cost, _confidence(work, place), moving, pros, cons
    )


def _confidence(work: Work, place: Place) -> str:
    """high, medium or low: how far the cost can be trusted, by where its length is from and whose price it is."""
    if work.hours is None:
        return "low"
    steps = (work.hours_from != "given") + (place.where is Where.ELSEWHERE) + bool(place.interruptions_per_hour)
    return ("high", "medium", "low", "low")[steps]


def _words(
    work: Work, place: Place, cost: Cost | None, moving: float, totals: Totals
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What speaks for the place, and what against it."""
    pros, cons = list[str](), list[str]()
    if not place.per_hour:
        pros.append("costs nothing")
    elif cost is not None and totals.count > 1 and cost.total == totals.least:
        pros.append(f"the cheapest of {totals.count} places")
    start = place.start_s[0]
    if place.where is Where.ELSEWHERE or not place.not_usable:
        (pros if start <= 60 else cons).append("starts at once" if start <= 5 else f"starts in about {span(start)}")
    if place.where is Where.RESOURCE and place.resource_type != "cloud":
        pros.append("your own machine")
    if place.interruptions_per_hour:
        cons.append("may be taken back at any time; it goes on elsewhere from its last checkpoint")
        if work.checkpoint_minutes is None:
            cons.append("no checkpoint was seen: work that is taken back begins again")
    if moving >= 60:
        cons.append(f"the data takes about {span(moving)} to get there")
    egress = egress_of(work, place)
    if egress is None:
        cons.append("what it charges for results that leave it is not known")
    elif egress:
        cons.append(f"{money_text(egress)} of the cost is for results that leave it")
    if place.gpu_count > work.gpus and place.where is Where.ELSEWHERE:
        cons.append(f"is rented whole: {place.gpu_count} GPUs, of which {place.gpu_count - work.gpus} would be idle")
    if cost is not None and work.hours and place.per_hour:
        used = place.per_hour * work.hours
        unused = cost.total - (egress or 0) - used
        if unused > 0.5 * used:
            cons.append(f"{money_text(Microcents(int(unused) // 1_000_000 * 1_000_000))} is for unused time")
    if place.note:
        cons.append(place.note)
    if place.not_usable:
        cons.append(place.not_usable)
    return tuple(pros), tuple(cons)


def span(seconds: float) -> str:
    """A time as people say it: `40 s`, `6 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
