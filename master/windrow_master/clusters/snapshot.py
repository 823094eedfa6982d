"""Reads hosts, slots, commitments and prices of one unit of work into a snapshot, and asks placement.

A request that finds no capacity is told where there is some once the Master's own test rentals have ended
(yielding.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Final

from windrow_master.clusters import end_limits
from windrow_master.clusters.launch import network_of
from windrow_master.clusters.messages import HostLimit, HostLimits
from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.repository import ClusterRepository, Committed, WorkloadRepository
from windrow_master.clusters.request import placement_request
from windrow_master.clusters.whereabouts import Whereabouts
from windrow_master.clusters.yielding import retried, vacated
from windrow_master.fleet.availability import UNVERIFIED, Availability, slot_shown
from windrow_master.fleet.model import CPU_KIND, NO_BYTES, AdminState, Host, LinkState, Slot, VerifyState
from windrow_master.fleet.service import FleetService, is_back_soon
from windrow_master.fleet.slices import with_one_cpu_slot
from windrow_master.fleet.states import SlotState
from windrow_master.market.classes import Known, MachineClass, Wanted, classes, with_end
from windrow_master.market.model import PROOF_ACCOUNT, Listing, Offer
from windrow_master.market.service import MarketService, PriceBook
from windrow_master.placement.live import Nominated
from windrow_master.placement.model import Candidate, Placement, Refusal, Request, SlotOffer, Snapshot, Verdict
from windrow_master.placement.service import judge, plan
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.model import GpuFacts
from windrow_proto.units import Bytes, Microcents

_NOTHING = Committed(0, Bytes(0))
_UNLIMITED: Final = HostLimit()
_Known = dict[tuple[HostId, int], tuple[tuple[Any, ...], Candidate]]
"""By host and processors asked for: what a candidate was made of, and the candidate."""
_OFFERED: Final = frozenset({Availability.IDLE, Availability.RENTED})
KNOWN_MAX: Final = 16_384
MBIT: Final = 10**6
_UNGRADED: Final = "not graded yet"
_BROKEN: Final = "unavailable: "
ENDS_MAX: Final = 500
"""Clusters looked at for when a full machine class is free again; the end that is found holds without the others."""


class Missed(Exception):
    """A request fits on none of the hosts that were nominated for it."""


class Placer:
    """Takes snapshots; the decision itself is placement's."""

    def __init__(self, fleet: FleetService, market: MarketService) -> None:
        self._fleet, self._market, self._whereabouts = fleet, market, Whereabouts(fleet)
        self._known: _Known = {}
        self._turns: dict[AccountId, int] = {}

    def place(
        self,
        uow: UnitOfWork,
        request: ClusterRequest,
        account_id: AccountId,
        is_proof: bool = False,
        but: frozenset[HostId] = frozenset(),
        is_private: bool = False,
        among: Nominated | None = None,
    ) -> Placement | Refusal:
        """Return the places where this request would run now, or why nowhere. but: hosts that are left out.
        is_private: its members meet in a network of their own, so that it does not matter whether their hosts see
        each other. among: hosts that alone are looked at; raises Missed where it fits on none of them."""
        snapshot = _open(self.snapshot(uow, request.cpus, None if among is None else among.hosts), but, is_private)
        wanted, snapshot = self._wanted(uow, request, account_id, snapshot, is_proof)
        found = plan(wanted, snapshot)
        if among is not None:
            if isinstance(found, Refusal):
                raise Missed
            return among.recorded(found)
        if isinstance(found, Placement) or is_proof:
            return found
        empty = _open(Snapshot(self._vacated(uow, request.cpus)), but, is_private)
        by_id = {one.host_id: one for one in self._whereabouts.known(uow, wanted, empty)[1].candidates}
        if not by_id:
            return found
        then = replace(snapshot, candidates=tuple(by_id.get(one.host_id, one) for one in snapshot.candidates))
        return retried(wanted, found, then, by_id)

    def judge(self, uow: UnitOfWork, request: ClusterRequest, account_id: AccountId, host_id: HostId) -> Verdict:
        """The finding about one host for this request, as it is now. Raises NotFound."""
        wanted, snapshot = self._wanted(uow, request, account_id, self.snapshot(uow, request.cpus, [host_id]), False)
        if not snapshot.candidates:
            raise NotFound("There is no such host. List hosts: windrow host ls", subject=host_id[:64])
        return judge(wanted, snapshot.candidates[0], snapshot.verification_exists)

    def _wanted(
        self, uow: UnitOfWork, request: ClusterRequest, account_id: AccountId, snapshot: Snapshot, is_proof: bool
    ) -> tuple[Request, Snapshot]:
        wanted = placement_request(request, account_id, self.tie_seed(account_id), is_proof)
        if request.max_duration_ns is not None and any(one.closes_at_ns is not None for one in snapshot.candidates):
            wanted = replace(wanted, ends_at_ns=uow.now_wall_ns + request.max_duration_ns)
        return self._whereabouts.known(uow, wanted, snapshot)

    def _vacated(self, uow: UnitOfWork, cpus: int) -> tuple[Candidate, ...]:
        """The hosts on which proofs hold anything, as they will be once these have ended."""
        proofs, book = uow[WorkloadRepository].held_of(PROOF_ACCOUNT), self._market.book(uow)
        limits = uow.ask(HostLimits()) if proofs else {}
        ids = frozenset(one.cluster_id for one in proofs)
        found = []
        for host, present in self._fleet.hosts.with_slots(uow, {one.host_id for one in proofs}):
            slots, held = vacated(present, uow[WorkloadRepository].held_on(host.host_id), ids, uow.now_wall_ns)
            taken = Committed(sum(one.cpus for one in held), Bytes(sum(one.memory_bytes for one in held)), len(held))
            limit = limits.get(host.host_id, _UNLIMITED)
            found.append(_candidate(host, slots, taken, book, cpus, host.is_settled_once_heard(uow.now_wall_ns), limit))
        return tuple(found)

    def tie_seed(self, account_id: AccountId, ahead: int = 0) -> str:
        """The same for a preview and the creation after it, another one for the next request: equal hosts take
        turns. ahead: of one that comes after so many others."""
        return f"{account_id}|{self._turns.get(account_id, 0) + ahead}"

    def turn(self, account_id: AccountId) -> None:
        """A request of this account has its place."""
        self._turns[account_id] = self._turns.get(account_id, 0) + 1

    def snapshot(self, uow: UnitOfWork, cpus: int, hosts: Sequence[HostId] | None = None) -> Snapshot:
        """The fleet at this moment; `candidates` says of what."""
        return Snapshot(self.candidates(uow, cpus, hosts))

    def candidates(self, uow: UnitOfWork, cpus: int, hosts: Sequence[HostId] | None = None) -> tuple[Candidate, ...]:
        """All hosts, or these, at this moment, without retired ones, with prices for a request of so many processors.
        With `hosts` nothing is read that grows with the fleet."""
        rows = self._fleet.hosts.with_slots(uow, hosts)
        book = self._market.book(uow, None if hosts is None else {host.owner_account for host, _ in rows})
        committed, limits = uow[WorkloadRepository].committed(hosts), uow.ask(HostLimits(hosts))
        if len(self._known) > KNOWN_MAX:
            self._known = {}
        known, found = self._known, list[Candidate]()
        for host, present in rows:
            if host.admin_state is AdminState.RETIRED:
                continue
            # Rows that did not change give the values they gave before (store/prepared.py), and so the same candidate.
            is_settled = host.is_settled_once_heard(uow.now_wall_ns)
            slots, taken = tuple(present), committed.get(host.host_id, _NOTHING)
            limit = limits.get(host.host_id, _UNLIMITED)
            made_of = host, slots, taken, is_settled, limit, book.counting_for(host.owner_account)
            before = known.get((host.host_id, cpus))
            if before is None or not _is_same(before[0], made_of):
                offers = None if before is None else _same_offers(before, made_of)
                made = _candidate(host, slots, taken, book, cpus, is_settled, limit, offers)
                before = known[host.host_id, cpus] = made_of, made
            found.append(before[1])
        return tuple(found)

    def read_ahead(self, uow: UnitOfWork, host_ids: Sequence[HostId]) -> None:
        """Read at once the rows of which `candidates` will be asked for one host after the other."""
        self._fleet.hosts.with_slots(uow, host_ids)
        uow[WorkloadRepository].committed(host_ids)
        uow.ask(HostLimits(host_ids))

    def offers(self, uow: UnitOfWork) -> tuple[Offer, ...]:
        """Return the offers of what can be rented or is rented, by tier."""
        return self._market.offers(uow, self._listings(uow))

    def classes(self, uow: UnitOfWork, wanted: Wanted) -> tuple[MachineClass, ...]:
        """Return the same by machine class, narrowed to what is wanted."""
        known = Known(self._fleet.reliability.figures(uow), self._fleet.hosts.speeds(uow))
        found = classes(self._listings(uow), self._market.book(uow), known, wanted)
        ends = self._ends_at_ns(uow, list(dict.fromkeys(one for row in found for one in row.holders))[:ENDS_MAX])
        return tuple(with_end(row, ends) for row in found)

    def _listings(self, uow: UnitOfWork) -> Iterator[Listing]:
        """What can be rented or is rented; what is offline, paused or faulty, and hosts that take no new work, are in
        none. The processors of a host are one thing, into however many slots they are carved."""
        committed, now_ns = uow[WorkloadRepository].committed(), uow.now_wall_ns
        for host, slots in self._fleet.hosts.with_slots(uow):
            if host.admin_state is AdminState.ACTIVE:
                taken = committed.get(host.host_id, _NOTHING)
                shown = [slot for slot in slots if slot_shown(host, slot).state in _OFFERED]
                holders = tuple(slot.holder for slot in shown if slot.kind == CPU_KIND and slot.holder is not None)
                for slot in with_one_cpu_slot(shown):
                    yield _listing(host, slot, now_ns, taken, holders)

    def _ends_at_ns(self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, int]:
        """When these clusters end at the latest, where their duration or budget says so."""
        found: dict[ClusterId, int] = {}
        for cluster in uow[ClusterRepository].readable(cluster_ids):
            if end_limits.are_any(cluster.request):
                spent = self._market.spent(uow, cluster.rental_id)
                ends_ns = end_limits.ends_at_ns(cluster, spent, uow.now_wall_ns)
                found |= {} if ends_ns is None else {cluster.cluster_id: ends_ns}
        return found


