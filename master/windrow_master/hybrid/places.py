"""The places that work could go to: tiers of this market, registered resources, offers of the price book. Pure.

What is assumed of a place where nothing was measured stands in the tables here, each with its source.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from statistics import quantiles
from typing import Final

from windrow_master.fleet import gpus
from windrow_master.hybrid.backends.port import MachineOffer
from windrow_master.hybrid.model import Resource, ResourceStatus, ResourceType
from windrow_master.hybrid.purchases.costs import with_margin
from windrow_master.hybrid.purchases.model import Rules
from windrow_master.hybrid.routing import Place, Where, Work, is_gpu
from windrow_master.hybrid.runs import modal_prices
from windrow_master.hybrid.runs.port import HOURS_MAX
from windrow_master.market.model import Offer as MarketOffer
from windrow_master.prices.book import Listed, PriceBook, State
from windrow_master.prices.offers import Kind
from windrow_master.prices.offers import Offer as BookOffer
from windrow_proto.units import GIB, MICROCENTS_PER_UNIT, SECOND, Microcents

NOT_CONNECTED: Final = "not connected: this market cannot start work there"
BOUGHT: Final = "a machine is bought for it, at {name}"
RUN: Final = "a run is started for it, at {name}"
RUN_NOTE: Final = "{cpus} CPUs and {gib:g} GiB are in this price; it ends after {hours} h, and goes on elsewhere"
OF_ANOTHER: Final = "Its host belongs to another account; what can be rented of it is in its tier."
NOT_BOUND: Final = "not connected: no host is bound to this resource"

START_S: Final[Mapping[tuple[str, str], tuple[float, float]]] = {
    ("market", ""): (5, 60),
    ("resource", ""): (5, 60),
    ("modal", "spot"): (5, 60),
    ("", "spot"): (360, 1_200),
    ("", ""): (300, 600),
}
"""Seconds until a program starts, in the middle and in 9 of 10 cases, by provider and kind; empty: any. External
services under a minute and instances 5 to 10 minutes are the mission's (document 003); the others are our judgement."""
SELLERS: Final[Mapping[str, str]] = {"aws": "ec2"}
"""The kind of backend that buys machines of a provider of the price book. Each is kept for `rest_ns` after its work."""
REST_S: Final = Rules().rest_ns / SECOND


@dataclass(frozen=True, slots=True)
class Connected:
    """A backend where the project that asks may buy. kind: as SELLERS has it, or of a service that runs code. region:
    its only one; empty: any. margin_percent: the operator's, in what its work pays."""

    name: str
    kind: str
    region: str
    margin_percent: int = 0


STARTS_LEAST: Final = 5
"""So many starts of this market count more than what is assumed."""
Waits = Mapping[str, tuple[float, float]]
NO_WAITS: Final[Waits] = {}
INTERRUPTIONS_PER_HOUR: Final = 0.1
"""Of spot. Our judgement between zones that were there 47 % and 91 % of the time in traces of 2023."""
BANDWIDTH_GBPS: Final = 1.0
"""Gbit/s to a place that does not say it. Our judgement."""
BANDWIDTH_LEAST_GBPS: Final = 1e-3
"""A place that declares less is taken to have this."""
_VENDORS: Final = re.compile(r"\b(nvidia|amd|intel|tesla|geforce|quadro|instinct|radeon)\b")


def waits_of(starts: Iterable[tuple[str, int]]) -> Waits:
    """The start times of this market by tier; the empty name is all tiers. Only where there are enough starts."""
    by_tier: dict[str, list[float]] = defaultdict(list)
    for tier, waited_ns in starts:
        for name in (tier, ""):
            by_tier[name].append(waited_ns / SECOND)
    tenths = {tier: quantiles(found, n=10) for tier, found in by_tier.items() if len(found) >= STARTS_LEAST}
    return {tier: (round(each[4], 1), round(each[8], 1)) for tier, each in tenths.items()}


def market_places(offers: Iterable[MarketOffer], work: Work, waits: Waits = NO_WAITS) -> Iterator[Place]:
    """One place for each tier of real GPUs, or of processors where no GPU is wanted."""
    for offer in offers:
        gpu = offer.tier.partition("/")[0]
        if offer.simulated or ":" in gpu or (gpu == gpus.CPU_CLASS) != (work.gpus == 0):
            continue
        per_hour = Microcents(offer.price_per_hour * (work.gpus or work.cpus))
        yield Place(
            backend=f"windrow/{offer.tier}",
            where=Where.MARKET,
            resource_type=ResourceType.ON_PREMISE,
            provider="windrow",
            offer=offer.tier,
            gpu=gpu,
            gpu_count=0 if gpu == gpus.CPU_CLASS else offer.on_one_host,
            gpu_memory_gib=memory_of(gpu),
            cpus=offer.on_one_host if gpu == gpus.CPU_CLASS else None,
            per_hour=per_hour,
            start_s=waits.get(offer.tier) or waits.get("") or START_S["market", ""],
            bandwidth_gbps=BANDWIDTH_GBPS,
            status="available" if offer.free_on_one_host >= (work.gpus or work.cpus) else "busy",
            source="this market",
        )


