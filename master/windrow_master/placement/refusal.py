"""Says why a request fits nowhere: the reasons of all hosts, grouped, and the smallest changes with which it would fit.
Pure.

A host that lacks the hardware is counted under what it lacks, whatever else stands against it now. A change is tried on
each host once or twice, and the best two are then placed on the whole fleet: what is told is what a creation would do.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from windrow_master.placement.fit import fit, is_tier, lacks, size_text
from windrow_master.placement.model import (
    Candidate,
    Changes,
    Chosen,
    Miss,
    Obstacle,
    Reason,
    Request,
    Way,
)
from windrow_master.placement.whereabouts import PLACES, asked_place, change_text, distance_of, nearest_place
from windrow_proto.units import Microcents, money_text

REASONS_MAX: Final = 4
"""With the headline, two ways and the line of the code: at most eight lines, however large the fleet is."""
WAYS_MAX: Final = 2
TRIES_MAX: Final = 4
"""Changes that are placed on the whole fleet, until WAYS_MAX of them fit."""
CHANGES_MAX: Final = 2
"""Fields that one way changes: a request with more changes is another request."""
STEPS_MAX: Final = 3
"""Tries of one host: two fields, one of them twice, as 8 GPUs become the 4 of a host and then the one that is free."""
NAMED_MAX: Final = 3
"""Hosts, and kinds of hardware, that a reason names."""
AMOUNTS: Final = (
    *("hosts", "gpus", "gpu_memory_bytes", "cpus", "memory_bytes"),
    *("min_bandwidth_mbps", "min_reliability_percent"),
)
"""Fields of which the nearest value is the better change; of others the cheapest is."""
LASTING: Final = frozenset(
    (Obstacle.GPUS, Obstacle.GPU_MEMORY, Obstacle.TIER, Obstacle.GPU_MODEL, Obstacle.SLICE, Obstacle.NO_SLOT)
)
"""Obstacles of hardware that stay when all of a host is free."""
PASSING: Final = frozenset({Obstacle.PRICE, Obstacle.BUSY, Obstacle.TOO_FEW_HOSTS})
"""Obstacles of hosts whose hardware is enough."""

Refused = Sequence[tuple[Candidate, Miss]]
Placed = tuple[tuple[str, ...], Microcents]
"""The names of the hosts on which a request would run, and its price per hour."""
_ORDER: Final = {obstacle: number for number, obstacle in enumerate(Obstacle)}


@dataclass(frozen=True, slots=True)
class Told:
    """The words of a refusal; `Refusal` says what each field is."""

    detail: str
    reasons: tuple[Reason, ...]
    is_possible: bool


def explain(request: Request, refused: Refused, simulated: Sequence[Candidate] = ()) -> Told:
    """Return the words for a request that was refused by all of these hosts. simulated: hosts that it is not for."""
    known: list[tuple[Candidate, Miss]] = []
    missing: list[Miss] = []
    for host, miss in refused:
        if miss.obstacle is Obstacle.NOT_NAMED:
            continue
        is_open = miss.obstacle in PASSING or not host.is_known
        lack = miss if miss.obstacle in LASTING else None if is_open else lacks(request, host)
        known.append((host, lack or miss))
        if lack is not None:
            missing.append(lack)
    enough = len(known) - len(missing)
    is_possible = enough - sum(miss.obstacle is Obstacle.IMAGE for _, miss in known) >= request.hosts
    groups = _grouped(request, known)
    detail = _detail(request, groups, missing if enough < request.hosts else (), is_possible)
    if 0 < enough < request.hosts and not missing:
        detail = f"Only {enough} of the {request.hosts} hosts that you ask for are in this market, free or not: "
        detail += "it can run only when more join."
    if enough < request.hosts and request.host_id is None:
        detail += _elsewhere(request, [host for host, _ in refused], simulated)
    anywhere = replace(request, near=None, region=None)
    away = [host for host, miss in known if miss.obstacle in (Obstacle.NEAR, Obstacle.REGION)]
    detail += nearest_place(request, [host for host in away if lacks(anywhere, host) is None])
    return Told(detail, tuple(_capped([reason for reason, _ in groups])), is_possible)


def ways(
    request: Request, refused: Refused, verification_exists: bool, place: Callable[[Request], Placed | None]
) -> tuple[Way, ...]:
    """The smallest changes with which the request fits, the fewest fields and the lowest price first. place: where
    another request would run."""
    options: dict[frozenset[str], list[_Option]] = {}
    for host, miss in refused:
        option = _option(request, host, miss, verification_exists)
        if option is not None:
            options.setdefault(frozenset(option[0]), []).append(option)
    alone = sum(1 for _, miss in refused if miss.obstacle is Obstacle.TOO_FEW_HOSTS)
    best = []
    for fields, found in options.items():
        # Beside the hosts that fit already, so many more have to take the change.
        needed = 1 if "hosts" in fields else max(1, request.hosts - alone)
        if len(found) >= needed:
            best.append(sorted(found, key=_concession)[needed - 1])
    best.sort(key=lambda option: (len(option[0]), option[1], sorted(option[0])))
    told: list[Way] = []
    for changes, _ in best[:TRIES_MAX]:
        placed = place(_changed(request, changes)) if len(told) < WAYS_MAX else None
        if placed is not None:
            told.append(Way(changes, placed[0], placed[1], _way_text(request, changes, placed)))
    return tuple(told)


# --- reasons ----------------------------------------------------------------------------------------------------------

_Group = tuple[Reason, Miss]
"""A reason, and what was said of the host nearest to a fit."""


def _grouped(request: Request, known: Refused) -> list[_Group]:
    """One reason for each obstacle, one's own hosts apart and first."""
    found: dict[tuple[bool, Obstacle, str], list[tuple[Candidate, Miss]]] = {}
    for host, miss in known:
        is_own = host.is_own_of(request.account_id)
        found.setdefault((is_own, miss.obstacle, miss.label), []).append((host, miss))
    groups = []
    for (is_own, obstacle, _), entries in found.items():
        entries.sort(key=lambda entry: (-(entry[1].amount or 0), entry[0].host_name, entry[0].host_id))
        hosts = tuple((host.host_id, host.host_name) for host, _ in entries[:NAMED_MAX])
        groups.append((Reason(obstacle, _words(entries), len(entries), hosts, is_own), entries[0][1]))
    groups.sort(key=lambda group: (not group[0].is_own, _ORDER[group[0].code], -group[0].count, group[0].reason))
    return groups


