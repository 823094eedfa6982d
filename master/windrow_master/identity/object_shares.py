"""Shares of objects: who beside the owning project reaches a cluster, a job or a template, and how far. Pure.

An object share is an entry of an access control list. `windrow_master.shares`, which divides the Master's capacity
between accounts, has nothing to do with it.

 object ── level ──▶ receiver (a user, all who act in a project, all who act in an organisation's projects)
 see < use < manage: each includes those before
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.identity.model import INSTALLATION_ROLES, Principal, Role
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY

SHARES_MAX: Final = 1_000
"""Shares of one project that have not expired."""
LIFE_NS_MAX: Final = 3_650 * DAY


class ObjectKind(StrEnum):
    """A kind of object that can be shared."""

    CLUSTER = "cluster"
    JOB = "job"
    TEMPLATE = "template"


class ReceiverKind(StrEnum):
    """With whom an object is shared."""

    USER = "user"
    PROJECT = "project"
    ORGANISATION = "organisation"


class Level(StrEnum):
    """The level of a share. see: read the object's page. use: also commands, SSH, tunnels, log and files. manage: also
    stop, start, resize and delete."""

    SEE = "see"
    USE = "use"
    MANAGE = "manage"


_ORDER: Final = tuple(Level)
LEVELS: Final = {
    ObjectKind.CLUSTER: frozenset(Level),
    ObjectKind.JOB: frozenset(Level),
    ObjectKind.TEMPLATE: frozenset({Level.USE}),
}
"""The levels at which each kind can be shared."""


@dataclass(frozen=True, slots=True)
class ObjectShare:
    """One share. object_name: as it was when the share was made. account_id: the project that owns the object.
    receiver_id: of a user, a project or an organisation. made_by: an actor. until_ns: None: without end. token_id: the
    token that asked for it, with which it ends."""

    id: str
    object_kind: ObjectKind
    object_id: str
    object_name: str
    account_id: AccountId
    receiver_kind: ReceiverKind
    receiver_id: str
    level: Level
    made_by: str
    made_at_ns: int
    until_ns: int | None = None
    token_id: str | None = None

    @property
    def text(self) -> str:
        """The object in a sentence."""
        return f"{self.object_kind} {self.object_name}"


def includes(level: Level, needed: Level) -> bool:
    """Return whether a share at this level reaches what needs that one."""
    return _ORDER.index(level) >= _ORDER.index(needed)


def receivers_of(principal: Principal) -> tuple[str, ...]:
    """The ids of all receivers that this caller is one of: its user, its project, its project's organisation."""
    found = principal.user_id, principal.account_id, principal.organisation_id
    return tuple(one for one in found if one)


def visiting(
    principal: Principal, shares: Iterable[ObjectShare], permission: Permission, needed: Level
) -> tuple[Principal, ObjectShare] | None:
    """The caller as the owner's project lets it act on one object, and the share by which; None: by its own rights
    alone.

    shares: of the object with this caller. permission, needed: what the route asks for. A share with a user gives what
    its level says to a token that has all that the user has; a share with a project or organisation lets each of its
    people do there what they may do in their own project. Raises Forbidden where the shares reach less far.
    """
    may = is_allowed(principal.roles, permission)
    helping = [one for one in shares if _helps(principal, one, may)]
    found = next((one for one in helping if includes(one.level, needed)), None)
    if found is not None:
        roles = {Role.VIEWER} if needed is Level.SEE else {Role.VIEWER, Role.RENTER}
        visitor = replace(
            principal, account_id=found.account_id, roles=frozenset(roles), own_account_id=principal.account_id
        )
        return visitor, found
    if helping and not principal.roles & INSTALLATION_ROLES:
        best = max(helping, key=lambda one: _ORDER.index(one.level))
        raise Forbidden(
            f"The {best.text} is shared with you at the level {best.level}; this needs {needed}. "
            "Ask its project for another share.",
            subject=best.object_id,
        )
    return None


def _helps(principal: Principal, share: ObjectShare, may: bool) -> bool:
    if share.account_id == principal.account_id and may:
        return False  # its own rights reach further
    is_personal = share.receiver_kind is ReceiverKind.USER and principal.has_all
    return may or is_personal


def check_gives(principal: Principal, kind: ObjectKind, level: Level) -> None:
    """Raises InvalidInput where this kind is not shared at this level, Forbidden where the caller may do less than the
    level allows."""
    if level not in LEVELS[kind]:
        levels = ", ".join(one for one in Level if one in LEVELS[kind])
        raise InvalidInput(f"level: A {kind} is shared at the level {levels}, not {level}.", subject="level")
    if not may_give(principal.roles, level):
        raise Forbidden(f"To share at the level {level} needs the role renter. Ask an admin of this project for it.")


def may_give(roles: frozenset[Role], level: Level) -> bool:
    """Return whether these roles in the owning project allow to share at this level: nobody gives more than the own
    rights."""
    return Role.RENTER in roles or (level is Level.SEE and Role.ADMIN in roles)


def check_receiver(principal: Principal, receiver_id: str) -> None:
    """Raises InvalidInput for a share with oneself or with the project that owns the object."""
    if receiver_id in (principal.user_id, principal.account_id):
        raise InvalidInput("receiver: This is you, or the project that owns the object already.", subject="receiver")


def check_life(life_ns: int | None) -> None:
    """Raises InvalidInput for a share that would end at once or in more than ten years."""
    if life_ns is not None and not 0 < life_ns <= LIFE_NS_MAX:
        raise InvalidInput("expires_in_s: A share lasts from 1 second to 3,650 days.", subject="expires_in_s")