def resource_places(
    resources: Iterable[Resource],
    book: PriceBook,
    today: date,
    account_id: str,
    waits: Waits = NO_WAITS,
    gpus_wanted: int = 0,
) -> Iterator[Place]:
    """One place for each registered resource. A bound one is a place for the owner of its host: it costs what its
    registration says, since rent goes to the owner; others rent the host by its tier, at the market's price. What its
    host shows counts more than what was declared."""
    for resource in resources:
        declared = resource.declared
        has = declared.capabilities
        gpu, count, free = _gpus(resource)
        per_hour, source = price_of(resource, book, today)
        own = declared.resource_type is not ResourceType.CLOUD
        memory, cores = has.get("gpu_memory_gb"), has.get("cpu_cores")
        yield Place(
            backend=f"resource/{resource.resource_id}",
            where=Where.RESOURCE,
            resource_type=declared.resource_type,
            provider=declared.provider or "own",
            offer=resource.resource_id,
            gpu=gpu,
            gpu_count=count,
            gpu_memory_gib=float(memory) if isinstance(memory, int | float) else memory_of(gpu),
            cpus=_least(cores, resource.seen.cpus if resource.seen else None),
            per_hour=per_hour or Microcents(0),
            start_s=(waits.get("") or START_S["resource", ""]) if own else START_S["", ""],
            bandwidth_gbps=_bandwidth(declared.network_bandwidth_gbps, None if own else BANDWIDTH_GBPS),
            egress_per_gb=Microcents(0) if own else book.egress_of(declared.provider or ""),
            latency_ms=declared.latency_ms,
            frameworks=declared.supported_frameworks,
            status=_taken(resource.status, gpus_wanted > free),
            host=resource.bound_host or "",
            not_usable="" if resource.bound_host else NOT_BOUND,
            not_priced=_not_priced(resource, per_hour, account_id),
            source=source,
        )


def _gpus(resource: Resource) -> tuple[str, int, int]:
    """The GPUs of a resource: their class, how many there are, and how many are free."""
    has = resource.declared.capabilities
    gpu, said = class_of(str(has.get("gpu_type", ""))), has.get("gpu_count", 1 if has.get("gpu") else 0)
    count = said if isinstance(said, int) else 0
    seen = resource.seen.gpus if resource.seen else None
    if seen is None:
        return gpu, count, count
    found = gpu if gpu in seen else max(seen, key=lambda one: seen[one][0], default="")
    total, free = seen.get(found, (0, 0))
    return found or gpu, min(count, total), min(count, free)


def _taken(status: ResourceStatus, is_full: bool) -> ResourceStatus:
    """The status of a resource for this work."""
    return ResourceStatus.BUSY if is_full and status is ResourceStatus.AVAILABLE else status


def _least(declared: object, seen: int | None) -> int | None:
    """The smaller of two numbers, of which each may be unknown."""
    known = [one for one in (declared, seen) if isinstance(one, int)]
    return min(known, default=None)


def _bandwidth(said: float | None, assumed: float | None) -> float | None:
    return max(said, BANDWIDTH_LEAST_GBPS) if said else assumed


def _not_priced(resource: Resource, per_hour: Microcents | None, account_id: str) -> str:
    if resource.seen is not None and resource.seen.owner != account_id:
        return OF_ANOTHER
    return "" if per_hour is not None else "Nobody said what it costs, and no offer of the price book fits."


def price_of(resource: Resource, book: PriceBook, today: date) -> tuple[Microcents | None, str]:
    """What an hour of a resource costs and whose word that is; None where nobody knows."""
    if (said := resource.cost_per_hour_usd) is not None:
        return Microcents(round(said * MICROCENTS_PER_UNIT)), "its registration"
    offer = offer_of(resource, book, today)
    return (None, "") if offer is None else (offer.per_hour, f"{offer.name}: {offer.source.title}")


