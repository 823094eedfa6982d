"""Keeps the fleet in the placement engine as the planner sees each host, and nominates hosts for a request. Pure.

    put ─▶ parts of a host ─▶ deltas ─▶ the engine ─▶ nominate: a few hosts, best first ─▶ the planner, on their rows

A part is what is alike of a host: its processors, with all cards beside them, or its whole cards of one tier, model and
memory. The engine has each part as a host of its own. The planner has the last word: a nomination that is wrong costs
time and nothing else, and where there is none the planner looks at every host. There is none for what the engine does
not know: parts of cards, several hosts, and each field of a request that is not in `KNOWN`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Final

from windrow_master.placement.engine.model import (
    AMOUNT_MAX,
    MILLI,
    Asked,
    GiveBack,
    Health,
    Host,
    Join,
    Kind,
    Leave,
    Needs,
    Refusal,
    Scored,
    Take,
    Weights,
)
from windrow_master.placement.engine.model import Request as Wanted
from windrow_master.placement.engine.plan import Engine
from windrow_master.placement.engine.state import stable_hash
from windrow_master.placement.fit import is_model, is_tier, way_of
from windrow_master.placement.model import Candidate, Miss, Placement, Request, Runtime, SlotOffer
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Isolation
from windrow_proto.units import MIB, Bytes

NOMINATED_MAX: Final = 4
"""Hosts whose rows the planner reads for one request: the best, and others to choose from."""
CARDS_MAX: Final = 16
OWN_FEW: Final = 256
"""An account that has more hosts finds them like all others, not by a list of its own."""
SHAPES_MAX: Final = 1024
WEIGHTS: Final = Weights(price=4, reliability=2, home=1)
"""Beside the fit of shapes the planner's own terms: cost, trust (as reliability) and home."""
TRUSTED: Final = 1000
UNPROVEN: Final = 500
"""Permille of trust, as in the planner's score."""
ROWS: Final = "rows"
"""The lease of all that a host's rows say is taken."""
FIRM: Final = frozenset({"verified", "unverified"})
"""States of verification in which a host takes work of strangers, as long as there is no verifier."""
KNOWN: Final = frozenset(
    (
        *("gpus", "gpu_model", "gpu_memory_bytes", "cpus", "memory_bytes", "image", "tier", "runtime"),
        *("max_price_per_hour", "host_id", "account_id", "tie_seed", "wants_simulated", "is_proof"),
        *("cpus_priced", "ends_at_ns"),
    )
)
"""Fields of a request that the engine knows, or that do not matter to it: it passes over hosts with a closing time."""
_NOTHING: Final = Request(account_id=AccountId(""), tie_seed="")
_UNKNOWN: Final = tuple(one.name for one in fields(Request) if one.name not in KNOWN)