def is_part_of_fleet(slot: SlotOffer) -> bool:
    """Return whether a slot can be had, or has its holder: it is neither faulty nor without a price."""
    return slot.taken is None or not slot.taken.startswith((_UNGRADED, _BROKEN))


def _open(snapshot: Snapshot, but: frozenset[HostId], is_private: bool) -> Snapshot:
    """Without hosts that are left out, and with all in one network where members meet in one of their own."""
    if but:
        others = tuple(one for one in snapshot.candidates if one.host_id not in but)
        snapshot = replace(snapshot, candidates=others)
    if is_private:
        others = tuple(one if one.simulated else replace(one, network="") for one in snapshot.candidates)
        snapshot = replace(snapshot, candidates=others)
    return snapshot


def _is_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether two candidates are made of the same values; of host and slots it is asked only whether they are
    the very same, since comparing them costs as much as a candidate."""
    (host, slots, *rest), (other_host, other_slots, *other_rest) = one, other
    is_alike = host is other_host and len(slots) == len(other_slots) and rest == other_rest
    return is_alike and all(map(is_, slots, other_slots))


def _same_offers(before: tuple[tuple[Any, ...], Candidate], made_of: tuple[Any, ...]) -> dict[int, SlotOffer]:
    """The offers of a host that are as they were, by the identity of their slots: one of its slots was taken, say."""
    (host, slots, *_, asks), made = before
    if host is not made_of[0] or asks != made_of[-1]:
        return {}
    return {id(slot): offer for slot, offer in zip(slots, made.slots, strict=True)}


def _candidate(
    host: Host,
    slots: Sequence[Slot],
    committed: Committed,
    book: PriceBook,
    cpus: int,
    is_settled_once_heard: bool,
    limit: HostLimit,
    offers: Mapping[int, SlotOffer] | None = None,
) -> Candidate:
    """offers: those of its slots that are known, by identity."""
    known = offers or {}
    inventory, line = host.inventory, host.bandwidth
    return Candidate(
        host_id=host.host_id,
        host_name=host.name,
        owner_account=host.owner_account,
        simulated=host.simulated,
        admin_state=host.admin_state.value,
        verify_state=host.verify_state.value,
        link_state=host.link_state.value,
        is_settled=is_settled_once_heard and host.link_state is LinkState.ONLINE,
        is_back_soon=is_settled_once_heard and host.link_state is LinkState.UNKNOWN,
        is_known=inventory is not None,
        runtimes=() if inventory is None else inventory.runtimes,
        cpus_free=0 if inventory is None else inventory.cpu_count - committed.cpus,
        memory_free_bytes=Bytes(0 if inventory is None else inventory.memory_bytes - committed.memory_bytes),
        cpus=0 if inventory is None else inventory.cpu_count,
        memory_bytes=Bytes(0 if inventory is None else inventory.memory_bytes),
        slots=tuple(known.get(id(slot)) or _slot_offer(host, slot, book, cpus) for slot in slots),
        default_image=host.default_image,
        is_fenced=host.is_fenced,
        gives_containers_gpus=host.gives_containers_gpus,
        about_processes=host.about_processes,
        about_containers=host.about_containers,
        network=network_of(host),
        settling_ns=host.settling_ns,
        most_works=limit.most,
        works=0 if limit.most is None else committed.works,
        only_for=limit.only_for,
        kept_for=limit.kept_for,
        closes_at_ns=limit.closes_at_ns,
        region=host.region,
        country=host.country or "",
        labels=host.labels,
        bandwidth_mbps=None if line is None else min(line.up_bps, line.down_bps) // MBIT,
    )


def _slot_offer(host: Host, slot: Slot, book: PriceBook, cpus: int) -> SlotOffer:
    price = book.price(host.owner_account, slot.tier, slot.share_milli)
    gpu = host.gpu(slot.card) if slot.card is not None else None
    is_soon = bool(slot.tier) and is_back_soon(host, slot)
    return SlotOffer(
        slot_id=slot.slot_id,
        tier=slot.tier,
        price_per_hour=price if slot.gpu_uuid is not None else Microcents(price * cpus),
        taken=_taken(slot),
        gpu_uuid=slot.gpu_uuid,
        gpu_name="" if gpu is None else gpu.name,
        gpu_memory_bytes=_memory(gpu, slot),
        isolation=slot.isolation,
        profile=slot.profile,
        is_back_soon=is_soon,
        cpus_back=slot.cpus if is_soon else 0,
        memory_back_bytes=slot.memory_bytes if is_soon else NO_BYTES,
    )


def _memory(gpu: GpuFacts | None, slot: Slot) -> Bytes | None:
    """Of the card, or of the slice of it that the slot is."""
    if gpu is None:
        return None
    part = next((one.memory_bytes for one in gpu.slices if one.uuid == slot.gpu_uuid), gpu.memory_bytes)
    return None if part is None else Bytes(part)


def _taken(slot: Slot) -> str | None:
    if slot.is_offered:
        # A slot without a tier has no price yet: its host has joined and not said what it is.
        return None if slot.tier else _UNGRADED
    if slot.state is SlotState.FAULTED:
        return f"{_BROKEN}{slot.unavailable or UNVERIFIED}"
    return f"{_BROKEN}{slot.unavailable}" if slot.unavailable else f"in use, {slot.state.value}"


def _listing(host: Host, slot: Slot, now_ns: int, taken: Committed, cpu_holders: tuple[ClusterId, ...]) -> Listing:
    """taken: of the host; cpu_holders: of its processor slots. What has no processor left beside it is not free."""
    gpu = host.gpu(slot.card) if slot.card is not None else None
    inventory, is_processors = host.inventory, slot.gpu_uuid is None
    cpus_free = 0 if inventory is None else max(0, inventory.cpu_count - taken.cpus)
    is_free = slot.is_offered and host.is_settled(now_ns) and cpus_free > 0
    memory = _memory(gpu, slot)
    if gpu is None and inventory is not None:
        memory = Bytes(inventory.memory_bytes - (taken.memory_bytes if is_free else 0))
        is_free = is_free and memory > 0
    return Listing(
        host_id=host.host_id,
        owner=host.owner_account,
        tier=slot.tier,
        is_gpu=slot.gpu_uuid is not None,
        is_free=is_free,
        simulated=host.simulated,
        runtimes=() if inventory is None else inventory.runtimes,
        memory_bytes=memory,
        isolation=slot.isolation,
        share_milli=slot.share_milli,
        note=f"{host.name}: {host.about_processes}" if host.about_processes else "",
        container_users=host.container_users,
        cpus=inventory.cpu_count if is_processors and inventory is not None else 0,
        cpus_free=cpus_free if is_processors and is_free else 0,
        name="" if gpu is None else gpu.name,
        region=host.region,
        up_bps=None if host.bandwidth is None else host.bandwidth.up_bps,
        down_bps=None if host.bandwidth is None else host.bandwidth.down_bps,
        is_verified=host.verify_state is VerifyState.VERIFIED,
        driver="" if inventory is None else inventory.driver_version,
        card=slot.card,
        holders=cpu_holders if is_processors else () if slot.holder is None else (slot.holder,),
    )