def offer_of(resource: Resource, book: PriceBook, today: date) -> BookOffer | None:
    """The cheapest current offer on demand of its provider and region with its GPUs; None where none fits."""
    declared = resource.declared
    wanted, count = class_of(str(declared.capabilities.get("gpu_type", ""))), declared.capabilities.get("gpu_count")
    for listed in book.find(today, kind=Kind.ON_DEMAND):
        offer = listed.offer
        if (
            listed.state is State.CURRENT
            and offer.provider.name == (declared.provider or "").casefold()
            and declared.region in (None, offer.region)
            and (offer.gpu, offer.gpu_count) == (wanted, count)
        ):
            return offer
    return None


def book_places(
    book: PriceBook, today: date, work: Work, bought: Waits = NO_WAITS, connected: Sequence[Connected] = ()
) -> Iterator[Place]:
    """Of each provider and kind the cheapest offer that fits; where none does, the one that comes closest, so that its
    reason is told. Of a connected backend in place of its provider: what is sold in its region. bought: the start times
    of machines that were bought there, as `waits_of` has them."""
    groups: dict[tuple[str, Kind, str], list[Listed]] = defaultdict(list)
    margins = {one.name: one.margin_percent for one in connected}
    runs = list(run_places(book, today, work, connected))
    yield from runs
    run_at = {place.provider for place in runs}
    for listed in book.find(today):
        if listed.offer.provider.name in run_at:
            continue
        if (listed.offer.gpu == gpus.CPU_CLASS) == (work.gpus == 0):
            for name in _buys(listed.offer, connected) or ("",):
                groups[listed.offer.provider.name, listed.offer.kind, name].append(listed)
    sold = {(provider, kind) for provider, kind, name in groups if name}
    for (provider, kind, name), group in groups.items():
        if name or (provider, kind) not in sold:
            best = min(group, key=lambda listed: _misses(listed, work))
            yield _book_place(best, bought, name, margins.get(name, 0))


def run_places(book: PriceBook, today: date, work: Work, connected: Sequence[Connected]) -> Iterator[Place]:
    """For each connected service that runs code: its cheapest offer that fits, else the closest one."""
    offers = [one for one in modal_prices.offers_of(book, today) if bool(one.gpu_count) == (work.gpus > 0)]
    for backend in connected if offers else ():
        if backend.kind == modal_prices.PROVIDER:
            yield _run_place(min(offers, key=lambda one: _lacks(one, work)), backend)


def _lacks(offer: MachineOffer, work: Work) -> tuple[bool, int, float, int, Microcents]:
    """Return how far an offer falls short of the work, the most important first; then its price."""
    return (
        work.gpu is not None and work.gpus > 0 and not is_gpu(offer.gpu, work.gpu),
        max(0, work.gpus - offer.gpu_count),
        max(0.0, (work.gpu_memory_gib or 0.0) - (memory_of(offer.gpu) or 0.0)) if work.gpus else 0.0,
        max(0, work.cpus - offer.cpus),
        offer.price_per_hour,
    )


def _run_place(offer: MachineOffer, backend: Connected) -> Place:
    is_spot = offer.kind is Kind.SPOT
    return Place(
        backend=f"{backend.name}/{offer.kind}",
        buys=backend.name,
        where=Where.ELSEWHERE,
        resource_type=ResourceType.CLOUD,
        provider=modal_prices.PROVIDER,
        offer=offer.offer_id,
        gpu=offer.gpu or gpus.CPU_CLASS,
        gpu_count=offer.gpu_count,
        gpu_memory_gib=memory_of(offer.gpu),
        cpus=offer.cpus,
        per_hour=with_margin(offer.price_per_hour, backend.margin_percent),
        step_s=offer.billing.granularity_s,
        minimum_s=offer.billing.minimum_s,
        start_s=START_S["modal", "spot"],
        interruptions_per_hour=INTERRUPTIONS_PER_HOUR if is_spot else 0.0,
        bandwidth_gbps=BANDWIDTH_GBPS,
        egress_per_gb=None,
        not_usable=RUN.format(name=backend.name),
        note=RUN_NOTE.format(cpus=offer.cpus, gib=offer.memory_bytes / GIB, hours=HOURS_MAX),
        source="Modal's prices of a sandbox",
        as_of=offer.priced_on.isoformat(),
    )


def _buys(offer: BookOffer, connected: Sequence[Connected]) -> list[str]:
    """The connected backends that sell an offer. Reserved capacity is a price, and nothing that is bought."""
    kind = None if offer.kind is Kind.RESERVED else SELLERS.get(offer.provider.name)
    return [one.name for one in connected if one.kind == kind and one.region in ("", offer.region)]


