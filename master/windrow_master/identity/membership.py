"""Decides which roles a user has in a project, and who may change members, roles and invitations. Pure."""

import re
import unicodedata
from collections.abc import Container
from typing import Final

from windrow_master.identity.model import (
    MARKET_ROLES,
    ORGANISATION_ROLES,
    PROJECT_ROLES,
    Account,
    Principal,
    Role,
    ServiceAccount,
)
from windrow_master.identity.people import Invitation, Projects, User
from windrow_proto.errors import Conflict, Forbidden, InvalidInput

MEMBERS_MAX: Final = 10_000
"""Members of one organisation."""
INVITATIONS_MAX: Final = 200
"""Invitations of one organisation that can still be accepted."""
PROJECTS_MAX: Final = 1_000
"""Projects of one organisation."""
NAME_MAX: Final = 100
NO_PROJECTS: Final[Projects] = {}
_ADDRESS: Final = re.compile(r"[\w.!#$%&'*+/^{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])")
"""Letters of any script; no `=?`, which a mail's header would decode."""
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that are seen as nothing, although they are letters or symbols."""
_NOT_OF_THE_ADDRESS: Final = (
    "This invitation is for another address. Sign in with that one, or ask for an invitation of your own."
)
_ROLES_OF_OWNER: Final = frozenset({Role.ADMIN, *MARKET_ROLES})


def roles_in(
    user: User, account: Account, of_organisation: Role | None, of_project: frozenset[Role]
) -> frozenset[Role]:
    """The roles of a user who acts in a project: those of the installation, of its organisation, and of the project,
    which cannot give what operators keep back."""
    allowed = of_project - (MARKET_ROLES - account.roles)
    return user.roles | allowed | ({of_organisation} if of_organisation is not None else frozenset())


def service_roles(service: ServiceAccount, account: Account) -> frozenset[Role]:
    """The roles of a service account in its project, which cannot give what operators keep back."""
    return service.roles - (MARKET_ROLES - account.roles)


def first_roles(account: Account) -> frozenset[Role]:
    """What the user for whom a project is made becomes in it."""
    return _ROLES_OF_OWNER & (account.roles | {Role.ADMIN})


def address_key(address: str) -> str:
    """By which addresses are compared: of its letters the case does not count, and two ways to write one letter are
    the same."""
    return unicodedata.normalize("NFC", address).casefold()


def check_address(address: str) -> str:
    """A mail address as it was given, without space around it; raises InvalidInput. A plus and capitals stay."""
    found = unicodedata.normalize("NFC", address.strip())
    if len(found) > 320 or not _ADDRESS.fullmatch(found) or ".." in found:
        raise InvalidInput("address: This is no mail address. It looks like ada@example.org.", subject="address")
    return found


_LIKE_ID: Final = re.compile(r"[a-z_-]{2,20}_[0-9a-f]{4,}", re.IGNORECASE)


def check_person(name: str) -> str:
    """The name of a person or organisation, in any script; raises InvalidInput for one that is empty, too long or has
    characters that cannot be seen, or looks like an id: a share could go to somebody else."""
    found = unicodedata.normalize("NFC", " ".join(name.split()))
    if not found or len(found) > NAME_MAX or not all(map(fits_name, found)):
        raise InvalidInput(f"name: A name has 1 to {NAME_MAX} visible characters, without < > / =", subject="name")
    if _LIKE_ID.fullmatch(found):
        raise InvalidInput("name: This looks like an id. Take a name that people call you by.", subject="name")
    return found


def fits_name(one: str) -> bool:
    """Return whether this character may stand in the name of a person or organisation."""
    return one not in "<>/=" and one not in _BLANK and unicodedata.category(one) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def check_role(principal: Principal, role: Role) -> None:
    """Raises InvalidInput where this is no role of an organisation, Forbidden where the principal may not give it."""
    if role not in ORGANISATION_ROLES:
        names = ", ".join(sorted(ORGANISATION_ROLES))
        raise InvalidInput(f"role: {role} is no role of an organisation. These are: {names}.", subject="role")
    if role is Role.ORG_OWNER and Role.ORG_OWNER not in principal.roles:
        raise Forbidden("Only an owner of the organisation makes another owner. Needed: org_owner.")
    if not principal.roles & {Role.ORG_OWNER, Role.ORG_ADMIN}:
        raise Forbidden("Roles of an organisation are given by its owners and admins. Needed: org_owner or org_admin.")


def check_projects(
    principal: Principal, projects: Projects, known: Container[str], kept: Projects = NO_PROJECTS
) -> None:
    """Raises InvalidInput where a project is not among `known`, the ids of those of the organisation, or is not the
    principal's to give, and where a role is none of a project; Forbidden where an admin of a project gives a role that
    the admin lacks. kept: the roles until now."""
    manages_all = bool(principal.roles & {Role.ORG_OWNER, Role.ORG_ADMIN})
    for account_id, roles in projects.items():
        if account_id not in known or not (manages_all or account_id == principal.account_id):
            said = "projects: There is no such project. List them: windrow project ls"
            raise InvalidInput(said, subject=account_id[:64])
        if wrong := roles - PROJECT_ROLES:
            names = ", ".join(sorted(PROJECT_ROLES))
            said = f"projects: {min(wrong)} is no role of a project. These are: {names}."
            raise InvalidInput(said, subject="projects")
        lacking = roles - kept.get(account_id, frozenset()) - (principal.roles | {Role.VIEWER})
        if lacking and not manages_all:
            raise Forbidden(f"You are no {min(lacking)} here, so that you cannot make somebody one.")


def check_accepts(invitation: Invitation | None, address: str | None, now_ns: int) -> Invitation:
    """The invitation, if a user with this address may accept it now; raises Forbidden or Conflict."""
    if invitation is None or now_ns >= invitation.expires_at_ns:
        raise Conflict("This invitation has expired or was withdrawn. Ask for a new one.")
    if invitation.used_at_ns is not None:
        raise Conflict("This invitation was accepted already. Sign in, or ask for a new one.")
    if invitation.address is not None and (address is None or address_key(address) != address_key(invitation.address)):
        raise Forbidden(_NOT_OF_THE_ADDRESS)
    return invitation


def check_keeps_owner(before: Role | None, after: Role | None, others: int, name: str = "An organisation") -> None:
    """Raises Conflict where the last owner of an organisation would go. others: owners beside this one. name: of the
    organisation."""
    if before is Role.ORG_OWNER and after is not Role.ORG_OWNER and others < 1:
        raise Conflict(
            f"{name} keeps at least one owner. Make somebody else an owner first: "
            "windrow member set NAME --role org_owner"
        )


def check_changes(principal: Principal, before: Role | None) -> None:
    """Raises Forbidden where this principal may not change a member who has this role in the organisation."""
    if before is Role.ORG_OWNER and Role.ORG_OWNER not in principal.roles:
        raise Forbidden("Only an owner of the organisation changes an owner. Needed: org_owner.")
    if before is not None and not principal.roles & {Role.ORG_OWNER, Role.ORG_ADMIN}:
        raise Forbidden("Only owners and admins of the organisation change its roles. Needed: org_owner or org_admin.")
