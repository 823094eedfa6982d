"""Manages accounts of other people: an operator adds, credits and suspends them, and a link that works once opens them.

add ─▶ link (shown once) ─▶ redeem ─▶ a token of the account
suspend: its tokens and links stop, its clusters and jobs end, its hosts take nothing new; resume lifts that
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters.service import ClusterService
from windrow_master.fleet.service import FleetService
from windrow_master.identity import decide
from windrow_master.identity.accounts import MadeLink, check_open, link_sha256
from windrow_master.identity.model import (
    BUYER_ACCOUNT,
    INSTALLATION_ROLES,
    MARKET_ROLES,
    Account,
    AccountState,
    ApiToken,
    Principal,
    Role,
)
from windrow_master.identity.service import IdentityService
from windrow_master.jobs.service import JobService
from windrow_master.loops import page_alone
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NotFound
from windrow_proto.units import Microcents

OWN: Final = frozenset({PROOF_ACCOUNT, BUYER_ACCOUNT})
"""The accounts of this Master, which nobody signs in to."""
ACCOUNT_ROLES: Final = INSTALLATION_ROLES | MARKET_ROLES
"""Roles that an operator gives to an account: to its user those of the installation, to its project the others."""


@dataclass(frozen=True, slots=True)
class AccountView:
    """An account and what it can spend."""

    account: Account
    balance: Microcents


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
        if not roles or roles - ACCOUNT_ROLES:
            raise InvalidInput(f"roles: An account has one or more of {', '.join(sorted(ACCOUNT_ROLES))}.")

        def add(uow: UnitOfWork) -> tuple[AccountView, MadeLink]:
            account = self._identity.accounts.make(uow, name, roles, principal.actor)
            if credit:
                self._market.credit(uow, account.id, credit, "opening", principal.actor)
            return self._view(uow, account), self._identity.accounts.link(uow, principal, account)

        return await self._store.write(add, name="account.add")

    async def list(self, after: str = "", limit: int = 100) -> Sequence[AccountView]:
        """All accounts, the oldest first, without this Master's own."""

        def read(uow: UnitOfWork) -> list[AccountView]:
            def rows(last: Account | None, size: int) -> Sequence[Account]:
                found = self._identity.accounts.list(uow, after if last is None else last.id, size + len(OWN))
                return [account for account in found if account.id not in OWN][:size]

            return page_alone("account_view", rows, lambda account: self._view(uow, account), limit)

        return await self._store.read(read)

    async def get(self, wanted: str) -> AccountView:
        """One account by its id or name. Raises NotFound."""
        return await self._store.read(lambda uow: self._view(uow, self._load(uow, wanted)))

    async def credit(self, principal: Principal, wanted: str, amount: Microcents, key: str | None) -> AccountView:
        """Grant test credits, once for each key of the asker's account; None: once more each time."""

        def credit(uow: UnitOfWork) -> AccountView:
            account = self._load(uow, wanted)
            check_open(account)
            once = f"{principal.account_id} {key} {amount}" if key else uow.mint("credit")
            self._market.credit(uow, account.id, amount, once, principal.actor)
            return self._view(uow, account)

        return await self._store.write(credit, name="account.credit")

    async def new_link(self, principal: Principal, wanted: str) -> tuple[AccountView, MadeLink]:
        """Another link for an account; those before it open nothing any more. Raises Conflict while it is suspended,
        Forbidden where it would open more than the asker has."""

        def make(uow: UnitOfWork) -> tuple[AccountView, MadeLink]:
            account = self._load(uow, wanted)
            return self._view(uow, account), self._identity.accounts.another_link(uow, principal, account)

        return await self._store.write(make, name="account.link")

    async def redeem(self, secret: str) -> tuple[Account, ApiToken, str]:
        """The token of an account that a link opens, and its text; works once. Raises Unauthenticated."""
        sha256 = link_sha256(secret)
        return await self._store.write(lambda uow: self._identity.accounts.redeem(uow, sha256), name="account.redeem")

    async def suspend(self, principal: Principal, wanted: str, reason: str) -> AccountView:
        """Let an account do nothing any more. Its tokens, its links and those it made stop, its clusters and jobs end,
        its hosts take nothing new. Raises Conflict for one's own account and for the first one, which owns this
        Master."""

        def stop(uow: UnitOfWork) -> AccountView:
            account = self._load(uow, wanted)
            if account.state is AccountState.SUSPENDED:
                return self._view(uow, account)
            account = self._identity.accounts.suspend(uow, principal, account, reason)
            self._end_work(uow, account, principal.actor)
            return self._view(uow, account)

        async with self._jobs.controller.placing:
            return await self._store.write(stop, name="account.suspend")

    async def resume(self, principal: Principal, wanted: str) -> AccountView:
        """Let a suspended account sign in again; what ended with it stays ended, its hosts stay drained."""

        def resume(uow: UnitOfWork) -> AccountView:
            account = self._identity.accounts.resume(uow, principal, self._load(uow, wanted))
            return self._view(uow, account)

        return await self._store.write(resume, name="account.resume")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _end_work(self, uow: UnitOfWork, account: Account, actor: str) -> None:
        reason = "its account was suspended"
        self._jobs.end_all(uow, account.id, reason, actor)
        self._clusters.end_all(uow, account.id, reason, actor)
        self._fleet.hosts.drain_all(uow, account.id, actor, "its owner's account is suspended")

    def _view(self, uow: UnitOfWork, account: Account) -> AccountView:
        return AccountView(account, self._market.balance(uow, account.id))

    def _load(self, uow: UnitOfWork, wanted: str) -> Account:
        account = self._identity.accounts.find(uow, wanted)
        if account is None or account.id in OWN:
            raise NotFound("There is no such account. `windrow account ls` lists them.", subject=wanted[:64])
        return account