def _words(entries: Refused) -> str:
    """The reason of several hosts, the nearest of them first: what the nearest has, or what they have instead."""
    (host, miss), *more = entries
    if not more:
        return miss.text
    if miss.amount is not None:
        return f"{miss.label} (nearest: {host.host_name}, {miss.detail})"
    counts = Counter(kind for _, each in entries for kind in each.kinds)
    if counts:
        names = [kind for kind, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]
        rest = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        return f"{miss.label} ({', '.join(names[:NAMED_MAX])}{rest})"
    return miss.text if all(each.detail == miss.detail for _, each in entries) else miss.label


def _capped(reasons: Sequence[Reason]) -> list[Reason]:
    """At most REASONS_MAX; what is more is counted in the last one."""
    if len(reasons) <= REASONS_MAX:
        return list(reasons)
    rest = reasons[REASONS_MAX - 1 :]
    return [*reasons[: REASONS_MAX - 1], Reason(Obstacle.OTHER, "other reasons", sum(one.count for one in rest))]


def _detail(request: Request, groups: Sequence[_Group], missing: Sequence[Miss], is_possible: bool) -> str:
    """The refusal in a sentence. missing: what each host lacks, where that is why it can never run."""
    if not groups:
        if request.host_id is not None:
            return "The host that you name is not in this market."
        kind = "simulated" if request.wants_simulated else "real"
        return f"No {kind} host has joined yet. Start one with `windrow up`, or make a join token for one."
    first, nearest = groups[0]
    if missing:
        who = f"{first.hosts[0][1]} does not have" if request.host_id is not None else "No host of this market has"
        several = f" on {request.hosts} hosts" if request.hosts > 1 else ""
        what = _asked(request, {miss.obstacle for miss in missing})
        end = "" if request.host_id is not None else ": it can run only when one joins"
        return f"{who} {what}{several}, free or not{end}."
    when = "now" if is_possible else "as it is"
    if len(groups) == 1 and first.count == 1:
        return f"{first.hosts[0][1]} cannot run this {when}: {nearest.text}."
    return f"No host can run this {when}: {nearest.label}."


def _elsewhere(request: Request, hosts: Sequence[Candidate], simulated: Sequence[Candidate]) -> str:
    """A sentence more where another kind of request finds what is asked for; empty: none does."""
    if sum(lacks(request, host) is None for host in simulated) >= request.hosts:
        return " Simulated hosts have it: ask for the runtime simulated (`--runtime simulated`)."
    if request.gpus or request.tier is None:
        return ""
    slots = (slot for host in (*hosts, *simulated) for slot in host.slots)
    is_of_gpus = any(slot.is_gpu and is_tier(slot.tier, request.tier) for slot in slots)
    return f" {request.tier} is a tier of GPUs: ask for a GPU, too." if is_of_gpus else ""


