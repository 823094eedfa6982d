"""Manages accounts of other people: an operator adds, credits and suspends them, and a link that works once opens them.

add ─▶ link (shown once) ─▶ redeem ─▶ a token of the account
suspend: its tokens and links stop, its clusters and jobs end, its hosts take nothing new; resume lifts that
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.clusters.service import ClusterService
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.states import AdminEvent
from windrow_master.identity import decide
from windrow_master.identity.model import Account, AccountState, ApiToken, Principal, Role, SignInLink
from windrow_master.identity.repository import AccountRepository, SignInLinkRepository
from windrow_master.identity.service import CA_HASH_HEX, IdentityService
from windrow_master.identity.sessions import SECRET_CHARS_MAX, TOKEN_LIFE_NS_MAX, new_secret
from windrow_master.jobs.service import JobService
from windrow_master.loops import page_alone
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, Microcents

LINK_LIFE_NS: Final = 3 * DAY
"""Over a weekend; after that an operator makes a new one."""
LINK_PREFIX: Final = "wl_"
TOKEN_NAME: Final = "sign-in link"  # a name
_REFUSED: Final = "This sign-in link was used, has expired or was replaced. Ask an operator for a new one."


@dataclass(frozen=True, slots=True)
class AccountView:
    """An account and what it can spend."""

    account: Account
    balance: Microcents


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link's secret, which is stored nowhere, and when it ends."""

    secret: str
    expires_at_ns: int


