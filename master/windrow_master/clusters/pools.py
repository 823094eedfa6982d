"""Sorts hosts into pools: those of one pool take the same requests, as far as only their kind decides. Pure.

A pool has a name that people can read, with a number where several are called the same: `h100/A in eu-1`,
`h100/A in eu-1 #2`. Amounts, and what is measured, are of no kind: the queue counts the former, the latter it ignores.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.request import placement_request
from windrow_master.placement.fit import fit
from windrow_master.placement.model import Candidate, Miss, Request, Runtime, SlotOffer
from windrow_proto.ids import AccountId, GpuUuid, HostId, SlotId
from windrow_proto.units import Bytes, Microcents

PLENTY: Final = 1 << 50
POOLS_MAX: Final = 16_384
"""With more kinds than that the fleet is read anew: kinds that no host is of any more are forgotten then."""
SHAPES_MAX: Final = 4_096
NOBODY: Final = AccountId("")
OPEN: Final = frozenset({"verified", "unverified"})
_LATER: Final[dict[str, Any]] = {"is_back_soon": False, "cpus_back": 0, "memory_back_bytes": Bytes(0)}
_Pools = frozenset[str]


@dataclass(slots=True)
class _Shape:
    """tested: how many of the kinds; suited: those of them that take such a request."""

    tested: int = 0
    suited: _Pools = frozenset()


@dataclass(slots=True)
class Pools:
    """The kinds of all hosts that were seen, by the names of their pools."""

    _names: dict[Candidate, str] = field(default_factory=dict)
    _kinds: list[Candidate] = field(default_factory=list)
    _alike: dict[str, int] = field(default_factory=dict)
    _shapes: dict[Hashable, _Shape] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._kinds)

    def of(self, one: Candidate) -> str:
        """The pool of a host."""
        kind = _kind(one)
        if kind not in self._names:
            label = _label(kind)
            number = self._alike[label] = self._alike.get(label, 0) + 1
            self._names[kind] = label if number == 1 else f"{label} #{number}"
            self._kinds.append(kind)
        return self._names[kind]

    def suiting(self, request: ClusterRequest, account_id: AccountId) -> _Pools:
        """The pools whose hosts can take it; where there is none, one that is called as what it asks for. Worked out
        once for a shape and kind of host, whatever its amounts: the queue counts those."""
        most, count = request.max_price_per_hour, max(1, request.gpus or request.cpus) * request.hosts
        asked = replace(
            request,
            gpus=min(1, request.gpus),
            cpus=min(1, request.cpus),
            memory_bytes=None,
            max_price_per_hour=None if most is None else Microcents(most // count),
            host_id=None,
            provider_id=None,
            min_bandwidth_mbps=None,
            min_reliability_percent=None,
        )
        wanted = replace(placement_request(asked, account_id, ""), hosts=1, cpus_priced=1)
        if len(self._shapes) > SHAPES_MAX:
            self._shapes.clear()
        shape = self._shapes.setdefault(wanted, _Shape())
        if shape.tested < len(self._kinds):
            new = self._kinds[shape.tested :]
            suited = (self._names[kind] for kind in new if _takes(kind, wanted))
            shape.tested, shape.suited = len(self._kinds), shape.suited | frozenset(suited)
        return shape.suited or frozenset({request.tier or request.gpu_model or request.region or "a suitable kind"})


def _takes(kind: Candidate, wanted: Request) -> bool:
    if wanted.runtime is Runtime.PROCESS:  # on one's own hosts alone; an open kind has no owner
        kind = replace(kind, owner_account=wanted.account_id if kind.owner_account == NOBODY else kind.owner_account)
    is_fit = not isinstance(fit(wanted, kind, verification_exists=False), Miss)
    return is_fit and kind.simulated == wanted.wants_simulated


def _kind(one: Candidate) -> Candidate:
    """All of a host that decides which requests it can take when it is open and empty. Its owner is a part of that
    where it is not for everybody."""
    is_open = one.simulated or (
        Runtime.DOCKER in one.runtimes
        and one.is_fenced
        and one.default_image is not None
        and one.verify_state in OPEN
        and one.only_for is None
    )
    slots = {replace(slot, slot_id=SlotId(""), taken=None, gpu_uuid=_card(slot), **_LATER) for slot in one.slots}
    return replace(
        one,
        host_id=HostId(""),
        host_name="",
        owner_account=NOBODY if is_open else one.owner_account,
        admin_state="active",
        link_state="online",
        is_settled=True,
        is_back_soon=False,
        is_known=True,
        settling_ns=0,
        cpus=PLENTY,
        cpus_free=PLENTY,
        memory_bytes=Bytes(PLENTY),
        memory_free_bytes=Bytes(PLENTY),
        slots=tuple(sorted(slots, key=_slot_key)),
        default_image=None if one.default_image is None else "default",
        about_processes="",
        about_containers="",
        network="",
        most_works=None,
        works=0,
        closes_at_ns=None,
        bandwidth_mbps=None,
        near_ms=0,
        reliability_percent=None,
    )


def _card(slot: SlotOffer) -> GpuUuid | None:
    return GpuUuid("") if slot.is_gpu else None


def _slot_key(slot: SlotOffer) -> tuple[object, ...]:
    return slot.is_gpu, slot.tier, slot.profile, slot.gpu_name, slot.gpu_memory_bytes or 0, slot.price_per_hour


def _label(kind: Candidate) -> str:
    cards = [slot for slot in kind.slots if slot.is_gpu]
    tiers = dict.fromkeys(f"{slot.tier} {slot.profile}".strip() or slot.gpu_name for slot in cards or kind.slots)
    return (" and ".join(tiers) or "no slot") + (f" in {kind.region}" if kind.region else "")
