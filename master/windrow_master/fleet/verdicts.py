"""Derives the conditions of a host and its cards from the verdicts of challenges. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from windrow_master.fleet.conditions import found_by_master, is_fault
from windrow_master.fleet.model import Host, Verification, VerifyOutcome
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import GpuUuid
from windrow_proto.model import Inventory
from windrow_proto.units import time_text


class Company(StrEnum):
    """The timing of one card beside the others of its class."""

    ALONE = "alone"
    """No other card of its class was challenged with it."""
    UNTOLD = "untold"
    """The work was too short to tell, or the cards were not asked in the same second."""
    TOGETHER = "together"
    APART = "apart"


def is_fault_over(before: Host, after: Host) -> bool:
    """Return whether a fault that needs re-verification was there and is gone."""
    was, now = ({c.code for c in host.conditions} for host in (before, after))
    return any(is_fault(code) for code in was - now)


def standing(host: Host, inventory: Inventory, verdicts: Mapping[GpuUuid, Verification]) -> dict[str, str]:
    """The conditions, words by code, that challenges leave on the cards of an inventory: those that failed, by their
    last verdicts, and those that are being challenged, by the host's own conditions."""
    own, found = found_by_master(host.conditions), dict[str, str]()
    for gpu in inventory.gpus:
        runs = f"{ConditionCode.CHALLENGE_RUNNING}:{gpu.uuid}"
        if runs in own:
            found[runs] = own[runs]
        verdict = verdicts.get(gpu.uuid)
        if verdict is not None and verdict.outcome is VerifyOutcome.FAILED:
            found |= failure(verdict)
        if verdict is not None and is_apart(verdict):
            found |= apart(verdict)
    return found


def is_apart(one: Verification) -> bool:
    """Return whether it passed, but after another card and not beside it."""
    return one.outcome is VerifyOutcome.PASSED and one.evidence.get("together") == Company.APART


def apart(verdict: Verification) -> dict[str, str]:
    """The condition of a card that worked after another: of that card, which is not offered then, where its class is
    calibrated; else of its host, which goes on."""
    words = f"{verdict.evidence.get('cards')} GPUs of one class were challenged in the same second, at "
    words += f"{time_text(verdict.at_ns)}, and worked one after another, as one card that answers for several does."
    code = ConditionCode.CHALLENGE_APART.value
    return {f"{code}:{verdict.gpu_uuid}" if verdict.evidence.get("calibrated") is True else code: words}


def failure(verdict: Verification) -> dict[str, str]:
    """The condition of a card that failed."""
    at = time_text(verdict.at_ns)
    words = f"It failed its challenge at {at}: {verdict.detail} It is not offered until it passes one."
    return {f"{ConditionCode.CHALLENGE_FAILED}:{verdict.gpu_uuid}": words}
