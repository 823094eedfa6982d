"""Grants, moves and releases slots inside a unit of work; the only code that changes a slot's holder.

Every change is one UPDATE that names what it expects to find; if the row is another by then, nothing is written and the
caller gets a Conflict. Tokens grow with every grant and never go back: none is below the term it is given in, so that
after a restore, which begins a term above all that were, a host has seen none that is higher.

The host's row is locked before its slots are granted: what they hold of its processors and memory is added up and
written in one transaction, and the next processor slot is carved in it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from windrow_master.fleet.claims.register import may_move
from windrow_master.fleet.conditions import is_faulted, unavailable_reason
from windrow_master.fleet.model import CPU_KIND, NO_BYTES, Host, LinkState, Slot, SlotState
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_master.fleet.slices import Part, next_cpu_slot, parts, room
from windrow_master.fleet.states import Answer, SlotEvent, step_slot
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode, split
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ids import ClusterId, HostId, SlotId
from windrow_proto.model import Isolation, SlotGrant
from windrow_proto.units import MIB, Bytes

SLOTS_PER_GRANT_MAX = 1_024
"""No gang is larger today; a larger list is a mistake."""
AFTER_LEASE = "after a lease: "
_TAKEN = "Somebody else took the slot in the meantime."
UNREPORTED = "the host no longer reports this GPU"


class SlotLeases:
    """The slots. `touched` is called on the loop after each commit that changed a slot of a host."""

    def __init__(self, touched: Callable[[HostId], None]) -> None:
        self._touched = touched

    def hold(
        self, uow: UnitOfWork, slot_ids: Sequence[SlotId], cluster_id: ClusterId, expires_ns: int, actor: str
    ) -> tuple[SlotGrant, ...]:
        """Reserve free slots until a wall time; all of them, or Conflict and none."""
        slots = self._load(uow, slot_ids)
        held = tuple(self._reserve(uow, slot, cluster_id, expires_ns, actor, "held").as_grant() for slot in slots)
        self._carve_for(uow, slots)
        return held

    def lock(self, uow: UnitOfWork, host_ids: Iterable[HostId]) -> None:
        """Let nobody else grant anything of these hosts until this transaction ends."""
        uow[HostRepository].lock(host_ids)

    def grant(
        self,
        uow: UnitOfWork,
        slot_ids: Sequence[SlotId],
        cluster_id: ClusterId,
        actor: str,
        reason: str,
        cpus: int = 0,
        memory_bytes: Bytes = NO_BYTES,
    ) -> tuple[SlotGrant, ...]:
        """Give slots to a cluster to start on: free ones, or ones it has on hold; all of them, or Conflict and none.
        cpus, memory_bytes: of their host, that it has with them."""
        grants, slots = [], self._load(uow, slot_ids)
        if cpus or memory_bytes:
            _check_room(uow, slots[0].host_id, cpus, memory_bytes)
        for number, slot in enumerate(slots):
            is_own_hold = slot.state is SlotState.RESERVED and slot.holder == cluster_id
            reserved = slot if is_own_hold else self._reserved(uow, slot, cluster_id, None)
            taken: dict[str, object] = {} if number else {"cpus": cpus, "memory_bytes": memory_bytes}
            started = _moved(uow, reserved, SlotEvent.START, hold_expires_ns=None, **taken)
            if started is None:
                raise Conflict("The slot cannot be started on from its present state.", subject=slot.slot_id)
            if self._swap(uow, slot, started) is None:
                raise Conflict(_TAKEN, subject=slot.slot_id)
            if not is_own_hold:
                _audit(uow, slot, reserved, SlotEvent.RESERVE, actor, reason)
            _audit(uow, reserved, started, SlotEvent.START, actor, reason)
            grants.append(started.as_grant())
        self._carve_for(uow, slots)
        return tuple(grants)

    def running(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """The workload on these slots runs; returns how many slots moved. Grants with an older token are ignored."""
        return self._each(uow, grants, SlotEvent.RAN, actor, reason)

    def stopping(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """The workload on these slots is being ended."""
        return self._each(uow, grants, SlotEvent.STOP, actor, reason)

    def scrubbing(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """Nothing runs on these slots any more, and their host clears away what was left; nobody else gets them yet."""
        return self._each(uow, grants, SlotEvent.STOPPED, actor, reason)

    def released(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """The host has ended and cleaned up: whatever state the slots are in, they are free again (or stay faulted)."""
        moved = 0
        for grant in grants:
            slot = uow[SlotRepository].get(grant.slot_id)
            if slot is None or slot.token != grant.token or slot.holder is None:
                continue
            if slot.state is SlotState.RESERVED:
                freed = self._move(uow, slot, SlotEvent.RELEASE, actor, reason, holder=None, hold_expires_ns=None)
            elif slot.state is SlotState.FAULTED:
                freed = self._swap(uow, slot, replace(slot, holder=None, changed_at_ns=uow.now_wall_ns))
            else:
                stopped = self._move(uow, slot, SlotEvent.STOPPED, actor, reason) or slot
                freed = self._move(uow, stopped, SlotEvent.SCRUBBED, actor, reason, holder=None)
            moved += freed is not None
        return moved

    def faulted(self, uow: UnitOfWork, grants: Sequence[SlotGrant], faults: Mapping[SlotId, str], actor: str) -> int:
        """Slots that a lease did not leave as it found them, and why: out of order until they are found sound."""
        moved = 0
        for grant in grants:
            slot = uow[SlotRepository].get(grant.slot_id)
            why = faults.get(grant.slot_id)
            if why and slot is not None and slot.token == grant.token and slot.holder is not None:
                words = f"{AFTER_LEASE}{why}"
                moved += self._move(uow, slot, SlotEvent.FAULT, actor, words, unavailable=words) is not None
                uow.event(
                    "slot.not_clean", (slot.host_id, slot.slot_id), f"{slot.slot_id}: out of order {words}", actor=actor
                )
        return moved

    def expire_hold(self, uow: UnitOfWork, slot: Slot) -> None:
        """Free a slot whose reservation is over."""
        if slot.state is SlotState.RESERVED:
            self._move(uow, slot, SlotEvent.RELEASE, "master", "the hold ran out", holder=None, hold_expires_ns=None)

    def reverify(self, uow: UnitOfWork, slot: Slot, actor: str, reason: str) -> bool:
        """A faulted slot was found sound: it is free, if nothing holds it."""
        if slot.holder is not None:
            return False
        host, others = uow[HostRepository].get(slot.host_id), uow[SlotRepository].of_host(slot.host_id)
        found = parts(host, _shares(others)) if host is not None else ()
        part = next((one for one in found if one.slot_id == slot.slot_id), None)
        why = UNREPORTED if host is None or part is None else _closed(host, part)
        return self._move(uow, slot, SlotEvent.REVERIFIED, actor, reason, unavailable=why) is not None

    def sync(self, uow: UnitOfWork, host: Host) -> tuple[SlotId, ...]:
        """Make the slots of a host what its inventory and conditions say; returns held ones that are faulted now."""
        have = {slot.slot_id: slot for slot in uow[SlotRepository].of_host(host.host_id)}
        lost: list[SlotId] = []
        for part in parts(host, _shares(have.values())):
            slot = have.pop(part.slot_id, None) or self._adopt(uow, host, part)
            if slot is not None:
                slot = self._shape(uow, slot, part)
                fault = is_faulted(part.card, host.conditions, part.gpu_uuid)
                lost += self._offer(uow, host, slot, _closed(host, part), fault)
        for slot in have.values():
            lost += self._offer(uow, host, slot, UNREPORTED, False)
        self._carve(uow, host)
        return tuple(lost)

    def _carve_for(self, uow: UnitOfWork, slots: Sequence[Slot]) -> None:
        """After these were taken: one more processor slot for each of their hosts that has no free one left."""
        for host_id in sorted({one.host_id for one in slots if one.kind == CPU_KIND}):
            host = uow[HostRepository].get(host_id)
            if host is not None and host.inventory is not None:
                self._carve(uow, host)

    def _carve(self, uow: UnitOfWork, host: Host) -> None:
        slots = uow[SlotRepository].of_host(host.host_id)
        slot_id = next_cpu_slot(host, slots)
        if slot_id is not None:
            like = next((one for one in slots if one.kind == CPU_KIND), None)
            tier = (like.tier, like.tier_reasons) if like is not None else ("", ())
            part = Part(slot_id, CPU_KIND, Isolation.UNSPECIFIED)
            self._offer(uow, host, self._add(uow, host, part, *tier), _closed(host, part), False)

    def _adopt(self, uow: UnitOfWork, host: Host, part: Part) -> Slot | None:
        """A new slot, or one whose card moved here from a host that has it no more; None while another host has it."""
        slot = uow[SlotRepository].get(part.slot_id)
        if slot is None:
            return self._add(uow, host, part)
        if not may_move(uow, slot):
            return None
        moved = replace(slot, host_id=host.host_id, changed_at_ns=uow.now_wall_ns)
        uow.audit(f"host/{host.host_id}", "slot.move", part.slot_id, "the card is in another host now")
        self._touch(uow, slot.host_id)
        return self._swap(uow, slot, moved)

    def _add(self, uow: UnitOfWork, host: Host, part: Part, tier: str = "", tier_reasons: tuple[str, ...] = ()) -> Slot:
        new = Slot(part.slot_id, host.host_id, part.kind, None, changed_at_ns=uow.now_wall_ns)
        slot = replace(_shaped(new, part), tier=tier, tier_reasons=tier_reasons)
        uow[SlotRepository].add(slot)
        why = "carved" if tier else "inventory"
        uow.audit(f"host/{host.host_id}", "slot.add", part.slot_id, why, {"kind": part.kind})
        self._touch(uow, host.host_id)
        return slot

    def _shape(self, uow: UnitOfWork, slot: Slot, part: Part) -> Slot:
        """The slot with what its host says now that it is; what is held keeps what it was granted as."""
        after = _shaped(slot, part)
        if after == slot or slot.holder is not None:
            return slot
        return self._swap(uow, slot, after) or slot

    def _offer(self, uow: UnitOfWork, host: Host, slot: Slot, unavailable: str | None, fault: bool) -> list[SlotId]:
        lost: list[SlotId] = []
        actor = f"host/{host.host_id}"
        if fault:
            faulted = self._move(uow, slot, SlotEvent.FAULT, actor, unavailable or "fault")
            if faulted is not None and faulted.holder is not None:
                lost.append(slot.slot_id)
            slot = faulted or slot
        if unavailable is None and slot.state is SlotState.FAULTED and (slot.unavailable or "").startswith(AFTER_LEASE):
            unavailable = slot.unavailable  # no condition of the host says it again, and it is still so
        if slot.unavailable != unavailable:
            self._swap(uow, slot, replace(slot, unavailable=unavailable, changed_at_ns=uow.now_wall_ns))
            uow.audit(actor, "slot.offer", slot.slot_id, unavailable or "nothing stands against it any more")
        return lost

    def set_tier(self, uow: UnitOfWork, slot: Slot, tier: str, reasons: tuple[str, ...]) -> None:
        """Write a slot's tier, if it is another one."""
        if (slot.tier, slot.tier_reasons) != (tier, reasons):
            self._swap(uow, slot, replace(slot, tier=tier, tier_reasons=reasons))

    # --- one step ----------------------------------------------------------------------------------------------------

    def _load(self, uow: UnitOfWork, slot_ids: Sequence[SlotId]) -> list[Slot]:
        if not 0 < len(slot_ids) <= SLOTS_PER_GRANT_MAX or len(set(slot_ids)) != len(slot_ids):
            raise Conflict(f"Between 1 and {SLOTS_PER_GRANT_MAX} different slots can be granted at once.")
        found = []
        for slot_id in sorted(slot_ids):
            slot = uow[SlotRepository].get(slot_id)
            if slot is None:
                raise NotFound("There is no such slot.", subject=slot_id)
            found.append(slot)
        self.lock(uow, {slot.host_id for slot in found})
        return found

    def _reserve(
        self, uow: UnitOfWork, slot: Slot, cluster_id: ClusterId, expires_ns: int | None, actor: str, reason: str
    ) -> Slot:
        reserved = self._reserved(uow, slot, cluster_id, expires_ns)
        if self._swap(uow, slot, reserved) is None:
            raise Conflict(_TAKEN, subject=slot.slot_id)
        _audit(uow, slot, reserved, SlotEvent.RESERVE, actor, reason)
        return reserved

    def _reserved(self, uow: UnitOfWork, slot: Slot, cluster_id: ClusterId, expires_ns: int | None) -> Slot:
        """A free slot as it is once this cluster has it; not written yet."""
        if not slot.is_offered:
            why = slot.unavailable or f"it is {slot.state}"
            raise Conflict(f"The slot is not free: {why}.", subject=slot.slot_id)
        token = max(slot.token + 1, uow.epoch)
        found = _moved(uow, slot, SlotEvent.RESERVE, holder=cluster_id, token=token, hold_expires_ns=expires_ns)
        assert found is not None, "it is free"
        return found

    def _each(self, uow: UnitOfWork, grants: Sequence[SlotGrant], event: SlotEvent, actor: str, reason: str) -> int:
        moved = 0
        for grant in grants:
            slot = uow[SlotRepository].get(grant.slot_id)
            if slot is not None and slot.token == grant.token and slot.holder is not None:
                moved += self._move(uow, slot, event, actor, reason) is not None
        return moved

    def _move(
        self, uow: UnitOfWork, slot: Slot, event: SlotEvent, actor: str, reason: str, **changes: object
    ) -> Slot | None:
        """One transition with its audit row; None when the state does not allow it or the row has changed."""
        after = _moved(uow, slot, event, **changes)
        if after is None or self._swap(uow, slot, after) is None:
            return None
        _audit(uow, slot, after, event, actor, reason)
        return after

    def _swap(self, uow: UnitOfWork, before: Slot, after: Slot) -> Slot | None:
        if after.holder is None and (after.cpus or after.memory_bytes):
            after = replace(after, cpus=0, memory_bytes=NO_BYTES)
        if not uow[SlotRepository].swap(before, after):
            return None
        self._touch(uow, after.host_id)
        return after

    def _touch(self, uow: UnitOfWork, host_id: HostId) -> None:
        uow.after_commit(lambda: self._touched(host_id))


