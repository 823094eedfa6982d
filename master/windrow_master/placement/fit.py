"""Tries one request on one host: how the host would take it, or why not. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from windrow_master.fleet.model import link_words
from windrow_master.placement.isolation import forbidden
from windrow_master.placement.model import Candidate, Chosen, Miss, Obstacle, Request, Runtime, SlotOffer
from windrow_master.placement.whereabouts import elsewhere, misplaced
from windrow_proto.model import Isolation
from windrow_proto.units import GIB, MINUTE, Microcents, money_text, time_text

CONTAINED: Final = "of containers"
"""In the place of a network's name: that of containers is made for them, wherever their hosts are."""
GIGABYTE: Final = 10**9
OTHER_MODEL: Final = "another GPU model"
_FIELDS: Final = {Obstacle.SLICE: "slice", Obstacle.TIER: "tier", Obstacle.GPU_MODEL: "gpu_model"}
Way = tuple[Runtime, str | None]
"""A runtime, and the image that it runs."""


def fit(request: Request, host: Candidate, verification_exists: bool) -> Chosen | Miss:
    """Return how this host would take the request, or why not."""
    standing = _standing(request, host, verification_exists) or misplaced(request, host)
    if standing is not None:
        return standing
    way = way_of(request, host)
    if isinstance(way, Miss):
        return way
    runtime, image = way
    if request.hosts > 1 and meets_in(host, runtime) is None:
        return Miss(Obstacle.NETWORK, "no other host sees it: it tells no address, or one that others cannot come to")
    lack = _processors(request, host.cpus_free, "free") or _memory(request, host.memory_free_bytes, "free")
    if lack is not None:
        return lack
    slots = _slots(request, host, runtime)
    if isinstance(slots, Miss):
        return slots
    price = _price(request, slots)
    allowed = request.max_price_per_hour
    if allowed is not None and price > allowed:
        detail = f"{money_text(price)} per hour, you allow {money_text(allowed)}"
        changes = {"max_price_per_hour": price}
        return Miss(Obstacle.PRICE, "dearer than you allow", detail, -price, changes=changes)
    return Chosen(
        host.host_id,
        host.host_name,
        tuple(slot.slot_id for slot in slots),
        runtime,
        image,
        slots[0].tier,
        price,
        {Runtime.PROCESS: host.about_processes, Runtime.DOCKER: host.about_containers}.get(runtime, ""),
    )


def lacks(request: Request, host: Candidate) -> Miss | None:
    """Return what the host would lack if all of it were free; None: it is where it has to be, and its hardware is
    enough."""
    lack = elsewhere(request, host) or _processors(request, max(host.cpus, host.cpus_free), "in all")
    lack = lack or _memory(request, max(host.memory_bytes, host.memory_free_bytes), "in all")
    if lack is not None:
        return lack
    suited = _suited(request, host.slots, True, None)
    return suited if isinstance(suited, Miss) else None


def meets_in(host: Candidate, runtime: Runtime) -> str | None:
    """The network in which a member here meets others; None: in none. Containers meet in one that is made for them."""
    return CONTAINED if runtime is Runtime.DOCKER else host.network


def size_text(size_bytes: int, asked_bytes: int) -> str:
    """A size in the unit in which its asker thinks: `16 GB` where whole GB were asked for, else in GiB."""
    unit, name = _unit(asked_bytes)
    return f"{size_bytes / unit:.4g} {name}"


def _unit(asked_bytes: int) -> tuple[int, str]:
    return (GIGABYTE, "GB") if asked_bytes % GIGABYTE == 0 else (GIB, "GiB")


def _whole(size_bytes: int, asked_bytes: int) -> int:
    """The same, rounded down to whole units where it is at least one."""
    unit, _ = _unit(asked_bytes)
    return size_bytes // unit * unit if size_bytes >= unit else size_bytes


