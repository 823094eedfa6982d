"""Ends users and projects, while nothing of them goes on: what runs, waits, is hosted or is left of money is named.

A user is erased by the user's own act or by an operator, a project is deleted by owners and admins of its organisation.
The last owner of an organisation goes only where nobody else is in it; its projects, which hold nothing, go as well.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from windrow_master.clusters import lookup as clusters
from windrow_master.fleet import lookup as fleet
from windrow_master.identity import projects
from windrow_master.identity.accounts import check_open
from windrow_master.identity.erasure import ending_with, erase
from windrow_master.identity.model import Account, AccountState, Principal
from windrow_master.identity.people import User
from windrow_master.identity.people_lookup import user_of_id
from windrow_master.identity.service import IdentityService
from windrow_master.jobs import answers as jobs
from windrow_master.market import lookup as market_lookup
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.units import money_text

NAMED_MAX: Final = 5
"""Names in one reason; the others are counted."""


class StillInUse(Conflict):
    """Something of this goes on, or is left. The reasons follow."""

    def __init__(self, detail: str, reasons: Sequence[tuple[str, str]], subject: str) -> None:
        """reasons: each as the project's name and what to do."""
        super().__init__(detail, subject=subject)
        self.reasons = reasons


class LifecycleService:
    """The end of users and projects, with what lies on packages above identity."""

    def __init__(self, store: Store, identity: IdentityService, market: MarketService) -> None:
        self._store, self._identity, self._market = store, identity, market

    # --- projects ----------------------------------------------------------------------------------------------------

    async def delete_project(self, principal: Principal, wanted: str) -> None:
        """Delete a project of the caller's organisation, by its id or name; it can be restored for 30 days. Raises
        NotFound, StillInUse, Conflict for the last project and for the one that the caller acts in."""

        def delete(uow: UnitOfWork) -> None:
            account = projects.project_of(uow, principal, wanted)
            if account.state is AccountState.SUSPENDED:
                raise Conflict(f"{account.name} is suspended. An operator has to resume it first.", subject=account.id)
            projects.check_leaves(uow, account)
            if account.id == principal.account_id:
                said = f"You act in {account.name}. Change to another project first: windrow project use NAME"
                raise Conflict(said, subject=account.id)
            self._check_unused(uow, f"{account.name} cannot be deleted yet.", [account])
            projects.delete(uow, account, principal.actor)
            uow.after_commit(self._identity.asking.forget)

        await self._store.write(delete, name="project.delete")

    async def settle(self, principal: Principal, wanted: str, to: str | None, reason: str) -> Account:
        """Move the money that is left of an account, in which nothing goes on, to another project of its organisation,
        by id or name; None: write it off. For operators. Raises NotFound, StillInUse, Conflict."""

        def settle(uow: UnitOfWork) -> Account:
            account = self._account(uow, wanted)
            target = None if to is None else self._account(uow, to)
            if target is not None:
                check_open(target)
                if account.organisation_id != target.organisation_id or account.id == target.id:
                    raise Conflict("Money moves to another project of the same organisation.", subject=target.id)
            going_on = [(account.name, said) for said in _going_on(uow, account)]
            if going_on:
                raise StillInUse(f"{account.name} still needs its money.", going_on, account.id)
            self._market.settle(uow, account.id, None if target is None else target.id, reason, principal.actor)
            return account

        return await self._store.write(settle, name="account.settle")

    # --- users -------------------------------------------------------------------------------------------------------

    async def delete_self(self, principal: Principal, name: str, password: str | None) -> None:
        """Erase the caller's user, who gives the own name or id, and the password where there is one. Raises Forbidden
        for a wrong password, SignInAgain, StillInUse, Conflict for another name and for the last owner."""
        user = await self._identity.profiles.proved(principal, password)
        if name not in (user.name, user.id):
            raise Conflict(f"You are {user.name}, not {name[:100]}. Nothing was deleted.", subject="name")
        await self._store.write(
            lambda uow: self._erase(uow, user_of_id(uow, user.id), principal.actor, "asked for"), name="user.erase"
        )

    async def delete_user(self, principal: Principal, user_id: str, reason: str) -> None:
        """Erase a user, for operators. Raises NotFound, StillInUse, Conflict for the last owner and for oneself."""

        def delete(uow: UnitOfWork) -> None:
            if user_id == principal.user_id:
                raise Conflict("This is you. Delete your own user with your password: windrow user delete NAME")
            self._erase(uow, user_of_id(uow, user_id), principal.actor, reason)

        await self._store.write(delete, name="user.erase")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _erase(self, uow: UnitOfWork, user: User, actor: str, reason: str) -> None:
        ending = ending_with(uow, user)
        self._check_unused(uow, f"{user.name} is the only member of an organisation that is still in use.", ending)
        for account in ending:
            projects.delete(uow, account, actor)
        erase(uow, self._identity.mail, user, actor, reason)
        uow.after_commit(self._identity.asking.forget)

    def _check_unused(self, uow: UnitOfWork, detail: str, accounts: Iterable[Account]) -> None:
        """Raises StillInUse where anything of these projects goes on or is left."""
        found = [(account.name, said) for account in accounts for said in self._uses(uow, account)]
        if found:
            raise StillInUse(detail, found, "")

    def _uses(self, uow: UnitOfWork, account: Account) -> Iterable[str]:
        yield from _going_on(uow, account)
        if balance := self._market.balance(uow, account.id):
            yield (
                f"{money_text(balance)} are left. Spend them, or have an operator move them to another project or "
                f"write them off: windrow credit settle {account.name}"
            )

    def _account(self, uow: UnitOfWork, wanted: str) -> Account:
        account = self._identity.accounts.find(uow, wanted)
        if account is None or account.organisation_id is None:
            raise NotFound("There is no such account. `windrow account ls` lists them.", subject=wanted[:64])
        return account


def _going_on(uow: UnitOfWork, account: Account) -> Iterable[str]:
    """What runs, waits, is hosted and is not settled, a sentence for each group, with what to do."""
    living = jobs.living_of(uow, account.id)
    theirs = {job.attempts[-1].cluster_id for job in living if job.has_cluster}
    running = [one.name for one in clusters.open_of(uow, account.id) if one.cluster_id not in theirs]
    if running:
        yield f"Machines run, are stopped or end: {_names(running)}. Delete them: windrow cluster delete NAME"
    if busy := [job.name for job in living if job.has_cluster]:
        yield f"Jobs run: {_names(busy)}. Wait, or cancel them: windrow job cancel NAME"
    if waiting := [job.name for job in living if not job.has_cluster]:
        yield f"Jobs wait: {_names(waiting)}. Cancel them: windrow job cancel NAME"
    if hosts := [host.name for host in fleet.hosts_of(uow, account.id)]:
        yield f"Hosts belong to it: {_names(hosts)}. Retire them: windrow host retire NAME"
    if not running and not living and (open_rentals := market_lookup.unsettled(uow, account.id)):
        yield f"{open_rentals} rentals wait for the last receipt of a host. It comes within the hour."


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
