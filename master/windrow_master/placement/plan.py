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

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from windrow_master.placement.fit import fit, meets_in
from windrow_master.placement.model import (
    Candidate,
    Chosen,
    Decision,
    Miss,
    Obstacle,
    Placement,
    Refusal,
    Request,
    SlotOffer,
    Snapshot,
    Verdict,
    Weights,
)
from windrow_master.placement.refusal import Placed, explain, ways
from windrow_proto.units import MICROCENTS_PER_UNIT, Bytes, Microcents, money_text

KEPT_LOSERS: Final = 16
"""How many hosts beside the chosen one a record names: enough to explain, small enough to store."""
ENGINE: Final = 2
"""The version of these rules: the terms, and what they are."""
FITS: Final = "it fits, with a lower score"
DEFAULT_WEIGHTS: Final = Weights()
Fitting = tuple[Candidate, Verdict, Chosen]
"""A host that fits, with what was found about it and how it would take the request."""
_GRADE: Final = {"A": 1000, "B": 800, "C": 600}


def plan(request: Request, snapshot: Snapshot, weights: Weights = DEFAULT_WEIGHTS) -> Placement | Refusal:
    """Choose the best host, or say why none does and what would. Pure; O(hosts x slots).

    Simulated hosts are no part of the answer to a request for real ones, and the other way round.
    """
    simulated = () if request.wants_simulated else tuple(one for one in snapshot.candidates if one.simulated)
    snapshot = replace(snapshot, candidates=tuple(one for one in snapshot.candidates if _is_asked(request, one)))
    found = _search(request, snapshot, weights)
    fitting = found.members + [entry for entry in found.fitting if entry not in found.members]
    decision = _record(request, weights, fitting, found.refused)
    if found.members:
        return Placement(tuple(chosen for _, _, chosen in found.members), decision)

    def place(other: Request) -> Placed | None:
        members = _search(other, snapshot, weights).members
        return (tuple(host.host_name for host, _, _ in members), _price(members)) if members else None

    told = explain(request, found.refused, simulated)
    return Refusal(
        told.detail,
        told.reasons,
        lambda: ways(request, found.refused, snapshot.verification_exists, place),
        decision,
        told.is_possible,
        _fits_soon(request, snapshot, weights),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """fitting: best first; members: as many of them as were asked for, or none; refused: the others and, without
    members, those that would do alone."""

    fitting: list[Fitting]
    members: list[Fitting]
    refused: list[tuple[Candidate, Miss]]


def _search(request: Request, snapshot: Snapshot, weights: Weights) -> _Found:
    """Try every host, and order what was found."""
    fitting: list[Fitting] = []
    refused: list[tuple[Candidate, Miss]] = []
    for candidate in snapshot.candidates:
        answer = fit(request, candidate, snapshot.verification_exists)
        if isinstance(answer, Miss):
            refused.append((candidate, answer))
        else:
            fitting.append((candidate, _verdict(request, candidate, answer, weights), answer))
    fitting.sort(key=lambda entry: (-_score(entry), _tie(request.tie_seed, entry[0].host_id)))
    refused.sort(key=lambda entry: _tie(request.tie_seed, entry[0].host_id))
    members = together(request, fitting)
    if not isinstance(members, Miss):
        return _Found(fitting, members, refused)
    # Each would do alone: what is missing is said of every one of them.
    return _Found([], [], [(one, members) for one, _, _ in fitting] + refused)


def _is_asked(request: Request, host: Candidate) -> bool:
    """True if the host is of the kind that is asked for, simulated or real, or is named."""
    return host.simulated is request.wants_simulated or host.host_id == request.host_id


def _fits_soon(request: Request, snapshot: Snapshot, weights: Weights) -> bool:
    """Return whether what does not fit now would with the slots and hosts that are back in a moment."""
    hosts = snapshot.candidates
    if not any(host.is_back_soon or any(slot.is_back_soon for slot in host.slots) for host in hosts):
        return False
    then = tuple(_heard(_cleaned(host)) for host in hosts)
    return bool(_search(request, replace(snapshot, candidates=then), weights).members)


def _heard(host: Candidate) -> Candidate:
    return replace(host, link_state="online", is_settled=True, is_back_soon=False) if host.is_back_soon else host


def _cleaned(host: Candidate) -> Candidate:
    cpus = host.cpus_free + sum(slot.cpus_back for slot in host.slots)
    memory = Bytes(host.memory_free_bytes + sum(slot.memory_back_bytes for slot in host.slots))
    return replace(host, slots=tuple(map(_back, host.slots)), cpus_free=cpus, memory_free_bytes=memory)


def _back(slot: SlotOffer) -> SlotOffer:
    return replace(slot, taken=None, is_back_soon=False) if slot.is_back_soon else slot


def together(request: Request, fitting: list[Fitting]) -> list[Fitting] | Miss:
    """As many of the fitting hosts, best first, as are asked for and see each other; else what is missing."""
    if request.hosts == 1:
        return fitting[:1]
    networks: dict[str, list[Fitting]] = {}
    for entry in fitting:
        network = meets_in(entry[0], entry[2].runtime)
        if network is not None:
            networks.setdefault(network, []).append(entry)
    whole = [entries for entries in networks.values() if len(entries) >= request.hosts]
    if not whole:
        most = max((len(entries) for entries in networks.values()), default=0)
        see = "" if most == len(fitting) else f", of which at most {most} see each other"
        said = f"only {len(fitting)} of the {request.hosts} hosts that you ask for fit{see}"
        return Miss(Obstacle.TOO_FEW_HOSTS, said, changes={"hosts": most} if most else {})
    best = max((entries[: request.hosts] for entries in whole), key=lambda found: sum(_score(one) for one in found))
    if _is_within(request, best):
        return best
    cheapest = [sorted(entries, key=lambda one: one[2].price_per_hour)[: request.hosts] for entries in whole]
    affordable = [sorted(found, key=lambda one: -_score(one)) for found in cheapest if _is_within(request, found)]
    if not affordable:
        least = min(_price(found) for found in cheapest)
        said = f"{request.hosts} hosts together cost at least {money_text(least)} per hour, more than you allow"
        return Miss(Obstacle.PRICE, said, changes={"max_price_per_hour": least})
    return max(affordable, key=lambda found: sum(_score(one) for one in found))


def _score(entry: Fitting) -> int:
    return entry[1].score or 0


def _is_within(request: Request, entries: list[Fitting]) -> bool:
    limit = request.max_price_per_hour
    return limit is None or _price(entries) <= limit


def _price(entries: list[Fitting]) -> Microcents:
    return Microcents(sum(chosen.price_per_hour for _, _, chosen in entries))


def judge(request: Request, host: Candidate, verification_exists: bool) -> Verdict:
    """The finding about one host alone, as it is now."""
    if not _is_asked(request, host):
        kinds = ("simulated", "real") if host.simulated else ("real", "simulated")
        return Verdict(host.host_id, host.host_name, reason="it is a {} host, and a {} one is asked for".format(*kinds))
    answer = fit(request, host, verification_exists)
    if isinstance(answer, Miss):
        return _refused(host, answer)
    return _verdict(request, host, answer, DEFAULT_WEIGHTS)


def reweighed(decision: Decision, weights: Weights) -> tuple[Verdict, ...]:
    """The hosts that the record names and that fitted, best first by these weights. Others cannot win."""
    scored = (replace(one, score=weigh(one.terms, weights)) for one in decision.verdicts if one.score is not None)
    return tuple(sorted(scored, key=lambda one: (-(one.score or 0), _tie(decision.request.tie_seed, one.host_id))))


def _verdict(request: Request, host: Candidate, chosen: Chosen, weights: Weights) -> Verdict:
    terms = _terms(request, host, chosen)
    return Verdict(host.host_id, host.host_name, weigh(terms, weights), terms)


def _refused(host: Candidate, miss: Miss) -> Verdict:
    return Verdict(host.host_id, host.host_name, reason=miss.text)


def _record(
    request: Request, weights: Weights, fitting: list[Fitting], refused: list[tuple[Candidate, Miss]]
) -> Decision:
    most = KEPT_LOSERS + request.hosts
    left = max(0, most - len(fitting))
    kept = [verdict for _, verdict, _ in fitting[:most]] + [_refused(*one) for one in refused[:left]]
    unkept = Counter(miss.label for _, miss in refused[left:])
    if len(fitting) > most:
        unkept[FITS] = len(fitting) - most
    return Decision(
        request,
        weights,
        tuple(kept),
        dict(unkept),
        fitting[0][2] if fitting else None,
        tuple(chosen for _, _, chosen in fitting[1 : request.hosts]),
        ENGINE,
    )


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
        "home": 1000 if host.is_own_of(request.account_id) else 0,
        "grade": _GRADE.get(chosen.tier.rpartition("/")[2], 600),
    }


def weigh(terms: Mapping[str, int], weights: Weights) -> int:
    """The score: each term by its weight."""
    return sum(value * getattr(weights, name) for name, value in terms.items())


def _tie(seed: str, host_id: str) -> bytes:
    """An order over hosts that no name can bend and that differs from request to request."""
    return sha256(f"{seed}|{host_id}".encode()).digest()
