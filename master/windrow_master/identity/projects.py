"""Keeps the end of projects: deleted ones, which can be restored for a while, and transfers to another organisation.

delete ─▶ nobody acts in it, its rows are kept ─▶ restore, within 30 days
                                              └─▶ purge: what it kept is deleted; ledger and audit log stay
offer, by an owner ─▶ accept, by an owner of the other organisation ─▶ it has other members, and all else as before
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import membership
from windrow_master.identity.accounts import check_may_begin, is_first
from windrow_master.identity.messages import ProjectLeft, ProjectPurged
from windrow_master.identity.model import Account, AccountState, Principal, Role
from windrow_master.identity.object_share_repository import ObjectShareRepository
from windrow_master.identity.people import Organisation, ProjectTransfer, User
from windrow_master.identity.people_lookup import Project, organisation_named, organisation_of, own_user_of
from windrow_master.identity.people_repository import OrganisationRepository, ProjectTransferRepository, UserRepository
from windrow_master.identity.repository import (
    AccountRepository,
    JoinTokenRepository,
    ServiceAccountRepository,
    SignInLinkRepository,
    TokenRepository,
)
from windrow_master.identity.sessions import Asking
from windrow_master.identity.tokens import revoke_with_all
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, NotFound
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY

KEPT_NS: Final = 30 * DAY
"""For which a deleted project can be restored."""
OFFER_LIFE_NS: Final = 7 * DAY
_NONE: Final = "There is no such project. List them: windrow project ls"
_NOT_OFFERED: Final = "This project is not offered to your organisation. Offers: windrow project offers"


@dataclass(frozen=True, slots=True)
class TransferView:
    """An offer to transfer a project, with the names. is_mine: the caller's organisation made it."""

    transfer: ProjectTransfer
    project: Project
    source: Organisation
    target: Organisation
    is_mine: bool