def _price(request: Request, slots: Sequence[SlotOffer]) -> Microcents:
    """Of these slots together; of processors per processor that is asked for, rounded down."""
    total: int = sum(slot.price_per_hour for slot in slots)
    if request.gpus == 0 and request.cpus_priced is not None:
        total = total * request.cpus // request.cpus_priced
    return Microcents(total)


def _standing(request: Request, host: Candidate, verification_exists: bool) -> Miss | None:
    """Return why this host takes no work of this account now; None when it does."""
    if request.host_id is not None and request.host_id != host.host_id:
        return Miss(Obstacle.NOT_NAMED, "not the host that you name", changes={"host_id": None})
    if host.admin_state != "active":
        return Miss(Obstacle.CLOSED, "takes no new work", f"it is {host.admin_state}", kinds=(host.admin_state,))
    is_past = host.closes_at_ns is not None and (request.ends_at_ns is None or request.ends_at_ns > host.closes_at_ns)
    if host.closes_at_ns is not None and is_past and not request.is_proof:
        detail = f"at {time_text(host.closes_at_ns)}; ask for a duration that ends before"
        return Miss(Obstacle.CLOSED, "goes into maintenance before this ends", detail, kinds=("maintenance",))
    if host.link_state != "online":
        return Miss(Obstacle.OFFLINE, "offline", link_words(host.link_state))
    if not host.is_settled:
        ago = "it came back less than 60 s ago"
        if host.settling_ns > MINUTE:
            ago = f"its link failed several times: it came back less than {host.settling_ns // MINUTE} min ago"
        return Miss(Obstacle.SETTLING, "only just online again", ago)
    if host.only_for is not None and host.only_for != request.account_id and not request.is_proof:
        return Miss(Obstacle.OTHER, "dedicated to another account")
    if host.most_works == 0:
        return Miss(Obstacle.BUSY, "its resource is out of service, or cannot be read")
    if host.most_works is not None and host.works >= host.most_works:
        return Miss(
            Obstacle.BUSY, "at the limit of its resource (max_parallel_jobs)", f"{host.works} of {host.most_works}"
        )
    if not host.is_known:
        return Miss(Obstacle.SETTLING, "only just online, and has not told yet what it has")
    if host.is_own_of(request.account_id) or host.verify_state == "verified" or request.is_proof:
        return None
    if host.verify_state == "unverified" and not verification_exists:
        return None
    return Miss(Obstacle.UNVERIFIED, "until it is verified, for its owner only", f"now {host.verify_state}")


def way_of(request: Request, host: Candidate) -> Way | Miss:
    """The runtime and image for this request here, or why there is none."""
    if host.simulated:
        wrong = request.runtime not in (None, Runtime.SIMULATED)
        said = Miss(Obstacle.RUNTIME, "it is simulated and runs nothing real")
        return said if wrong else (Runtime.SIMULATED, request.image)
    if request.runtime is Runtime.SIMULATED:
        return Miss(Obstacle.RUNTIME, "a real host, without a simulated runtime")
    is_own = host.is_own_of(request.account_id) or request.is_proof
    no_process = host.about_processes or "it has no process runtime now"
    if request.image is None and is_own and request.runtime is not Runtime.DOCKER:
        if Runtime.PROCESS in host.runtimes:
            return Runtime.PROCESS, None
        if request.runtime is Runtime.PROCESS:
            return Miss(Obstacle.RUNTIME, "cannot run plain processes", no_process)
    if request.runtime is Runtime.PROCESS:
        return Miss(Obstacle.RUNTIME, "plain processes run only for the owner of a host: ask for a container")
    image = request.image or host.default_image
    if Runtime.DOCKER not in host.runtimes and not (image is None and is_own):
        has_process = is_own and Runtime.PROCESS in host.runtimes and request.runtime is None
        changes = {"image": None} if has_process else {}
        detail = host.about_containers or "its docker runtime is not available"
        return Miss(Obstacle.RUNTIME, "cannot run containers now", detail, changes=changes)
    if image is None:
        return Miss(Obstacle.IMAGE, "no default image; name an image", no_process if is_own else "")
    if request.gpus and not host.gives_containers_gpus:
        return Miss(Obstacle.RUNTIME, "cannot give GPUs to containers", "the NVIDIA Container Toolkit is missing")
    if not host.is_fenced and not is_own:
        return Miss(Obstacle.RUNTIME, "does not keep containers away from its own network: for its owner only")
    return Runtime.DOCKER, image


