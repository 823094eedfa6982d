"""Decides where a request runs: hard filters, then one weighted score, ties by a stable hash; the same inputs, the same
answer. Pure.

It reads nothing but its arguments and changes nothing. A request lands on as many hosts as it asks for, all of them or
none: the best ones of the network whose hosts see each other and where the sum of the scores is highest.

The score of a fitting host is the weighted sum of five terms, each from 0 to 1000:

    cost      1000 x C / (C + price), C = 1.00 an hour for each slot: half at C, falling with the price
    packing   GPU work: share of the host's free GPUs it takes, so that large gaps stay whole;
              CPU work: 1000 on a host without GPUs, 0 beside GPUs, whose processors GPU work needs
    trust     1000 Verified, 500 otherwise
    home      1000 on a host of the one who asks: no money leaves the account
    grade     1000 for tier grade A, 800 for B, 600 for C or none
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from windrow_master.fleet.model import link_words
from windrow_master.placement.isolation import forbidden
from windrow_master.placement.model import (
    Candidate,
    Chosen,
    Decision,
    Placement,
    Refusal,
    Request,
    Runtime,
    SlotOffer,
    Snapshot,
    Verdict,
    Weights,
)
from windrow_proto.model import Isolation
from windrow_proto.units import GIB, MICROCENTS_PER_UNIT, MINUTE, Microcents

KEPT_LOSERS: Final = 16
"""How many hosts beside the chosen one a record keeps whole: enough to explain, small enough to store."""
CONTAINED: Final = "of containers"
"""In the place of a network's name: that of containers is made for them, wherever their hosts are."""
DEFAULT_WEIGHTS: Final = Weights()
Fitting = tuple[Candidate, Verdict, Chosen]
"""A host that fits, with what was found about it and how it would take the request."""
_GRADE: Final = {"A": 1000, "B": 800, "C": 600}


def plan(request: Request, snapshot: Snapshot, weights: Weights = DEFAULT_WEIGHTS) -> Placement | Refusal:
    """Choose the best host, or say of each host why it is not one. Pure; O(hosts x slots)."""
    fitting: list[Fitting] = []
    refused: list[tuple[Candidate, Verdict]] = []
    for candidate in snapshot.candidates:
        answer = _try(request, candidate, snapshot.verification_exists)
        if isinstance(answer, str):
            refused.append((candidate, Verdict(candidate.host_id, candidate.host_name, reason=answer)))
        else:
            terms = _terms(request, candidate, answer)
            verdict = Verdict(candidate.host_id, candidate.host_name, _weigh(terms, weights), terms)
            fitting.append((candidate, verdict, answer))
    fitting.sort(key=lambda entry: (-(entry[1].score or 0), _tie(request.tie_seed, entry[0].host_id)))
    refused.sort(key=lambda entry: _tie(request.tie_seed, entry[0].host_id))
    members = together(request, fitting)
    if isinstance(members, str):
        # Each would do alone: what is missing is said of every one of them.
        refused = [(one, Verdict(one.host_id, one.host_name, reason=members)) for one, _, _ in fitting] + refused
        fitting = members = []
    taken = {candidate.host_id for candidate, _, _ in members}
    fitting = members + [entry for entry in fitting if entry[0].host_id not in taken]
    decision = _record(request, snapshot, weights, fitting, refused)
    if not members:
        return Refusal(tuple(verdict for _, verdict in refused), decision, _fits_soon(request, snapshot, weights))
    return Placement(tuple(chosen for _, _, chosen in members), decision)


def _fits_soon(request: Request, snapshot: Snapshot, weights: Weights) -> bool:
    """Return whether what does not fit now would with the slots and hosts that are back in a moment."""
    hosts = snapshot.candidates
    if not any(host.is_back_soon or any(slot.is_back_soon for slot in host.slots) for host in hosts):
        return False
    then = tuple(_heard(replace(host, slots=tuple(map(_back, host.slots)))) for host in hosts)
    return isinstance(plan(request, replace(snapshot, candidates=then), weights), Placement)


def _heard(host: Candidate) -> Candidate:
    return replace(host, link_state="online", is_settled=True, is_back_soon=False) if host.is_back_soon else host


def _back(slot: SlotOffer) -> SlotOffer:
    return replace(slot, taken=None, is_back_soon=False) if slot.is_back_soon else slot


def together(request: Request, fitting: list[Fitting]) -> list[Fitting] | str:
    """As many of the fitting hosts, best first, as are asked for and see each other; else what is missing."""
    if request.hosts == 1:
        return fitting[:1]
    networks: dict[str, list[Fitting]] = {}
    for entry in fitting:
        network = _meets_in(entry[0], entry[2].runtime)
        if network is not None:
            networks.setdefault(network, []).append(entry)
    whole = [entries for entries in networks.values() if len(entries) >= request.hosts]
    if not whole:
        most = max((len(entries) for entries in networks.values()), default=0)
        see = "" if most == len(fitting) else f", of which at most {most} see each other"
        return f"it fits, but only {len(fitting)} of the {request.hosts} hosts that you ask for do{see}"
    best = max((entries[: request.hosts] for entries in whole), key=lambda found: sum(_score(one) for one in found))
    if _is_within(request, best):
        return best
    cheapest = (sorted(entries, key=lambda one: one[2].price_per_hour)[: request.hosts] for entries in whole)
    affordable = [sorted(found, key=lambda one: -_score(one)) for found in cheapest if _is_within(request, found)]
    if not affordable:
        return f"it fits, but {request.hosts} hosts together cost more an hour than you allow"
    return max(affordable, key=lambda found: sum(_score(one) for one in found))


