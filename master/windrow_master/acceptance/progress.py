"""Tells the owner of a host how far the host has come from the download to the listing. Pure.

    downloaded ─▶ certified ─▶ tested ─▶ verified ─▶ listed

Tested and verified happen beside each other, and neither holds back the listing of a host that nobody has faulted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windrow_master.acceptance import schedule
from windrow_master.acceptance.model import Proof
from windrow_master.fleet.model import AdminState, Host, ProofOutcome, Slot, Verification, VerifyState
from windrow_master.verification.schedule import hindrance as unprovable
from windrow_master.verification.schedule import summary
from windrow_proto.ids import GpuUuid


class StageState(StrEnum):
    """SKIPPED: it does not apply to this host."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage; at_ns: when it was reached, None where it was not, or where nobody knows."""

    name: str
    state: StageState
    at_ns: int | None
    words: str


def stages(
    host: Host, slots: Sequence[Slot], proofs: Sequence[Proof], latest: Mapping[GpuUuid, Verification], now_ns: int
) -> tuple[Stage, ...]:
    """All five. proofs: the newest first; latest: the newest challenge of each card; now_ns: wall time."""
    version = host.inventory.agent_version if host.inventory else ""
    running = f"Agent {version} runs there." if version else "Its agent has not said yet what it is."
    return (
        Stage("downloaded", StageState.DONE, None, f"{running} It was fetched before the host joined."),
        _certified(host),
        _tested(host, slots, proofs, now_ns),
        _verified(host, latest),
        _listed(host, slots, now_ns),
    )


def standing(host: Host, slots: Sequence[Slot], now_ns: int) -> str:
    """Return the result of its newest proof, or why there is none yet."""
    if host.proof is not None:
        return host.proof.words
    hindrance = schedule.hindrance(host, slots, now_ns)
    return f"Not proved yet: {hindrance}." if hindrance else "Not proved yet: its turn comes in a moment."


def _certified(host: Host) -> Stage:
    if host.admin_state in (AdminState.QUARANTINED, AdminState.RETIRED):
        why = f": {host.admin_reason}" if host.admin_reason else ""
        return Stage("certified", StageState.FAILED, None, f"It is {host.admin_state}{why}.")
    return Stage("certified", StageState.DONE, host.created_at_ns, "It has a certificate of this market.")


def _tested(host: Host, slots: Sequence[Slot], proofs: Sequence[Proof], now_ns: int) -> Stage:
    if proofs and proofs[0].ended_at_ns is None:
        done = ", ".join(step.name for step in proofs[0].steps)
        return Stage("tested", StageState.RUNNING, None, f"The Master rents it now; done: {done or 'nothing yet'}.")
    words = standing(host, slots, now_ns)
    if host.proof is not None:
        state = StageState.DONE if host.proof.outcome is ProofOutcome.PASSED else StageState.FAILED
        return Stage("tested", state, host.proof.at_ns, words)
    return Stage("tested", StageState.WAITING, None, words)


def _verified(host: Host, latest: Mapping[GpuUuid, Verification]) -> Stage:
    words, at_ns = summary(host, latest), max((one.at_ns for one in latest.values()), default=None)
    match host.verify_state:
        case VerifyState.VERIFIED:
            return Stage("verified", StageState.DONE, at_ns, words)
        case VerifyState.VERIFYING:
            return Stage("verified", StageState.RUNNING, None, "Its GPUs are being challenged.")
        case VerifyState.FAILED:
            return Stage(
                "verified", StageState.FAILED, max((one.at_ns for one in latest.values()), default=None), words
            )
        case VerifyState.UNVERIFIED:
            is_moot = host.inventory is not None and unprovable(host) is not None
            return Stage("verified", StageState.SKIPPED if is_moot else StageState.WAITING, None, words)


def _listed(host: Host, slots: Sequence[Slot], now_ns: int) -> Stage:
    if schedule.is_listed(host, slots, now_ns) and host.listed_at_ns is not None:
        return Stage("listed", StageState.DONE, host.listed_at_ns, f"Tier {host.tier} is on offer.")
    if any(slot.holder is not None for slot in slots):
        return Stage("listed", StageState.DONE, host.listed_at_ns, "All of it is rented.")
    reasons = [slot.unavailable for slot in slots if slot.unavailable]
    why = reasons[0] if reasons else f"it is {host.admin_state}, its link is {host.link_state}"
    return Stage("listed", StageState.WAITING, None, f"Not on offer now: {why.rstrip('.')}.")
