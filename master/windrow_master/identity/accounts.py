"""Keeps accounts and the links that open them, inside a unit of work: making, suspending, resuming, redeeming.

link (shown once) ─▶ redeem ─▶ a token of the account
suspend: its tokens and links stop; resume lifts that
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import decide
from windrow_master.identity.membership import first_roles
from windrow_master.identity.model import (
    ALL_ROLES,
    INSTALLATION_ROLES,
    Account,
    AccountState,
    ApiToken,
    Principal,
    Role,
    SignInLink,
)
from windrow_master.identity.people import Organisation, OrganisationId, User, UserId
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import (
    AccountRepository,
    JoinTokenRepository,
    SignInLinkRepository,
    TokenRepository,
)
from windrow_master.identity.sessions import (
    SECRET_CHARS_MAX,
    TOKEN_LIFE_NS_MAX,
    Asking,
    effective,
    new_secret,
    standing,
)
from windrow_master.identity.tokens import issue_token
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, Unauthenticated
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.units import DAY

LINK_LIFE_NS: Final = 3 * DAY
"""Over a weekend; after that an operator makes a new one."""
LINK_PREFIX: Final = "wl_"
TOKEN_NAME: Final = "sign-in link"  # a name
_REFUSED: Final = "This sign-in link was used, has expired or was replaced. Ask an operator for a new one."


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link's secret, which is stored nowhere, and when it ends."""

    secret: str
    expires_at_ns: int


class AccountRegistry:
    """The accounts' rows and their sign-in links.

    secret_end: the part of a link by which its reader knows the market.
    """

    def __init__(
        self,
        asking: Asking,
        secret_end: str,
    ) -> None:
        self._asking, self._secret_end = asking, secret_end

    def make(self, uow: UnitOfWork, name: str, roles: frozenset[Role], actor: str) -> Account:
        """A new account, the project of a new user and a new organisation of that name. Raises Conflict where the name
        is taken."""
        if uow[AccountRepository].by_name(name) is not None:
            said = f"There already is an account {name}. Take another name, or make a new link for this one."
            raise Conflict(said, subject=name)
        if uow[OrganisationRepository].by_name(name) is not None:
            raise Conflict(f"There already is an organisation {name}. Take another name.", subject=name)
        made = Account(AccountId(uow.mint("account")), name, roles, uow.now_wall_ns)
        account = add_project_of_own(uow, made, name, name)
        fields = {"name": name, "roles": ",".join(sorted(roles))}
        uow.audit(actor, "account.make", account.id, fields=fields)
        uow.event("account.made", (account.id,), f"The account {name} was added", fields, actor)
        return account

    def find(self, uow: UnitOfWork, wanted: str) -> Account | None:
        """One account by its id or name."""
        return find_account(uow, wanted)

    def list(self, uow: UnitOfWork, after: str, limit: int) -> Sequence[Account]:
        """The accounts after this id, the oldest first."""
        return uow[AccountRepository].list(after, limit)

    def suspend(self, uow: UnitOfWork, principal: Principal, account: Account, reason: str) -> Account:
        """Let an account sign in no more, nor whom it made links for. Raises Conflict for one's own account and for the
        first one, which owns this Master."""
        if account.id == principal.account_id or is_first(uow, account.id):
            raise Conflict("Your own account and the first one cannot be suspended.", subject=account.id)
        check_open(account)
        if account.state is AccountState.SUSPENDED:
            return account
        uow[AccountRepository].suspend(account.id, uow.now_wall_ns)
        _disable(uow, account, uow.now_wall_ns)
        uow[SignInLinkRepository].forget(account.id)
        uow[SignInLinkRepository].forget_made_by(account.id)
        uow.audit(principal.actor, "account.suspend", account.id, reason)
        said = f"The account {account.name} was suspended" + (f": {reason}" if reason else "")
        uow.event("account.suspended", (account.id,), said, actor=principal.actor)
        uow.after_commit(self._asking.forget)
        return replace(account, suspended_at_ns=uow.now_wall_ns)

    def resume(self, uow: UnitOfWork, principal: Principal, account: Account) -> Account:
        """Let a suspended account sign in again."""
        if account.state is not AccountState.SUSPENDED:
            return account
        uow[AccountRepository].suspend(account.id, None)
        _disable(uow, account, None)
        uow.audit(principal.actor, "account.resume", account.id)
        said = f"The account {account.name} may sign in again"
        uow.event("account.resumed", (account.id,), said, actor=principal.actor)
        uow.after_commit(self._asking.forget)
        return replace(account, suspended_at_ns=None)

    # --- sign-in links -------------------------------------------------------------------------------------------

    def link(self, uow: UnitOfWork, principal: Principal, account: Account) -> MadeLink:
        """A link for an account; those before it open nothing any more."""
        secret = f"{LINK_PREFIX}{new_secret(uow)}.{self._secret_end}"
        digest = hashlib.sha256(secret.encode()).digest()
        until = min(uow.now_wall_ns + LINK_LIFE_NS, principal.expires_at_ns)
        uow[SignInLinkRepository].forget(account.id)
        link = SignInLink(uow.mint("link"), account.id, digest, uow.now_wall_ns, until, made_by=principal.token_id)
        uow[SignInLinkRepository].add(link)
        uow.audit(principal.actor, "account.link", account.id, fields={"link": link.id})
        return MadeLink(secret, until)

    def another_link(self, uow: UnitOfWork, principal: Principal, account: Account) -> MadeLink:
        """Another link for an account. Raises Conflict while it is suspended, Forbidden where it would open more than
        the asker has."""
        decide.check_opens(principal, account, is_first=is_first(uow, account.id))
        user = uow[UserRepository].get(own_user(uow, account.id) or "")
        if user is None or not standing(uow, user, account):
            raise Conflict("This project has members of its own. Its admins invite to it.", subject=account.id)
        if user.password is not None or len(uow[OrganisationRepository].organisations_of(user.id)) > 1:
            raise Forbidden(
                "The user of this account signs in by password, or is a member elsewhere.", subject=account.id
            )
        if account.state is AccountState.SUSPENDED:
            raise Conflict(f"The account {account.name} is suspended. Resume it first.", subject=account.id)
        check_open(account)
        return self.link(uow, principal, account)

    def redeem(self, uow: UnitOfWork, sha256: bytes) -> tuple[Account, ApiToken, str]:
        """The token of an account that the link with this hash opens, and its text; works once. Raises
        Unauthenticated."""
        link = uow[SignInLinkRepository].by_hash(sha256)
        account = uow[AccountRepository].get(link.account_id) if link is not None else None
        if link is None or account is None or link.used_at_ns is not None or uow.now_wall_ns >= link.expires_at_ns:
            raise Unauthenticated(_REFUSED)
        if account.state is AccountState.SUSPENDED:
            raise Forbidden(f"The account {account.name} is suspended. Ask an operator of this market.")
        check_open(account)
        uow[SignInLinkRepository].use(link.id, uow.now_wall_ns)
        actor = f"account/{account.id}"
        uow.audit(actor, "account.sign_in", account.id, fields={"link": link.id})
        user_id = own_user(uow, account.id)
        roles = account.roles if user_id is None else ALL_ROLES
        token, text = issue_token(uow, account.id, TOKEN_NAME, roles, TOKEN_LIFE_NS_MAX, actor, user_id=user_id)
        return account, effective(uow, token), text


