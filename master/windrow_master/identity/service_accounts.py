"""Keeps the service accounts of projects: programs that act with tokens of their own and never sign in to the console.

add ─▶ token (shown once) ─▶ rotate: another token; the one before ends after an overlap
remove: its tokens stop at once
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import decide
from windrow_master.identity.membership import service_roles
from windrow_master.identity.model import SERVICE_ROLES, ApiToken, Principal, Role, ServiceAccount
from windrow_master.identity.object_share_repository import ObjectShareRepository
from windrow_master.identity.people_lookup import whole_user_of
from windrow_master.identity.repository import AccountRepository, ServiceAccountRepository, TokenRepository
from windrow_master.identity.sessions import TOKEN_LIFE_NS_MAX, Asking
from windrow_master.identity.tokens import issue_token, revoke_with_all
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound
from windrow_proto.ids import NO_ID, resembles_id
from windrow_proto.units import DAY

SERVICES_MAX: Final = 100
"""Service accounts of one project."""
OVERLAP_NS: Final = DAY
"""For which a token stays valid after it was rotated: a night's deployment gets the new one meanwhile."""
OVERLAP_NS_MAX: Final = 7 * DAY


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service account and its valid tokens, the oldest first. account: with the roles that it has now."""

    account: ServiceAccount
    tokens: Sequence[ApiToken]


class ServiceAccounts:
    """Service accounts of the caller's project."""

    def __init__(self, store: Store, asking: Asking) -> None:
        self._store, self._asking = store, asking

    async def list(self, principal: Principal, after: str = "", limit: int = 100) -> Sequence[ServiceView]:
        """Those of the project, the oldest first."""

        def read(uow: UnitOfWork) -> list[ServiceView]:
            found = uow[ServiceAccountRepository].list(principal.account_id, after, limit)
            return [self._view(uow, one) for one in found]

        return await self._store.read(read)

    async def add(
        self, principal: Principal, name: str, roles: frozenset[Role], life_ns: int
    ) -> tuple[ServiceView, ApiToken, str]:
        """A new service account, its token and the token's text, told this once. life_ns: of the token. Raises
        InvalidInput, Conflict for a name that is taken, Forbidden for roles that the caller lacks."""
        _check(principal, name, roles)

        def add(uow: UnitOfWork) -> tuple[ServiceView, ApiToken, str]:
            whole_user_of(uow, principal)
            services = uow[ServiceAccountRepository]
            if services.by_name(principal.account_id, name) is not None:
                said = f"There already is a service account {name}. Take another name, or rotate its token."
                raise Conflict(said, subject=name)
            if services.count(principal.account_id) >= SERVICES_MAX:
                raise Conflict(f"A project has at most {SERVICES_MAX} service accounts. Remove some.")
            made = ServiceAccount(
                uow.mint("service"), principal.account_id, name, roles, uow.now_wall_ns, principal.actor
            )
            services.add(made)
            fields = {"name": name, "roles": ",".join(sorted(roles)), "project": principal.account_id}
            uow.audit(principal.actor, "service_account.make", made.id, fields=fields)
            said = f"The service account {name} was added"
            uow.event("service_account.made", (principal.account_id,), said, fields, principal.actor)
            token, text = self._issue(uow, principal, made, life_ns)
            return self._view(uow, made), token, text

        return await self._store.write(add, name="service_account.make")

    async def rotate(
        self, principal: Principal, wanted: str, life_ns: int, overlap_ns: int
    ) -> tuple[ServiceView, ApiToken, str]:
        """Another token; the newest until now ends after the overlap, older ones at once, with
        the shares they made. wanted: id or name. Raises NotFound, Forbidden for a caller with less roles than the
        service account."""

        def rotate(uow: UnitOfWork) -> tuple[ServiceView, ApiToken, str]:
            whole_user_of(uow, principal)
            service = self._found(uow, principal, wanted)
            _check_roles(principal, service.roles)
            *older, newest = [None, *uow[TokenRepository].of_service(service.id, uow.now_wall_ns)]
            for one in older:
                if one is not None:
                    _revoke(uow, one)
            if newest is not None and overlap_ns <= 0:
                _revoke(uow, newest)
            elif newest is not None:
                uow[TokenRepository].end(newest.id, min(newest.expires_at_ns, uow.now_wall_ns + overlap_ns))
            token, text = self._issue(uow, principal, service, life_ns)
            uow.audit(principal.actor, "service_account.rotate", service.id, fields={"token": token.id})
            uow.after_commit(self._asking.forget)
            return self._view(uow, service), token, text

        return await self._store.write(rotate, name="service_account.rotate")

    async def remove(self, principal: Principal, wanted: str) -> None:
        """End a service account and its tokens, at once; what it made stays the project's. Raises NotFound."""

        def remove(uow: UnitOfWork) -> None:
            service = self._found(uow, principal, wanted)
            for token in uow[TokenRepository].of_service(service.id, uow.now_wall_ns):
                _revoke(uow, token)
            uow[ServiceAccountRepository].remove(service.id)
            fields = {"name": service.name}
            uow.audit(principal.actor, "service_account.remove", service.id, fields=fields)
            said = f"The service account {service.name} was removed"
            uow.event("service_account.removed", (principal.account_id,), said, fields, principal.actor)
            uow.after_commit(self._asking.forget)

        await self._store.write(remove, name="service_account.remove")

    # --- inside --------------------------------------------------------------------------------------------------

    def _found(self, uow: UnitOfWork, principal: Principal, wanted: str) -> ServiceAccount:
        services = uow[ServiceAccountRepository]
        found = services.get(wanted) or services.by_name(principal.account_id, wanted)
        if found is None or found.account_id != principal.account_id:
            said = "There is no such service account. List them: windrow service-account ls"
            raise NotFound(said, subject=wanted[:64])
        return found

    def _view(self, uow: UnitOfWork, service: ServiceAccount) -> ServiceView:
        account = uow[AccountRepository].get(service.account_id)
        roles = frozenset[Role]() if account is None else service_roles(service, account)
        tokens = [
            replace(
                one,
                roles=one.roles & roles,
                last_used_at_ns=self._asking.used_at(one.id, one.last_used_at_ns),
                last_used_address=self._asking.used_from(one.id, one.last_used_address),
            )
            for one in uow[TokenRepository].of_service(service.id, uow.now_wall_ns)
        ]
        return ServiceView(replace(service, roles=roles), tokens)

    def _issue(
        self, uow: UnitOfWork, principal: Principal, service: ServiceAccount, life_ns: int
    ) -> tuple[ApiToken, str]:
        """A token that no other one ends: a service account belongs to the project, not to who made it."""
        token, text = issue_token(
            uow,
            service.account_id,
            service.name,
            service.roles,
            min(life_ns, TOKEN_LIFE_NS_MAX),
            principal.actor,
            service_id=service.id,
        )
        said = f"A token was made: {token.name} ({', '.join(sorted(token.roles))})"
        uow.event("token.made", (token.id, token.account_id), said, actor=principal.actor)
        return token, text


def _revoke(uow: UnitOfWork, token: ApiToken) -> None:
    """End a token at once, with the shares that it made."""
    revoke_with_all(uow, token.id)
    uow[ObjectShareRepository].withdraw_of(token.id)


def _check(principal: Principal, name: str, roles: frozenset[Role]) -> None:
    decide.check_account_name(name)
    if resembles_id(name):
        raise InvalidInput(f"name: A service account's name is {NO_ID}.", subject="name")
    if not roles or roles - SERVICE_ROLES:
        known = ", ".join(sorted(SERVICE_ROLES))
        raise InvalidInput(f"roles: A service account has one or more of these roles: {known}.", subject="roles")
    _check_roles(principal, roles)


def _check_roles(principal: Principal, roles: frozenset[Role]) -> None:
    lacking = roles - principal.roles - {Role.VIEWER}
    if lacking:
        raise Forbidden(
            f"You are no {min(lacking)} in the project {principal.account_name}, so that no service account of yours "
            "is one."
        )
