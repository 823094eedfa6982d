"""The values of an Access as operators see it, and the rule that says which one may be drained. Pure.

    departed  <- no worker of it is attached
    serving   <- attached  -- drain -->   draining  <- attached
    draining  -- resume -> serving

Drained is a decision of people and holds whether the Access is there or not; the rest is what its trunks say.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_proto.errors import Conflict
from windrow_proto.ids import AccessId

LOAD_FULL: Final = 1000
"""Permille of what a worker may carry."""


class AccessState(StrEnum):
    """The state of an Access. Draining: it takes nobody new, and who is there is sent elsewhere."""

    SERVING = "serving"
    DRAINING = "draining"
    DEPARTED = "departed"


@dataclass(frozen=True, slots=True)
class Drained:
    """An Access that people took out of service. region, address: where it was then, empty if nobody knew."""

    access_id: AccessId
    region: str
    address: str
    drained_at_ns: int
    actor: str
    reason: str


def state_of(is_attached: bool, is_drained: bool) -> AccessState:
    """Return the state of an Access."""
    if not is_attached:
        return AccessState.DEPARTED
    return AccessState.DRAINING if is_drained else AccessState.SERVING


def refusal(access_id: AccessId, able: Collection[str], drained: Collection[str]) -> Conflict | None:
    """Return why this Access must not be drained, if it must not. able: the attached ones that have capacity for
    agents."""
    return None if set(able) - set(drained) - {access_id} else no_room(access_id, "drain this one")


def no_room(access_id: AccessId, then: str) -> Conflict:
    """There is no other Access for its agents. then: what was asked, and may be once there is one."""
    return Conflict(
        "No other relay could take its agents: start another one, or let a drained one serve again "
        f"(`windrow access resume`), then {then}.",
        subject=access_id,
    )