def _processors(request: Request, count: int, of_what: str) -> Miss | None:
    if request.cpus <= count:
        return None
    detail = f"{max(0, count)} {of_what}, you ask for {request.cpus}"
    changes = {"cpus": count} if count > 0 else {}
    return Miss(Obstacle.CPUS, "too few CPUs", detail, count, changes=changes)


def _memory(request: Request, size_bytes: int, of_what: str) -> Miss | None:
    asked = request.memory_bytes
    if asked is None or asked <= size_bytes:
        return None
    detail = f"{size_text(max(0, size_bytes), asked)} {of_what}, you ask for {size_text(asked, asked)}"
    changes = {"memory_bytes": _whole(size_bytes, asked)} if size_bytes > 0 else {}
    return Miss(Obstacle.MEMORY, "too little memory", detail, size_bytes, changes=changes)


def _slots(request: Request, host: Candidate, runtime: Runtime) -> tuple[SlotOffer, ...] | Miss:
    """The cheapest free slots that satisfy the request, as many as it asks for, or what is missing."""
    suited = _suited(request, host.slots, host.is_own_of(request.account_id), runtime)
    if isinstance(suited, Miss):
        return suited
    count, noun = _wanted(request)
    free = [slot for slot in suited if slot.taken is None]
    if len(free) < count:
        why = Counter(slot.taken for slot in suited if slot.taken is not None)
        taken = "; ".join(f"{number} {reason}" for reason, number in sorted(why.items()))
        if not free:
            return Miss(Obstacle.BUSY, f"no free {noun}", taken, kinds=tuple(sorted(why)))
        detail = f"{len(free)} of {len(suited)}, you ask for {count}: {taken}"
        return Miss(Obstacle.BUSY, f"too few free {noun}s", detail, len(free), changes={"gpus": len(free)})
    if count > 1 and any(slot.isolation is Isolation.MPS for slot in free):
        return Miss(Obstacle.ISOLATION, "a program can have one part by mps, not several", changes={"gpus": 1})
    free.sort(key=lambda slot: (slot.price_per_hour, slot.gpu_memory_bytes or 0, slot.slot_id))
    return tuple(free[:count])


def _wanted(request: Request) -> tuple[int, str]:
    """How many slots are asked for, and what one is called."""
    if request.gpus == 0:
        return 1, "CPU slot"
    return request.gpus, "GPU" if request.slice is None else "slice"


def _suited(
    request: Request, slots: Sequence[SlotOffer], is_own: bool, runtime: Runtime | None
) -> list[SlotOffer] | Miss:
    """The slots that satisfy the request, free or not, at least as many as it asks for; or what is missing."""
    wanted_kind = request.gpus > 0, request.slice is not None
    kind = [slot for slot in slots if (slot.is_gpu, bool(slot.profile)) == wanted_kind]
    count, noun = _wanted(request)
    if not kind:
        return Miss(Obstacle.NO_SLOT, f"no {noun}")
    if len(kind) < count:
        detail = f"{len(kind)} in all, you ask for {count} on one host"
        return Miss(Obstacle.GPUS, f"too few {noun}s", detail, len(kind), changes={"gpus": len(kind)})
    suited: list[SlotOffer] = []
    others: dict[tuple[Obstacle, str], list[SlotOffer]] = {}
    for slot in kind:
        said = forbidden(slot.isolation, is_own, runtime) if slot.is_gpu and runtime is not None else None
        obstacle = _unfit(request, slot) if said is None else Obstacle.ISOLATION
        if obstacle is None:
            suited.append(slot)
        else:
            others.setdefault((obstacle, said or ""), []).append(slot)
    if len(suited) >= count:
        return suited
    (obstacle, said), same = max(others.items(), key=lambda entry: len(entry[1]))
    found = Miss(obstacle, said) if said else _unsuited(request, obstacle, suited, same)
    if not suited:
        return found
    label = f"too few {noun}s of what you ask for"
    return replace(found, label=label, detail=f"{len(suited)} of {len(kind)}, you ask for {count}", amount=len(suited))