def _meets_in(host: Candidate, runtime: Runtime) -> str | None:
    """The network in which a member here meets others; None: in none. Containers meet in one that is made for them."""
    return CONTAINED if runtime is Runtime.DOCKER else host.network


def _score(entry: Fitting) -> int:
    return entry[1].score or 0


def _is_within(request: Request, entries: list[Fitting]) -> bool:
    limit = request.max_price_per_hour
    return limit is None or sum(chosen.price_per_hour for _, _, chosen in entries) <= limit


def replay(decision: Decision, weights: Weights | None = None) -> Decision:
    """Take the decision again from its own record; with other weights it answers "what if that counted more".

    With the recorded weights the result equals the record (test_plan.py). The hosts that the record did not keep
    cannot win a replay.
    """
    snapshot = Snapshot(decision.candidates, decision.verification_exists)
    again = plan(decision.request, snapshot, weights or decision.weights).decision
    return Decision(
        again.request,
        again.weights,
        again.verification_exists,
        again.candidates,
        again.verdicts,
        decision.unkept,
        again.chosen,
        again.others,
    )


def _record(
    request: Request,
    snapshot: Snapshot,
    weights: Weights,
    fitting: list[Fitting],
    refused: list[tuple[Candidate, Verdict]],
) -> Decision:
    entries = [(candidate, verdict) for candidate, verdict, _ in fitting] + refused
    most = KEPT_LOSERS + request.hosts
    kept, rest = entries[:most], entries[most:]
    unkept: dict[str, int] = {}
    for _, verdict in rest:
        said = verdict.reason or "it fits, with a lower score"
        unkept[said] = unkept.get(said, 0) + 1
    return Decision(
        request,
        weights,
        snapshot.verification_exists,
        tuple(candidate for candidate, _ in kept),
        tuple(verdict for _, verdict in kept),
        unkept,
        fitting[0][2] if fitting else None,
        tuple(chosen for _, _, chosen in fitting[1 : request.hosts]),
    )


def _try(request: Request, host: Candidate, verification_exists: bool) -> Chosen | str:
    """Return how this host would take the request, or why not."""
    standing = _standing(request, host, verification_exists)
    if standing is not None:
        return standing
    way = _way(request, host)
    if isinstance(way, str):
        return way
    runtime, image = way
    if request.hosts > 1 and _meets_in(host, runtime) is None:
        return "no other host sees it: it tells no address, or one that others cannot come to"
    if request.cpus > host.cpus_free:
        return f"it has {max(0, host.cpus_free)} processors free, you ask for {request.cpus}"
    if request.memory_bytes is not None and request.memory_bytes > host.memory_free_bytes:
        free = max(0, host.memory_free_bytes) / GIB
        return f"it has {free:.1f} GiB of memory free, you ask for {request.memory_bytes / GIB:.1f}"
    slots = _slots(request, host, runtime)
    if isinstance(slots, str):
        return slots
    price = Microcents(sum(slot.price_per_hour for slot in slots))
    if request.max_price_per_hour is not None and price > request.max_price_per_hour:
        return "it costs more an hour than you allow"
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


def _standing(request: Request, host: Candidate, verification_exists: bool) -> str | None:
    """Return why this host takes no work of this account now; None when it does."""
    if request.host_id is not None and request.host_id != host.host_id:
        return "it is not the host you named"
    if host.simulated and not request.wants_simulated and request.host_id is None:
        return "it is simulated: ask for simulated hosts (--runtime simulated), or name it"
    if request.wants_simulated and not host.simulated:
        return "it is a real host and you ask for simulated ones"
    if host.admin_state != "active":
        return f"its owner or an operator holds it: it is {host.admin_state}"
    if host.link_state != "online":
        return f"it is not connected: {link_words(host.link_state)}"
    if not host.is_settled:
        if host.settling_ns <= MINUTE:
            return "it came back less than 60 s ago"
        return f"its link failed several times: it came back less than {host.settling_ns // MINUTE} min ago"
    if host.owner_account == request.account_id or host.verify_state == "verified" or request.is_proof:
        return None
    if host.verify_state == "unverified" and not verification_exists:
        return None
    return f"it is {host.verify_state}: until it is verified it runs its owner's work only"


