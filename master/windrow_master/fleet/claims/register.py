"""Records which host claims which card, inside a unit of work, and reports claims that cannot be true."""

from dataclasses import replace

from windrow_master.fleet.claims.consistency import comparable_serial
from windrow_master.fleet.claims.uniqueness import counts, shared
from windrow_master.fleet.model import Claim, Host, Slot
from windrow_master.fleet.repository import ClaimRepository, HostRepository, SlotRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import HostId, SlotId
from windrow_proto.model import Inventory


def write_claims(uow: UnitOfWork, host_id: HostId, inventory: Inventory) -> frozenset[HostId]:
    """Write down which cards a host claims now; returns the others that claim one that it claims, or claimed."""
    before = {claim.uuid: claim for claim in uow[ClaimRepository].of_host(host_id)}
    after = {gpu.uuid: Claim(host_id, gpu.uuid, comparable_serial(gpu), uow.now_wall_ns) for gpu in inventory.gpus}
    for uuid, claim in before.items():
        if uuid in after:
            after[uuid] = replace(after[uuid], since_ns=claim.since_ns)
        if after.get(uuid) != claim:
            uow[ClaimRepository].drop(claim)
    for uuid, claim in after.items():
        if before.get(uuid) != claim:
            uow[ClaimRepository].add(claim)
    claims = {*before.values(), *after.values()}
    return frozenset(
        rival.host_id for claim in claims for rival in uow[ClaimRepository].of_card(claim.uuid, claim.serial)
    ) - {host_id}


def found_in_fleet(uow: UnitOfWork, host: Host) -> dict[str, str]:
    """Return the findings of other hosts' claims against this one's: the words by the code of the condition."""
    found: dict[str, str] = {}
    for claim in uow[ClaimRepository].of_host(host.host_id) if counts(host, uow.now_wall_ns) else ():
        rivals = [one for one in uow[ClaimRepository].of_card(claim.uuid, claim.serial) if one.host_id != host.host_id]
        hosts = [(uow[HostRepository].get(rival.host_id), rival) for rival in rivals]
        slot = uow[SlotRepository].get(SlotId(claim.uuid))
        seller = None if slot is None else slot.host_id
        finding = shared(host, claim, [(other, rival) for other, rival in hosts if other], uow.now_wall_ns, seller)
        if finding is not None:
            found[finding.condition] = finding.words
        elif slot is not None and slot.host_id != host.host_id and not may_move(uow, slot):
            elsewhere = ConditionCode.GPU_LISTED_ELSEWHERE
            found[f"{elsewhere}:{claim.uuid}"] = elsewhere.words
    return found


def may_move(uow: UnitOfWork, slot: Slot) -> bool:
    """Return whether the card of this slot may be another host's now: nobody holds it, and its own host is without
    it."""
    owner = uow[HostRepository].get(slot.host_id)
    claims = any(claim.uuid == slot.card for claim in uow[ClaimRepository].of_host(slot.host_id))
    return slot.holder is None and (owner is None or not claims or not counts(owner, uow.now_wall_ns))