def _unfit(request: Request, slot: SlotOffer) -> Obstacle | None:
    """Return what keeps this slot from satisfying the request, free or not; None when nothing does."""
    if request.slice is not None and slot.profile != request.slice:
        return Obstacle.SLICE
    if request.tier is not None and not is_tier(slot.tier, request.tier):
        return Obstacle.TIER
    if request.gpus and request.gpu_model is not None and not is_model(slot.gpu_name, request.gpu_model):
        return Obstacle.GPU_MODEL
    if request.gpus and request.gpu_memory_bytes is not None:
        return Obstacle.GPU_MEMORY if (slot.gpu_memory_bytes or 0) < request.gpu_memory_bytes else None
    return None


def _unsuited(request: Request, obstacle: Obstacle, suited: Sequence[SlotOffer], others: Sequence[SlotOffer]) -> Miss:
    """What these slots are instead of what is asked for, and the change with which the cheapest or largest would do."""
    if obstacle is Obstacle.GPU_MEMORY:
        asked, count = request.gpu_memory_bytes or 0, request.gpus
        sizes = sorted((slot.gpu_memory_bytes or 0 for slot in (*suited, *others)), reverse=True)
        size = sizes[min(count, len(sizes)) - 1]
        if size == 0:
            return Miss(obstacle, "GPU memory is not known")
        detail = f"{size_text(size, asked)}, you ask for {size_text(asked, asked)}"
        return Miss(obstacle, "too little GPU memory", detail, size, changes={"gpu_memory_bytes": _whole(size, asked)})
    label = {Obstacle.SLICE: "other slices", Obstacle.TIER: f"not in tier {request.tier}"}.get(obstacle, OTHER_MODEL)
    free = [slot for slot in others if slot.taken is None] or others
    value = _kind(obstacle, min(free, key=lambda slot: (slot.price_per_hour, slot.slot_id)))
    kinds = tuple(sorted({_kind(obstacle, slot) or "not graded yet" for slot in others}))
    return Miss(obstacle, label, ", ".join(kinds), kinds=kinds, changes={_FIELDS[obstacle]: value} if value else {})


def _kind(obstacle: Obstacle, slot: SlotOffer) -> str:
    """The slot's own value of what this obstacle is about."""
    return {Obstacle.SLICE: slot.profile, Obstacle.TIER: slot.tier}.get(obstacle, slot.gpu_name)


def is_tier(tier: str, wanted: str) -> bool:
    """Return whether `tier` is the wanted one; a class alone ("h100") takes every grade, and of slices every
    profile."""
    tier_class = tier.partition("/")[0]
    return wanted in (tier, tier_class, tier_class.partition(":")[0])


@lru_cache(4_096)
def is_model(name: str, wanted: str) -> bool:
    """Return whether a card's name means the wanted model, in any case: by all its words ("A100 80GB" of "NVIDIA
    A100-SXM4-80GB") or written together ("rtx4090" of "NVIDIA GeForce RTX 4090"). "l4" is not "L40S".
    """
    words, asked = _words(name), _words(wanted)
    if all(word in words for word in asked):
        return True
    together = "".join(asked)
    starts = range(len(words))
    return any("".join(words[first : last + 1]) == together for first in starts for last in range(first, len(words)))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