def _way(request: Request, host: Candidate) -> tuple[Runtime, str | None] | str:
    """The runtime and image for this request here, or why there is none."""
    if host.simulated:
        wrong = request.runtime not in (None, Runtime.SIMULATED)
        return "it is simulated and runs nothing real" if wrong else (Runtime.SIMULATED, request.image)
    if request.runtime is Runtime.SIMULATED:
        return "it is a real host and has no simulated runtime"
    is_own = host.owner_account == request.account_id or request.is_proof
    if request.image is None and is_own and request.runtime is not Runtime.DOCKER:
        if Runtime.PROCESS in host.runtimes:
            return Runtime.PROCESS, None
        if request.runtime is Runtime.PROCESS:
            return host.about_processes or "it has no process runtime now"
    if request.runtime is Runtime.PROCESS:
        return "plain processes run only for the owner of a host: name an image"
    image = request.image or host.default_image
    if image is None:
        own = (host.about_processes or "it has no process runtime now") if is_own else "it is not your host"
        return f"you name no image, {own}, and it has no default image: add --image"
    if Runtime.DOCKER not in host.runtimes:
        return "it cannot run containers now: its docker runtime is not available"
    if request.gpus and not host.gives_containers_gpus:
        return "its containers get no GPUs: the NVIDIA Container Toolkit is missing there"
    if not host.is_fenced and not is_own:
        return "it does not keep containers away from its own network: until it does, they run its owner's work only"
    return Runtime.DOCKER, image


def _slots(request: Request, host: Candidate, runtime: Runtime) -> tuple[SlotOffer, ...] | str:
    """The cheapest free slots that satisfy the request, as many as it asks for, or what is missing."""
    is_sliced = request.slice is not None
    kind = [slot for slot in host.slots if (slot.is_gpu, bool(slot.profile)) == (request.gpus > 0, is_sliced)]
    count, noun = (request.gpus, "slice" if is_sliced else "GPU") if request.gpus else (1, "processor slot")
    if len(kind) < count:
        if not kind:
            return f"it has no {noun}"
        return f"it has {len(kind)} {noun}s and one host must hold all {count}"
    why: dict[str, int] = {}
    free: list[SlotOffer] = []
    for slot in kind:
        reason = forbidden(slot.isolation, host.owner_account == request.account_id, runtime) if slot.is_gpu else None
        reason = reason or _unfit(request, slot)
        if reason is None:
            free.append(slot)
        else:
            why[reason] = why.get(reason, 0) + 1
    if len(free) < count:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(why.items()))
        return f"{len(free)} of its {len(kind)} {noun}s fit, you ask for {count}: {reasons}"
    if count > 1 and any(slot.isolation is Isolation.MPS for slot in free):
        return "a program can have one part by mps, not several"
    free.sort(key=lambda slot: (slot.price_per_hour, slot.gpu_memory_bytes or 0, slot.slot_id))
    return tuple(free[:count])


def _unfit(request: Request, slot: SlotOffer) -> str | None:
    """Return the reason why this slot does not fit the request; None when it fits."""
    if request.slice is not None and slot.profile != request.slice:
        return f"of another profile ({slot.profile})"
    if request.tier is not None and not _is_tier(slot.tier, request.tier):
        return f"in tier {slot.tier}"
    if request.gpus and request.gpu_model is not None and not _is_model(slot.gpu_name, request.gpu_model):
        return f"of another model ({slot.gpu_name})"
    if request.gpus and request.gpu_memory_bytes is not None:
        if slot.gpu_memory_bytes is None:
            return "with unknown memory"
        if slot.gpu_memory_bytes < request.gpu_memory_bytes:
            return f"with only {slot.gpu_memory_bytes / GIB:.0f} GiB"
    return slot.taken


def _is_tier(tier: str, wanted: str) -> bool:
    """Return whether `tier` is the wanted one; a class alone ("h100") takes every grade, and of slices every
    profile."""
    tier_class = tier.partition("/")[0]
    return wanted in (tier, tier_class, tier_class.partition(":")[0])


def _is_model(name: str, wanted: str) -> bool:
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


def _terms(request: Request, host: Candidate, chosen: Chosen) -> dict[str, int]:
    """The five terms of the module's text, whole numbers rounded down."""
    reference = MICROCENTS_PER_UNIT * len(chosen.slot_ids)
    gpus = [slot for slot in host.slots if slot.is_gpu]
    free = sum(1 for slot in gpus if slot.taken is None)
    packing = 1000 * request.gpus // free if request.gpus and free else 0 if gpus else 1000
    return {
        "cost": 1000 * reference // (reference + chosen.price_per_hour),
        "packing": packing,
        "trust": 1000 if host.verify_state == "verified" else 500,
        "home": 1000 if host.owner_account == request.account_id else 0,
        "grade": _GRADE.get(chosen.tier.rpartition("/")[2], 600),
    }


def _weigh(terms: dict[str, int], weights: Weights) -> int:
    return (
        terms["cost"] * weights.cost
        + terms["packing"] * weights.packing
        + terms["trust"] * weights.trust
        + terms["home"] * weights.home
        + terms["grade"] * weights.grade
    )


def _tie(seed: str, host_id: str) -> bytes:
    """An order over hosts that no name can bend and that differs from request to request."""
    return sha256(f"{seed}|{host_id}".encode()).digest()
