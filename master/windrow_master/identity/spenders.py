"""Finds whose spending can be limited, inside a unit of work: projects, tokens and service accounts, as far as the
caller may see and manage them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from windrow_master.identity.decide import Permission, is_allowed, reaches
from windrow_master.identity.model import INSTALLATION_ROLES, Account, Principal, Role, SpenderKind
from windrow_master.identity.people_lookup import manages_all, sees_all
from windrow_master.identity.people_repository import OrganisationRepository
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository, TokenRepository
from windrow_master.identity.sessions import effective
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, NotFound
from windrow_proto.ids import AccountId, TokenId


@dataclass(frozen=True, slots=True)
class Spender:
    """A project, a token or a service account. account_id: the project that it is, or belongs to. organisation_id: of
    a project."""

    id: str
    account_id: AccountId
    name: str
    organisation_id: str | None = None

    @property
    def kind(self) -> SpenderKind:
        """The kind that its id says."""
        return SpenderKind.of(self.id)


def find(uow: UnitOfWork, principal: Principal, kind: SpenderKind, wanted: str) -> Spender:
    """The spender of this id, or of this name where it is no token; of a service account's token the service account,
    whose tokens share one limit. Raises NotFound for one that the caller does not see."""
    found = {
        SpenderKind.PROJECT: _project,
        SpenderKind.TOKEN: _token,
        SpenderKind.SERVICE_ACCOUNT: _service,
    }[kind](uow, principal, wanted)
    if found is None:
        raise NotFound(f"There is no such {kind.words}, or it is not yours.", subject=wanted[:64])
    return found


def seen(uow: UnitOfWork, principal: Principal, spender_ids: Sequence[str]) -> list[Spender]:
    """Those of these that the caller sees."""
    found = []
    for one in spender_ids:
        with suppress(NotFound):
            found.append(find(uow, principal, SpenderKind.of(one), one))
    return found


def projects_seen(uow: UnitOfWork, principal: Principal) -> list[AccountId]:
    """The caller's project, first, and for who sees the whole organisation the others of it."""
    if principal.organisation_id is None or not sees_all(principal):
        return [principal.account_id]
    all_ids = [one for one, _ in uow[OrganisationRepository].projects(principal.organisation_id)]
    return [principal.account_id, *(one for one in all_ids if one != principal.account_id)]


def check_limits(principal: Principal, spender: Spender) -> None:
    """Raises Forbidden where the caller may not set this spender's limits: of a project its admins, those of its
    organisation and operators do; of a token and a service account all that manage it, but never itself."""
    if spender.id in principal.spenders:
        raise Forbidden("A token sets no limits of its own, nor of the token that made it. Sign in to set them.")
    if spender.kind is not SpenderKind.PROJECT or Role.OPERATOR in principal.roles:
        return
    is_of_organisation = spender.organisation_id is not None and spender.organisation_id == principal.organisation_id
    is_admin = Role.ADMIN in principal.roles and spender.account_id == principal.account_id
    if not is_admin and not (is_of_organisation and manages_all(principal)):
        raise Forbidden("Admins of the project or of its organisation set its limits, and operators. You are none.")


def _project(uow: UnitOfWork, principal: Principal, wanted: str) -> Spender | None:
    account = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
    if account is None or not _sees(principal, account):
        return None
    return Spender(account.id, account.id, account.name, account.organisation_id)


def _sees(principal: Principal, account: Account) -> bool:
    is_of_organisation = account.organisation_id is not None and account.organisation_id == principal.organisation_id
    is_own = account.id == principal.account_id or (is_of_organisation and sees_all(principal))
    return is_own or bool(principal.roles & INSTALLATION_ROLES)


def _token(uow: UnitOfWork, principal: Principal, wanted: str) -> Spender | None:
    token = uow[TokenRepository].get(TokenId(wanted))
    if token is None or token.revoked_at_ns is not None or not reaches(principal, effective(uow, token)):
        return None
    if token.service_id is not None:
        return _service(uow, principal, token.service_id)
    return Spender(token.id, token.account_id, token.name)


def _service(uow: UnitOfWork, principal: Principal, wanted: str) -> Spender | None:
    services = uow[ServiceAccountRepository]
    service = services.get(wanted) or services.by_name(principal.account_id, wanted)
    if service is None or service.account_id != principal.account_id:
        return None
    if service.id != principal.service_id and not is_allowed(principal.roles, Permission.MEMBERS_READ):
        return None
    return Spender(service.id, service.account_id, service.name)