def _misses(listed: Listed, work: Work) -> tuple[bool, int, float, float, bool, bool, Microcents]:
    """What an offer lacks, and how much of it, the gravest first, then its price. Of equals the book's first is
    taken."""
    offer = listed.offer
    wants_memory = work.gpu_memory_gib is not None and work.gpus > 0
    return (
        work.gpu is not None and work.gpus > 0 and not is_gpu(offer.gpu, work.gpu),
        max(0, work.gpus - offer.gpu_count),
        max(0.0, (work.gpu_memory_gib or 0.0) - (memory_of(offer.gpu) or 0.0)) if wants_memory else 0.0,
        0.0 if offer.vcpu is None else max(0.0, work.cpus - offer.vcpu),
        bool(work.countries) and offer.country not in work.countries,
        listed.state is not State.CURRENT,
        offer.per_hour,
    )


def _book_place(listed: Listed, bought: Waits, buys: str, margin_percent: int) -> Place:
    offer = listed.offer
    provider, is_spot = offer.provider.name, offer.kind is Kind.SPOT
    reserved = "It is for those who commit themselves for a long time." if offer.kind is Kind.RESERVED else ""
    assumed = START_S.get((provider, str(offer.kind))) or START_S["", "spot" if is_spot else ""]
    return Place(
        backend=f"{buys or provider}/{offer.kind}",
        buys=buys,
        where=Where.ELSEWHERE,
        resource_type=ResourceType.CLOUD,
        provider=provider,
        offer=offer.name + (f" in {offer.zone or offer.region}" if offer.region else ""),
        gpu=offer.gpu,
        gpu_count=offer.gpu_count,
        gpu_memory_gib=memory_of(offer.gpu),
        cpus=offer.vcpu,
        per_hour=with_margin(offer.per_hour, margin_percent),
        step_s=offer.provider.granularity_s,
        minimum_s=offer.provider.minimum_s,
        start_s=bought.get(f"{SELLERS.get(provider)}/{offer.kind}") or assumed,
        rest_s=REST_S if provider in SELLERS else 0.0,
        interruptions_per_hour=INTERRUPTIONS_PER_HOUR if is_spot else 0.0,
        bandwidth_gbps=BANDWIDTH_GBPS,
        egress_per_gb=offer.provider.egress_per_gb,
        country=offer.country,
        not_usable=BOUGHT.format(name=buys) if buys else NOT_CONNECTED,
        not_priced=listed.reason or reserved,
        note=offer.provider.note,
        source=offer.source.title,
        as_of=offer.source.read_on.isoformat() if offer.source.read_on else None,
    )


@cache
def memory_of(gpu: str) -> float | None:
    """GiB of one GPU of this class; the least of its models. None: no such class."""
    sizes = [model.memory_gib.value for model in gpus.MODELS if model.model_class == gpu]
    return float(min(sizes)) if sizes else None


def class_of(text: str) -> str:
    """The class of a GPU that people name: `NVIDIA A100` is a100-40, the smallest that can be meant. Empty: unknown."""
    wanted = " ".join(_VENDORS.sub(" ", text.casefold()).replace("-", " ").split())
    if not wanted:
        return ""
    found = [
        model
        for model in gpus.MODELS
        if wanted == model.model_class.replace("-", " ")
        or f" {wanted} " in f" {_VENDORS.sub(' ', model.name.casefold()).replace('-', ' ')} "
    ]
    return min(found, key=lambda model: (model.memory_gib.value, model.model_class)).model_class if found else ""


def wanted_of(text: str) -> str:
    """The GPU that a request names, as Work.gpu has it: a class, or a family where the name leaves open which of its
    classes is meant: `NVIDIA A100` is `a100-`. Empty: unknown."""
    named = "-".join(_VENDORS.sub(" ", text.casefold()).replace("-", " ").split())
    classes = {model.model_class for model in gpus.MODELS}
    if named and named not in classes and any(one.startswith(f"{named}-") for one in classes):
        return f"{named}-"
    return class_of(text)


def all_places(
    offers: Iterable[MarketOffer],
    resources: Sequence[Resource],
    book: PriceBook,
    today: date,
    work: Work,
    account_id: str = "",
    waits: Waits = NO_WAITS,
    bought: Waits = NO_WAITS,
    connected: Sequence[Connected] = (),
) -> list[Place]:
    """Every place there is for this account's work. waits: of this market, bought: of machines that were bought, both
    as `waits_of` has them. connected: the backends where the account may buy."""
    return [
        *market_places(offers, work, waits),
        *resource_places(resources, book, today, account_id, waits, work.gpus),
        *book_places(book, today, work, bought, connected),
    ]
