"""Finds users, members and projects inside a unit of work, as far as the caller may see them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from windrow_master.identity.model import Account, AccountState, ApiToken, Principal, Role, ServiceAccount
from windrow_master.identity.people import Organisation, Projects, User
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository, TokenRepository
from windrow_master.identity.sessions import SECRET_CHARS_MAX, standing
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, NotFound, Unauthenticated
from windrow_proto.ids import AccountId, TokenId

_NO_USER = "This token belongs to a project, not to a user. Sign in as a user."
_NO_MEMBER = "There is no such member. List them: windrow member ls"


@dataclass(frozen=True, slots=True)
class Project:
    """A project, and the roles that somebody has in it."""

    id: AccountId
    name: str
    roles: frozenset[Role] = frozenset()


def user_of_id(uow: UnitOfWork, user_id: str) -> User:
    """A user who was not erased. Raises NotFound."""
    user = uow[UserRepository].get(user_id)
    if user is None or user.erased_at_ns is not None:
        raise NotFound("There is no such user. `windrow user ls` lists them.", subject=user_id[:64])
    return user


def name_of(uow: UnitOfWork, one: str) -> str | None:
    """The name of a user, project, organisation, service account or token by its id; None: there is none of that id."""
    found: User | Account | Organisation | ServiceAccount | ApiToken | None
    match one.partition("_")[0]:
        case "user":
            found = uow[UserRepository].get(one)
        case "organisation":
            found = uow[OrganisationRepository].get(one)
        case "service":
            found = uow[ServiceAccountRepository].get(one)
        case "token":
            found = uow[TokenRepository].get(TokenId(one))
        case _:
            found = uow[AccountRepository].get(AccountId(one))
    return None if found is None else found.name


def people_of(uow: UnitOfWork, account_id: str | None) -> Sequence[User]:
    """The members of a project, or the operators for None; without the disabled."""
    users = uow[UserRepository]
    return users.with_role(Role.OPERATOR) if account_id is None else users.of_project(account_id)


def organisation_id_of(uow: UnitOfWork, account_id: str) -> str | None:
    """The organisation of a project."""
    account = uow[AccountRepository].get(AccountId(account_id))
    return None if account is None else account.organisation_id


def is_colleague(uow: UnitOfWork, principal: Principal, address: str) -> bool:
    """Return whether a mail address is the caller's, or that of a member of the caller's organisation."""
    user = uow[UserRepository].by_address(address)
    if user is None or user.disabled_at_ns is not None:
        return False
    return user.id == principal.user_id or uow[OrganisationRepository].role(principal.organisation_id or "", user.id)[0]


def acting(uow: UnitOfWork, user_id: str, account_id: AccountId) -> tuple[User, Principal] | None:
    """A user with all that the user may do in a project now, for what the Master does in the user's name; None: nothing
    any more."""
    user, account = uow[UserRepository].get(user_id), uow[AccountRepository].get(account_id)
    if user is None or account is None or user.erased_at_ns is not None or user.disabled_at_ns is not None:
        return None
    roles = standing(uow, user, account)
    if not roles or account.state is not AccountState.ACTIVE:
        return None
    of = account.organisation_id
    return user, Principal(account.id, account.name, roles, TokenId(""), "", 0, user_id=user.id, organisation_id=of)


def own_user_of(uow: UnitOfWork, principal: Principal) -> User:
    """The user who asks. Raises Forbidden where a project's own token asks, Unauthenticated for a user who was erased
    since the request was let in."""
    user = uow[UserRepository].get(principal.user_id) if principal.user_id is not None else None
    if user is None:
        raise Forbidden(_NO_USER)
    if user.erased_at_ns is not None:
        raise Unauthenticated("This user was deleted.")
    return user


def whole_user_of(uow: UnitOfWork, principal: Principal) -> User:
    """The user who asks with all that the user may. Raises Forbidden where the token has a part of it: such a token
    would become the user otherwise."""
    if not principal.has_all:
        raise Forbidden("This token has only a part of your roles. Sign in to change your account.")
    return own_user_of(uow, principal)


def manages_all(principal: Principal) -> bool:
    """Return whether the caller decides about the whole organisation."""
    return bool(principal.roles & {Role.ORG_OWNER, Role.ORG_ADMIN})


def check_rights(principal: Principal, user: User) -> None:
    """Raises Forbidden where this user has rights over the installation that the caller lacks."""
    if user.roles - principal.roles:
        raise Forbidden("This user runs the market: only an operator changes or removes the user.")


def organisation_of(uow: UnitOfWork, principal: Principal) -> Organisation:
    """The caller's organisation. Raises NotFound for a caller without one."""
    found = uow[OrganisationRepository].get(principal.organisation_id or "")
    if found is None:
        raise NotFound("This project belongs to no organisation.")
    return found


def organisation_named(uow: UnitOfWork, wanted: str) -> Organisation:
    """An organisation by its id or name. Raises NotFound."""
    found = uow[OrganisationRepository].get(wanted) or uow[OrganisationRepository].by_name(wanted)
    if found is None:
        raise NotFound("There is no such organisation. Ask its members for its name.", subject=wanted[:64])
    return found


def member_of(uow: UnitOfWork, principal: Principal, user_id: str) -> tuple[User, Role | None]:
    """A member of the caller's organisation and the role there, if the caller may see the member. Raises NotFound."""
    organisation = organisation_of(uow, principal)
    is_member, role = uow[OrganisationRepository].role(organisation.id, user_id)
    user = uow[UserRepository].get(user_id) if is_member else None
    if user is not None and not sees_all(principal) and user.id != principal.user_id:
        is_there = uow[OrganisationRepository].project_roles(user.id, principal.account_id)
        user = user if is_there else None
    if user is None:
        raise NotFound(_NO_MEMBER, subject=user_id[:64])
    return user, role


def sees_all(principal: Principal) -> bool:
    """Return whether the caller sees all members and projects of the organisation."""
    return bool(principal.roles & {Role.ORG_OWNER, Role.ORG_ADMIN, Role.ORG_BILLING, Role.ORG_AUDITOR})


def check_free(uow: UnitOfWork, address: str, own_id: str | None) -> None:
    """Raises Conflict where another user has this mail address."""
    other = uow[UserRepository].by_address(address)
    if other is not None and other.id != own_id:
        raise Conflict("There is a user with this address already. Sign in as that user.")


def check_name_free(uow: UnitOfWork, organisation_id: str, name: str) -> None:
    """Raises Conflict where a member has this name: nobody is to be taken for somebody else."""
    if any(other.name == name for other in uow[OrganisationRepository].members_named(organisation_id, name)):
        raise Conflict(f"Another member has the name {name}. Add a surname, or an initial.", subject="name")


def named(uow: UnitOfWork, projects: Projects) -> list[Project]:
    """The projects with their names, without those that were deleted."""
    accounts = ((uow[AccountRepository].get(account_id), roles) for account_id, roles in projects.items())
    return [
        Project(one.id, one.name, roles) for one, roles in accounts if one is not None and one.deleted_at_ns is None
    ]


def secret_sha256(secret: str) -> bytes:
    """The hash by which a secret is known."""
    return hashlib.sha256(secret.encode()).digest()


def digest_of(secret: str, prefix: str, refused: str) -> bytes:
    """The hash of a secret of this kind. Raises Unauthenticated with these words for what is none."""
    if not secret.startswith(prefix) or len(secret) > SECRET_CHARS_MAX:
        raise Unauthenticated(refused)
    return secret_sha256(secret)
