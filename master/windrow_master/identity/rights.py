"""Says which role a caller lacks and who can give it, and whether a sign-in is fresh. Pure."""

from typing import Final

from windrow_master.identity.decide import GRANTS, Permission
from windrow_master.identity.model import (
    MARKET_ROLES,
    ORGANISATION_ROLES,
    PROJECT_ROLES,
    Principal,
    Role,
)
from windrow_proto.units import MINUTE

FRESH_NS: Final = 10 * MINUTE
"""For which a sign-in is believed where an act has weight."""


def missing(principal: Principal, permission: Permission) -> str:
    """A sentence for a caller who lacks a permission: the roles that have it, the caller's own, and the way to one."""
    wanted = GRANTS[permission]
    held = ", ".join(sorted(principal.roles)) or "none"
    whose = "you have" if principal.has_all else "this token has"
    where = f" in the project {principal.account_name}" if wanted <= PROJECT_ROLES else ""
    needed = f"This needs the role {' or '.join(sorted(wanted))}{where}; {whose} {held}."
    return f"{needed} {_way(principal, wanted)}"


def is_fresh(principal: Principal, now_ns: int) -> bool:
    """Return whether the caller may do what has weight: a session whose user has shown a password, a code or a token of
    late, or an API token, which is not asked."""
    return principal.session_id is None or now_ns - principal.proved_at_ns <= FRESH_NS


def _way(principal: Principal, wanted: frozenset[Role]) -> str:
    """How the caller gets one of these roles. That of the smallest scope is named."""
    if principal.service_id is not None:
        return "An admin of the project can make a service account that has it: windrow service-account add NAME"
    if principal.user_id is not None and not principal.has_all:
        return "Another token of yours may have it: windrow whoami shows what a token has."
    of_project = sorted(wanted & PROJECT_ROLES)
    kept_back = [role for role in of_project if role in MARKET_ROLES - principal.may]
    if kept_back and kept_back == of_project:
        return (
            f"The project {principal.account_name} may not do that, so that none of its members may. "
            "Operators decide which projects may rent and provide."
        )
    role = next((one for one in of_project if one not in kept_back), None)
    if role is not None and principal.user_id is not None:
        own = sorted({*(principal.roles & PROJECT_ROLES), role})
        given = f"--project {principal.account_name}:{','.join(own)}"
        said = "An admin of the project or of its organisation can give it"
        return f"{said}: windrow member set {principal.user_id} {given}"
    if role is not None:
        return "This token belongs to a project, not to a user. An admin of the project has the roles to do it."
    if wanted & ORGANISATION_ROLES:
        return "An owner of the organisation can give it: windrow member set NAME --role org_admin"
    return "Operators of this market have it."