def _moved(uow: UnitOfWork, slot: Slot, event: SlotEvent, **changes: object) -> Slot | None:
    """The slot after one transition; None when its state does not allow it."""
    step = step_slot(slot.state, event)
    if step.answer is not Answer.MOVES:
        return None
    return replace(slot, state=step.state, changed_at_ns=uow.now_wall_ns, **changes)  # type: ignore[arg-type] # checked by replace


def _audit(uow: UnitOfWork, before: Slot, after: Slot, event: SlotEvent, actor: str, reason: str) -> None:
    fields = {"from": str(before.state), "to": str(after.state), "token": str(after.token)}
    uow.audit(actor, f"slot.{event}", after.slot_id, reason, {**fields, "holder": after.holder or before.holder or ""})


def _shares(slots: Iterable[Slot]) -> int:
    """How many processor slots are among these: their numbers have no gaps, since none ever goes away."""
    return sum(one.kind == CPU_KIND for one in slots)


def _check_room(uow: UnitOfWork, host_id: HostId, cpus: int, memory_bytes: Bytes) -> None:
    """Raises Conflict where the host has not so much left."""
    host = uow[HostRepository].get(host_id)
    if host is None or host.inventory is None:
        return
    left = room(host, uow[SlotRepository].of_host(host_id))
    if cpus > left.cpus:
        said = f"{max(0, left.cpus)} of {host.inventory.cpu_count} processors free, and {cpus} are asked for"
        raise Conflict(f"The host has {said}.", subject=host_id)
    if memory_bytes > left.memory_bytes:
        said = f"{max(0, left.memory_bytes) // MIB} MiB of memory free, and {memory_bytes // MIB} are asked for"
        raise Conflict(f"The host has {said}.", subject=host_id)


def _shaped(slot: Slot, part: Part) -> Slot:
    return replace(
        slot,
        kind=part.kind,
        gpu_uuid=part.gpu_uuid,
        isolation=part.isolation,
        card=part.card,
        profile=part.profile,
        share_milli=part.share_milli,
    )


def is_back_soon(host: Host, slot: Slot) -> bool:
    """Return whether nothing stands against a slot but what ends by itself: its host cleans up after work that has
    ended, or challenges the card of a free one."""
    if slot.state is SlotState.SCRUBBING:
        return slot.unavailable is None and host.link_state in (LinkState.ONLINE, LinkState.UNKNOWN)
    others = [one for one in host.conditions if split(one.code)[0] != ConditionCode.CHALLENGE_RUNNING]
    if slot.state is not SlotState.FREE or slot.unavailable is None or len(others) == len(host.conditions):
        return False
    now, then = (unavailable_reason(slot.card, found, slot.gpu_uuid) for found in (host.conditions, others))
    return now == slot.unavailable and then is None


def _closed(host: Host, part: Part) -> str | None:
    """Return why this is not offered, by its host's conditions or by itself; None when nothing stands against it."""
    return unavailable_reason(part.card, host.conditions, part.gpu_uuid) or part.closed