def is_first(uow: UnitOfWork, account_id: str) -> bool:
    """True for the first account: it owns this Master, whose command line signs in to it."""
    first = uow[AccountRepository].first()
    return first is not None and first.id == account_id


def check_open(account: Account) -> None:
    """Raises Conflict for an account that was deleted."""
    if account.state is AccountState.DELETED:
        raise Conflict(f"The project {account.name} was deleted.", subject=account.id)


def check_may_begin(uow: UnitOfWork, account_id: AccountId) -> None:
    """Raises Conflict where an account may begin nothing any more: it was suspended or deleted since the caller was
    let in."""
    account = uow[AccountRepository].get(account_id)
    if account is not None and account.state is not AccountState.ACTIVE:
        raise Conflict(f"The project {account.name} is {account.state}.", subject=account_id)


def link_sha256(secret: str) -> bytes:
    """The hash by which a link is known. Raises Unauthenticated for what is no link's secret."""
    if not secret.startswith(LINK_PREFIX) or len(secret) > SECRET_CHARS_MAX:
        raise Unauthenticated(_REFUSED)
    return hashlib.sha256(secret.encode()).digest()


def add_project_of_own(uow: UnitOfWork, account: Account, user_name: str, organisation_name: str) -> Account:
    """Add an account as the one project of a new organisation, which a new user owns; returns it with its
    organisation."""
    mark = account.id.partition("_")[2]
    organisation = Organisation(OrganisationId(f"organisation_{mark}"), organisation_name, uow.now_wall_ns)
    user = User(UserId(f"user_{mark}"), user_name, uow.now_wall_ns, roles=account.roles & INSTALLATION_ROLES)
    owned = replace(account, organisation_id=organisation.id)
    uow[OrganisationRepository].add(organisation)
    uow[AccountRepository].add(owned)
    uow[UserRepository].add(user)
    uow[OrganisationRepository].set_role(organisation.id, user.id, Role.ORG_OWNER)
    uow[OrganisationRepository].set_project_roles(user.id, owned.id, first_roles(owned))
    return owned


def _disable(uow: UnitOfWork, account: Account, at_ns: int | None) -> None:
    """Let the user for whom an account was made do nothing any more, in any project; None: again. Who has no more to do
    with the account, since it has another organisation or the user was erased, stays as is."""
    user = uow[UserRepository].get(own_user(uow, account.id) or "")
    if user is not None and standing(uow, user, account):
        uow[UserRepository].save(replace(user, disabled_at_ns=at_ns))


def own_user(uow: UnitOfWork, account_id: AccountId) -> str | None:
    """The user for whom an account was made; None where it was made for none."""
    user = uow[UserRepository].get(f"user_{account_id.partition('_')[2]}")
    return None if user is None else user.id


def is_new(uow: UnitOfWork) -> bool:
    """Return whether this market has no account yet: its Master was never started."""
    return uow[AccountRepository].first() is None


def find_account(uow: UnitOfWork, wanted: str) -> Account | None:
    """One account by its id or name."""
    return uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)


def ensure_own(uow: UnitOfWork, account_id: AccountId, name: str, roles: frozenset[Role]) -> None:
    """Have an account of the Master's own, which nobody signs in to."""
    found = uow[AccountRepository].get(account_id)
    if found is None:
        uow[AccountRepository].add(Account(account_id, name, roles, uow.now_wall_ns))
    elif found.name != name:
        uow[AccountRepository].save(replace(found, name=name))


def owner_of_token(uow: UnitOfWork, token_id: TokenId) -> AccountId | None:
    """The account of an API token or a join token, by its id; None where there is no such token."""
    found = uow[TokenRepository].get(token_id) or uow[JoinTokenRepository].get(token_id)
    return found.account_id if found is not None else None