@dataclass(frozen=True, slots=True)
class Nominated:
    """hosts: those that seem to fit, best first. passed_over: how many others there are, by what is said of them.
    hold: what is kept in memory for this request meanwhile; None: nothing."""

    hosts: tuple[HostId, ...]
    passed_over: Mapping[str, int]
    hold: GiveBack | None = None

    def recorded(self, found: Placement) -> Placement:
        """The placement on one of these hosts, with a record that says how it came to them."""
        unkept = {**found.decision.unkept, **self.passed_over}
        return replace(found, decision=replace(found.decision, unkept=unkept))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a host as the engine has it: the host, whether it takes work, and what its rows say is taken."""

    host: Host
    is_usable: bool
    taken: Take


class LiveFleet:
    """All hosts in an engine. Used from one thread."""

    def __init__(self) -> None:
        self._last_hold = 0
        self.clear()

    def clear(self) -> None:
        """Know no host any more, and nothing that is held."""
        self.engine = Engine(WEIGHTS, CARDS_MAX)
        self._hosts: dict[HostId, tuple[bool, tuple[Part, ...]]] = {}
        self._host_of: dict[str, HostId] = {}
        self._count: Counter[bool] = Counter()
        self._holds: dict[str, str] = {}
        self._needs: dict[tuple[object, ...], Needs | None] = {}
        self._groups = 0

    def hosts(self) -> Set[HostId]:
        """All that are known."""
        return self._hosts.keys()

    def put(self, one: Candidate) -> bool:
        """Have a host as it is now; False if it was known so."""
        known, now = self._hosts.get(one.host_id), (one.simulated, parts(one))
        if known == now:
            return False
        before, after = () if known is None else known[1], now[1]
        if known is None:
            self._count[one.simulated] += 1
        self._leave(before[len(after) :])
        for old, new in zip_longest(before[: len(after)], after):
            self._host_of[new.host.host_id] = one.host_id
            self._change(old, new)
        self._hosts[one.host_id] = now
        return True

    def drop(self, host_id: HostId) -> bool:
        """A host is gone; False if it was not known."""
        known = self._hosts.pop(host_id, None)
        if known is None:
            return False
        self._count[known[0]] -= 1
        self._leave(known[1])
        return True

    def nominate(
        self,
        request: Request,
        but: Collection[HostId] = (),
        *,
        holds: bool = False,
        learns: bool = False,
        most: int = NOMINATED_MAX,
    ) -> Nominated | None:
        """Hosts on which a request seems to fit now, none of them of `but`; None: look at every host.

        holds: keep the place on the best one until `let_go`, so that others are sent elsewhere meanwhile. learns: the
        mix of requests learns of it, once for each request. most: hosts to name.
        """
        if not is_known(request):
            return None
        count = self._count[request.wants_simulated]
        if request.host_id is not None:
            is_there = request.host_id in self._hosts and request.host_id not in but
            others = {"not the host that you name": count - 1}
            return Nominated((request.host_id,), others) if is_there else None
        found: list[tuple[Scored, Wanted]] = []
        compared = 0
        for wanted in self._wanted(request):
            if learns and not wanted.only_own:
                self.engine.apply(Asked(wanted))
            answer = self.engine.plan(wanted)
            if not isinstance(answer, Refusal):
                compared = max(compared, answer.looked_at)  # the asker's own are among all
                scored = answer.scored(4 * most + 2 * len(but))
                found += [(one, wanted) for one in scored if self._is_for(request, one[0], wanted)]
        found.sort(key=lambda entry: -entry[0][1])
        best: dict[HostId, tuple[str, Wanted]] = {}
        for (part_id, _, _), wanted in found:
            if self._host_of[part_id] not in but:
                best.setdefault(self._host_of[part_id], (part_id, wanted))
        if not best:
            return None
        hosts = tuple(islice(best, most))
        said = f"passed over: the index compared {compared} of {count} hosts and named {len(hosts)}"
        hold = self._hold(*best[hosts[0]]) if holds else None
        return Nominated(hosts, {said: count - len(hosts)} if count > len(hosts) else {}, hold)

    def let_go(self, nominated: Nominated) -> None:
        """Keep nothing for this request any more: it is in the rows, or nowhere."""
        if nominated.hold is not None and self._holds.pop(nominated.hold.lease, None) is not None:
            self.engine.apply(nominated.hold)

    def differs(self, candidates: Iterable[Candidate]) -> list[HostId]:
        """The hosts that another one, made of these alone, has otherwise; those left out on which something is held."""
        other = LiveFleet()
        for one in candidates:
            other.put(one)
        held = {self._host_of.get(part_id) for part_id in self._holds.values()}
        ours, theirs = self._seen(), other._seen()
        return sorted(one for one in (ours.keys() | theirs.keys()) - held if ours.get(one) != theirs.get(one))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _change(self, old: Part | None, new: Part) -> None:
        apply, part_id = self.engine.apply, new.host.host_id
        if old is not None and old.taken != new.taken:
            apply(GiveBack(part_id, ROWS))
        apply(Join(new.host))
        apply(Health(part_id, new.is_usable))
        apply(new.taken)

    def _leave(self, gone: Iterable[Part]) -> None:
        for part in gone:
            self.engine.apply(Leave(part.host.host_id))
            del self._host_of[part.host.host_id]

    def _hold(self, part_id: str, wanted: Wanted) -> GiveBack:
        self._last_hold += 1
        lease, left = f"held-{self._last_hold}", self.engine.fleet.left[self.engine.fleet.number[part_id]]
        cards = tuple(islice((card for card, free in enumerate(left) if free == MILLI), wanted.gpus))
        take = Take(host_id=part_id, lease=lease, cpu=wanted.cpu, memory=wanted.memory, cards=cards, milli=MILLI)
        self.engine.apply(take)
        self._holds[lease] = part_id
        return GiveBack(part_id, lease)

    def _is_for(self, request: Request, part_id: str, wanted: Wanted) -> bool:
        """False for a host that is kept for the asker and not its own, where the request needs one that is: the engine
        has both as the asker's."""
        host = self.engine.fleet.hosts[self.engine.fleet.number[part_id]]
        assert host is not None
        return host.owner == request.account_id or (host.kind.verified and not wanted.only_own)

    def _wanted(self, request: Request) -> list[Wanted]:
        """The request as the engine looks at it: for the asker's own hosts, where other ways lead, and for any."""
        own = self.engine.fleet.by_account.get(request.account_id, {})
        found = []
        for is_own in (True, False) if own and not request.wants_simulated else (False,):
            needs = self._needs_of(request, is_own)
            if needs is not None:
                wanted = Wanted(
                    cpu=request.cpus * MILLI,
                    memory=-(-(request.memory_bytes or 0) // MIB),
                    gpus=request.gpus,
                    needs=needs,
                    account=request.account_id if is_own or len(own) <= OWN_FEW else "",
                    only_own=is_own,
                    price_max=request.max_price_per_hour,
                    seed=stable_hash(request.tie_seed) >> 1,
                )
                found.append(wanted)
        return found

    def _needs_of(self, request: Request, is_own: bool) -> Needs | None:
        """The hard filters over classes; None: no class passes. Worked out once for a shape: a model's name is read
        when hosts of it join or a request of it comes first."""
        groups = self.engine.fleet.classes.groups
        if len(groups) != self._groups or len(self._needs) > SHAPES_MAX:
            self._needs.clear()
            self._groups = len(groups)
        way = _way_name(request.gpus > 0, request.runtime, request.image is not None, is_own)
        key = way, request.tier, request.gpu_model, request.gpu_memory_bytes, request.wants_simulated
        if key not in self._needs:
            suited = [(tier, model) for tier, model in groups if _suits(request, tier, model)]
            self._needs[key] = None if not suited else Needs(
                tiers=frozenset(tier for tier, _ in suited) if request.tier is not None else frozenset(),
                models=frozenset(model for _, model in suited),
                runtime=way,
                verified=not is_own,
                simulated=request.wants_simulated,
            )  # fmt: skip
        return self._needs[key]

    def _seen(self) -> dict[HostId, list[object]]:
        """All that decisions read of each host, and whether the index has it where it belongs."""
        fleet, found = self.engine.fleet, dict[HostId, list[object]]()
        for part_id, at in fleet.number.items():
            of, whole, is_put = fleet.of_class[at], fleet.whole[at], True
            if fleet.pooled[at]:
                members = fleet.wholes.lists[of.number * fleet.wholes.levels + whole]
                is_put = members[fleet.wholes.position[at]] == at
            amounts = fleet.cpu[at], fleet.memory[at], fleet.works_left[at], tuple(fleet.left[at])
            row = fleet.rows[at].tolist()
            row[7:9] = []  # numbers of group and class
            about = (part_id, fleet.hosts[at], fleet.usable[at], fleet.pooled[at], is_put, amounts, row)
            found.setdefault(self._host_of[part_id], []).append(about)
        return {host_id: sorted(about, key=str) for host_id, about in found.items()}


def is_known(request: Request) -> bool:
    """Return whether the engine can be asked for such a request."""
    if any(getattr(request, name) != getattr(_NOTHING, name) for name in _UNKNOWN):
        return False
    amounts = request.cpus, request.gpus, request.memory_bytes or 0, request.max_price_per_hour or 0
    is_sane = request.gpus <= CARDS_MAX and 0 <= min(amounts) <= max(amounts) < AMOUNT_MAX and request.cpus > 0
    return request.host_id is not None or (is_sane and not request.is_proof)


def parts(one: Candidate) -> tuple[Part, ...]:
    """The parts of a host: processors, and whole cards by kind. What it gives in slices is in none."""
    alike: dict[tuple[object, ...], list[SlotOffer]] = {}
    cards = [slot for slot in one.slots if slot.is_gpu and slot.isolation is Isolation.WHOLE and not slot.profile]
    for slot in (*(slot for slot in one.slots if not slot.is_gpu), *cards):
        key = slot.is_gpu, slot.tier, slot.gpu_name, slot.gpu_memory_bytes, slot.price_per_hour
        alike.setdefault(key, []).append(slot)
    is_full = one.most_works is not None and one.works >= one.most_works
    is_open = one.admin_state == "active" and one.link_state == "online" and one.is_settled and one.is_known
    is_usable = is_open and not is_full and one.closes_at_ns is None
    return tuple(
        _part(one, f"{one.host_id} {number}", slots, slots if slots[0].is_gpu else cards, is_usable)
        for number, slots in enumerate(alike.values())
    )


def _part(one: Candidate, part_id: str, slots: list[SlotOffer], cards: list[SlotOffer], is_usable: bool) -> Part:
    """One part. slots: what it gives; cards: beside these processors, or the same."""
    first, is_gpu, cards = slots[0], slots[0].is_gpu, cards[:CARDS_MAX]
    free = sum(slot.taken is None for slot in slots)
    taken = tuple(number for number, slot in enumerate(cards) if slot.taken is not None)
    memory = _sane(one.memory_bytes // MIB)
    host = Host(
        host_id=part_id,
        kind=Kind(
            tier=first.tier,
            model=f"{first.gpu_name}|{first.gpu_memory_bytes or 0}" if is_gpu else "",
            runtimes=ways(
                is_gpu=is_gpu,
                simulated=one.simulated,
                runtimes=one.runtimes,
                has_image=one.default_image is not None,
                is_fenced=one.is_fenced,
                gives_gpus=one.gives_containers_gpus,
            ),
            verified=one.verify_state in FIRM,
            simulated=one.simulated,
        ),
        cpu=_sane(one.cpus * MILLI),
        memory=memory,
        cards=len(cards),
        works_max=None if is_gpu else free + 1,  # the rows are a lease of their own
        owner=one.only_for or one.owner_account,
        kept_for=one.only_for or "",
        card_price=_sane(first.price_per_hour) if is_gpu else 0,
        cpu_price=0 if is_gpu else _sane(first.price_per_hour),
        reliability=TRUSTED if one.verify_state == "verified" else UNPROVEN,
    )
    rows = Take(
        host_id=part_id,
        lease=ROWS,
        cpu=_sane((one.cpus - one.cpus_free) * MILLI),
        memory=_sane(memory - one.memory_free_bytes // MIB),
        cards=taken,
        milli=MILLI if taken else 0,
        is_bound=True,
    )
    return Part(host, is_usable and free > 0, rows)


def _sane(amount: int) -> int:
    """Within what the engine counts with, whatever a host says of itself."""
    return max(-AMOUNT_MAX, min(amount, AMOUNT_MAX))


def _suits(request: Request, tier: str, model: str) -> bool:
    """Return whether slots of this tier and model satisfy the request, as the planner says it."""
    name, _, memory = model.rpartition("|")
    return (
        bool(request.gpus) == bool(model)
        and (request.tier is None or is_tier(tier, request.tier))
        and (not request.gpus or request.gpu_model is None or is_model(name, request.gpu_model))
        and (not request.gpus or int(memory) >= (request.gpu_memory_bytes or 0))
    )


def _way_name(is_gpu: bool, runtime: Runtime | None, has_image: bool, is_own: bool) -> str:
    what, image, who = "gpu" if is_gpu else "cpu", "image" if has_image else "", "own" if is_own else ""
    return f"{what}/{runtime or ''}/{image}/{who}"


_PLAIN: Final = Candidate(
    host_id=HostId(""),
    host_name="",
    owner_account=AccountId("owner"),
    simulated=False,
    admin_state="",
    verify_state="",
    link_state="",
    is_settled=True,
    runtimes=(),
    cpus_free=0,
    memory_free_bytes=Bytes(0),
    slots=(),
)


@lru_cache(1_024)
def ways(
    *, is_gpu: bool, simulated: bool, runtimes: tuple[str, ...], has_image: bool, is_fenced: bool, gives_gpus: bool
) -> frozenset[str]:
    """The names of the ways in which such a host runs work, out of all that can be asked for: `way_of` says which."""
    host = replace(
        _PLAIN,
        simulated=simulated,
        runtimes=runtimes,
        default_image="default" if has_image else None,
        is_fenced=is_fenced,
        gives_containers_gpus=gives_gpus,
    )
    found = set()
    for runtime in (None, *Runtime):
        for image in (None, "image"):
            for is_own in (False, True):
                account = host.owner_account if is_own else AccountId("stranger")
                asked = Request(account_id=account, tie_seed="", runtime=runtime, image=image, gpus=int(is_gpu))
                if not isinstance(way_of(asked, host), Miss):
                    found.add(_way_name(is_gpu, runtime, image is not None, is_own))
    return frozenset(found)