class ProjectService:
    """Deleted projects of an organisation, and transfers between organisations."""

    def __init__(self, store: Store, asking: Asking) -> None:
        self._store, self._asking = store, asking

    # --- deleted ones --------------------------------------------------------------------------------------------

    async def deleted(self, principal: Principal) -> Sequence[Account]:
        """Those of the caller's organisation that can be restored, the oldest first."""
        return await self._store.read(lambda uow: uow[AccountRepository].deleted_of(organisation_of(uow, principal).id))

    async def restore(self, principal: Principal, wanted: str) -> Project:
        """Let people act in a deleted project again, by its id or name. Its tokens and shares stay ended. Raises
        NotFound, Conflict where the organisation has no room for it."""

        def restore(uow: UnitOfWork) -> Project:
            deleted = uow[AccountRepository].deleted_of(organisation_of(uow, principal).id)
            account = next((one for one in deleted if wanted in (one.id, one.name)), None)
            if account is None:
                raise NotFound("There is no such deleted project. List them: windrow project ls --deleted")
            _check_room(uow, account.organisation_id or "")
            uow[AccountRepository].save(replace(account, deleted_at_ns=None))
            uow.audit(principal.actor, "project.restore", account.id)
            said = f"The project {account.name} was restored"
            uow.event("project.restored", (account.id,), said, actor=principal.actor)
            uow.after_commit(self._asking.forget)
            return Project(account.id, account.name)

        return await self._store.write(restore, name="project.restore")

    # --- transfers -----------------------------------------------------------------------------------------------

    async def offer(self, principal: Principal, wanted: str, target: str) -> TransferView:
        """Offer a project to another organisation, in place of an earlier offer. Both by id or name. Raises NotFound,
        Forbidden for who is no owner, Conflict for the last project of its organisation."""

        def offer(uow: UnitOfWork) -> TransferView:
            account = project_of(uow, principal, wanted)
            _check_owner(principal)
            check_may_begin(uow, account.id)
            organisation = organisation_named(uow, target)
            check_leaves(uow, account)
            _check_target(uow, account, organisation)
            until = uow.now_wall_ns + OFFER_LIFE_NS
            made = ProjectTransfer(account.id, organisation.id, principal.actor, until)
            uow[ProjectTransferRepository].save(made)
            uow.audit(principal.actor, "project.offer", account.id, fields={"to": organisation.id})
            said = f"The project {account.name} is offered to the organisation {organisation.name}"
            uow.event("project.offered", (account.id,), said, actor=principal.actor)
            return _view(uow, made, principal)

        return await self._store.write(offer, name="project.offer")

    async def transfers(self, principal: Principal) -> Sequence[TransferView]:
        """The offers by and to the caller's organisation that can still be accepted."""

        def read(uow: UnitOfWork) -> list[TransferView]:
            organisation = organisation_of(uow, principal)
            found = uow[ProjectTransferRepository].of_organisation(organisation.id, uow.now_wall_ns)
            return [_view(uow, one, principal) for one in found]

        return await self._store.read(read)

    async def withdraw(self, principal: Principal, wanted: str) -> None:
        """Take an offer back, or refuse one. Raises NotFound, Forbidden for who is no owner."""

        def withdraw(uow: UnitOfWork) -> None:
            account, _ = _offered(uow, principal, wanted)
            _check_owner(principal)
            uow[ProjectTransferRepository].remove(account.id)
            uow.audit(principal.actor, "project.offer_end", account.id)

        await self._store.write(withdraw, name="project.offer_end")

    async def accept(self, principal: Principal, wanted: str) -> Project:
        """Take a project that is offered to the caller's organisation; the caller becomes its admin. Raises NotFound,
        Forbidden for who is no owner, Conflict where it can no longer be given."""

        def accept(uow: UnitOfWork) -> Project:
            account, transfer = _offered(uow, principal, wanted)
            _check_owner(principal)
            user, organisation = own_user_of(uow, principal), organisation_of(uow, principal)
            if transfer.organisation_id != organisation.id:
                raise NotFound(_NOT_OFFERED, subject=wanted[:64])
            maker = transfer.made_by.partition("/")[2]
            _, role = uow[OrganisationRepository].role(account.organisation_id or "", maker)
            by = uow[UserRepository].get(maker)
            if role is not Role.ORG_OWNER or by is None or by.disabled_at_ns is not None:
                raise Conflict("Who offered this project is no owner there any more. Ask for a new offer.")
            check_leaves(uow, account)
            self._move(uow, account, organisation, user, principal.actor, "")
            return Project(account.id, account.name, membership.first_roles(account))

        return await self._store.write(accept, name="project.transfer")

    async def transfer(self, principal: Principal, wanted: str, target: str, reason: str) -> Account:
        """Give a project to another organisation without an offer, for operators. Both by id or name. Raises NotFound,
        Conflict."""

        def transfer(uow: UnitOfWork) -> Account:
            account = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
            if account is None or account.organisation_id is None:
                raise NotFound("There is no such account. `windrow account ls` lists them.", subject=wanted[:64])
            return self._move(uow, account, organisation_named(uow, target), None, principal.actor, reason)

        return await self._store.write(transfer, name="project.transfer")

    def _move(
        self, uow: UnitOfWork, account: Account, target: Organisation, admin: User | None, actor: str, reason: str
    ) -> Account:
        """admin: who becomes its admin; None: nobody, so that owners and admins of the organisation give roles."""
        if is_first(uow, account.id):
            raise Conflict("The first project belongs to this Master and is not transferred.", subject=account.id)
        check_may_begin(uow, account.id)
        _check_target(uow, account, target)
        _check_room(uow, target.id)
        end_access(uow, account.id)
        uow[OrganisationRepository].forget_project(account.id)
        moved = replace(account, organisation_id=target.id)
        uow[AccountRepository].save(moved)
        uow.publish(ProjectLeft(account.id))
        if admin is not None:
            uow[OrganisationRepository].set_project_roles(admin.id, account.id, membership.first_roles(account))
        fields = {"from": account.organisation_id or "", "to": target.id}
        uow.audit(actor, "project.transfer", account.id, reason, fields)
        said = f"The project {account.name} was transferred to the organisation {target.name}"
        uow.event("project.transferred", (account.id,), said + (f": {reason}" if reason else ""), fields, actor)
        uow.after_commit(self._asking.forget)
        return moved


# --- inside a unit of work -------------------------------------------------------------------------------------------


def end_access(uow: UnitOfWork, account_id: AccountId) -> None:
    """End all ways into a project but the roles of its members: tokens and their sessions, those of service accounts,
    too; join tokens, sign-in links, shares by it and with it, an offer to transfer it."""
    for token_id in uow[TokenRepository].ids_of_account(account_id):
        revoke_with_all(uow, token_id)
    uow[JoinTokenRepository].revoke_all(account_id, uow.now_wall_ns)
    uow[SignInLinkRepository].forget(account_id)
    uow[ObjectShareRepository].forget_party(account_id)
    uow[ProjectTransferRepository].remove(account_id)