class AccountService:
    """Adds, credits, suspends and resumes accounts, and lets people into theirs."""

    def __init__(
        self,
        store: Store,
        identity: IdentityService,
        market: MarketService,
        clusters: ClusterService,
        fleet: FleetService,
        jobs: JobService,
    ) -> None:
        self._store, self._identity, self._market = store, identity, market
        self._clusters, self._fleet, self._jobs = clusters, fleet, jobs

    async def add(
        self, principal: Principal, name: str, roles: frozenset[Role], credit: Microcents
    ) -> tuple[AccountView, MadeLink]:
        """A new account with these roles and test credits, and the link that opens it. Raises Conflict where the name
        is taken."""
        decide.check_account_name(name)
        if not roles:
            raise InvalidInput("roles: an account has at least one role.")

        def add(uow: UnitOfWork) -> tuple[AccountView, MadeLink]:
            if uow[AccountRepository].by_name(name) is not None:
                said = f"There already is an account {name}. Take another name, or make a new link for this one."
                raise Conflict(said, subject=name)
            account = Account(AccountId(uow.mint("account")), name, roles, uow.now_wall_ns)
            uow[AccountRepository].add(account)
            fields = {"name": name, "roles": ",".join(sorted(roles))}
            uow.audit(principal.actor, "account.make", account.id, fields=fields)
            uow.event("account.made", (account.id,), f"The account {name} was added", fields, principal.actor)
            if credit:
                self._market.credit(uow, account.id, credit, "opening", principal.actor)
            return self._view(uow, account), self._link(uow, principal, account)

        return await self._store.write(add, name="account.add")

    async def list(self, after: str = "", limit: int = 100) -> Sequence[AccountView]:
        """All accounts, the oldest first, without the one by which this Master tries hosts."""

        def read(uow: UnitOfWork) -> list[AccountView]:
            def rows(last: Account | None, size: int) -> Sequence[Account]:
                found = uow[AccountRepository].list(after if last is None else last.id, size + 1)
                return [account for account in found if account.id != PROOF_ACCOUNT][:size]

            return page_alone("account_view", rows, lambda account: self._view(uow, account), limit)

        return await self._store.read(read)

    async def get(self, wanted: str) -> AccountView:
        """One account by its id or name. Raises NotFound."""
        return await self._store.read(lambda uow: self._view(uow, _load(uow, wanted)))

    async def credit(self, principal: Principal, wanted: str, amount: Microcents, key: str | None) -> AccountView:
        """Grant test credits, once for each key of the asker's account; None: once more each time."""

        def credit(uow: UnitOfWork) -> AccountView:
            account = _load(uow, wanted)
            once = f"{principal.account_id} {key} {amount}" if key else uow.mint("credit")
            self._market.credit(uow, account.id, amount, once, principal.actor)
            return self._view(uow, account)

        return await self._store.write(credit, name="account.credit")

    async def new_link(self, principal: Principal, wanted: str) -> tuple[AccountView, MadeLink]:
        """Another link for an account; those before it open nothing any more. Raises Conflict while it is suspended,
        Forbidden where it would open more than the asker has."""

        def make(uow: UnitOfWork) -> tuple[AccountView, MadeLink]:
            account = _load(uow, wanted)
            first = uow[AccountRepository].first()
            decide.check_opens(principal, account, is_first=first is not None and account.id == first.id)
            if account.state is AccountState.SUSPENDED:
                raise Conflict(f"The account {account.name} is suspended. Resume it first.", subject=account.id)
            return self._view(uow, account), self._link(uow, principal, account)

        return await self._store.write(make, name="account.link")

    async def redeem(self, secret: str) -> tuple[Account, ApiToken, str]:
        """The token of an account that a link opens, and its text; works once. Raises Unauthenticated."""
        if not secret.startswith(LINK_PREFIX) or len(secret) > SECRET_CHARS_MAX:
            raise Unauthenticated(_REFUSED)
        digest = hashlib.sha256(secret.encode()).digest()

        def redeem(uow: UnitOfWork) -> tuple[Account, ApiToken, str]:
            link = uow[SignInLinkRepository].by_hash(digest)
            account = uow[AccountRepository].get(link.account_id) if link is not None else None
            if link is None or account is None or link.used_at_ns is not None or uow.now_wall_ns >= link.expires_at_ns:
                raise Unauthenticated(_REFUSED)
            if account.state is AccountState.SUSPENDED:
                raise Forbidden(f"The account {account.name} is suspended. Ask an operator of this market.")
            uow[SignInLinkRepository].use(link.id, uow.now_wall_ns)
            actor = f"account/{account.id}"
            uow.audit(actor, "account.sign_in", account.id, fields={"link": link.id})
            token, text = self._identity.issue_token(
                uow, account.id, TOKEN_NAME, account.roles, TOKEN_LIFE_NS_MAX, actor
            )
            return account, token, text

        return await self._store.write(redeem, name="account.redeem")

    async def suspend(self, principal: Principal, wanted: str, reason: str) -> AccountView:
        """Let an account do nothing any more. Its tokens, its links and those it made stop, its clusters and jobs end,
        its hosts take nothing new. Raises Conflict for one's own account and for the first one, which owns this
        Master."""

        def stop(uow: UnitOfWork) -> AccountView:
            account = _load(uow, wanted)
            first = uow[AccountRepository].first()
            if account.id == principal.account_id or (first is not None and account.id == first.id):
                raise Conflict("Your own account and the first one cannot be suspended.", subject=account.id)
            if account.state is AccountState.SUSPENDED:
                return self._view(uow, account)
            account = replace(account, suspended_at_ns=uow.now_wall_ns)
            uow[AccountRepository].suspend(account.id, account.suspended_at_ns)
            uow[SignInLinkRepository].forget(account.id)
            uow[SignInLinkRepository].forget_made_by(account.id)
            uow.audit(principal.actor, "account.suspend", account.id, reason)
            said = f"The account {account.name} was suspended" + (f": {reason}" if reason else "")
            uow.event("account.suspended", (account.id,), said, actor=principal.actor)
            self._end_work(uow, account, principal.actor)
            uow.after_commit(self._identity.asking.forget)
            return self._view(uow, account)

        async with self._jobs.course.placing:
            return await self._store.write(stop, name="account.suspend")

    async def resume(self, principal: Principal, wanted: str) -> AccountView:
        """Let a suspended account sign in again; what ended with it stays ended, its hosts stay drained."""

        def resume(uow: UnitOfWork) -> AccountView:
            account = _load(uow, wanted)
            if account.state is AccountState.SUSPENDED:
                account = replace(account, suspended_at_ns=None)
                uow[AccountRepository].suspend(account.id, None)
                uow.audit(principal.actor, "account.resume", account.id)
                said = f"The account {account.name} may sign in again"
                uow.event("account.resumed", (account.id,), said, actor=principal.actor)
                uow.after_commit(self._identity.asking.forget)
            return self._view(uow, account)

        return await self._store.write(resume, name="account.resume")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _end_work(self, uow: UnitOfWork, account: Account, actor: str) -> None:
        reason = "its account was suspended"
        self._jobs.end_all(uow, account.id, reason, actor)
        self._clusters.end_all(uow, account.id, reason, actor)
        for host in uow[HostRepository].of_owner(account.id):
            with suppress(Conflict):  # it is quarantined or retired, which is less already
                self._fleet.hosts.decide(uow, host.host_id, AdminEvent.DRAIN, actor, "its owner's account is suspended")

    def _link(self, uow: UnitOfWork, principal: Principal, account: Account) -> MadeLink:
        secret = f"{LINK_PREFIX}{new_secret(uow)}.{self._identity.ca_sha256[:CA_HASH_HEX]}"
        digest = hashlib.sha256(secret.encode()).digest()
        until = min(uow.now_wall_ns + LINK_LIFE_NS, principal.expires_at_ns)
        uow[SignInLinkRepository].forget(account.id)
        link = SignInLink(uow.mint("link"), account.id, digest, uow.now_wall_ns, until, made_by=principal.token_id)
        uow[SignInLinkRepository].add(link)
        uow.audit(principal.actor, "account.link", account.id, fields={"link": link.id})
        return MadeLink(secret, until)

    def _view(self, uow: UnitOfWork, account: Account) -> AccountView:
        return AccountView(account, self._market.balance(uow, account.id))


def _load(uow: UnitOfWork, wanted: str) -> Account:
    account = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
    if account is None or account.id == PROOF_ACCOUNT:
        raise NotFound("There is no such account. `windrow account ls` lists them.", subject=wanted[:64])
    return account
