"""Ends memberships, and erases users, inside a unit of work: the id of an erased user is the pseudonym that stays in
ledger and audit log, and in what the projects own."""

from dataclasses import replace

from windrow_master.identity import membership
from windrow_master.identity.accounts import own_user
from windrow_master.identity.messages import UserErased
from windrow_master.identity.model import Account, Role
from windrow_master.identity.object_share_repository import ObjectShareRepository
from windrow_master.identity.people import Organisation, User
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.provider_repository import ProviderRepository
from windrow_master.identity.repository import AccountRepository, DeviceRepository, SessionRepository, TokenRepository
from windrow_master.identity.tokens import revoke_with_all
from windrow_master.mail.service import MailService
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict


def end_membership(uow: UnitOfWork, organisation: Organisation, user: User, actor: str) -> None:
    """Take a user out of an organisation and its projects. The user's tokens and sessions there end at once."""
    its = [account_id for account_id, _ in uow[OrganisationRepository].projects(organisation.id)]
    uow[OrganisationRepository].remove_member(organisation.id, user.id)
    for token_id in uow[TokenRepository].ids_of_user(user.id, its):
        revoke_with_all(uow, token_id)
        uow[ObjectShareRepository].withdraw_of(token_id)
    uow[ObjectShareRepository].withdraw_from(user.id, its)
    uow.audit(actor, "member.remove", user.id, fields={"organisation": organisation.id})


def ending_with(uow: UnitOfWork, user: User) -> list[Account]:
    """The projects that nobody could act in without this user: those of organisations without another member. Raises
    Conflict for the first user, and for the last owner of an organisation that has other members."""
    first = uow[AccountRepository].first()
    if first is not None and user.id == own_user(uow, first.id):
        raise Conflict("The first user belongs to this Master, whose command line signs in as it.", subject=user.id)
    repository, found = uow[OrganisationRepository], list[Account]()
    for organisation, role in repository.organisations_of(user.id):
        if repository.has_members(organisation.id, but=user.id):
            others = repository.count(organisation.id, Role.ORG_OWNER, but=user.id)
            membership.check_keeps_owner(role, None, others, organisation.name)
            continue
        accounts = [uow[AccountRepository].get(account_id) for account_id, _ in repository.projects(organisation.id)]
        found += [one for one in accounts if one is not None]
    if first in found:
        raise Conflict("The first project belongs to this Master and stays. Make somebody else an owner of it first.")
    return found


def erase(uow: UnitOfWork, mail: MailService, user: User, actor: str, reason: str) -> None:
    """Erase what tells of a person, and end all that the user can do. What the user's tokens made ends with them, as
    for a member who is removed. An organisation whose last member this was loses its name, which may be the user's."""
    organisations = uow[OrganisationRepository]
    for organisation, _ in organisations.organisations_of(user.id):
        end_membership(uow, organisation, user, actor)
        if not organisations.has_members(organisation.id):
            organisations.save(replace(organisation, name=organisation.id))
    tokens = uow[TokenRepository].ids_of_user(user.id)
    for token_id in tokens:
        revoke_with_all(uow, token_id)
        uow[ObjectShareRepository].withdraw_of(token_id)
    uow.publish(UserErased(user.id, tokens))
    uow[ObjectShareRepository].forget_party(user.id)
    uow[DeviceRepository].forget_user(user.id)
    uow[SessionRepository].forget_user(user.id)
    uow[TokenRepository].forget_person(user.id)
    uow[ProviderRepository].forget_user(user.id)
    organisations.forget_address(user.id)
    uow[UserRepository].remove_factor(user.id)
    uow[UserRepository].forget_password_links(user.id)
    if user.address is not None:
        mail.forget(uow, user.address)
    uow[UserRepository].save(
        User(
            id=user.id,
            name=user.id,
            created_at_ns=user.created_at_ns,
            disabled_at_ns=uow.now_wall_ns,
            erased_at_ns=uow.now_wall_ns,
        )
    )
    uow.audit(actor, "user.erase", user.id, reason)
