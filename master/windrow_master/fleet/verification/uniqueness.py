"""Whether two hosts claim one card at the same time. Pure: facts in, findings out.

        claims it        claims it too
  A ───────●───────────────────────────────▶   both are flagged, for as long as both claim it and neither is gone
  B ───────────────────────●───────────────▶
  A ───────●─────────✕ (no longer claims it, lost, retired)      the card has moved: nobody is flagged
  B ────────────────────────────●──────────▶

A host that was Lost and is back counts again once it is settled: by then it has told what it has now.
"""

from collections.abc import Iterable
from typing import Final

from windrow_master.fleet.model import AdminState, Claim, Host, LinkState
from windrow_master.fleet.verification.consistency import Finding
from windrow_proto.units import time_text

SHARED_UUID: Final = "claim.uuid_shared"
SHARED_SERIAL: Final = "claim.serial_shared"
LISTED_ELSEWHERE: Final = "gpu.listed_elsewhere"
ABOUT: Final = {
    SHARED_UUID: "two live hosts claim a card of one UUID",
    SHARED_SERIAL: "two live hosts claim cards of one serial number",
}
FLEET_CODES: Final = (SHARED_UUID, SHARED_SERIAL, LISTED_ELSEWHERE)
"""Findings that depend on other hosts, and so can come and go without a word of this one."""
HOSTS_NAMED_MAX: Final = 5


def counts(host: Host, now_ns: int) -> bool:
    """Whether what this host claims keeps another from claiming it: it is neither banned nor gone for long."""
    if host.admin_state in (AdminState.RETIRED, AdminState.QUARANTINED) or host.link_state is LinkState.LOST:
        return False
    is_flagged = any(condition.code.startswith((SHARED_UUID, SHARED_SERIAL)) for condition in host.conditions)
    return host.link_state is not LinkState.ONLINE or host.is_settled(now_ns) or is_flagged


def shared(host: Host, mine: Claim, others: Iterable[tuple[Host, Claim]], now_ns: int) -> Finding | None:
    """What is wrong with one claim of a host that counts, by all claims (with their hosts) of its UUID or serial."""
    rivals = [(other, claim) for other, claim in others if other.host_id != host.host_id and counts(other, now_ns)]
    same = [(other, claim) for other, claim in rivals if claim.uuid == mine.uuid]
    if same:
        return Finding(SHARED_UUID, mine.uuid, _words(f"the UUID {mine.uuid}", (host, mine), same))
    same = [(other, claim) for other, claim in rivals if mine.serial is not None and claim.serial == mine.serial]
    if same:
        return Finding(SHARED_SERIAL, mine.uuid, _words(f"the serial number {mine.serial}", (host, mine), same))
    return None


def _words(what: str, mine: tuple[Host, Claim], rivals: list[tuple[Host, Claim]]) -> str:
    everyone = sorted([mine, *rivals], key=lambda one: (one[1].since_ns, one[0].host_id))
    told = [f"{host.host_id} since {time_text(claim.since_ns)}" for host, claim in everyone[:HOSTS_NAMED_MAX]]
    return f"{len(everyone)} hosts claim {what} at once: first {', then '.join(told)}"