def _asked(request: Request, obstacles: Set[Obstacle]) -> str:
    """The part of the request that no host has, where these are what hosts lack."""
    parts = []
    if obstacles - {Obstacle.CPUS, Obstacle.MEMORY} - PLACES:
        noun = "slice" if request.slice is not None else "GPU"
        kind = f"{request.gpus} x {request.gpu_model or request.slice or noun}" if request.gpus else "CPUs"
        asked = request.gpu_memory_bytes
        size = "" if asked is None else f" of {size_text(asked, asked)}"
        parts.append(kind + size + (f" in tier {request.tier}" if request.tier is not None else ""))
    if Obstacle.CPUS in obstacles and (request.cpus > 1 or not parts):
        parts.append(f"{request.cpus} CPUs")
    if Obstacle.MEMORY in obstacles:
        parts.append(f"{_size(request.memory_bytes, request.memory_bytes)} of memory")
    if not parts:
        parts.append(f"{request.gpus} x GPU" if request.gpus else "CPUs")
    what = " with ".join((parts[0], " and ".join(parts[1:]))) if len(parts) > 1 else parts[0]
    return what + asked_place(request, obstacles)


# --- ways out ---------------------------------------------------------------------------------------------------------

_Option = tuple[Changes, Microcents]
"""Changes with which one host would take the request, and its price then."""


def _option(request: Request, host: Candidate, miss: Miss, verification_exists: bool) -> _Option | None:
    """Return the changes with which this host would take the request; None: no small change helps there."""
    changes: dict[str, Any] = {}
    for _ in range(STEPS_MAX):
        changes |= miss.changes
        if not miss.changes or len(changes) > CHANGES_MAX:
            break
        answer = fit(_changed(request, changes), host, verification_exists)
        if isinstance(answer, Chosen):
            return changes, answer.price_per_hour
        miss = answer
    return None


def _changed(request: Request, changes: Changes) -> Request:
    return replace(request, **changes, cpus_priced=request.cpus_priced or request.cpus)


def _concession(option: _Option) -> tuple[Any, ...]:
    changes, price = option
    amounts = (-(changes.get(name) or 0) for name in AMOUNTS)
    return (*amounts, distance_of(changes), price, sorted(str(value) for value in changes.values()))


def _way_text(request: Request, changes: Changes, placed: Placed) -> str:
    """A way in a sentence: `Fits on rack-7 with 16 GB per GPU instead of 24 GB, for 0.90 per hour`."""
    names, price = placed
    where = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    words = " and ".join(filter(None, (_change_text(request, name, value) for name, value in changes.items())))
    cost = f"for {money_text(price)} per hour"
    allowed = request.max_price_per_hour
    if "max_price_per_hour" in changes and allowed is not None:
        cost = f"for {money_text(Microcents(price - allowed))} more per hour than you allow ({money_text(price)})"
    return f"Fits on {where} {words}, {cost}" if words else f"Fits on {where} {cost}"


_TEXTS: Final = {
    "hosts": "with {now} hosts instead of {asked}",
    "gpus": "with {now} GPUs instead of {asked}",
    "gpu_memory_bytes": "with {now} per GPU instead of {asked}",
    "gpu_model": "with {now} instead of {asked}",
    "slice": "with slice {now} instead of {asked}",
    "tier": "in tier {now} instead of {asked}",
    "cpus": "with {now} CPUs instead of {asked}",
    "memory_bytes": "with {now} of memory instead of {asked}",
    "host_id": "instead of the host that you name",
    "image": "as a plain process, without the image",
}


def _change_text(request: Request, name: str, value: Any) -> str | None:
    """None: the price says it already."""
    if name not in _TEXTS:
        return change_text(request, name, value)
    asked = getattr(request, name)
    if name.endswith("_bytes"):
        value, asked = _size(value, asked), _size(asked, asked)
    text = _TEXTS[name].format(now=value, asked=asked)
    for noun in ("hosts", "GPUs", "CPUs"):
        text = text.replace(f"with 1 {noun}", f"with 1 {noun[:-1]}")
    return text


def _size(size_bytes: int | None, asked_bytes: int | None) -> str:
    return size_text(size_bytes or 0, asked_bytes or 0)
