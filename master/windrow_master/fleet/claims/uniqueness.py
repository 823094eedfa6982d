"""Finds cards that two hosts claim at the same time. Pure.

        claims it        claims it too
  A ───────●───────────────────────────────▶   both are flagged while both claim it and neither is gone, and only A,
  B ───────────────────────●───────────────▶   who was first, still offers it: B may have read its UUID as a renter
  A ───────●─────────✕ (no longer claims it, lost, retired)      the card has moved: nobody is flagged
  B ────────────────────────────●──────────▶

A host that was Lost and is back counts again once it is settled: by then it has told what it has now.
"""

from collections.abc import Iterable
from typing import Final

from windrow_master.fleet.claims.consistency import Finding
from windrow_master.fleet.model import AdminState, Claim, Host, LinkState
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import HostId
from windrow_proto.units import time_text

_OF_UUID: Final = (ConditionCode.CLAIM_UUID_SHARED, ConditionCode.DISPUTED_UUID)
_OF_SERIAL: Final = (ConditionCode.CLAIM_SERIAL_SHARED, ConditionCode.DISPUTED_SERIAL)
"""Of whoever was not the first to claim a card, and of the first."""
_DOUBLE: Final = (*_OF_UUID, *_OF_SERIAL)
FLEET_CODES: Final = (*_DOUBLE, ConditionCode.GPU_LISTED_ELSEWHERE)
"""Findings that depend on other hosts, and so can come and go without a word of this one."""
HOSTS_NAMED_MAX: Final = 5


def counts(host: Host, now_ns: int) -> bool:
    """Return whether what this host claims keeps another from claiming it: it is neither banned nor gone for long."""
    if host.admin_state in (AdminState.RETIRED, AdminState.QUARANTINED) or host.link_state is LinkState.LOST:
        return False
    is_flagged = any(condition.code.startswith(_DOUBLE) for condition in host.conditions)
    return host.link_state is not LinkState.ONLINE or host.is_settled(now_ns) or is_flagged


def shared(
    host: Host, mine: Claim, others: Iterable[tuple[Host, Claim]], now_ns: int, seller: HostId | None = None
) -> Finding | None:
    """Return the finding about one claim of a host that counts, by all claims (with their hosts) of its UUID or serial.

    seller: whose slot the card of this UUID is; it goes on offering it. Without one, who claimed it first does.
    """
    rivals = [(other, claim) for other, claim in others if other.host_id != host.host_id and counts(other, now_ns)]
    for what, own, codes, same in (
        ("UUID", mine.uuid, _OF_UUID, [one for one in rivals if one[1].uuid == mine.uuid]),
        (
            "serial number",
            mine.serial,
            _OF_SERIAL,
            [one for one in rivals if mine.serial is not None and one[1].serial == mine.serial],
        ),
    ):
        if same:
            seller = seller if own == mine.uuid else None
            everyone = sorted([(host, mine), *same], key=lambda one: (one[1].since_ns, one[0].host_id))
            is_seller = seller == host.host_id if seller is not None else everyone[0][1] is mine
            return Finding(codes[is_seller], mine.uuid, _words(f"the {what} {own}", everyone))
    return None


def _words(what: str, everyone: list[tuple[Host, Claim]]) -> str:
    told = [f"{host.host_id} since {time_text(claim.since_ns)}" for host, claim in everyone[:HOSTS_NAMED_MAX]]
    return f"{len(everyone)} hosts claim {what} at once: first {', then '.join(told)}"