def delete(uow: UnitOfWork, account: Account, actor: str) -> None:
    """Let nobody act in a project any more. Its rows are kept."""
    end_access(uow, account.id)
    uow[AccountRepository].save(replace(account, deleted_at_ns=uow.now_wall_ns))
    uow.publish(ProjectLeft(account.id))
    uow.audit(actor, "project.delete", account.id, fields={"name": account.name})
    uow.event("project.deleted", (account.id,), f"The project {account.name} was deleted", actor=actor)


def purge_past(uow: UnitOfWork) -> int:
    """Delete what projects kept that were deleted long enough ago; returns how many projects. The name is free then."""
    past = uow[AccountRepository].deleted_before(uow.now_wall_ns - KEPT_NS)
    for account in past:
        uow.publish(ProjectPurged(account.id))
        uow[ServiceAccountRepository].forget_account(account.id)
        uow[OrganisationRepository].forget_project(account.id)
        uow[AccountRepository].save(replace(account, name=account.id, purged_at_ns=uow.now_wall_ns))
        uow.audit("master", "project.purge", account.id, "30 days after it was deleted")
    return len(past)


def project_of(uow: UnitOfWork, principal: Principal, wanted: str) -> Account:
    """A project of the caller's organisation, by its id or name. Raises NotFound."""
    organisation = organisation_of(uow, principal)
    account = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
    if account is None or account.organisation_id != organisation.id or account.state is AccountState.DELETED:
        raise NotFound(_NONE, subject=wanted[:64])
    return account


def check_leaves(uow: UnitOfWork, account: Account) -> None:
    """Raises Conflict for a project that its organisation cannot do without: the first one of the market, which belongs
    to the Master, and the last one, in which its owners act."""
    if is_first(uow, account.id):
        raise Conflict("The first project belongs to this Master and stays.", subject=account.id)
    if len(uow[OrganisationRepository].projects(account.organisation_id or "", limit=2)) < 2:
        raise Conflict(
            f"{account.name} is the last project of its organisation, and its owners act in it. Add another one first: "
            "windrow project add NAME. To end all of it, delete your user: windrow user delete",
            subject=account.id,
        )


def _check_owner(principal: Principal) -> None:
    if Role.ORG_OWNER not in principal.roles:
        raise Forbidden("Owners of the organisation transfer its projects. Needed: org_owner.")


def _check_target(uow: UnitOfWork, account: Account, target: Organisation) -> None:
    if target.id == account.organisation_id:
        raise Conflict(f"The project {account.name} belongs to {target.name} already.", subject=account.id)
    if not uow[OrganisationRepository].has_members(target.id):
        raise Conflict("This organisation has no members any more.", subject=target.id)


def _check_room(uow: UnitOfWork, organisation_id: str) -> None:
    """Raises Conflict where an organisation has as many projects as it may."""
    if len(uow[OrganisationRepository].projects(organisation_id)) >= membership.PROJECTS_MAX:
        raise Conflict(f"An organisation has at most {membership.PROJECTS_MAX:,} projects.")


def _offered(uow: UnitOfWork, principal: Principal, wanted: str) -> tuple[Account, ProjectTransfer]:
    """A project with an open offer that the caller's organisation made or got."""
    organisation = organisation_of(uow, principal)
    for transfer in uow[ProjectTransferRepository].of_organisation(organisation.id, uow.now_wall_ns):
        account = uow[AccountRepository].get(transfer.account_id)
        if account is not None and wanted in (account.id, account.name):
            return account, transfer
    raise NotFound(_NOT_OFFERED, subject=wanted[:64])


def _view(uow: UnitOfWork, transfer: ProjectTransfer, principal: Principal) -> TransferView:
    account = uow[AccountRepository].get(transfer.account_id)
    assert account is not None
    source = uow[OrganisationRepository].get(account.organisation_id or "")
    target = uow[OrganisationRepository].get(transfer.organisation_id)
    assert source is not None and target is not None
    is_mine = source.id == principal.organisation_id
    return TransferView(transfer, Project(account.id, account.name), source, target, is_mine)
