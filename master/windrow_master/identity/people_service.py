"""The people service: invitations, members and their roles, projects, and what a user changes about the own account.

invite ─▶ link (shown once) ─▶ accept: a new user with a password, or one who is signed in ─▶ member
remove: the member's tokens and sessions of these projects stop at once
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import decide, membership
from windrow_master.identity.erasure import end_membership
from windrow_master.identity.model import (
    MARKET_ROLES,
    Account,
    ApiToken,
    Principal,
    Role,
    Session,
)
from windrow_master.identity.passwords import Passwords, hashed
from windrow_master.identity.people import (
    Invitation,
    Member,
    Organisation,
    Projects,
    User,
    UserId,
)
from windrow_master.identity.people_lookup import (
    Project,
    check_free,
    check_name_free,
    check_rights,
    digest_of,
    manages_all,
    member_of,
    named,
    organisation_named,
    organisation_of,
    own_user_of,
    secret_sha256,
    sees_all,
    user_of_id,
    whole_user_of,
)
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import AccountRepository, SessionRepository, TokenRepository
from windrow_master.identity.sessions import TOKEN_LIFE_NS_MAX, Asking, new_secret
from windrow_master.identity.sign_in import SignIn, begin_for, project_for
from windrow_master.identity.tokens import issue_token
from windrow_master.mail.message import Letter
from windrow_master.mail.service import MailService
from windrow_master.sift import sift
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, FactorRequired, Forbidden, InvalidInput, NotFound, Unauthenticated
from windrow_proto.ids import NO_ID, AccountId, resembles_id
from windrow_proto.units import DAY, MINUTE

INVITATION_LIFE_NS: Final = 7 * DAY
INVITATION_PREFIX: Final = "wi_"
MAIL_PAUSE_NS: Final = 5 * MINUTE
"""Between two invitations by mail of one organisation to one address."""
MAILED_MAX: Final = 10_000
"""Addresses that are remembered for that; the oldest are forgotten first."""
LinkOf = Callable[[str], str]
"""Makes the URL of a secret."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of an organisation, with the names of the projects."""

    member: Member
    has_factor: bool
    projects: Sequence[Project]


@dataclass(frozen=True, slots=True)
class UserView:
    """A user, and the organisations with the user's role in each."""

    user: User
    organisations: Sequence[tuple[Organisation, Role | None]]


@dataclass(frozen=True, slots=True)
class Invited:
    """An invitation with the names of what it opens."""

    invitation: Invitation
    organisation: Organisation
    projects: Sequence[Project]


KNOWN_ADDRESS: Final = (
    "There is a user with this address already, and this is not that user's password. Give it, or sign in and open the "
    "link again. Who forgot it asks for a new one at the sign-in."
)


class PeopleService:
    """Users, organisations, projects and invitations."""

    def __init__(
        self,
        store: Store,
        asking: Asking,
        passwords: Passwords,
        sign_in: SignIn,
        mail: MailService,
        secret_end: str,
    ) -> None:
        """secret_end: the part of a link by which its reader knows the market."""
        self._store, self._asking, self._sign_in = store, asking, sign_in
        self._passwords, self._mail, self._secret_end = passwords, mail, secret_end
        self._mailed: OrderedDict[tuple[str, str], int] = OrderedDict()

    # --- members -------------------------------------------------------------------------------------------------

    async def organisation(self, principal: Principal) -> Organisation:
        """The caller's organisation. Raises NotFound for a caller without one."""
        return await self._store.read(lambda uow: organisation_of(uow, principal))

    async def members(self, principal: Principal, after: str, limit: int) -> Sequence[MemberView]:
        """The members of the caller's organisation; an admin of a project sees those of the project."""

        def read(uow: UnitOfWork) -> list[MemberView]:
            organisation = organisation_of(uow, principal)
            seen = _seen(uow, principal)

            def rows(last: MemberView | None, size: int) -> list[MemberView]:
                position = after if last is None else last.member.user.id
                found = uow[OrganisationRepository].members(organisation.id, position, size)
                return [_member_view(uow, organisation.id, user, role, seen) for user, role in found]

            def is_seen(view: MemberView) -> bool:
                return sees_all(principal) or principal.account_id in view.member.projects

            return sift(rows, is_seen, limit, None)[0]

        return await self._store.read(read)

    async def set_member(
        self,
        principal: Principal,
        user_id: str,
        role: Role | None,
        keeps_role: bool,
        wanted: Mapping[str, frozenset[Role]],
    ) -> MemberView:
        """Change a member's role in the organisation, unless it keeps it, and the roles in these projects, by id or
        name; no roles in a project end the membership there. Raises NotFound, Forbidden, Conflict where the last owner
        would go."""

        def change(uow: UnitOfWork) -> MemberView:
            organisation = organisation_of(uow, principal)
            user, before = member_of(uow, principal, user_id)
            check_rights(principal, user)
            after = before if keeps_role else role
            known = dict(uow[OrganisationRepository].projects(organisation.id))
            projects = _by_id(wanted, known)
            kept = dict(uow[OrganisationRepository].projects_of(user.id, organisation.id))
            both = {**kept, **projects}
            if not keeps_role:
                membership.check_changes(principal, before)
                if role is not None:
                    membership.check_role(principal, role)
                membership.check_keeps_owner(before, after, _others(uow, organisation, user))
            membership.check_projects(principal, projects, known, kept)
            if after is None and not any(both.values()):
                raise Conflict("A member has a role in the organisation or in a project. Remove the member instead.")
            uow[OrganisationRepository].set_role(organisation.id, user.id, after)
            for account_id, roles in projects.items():
                uow[OrganisationRepository].set_project_roles(user.id, account_id, roles)
            for token_id in uow[TokenRepository].ids_of_user(user.id, list(known)):
                uow[UserRepository].forget_password_links_of(token_id)
            fields = {"role": after.value if after else "", "projects": _said(projects, known)}
            uow.audit(principal.actor, "member.change", user.id, fields=fields)
            uow.after_commit(self._asking.forget)
            return _member_view(uow, organisation.id, user, after, _seen(uow, principal))

        return await self._store.write(change, name="member.change")

    async def remove_member(self, principal: Principal, user_id: str) -> None:
        """End a membership; the tokens and sessions of that user in the organisation's projects stop at once. A user
        may leave by itself. Raises NotFound, Forbidden, Conflict for the last owner."""

        def remove(uow: UnitOfWork) -> None:
            organisation = organisation_of(uow, principal)
            user, role = member_of(uow, principal, user_id)
            if user.id == principal.user_id:
                whole_user_of(uow, principal)
            else:
                membership.check_changes(principal, role)
                check_rights(principal, user)
                _check_ends(uow, principal, organisation, user, role)
            self._end(uow, organisation, user, role, principal.actor)

        await self._store.write(remove, name="member.remove")

    async def leave(self, principal: Principal, wanted: str) -> None:
        """End the caller's membership of an organisation, by its id or name. Raises NotFound, Conflict for the last
        owner."""

        def leave(uow: UnitOfWork) -> None:
            user = whole_user_of(uow, principal)
            for organisation, role in uow[OrganisationRepository].organisations_of(user.id):
                if wanted in (organisation.id, organisation.name):
                    self._end(uow, organisation, user, role, principal.actor)
                    return
            raise NotFound("You are a member of no such organisation. Yours: windrow whoami", subject=wanted[:64])

        await self._store.write(leave, name="member.leave")

    def _end(self, uow: UnitOfWork, organisation: Organisation, user: User, role: Role | None, actor: str) -> None:
        membership.check_keeps_owner(role, None, _others(uow, organisation, user))
        end_membership(uow, organisation, user, actor)
        uow.after_commit(self._asking.forget)

    async def make_owner(self, principal: Principal, user_id: str, wanted: str, reason: str, link: str) -> None:
        """Make a member an owner of an organisation, by its id or name, for operators: its own owners may be gone. All
        members are told by mail, where this market sends some. link: where members are shown. Raises NotFound."""

        def make(uow: UnitOfWork) -> None:
            repository = uow[OrganisationRepository]
            organisation = organisation_named(uow, wanted)
            user = user_of_id(uow, user_id)
            if not repository.role(organisation.id, user.id)[0]:
                raise NotFound(f"This user is no member of {organisation.name}.", subject=user_id[:64])
            if user.disabled_at_ns is not None:
                raise Conflict(f"{user.name} is disabled. Make somebody else an owner.", subject=user.id)
            repository.set_role(organisation.id, user.id, Role.ORG_OWNER)
            uow.audit(principal.actor, "organisation.owner", user.id, reason, {"organisation": organisation.id})
            said = f"An operator made a member an owner of {organisation.name}: {reason}"
            its = [account_id for account_id, _ in repository.projects(organisation.id)]
            uow.event("organisation.owner_made", its, said, {"user": user.id}, principal.actor)
            if self._mail.is_on:
                for member, _ in repository.members(organisation.id, "", membership.MEMBERS_MAX):
                    if member.address is not None:
                        self._mail.write(uow, member.address, _owner_letter(organisation, user, reason, link))
            uow.after_commit(self._asking.forget)

        await self._store.write(make, name="organisation.owner")

    async def users(self, after: str, limit: int) -> Sequence[UserView]:
        """The users of the installation, for operators."""

        def read(uow: UnitOfWork) -> list[UserView]:
            found = uow[UserRepository].list(after, limit)
            return [UserView(one, uow[OrganisationRepository].organisations_of(one.id)) for one in found]

        return await self._store.read(read)

    # --- projects ------------------------------------------------------------------------------------------------

    async def projects(self, principal: Principal, after: str, limit: int) -> Sequence[Project]:
        """The projects of the caller's organisation that the caller may see, with the caller's roles."""

        def read(uow: UnitOfWork) -> list[Project]:
            organisation = organisation_of(uow, principal)
            found = uow[OrganisationRepository].projects(organisation.id, after, membership.PROJECTS_MAX)
            own = uow[OrganisationRepository].projects_of(principal.user_id or "", organisation.id)
            projects = [Project(one, name, own.get(one, frozenset())) for one, name in found]
            is_all = sees_all(principal)
            return [one for one in projects if is_all or one.roles or one.id == principal.account_id][:limit]

        return await self._store.read(read)

    async def add_project(self, principal: Principal, name: str) -> Project:
        """A new project of the caller's organisation, with the caller as admin and without money. It may rent and
        provide where the caller's project may. Raises InvalidInput, Conflict where the name is taken."""
        decide.check_account_name(name)
        if resembles_id(name):
            raise InvalidInput(f"name: A project's name is {NO_ID}.", subject="name")

        def add(uow: UnitOfWork) -> Project:
            organisation = organisation_of(uow, principal)
            user = own_user_of(uow, principal)
            if len(uow[OrganisationRepository].projects(organisation.id)) >= membership.PROJECTS_MAX:
                raise Conflict(f"An organisation has at most {membership.PROJECTS_MAX:,} projects.")
            if uow[AccountRepository].by_name(name) is not None:
                raise Conflict(f"The name {name} is taken. Take another one.", subject=name)
            mine = uow[AccountRepository].get(principal.account_id)
            roles = MARKET_ROLES & mine.roles if mine is not None else frozenset[Role]()
            account = Account(
                AccountId(uow.mint("account")), name, roles, uow.now_wall_ns, organisation_id=organisation.id
            )
            uow[AccountRepository].add(account)
            given = membership.first_roles(account)
            uow[OrganisationRepository].set_project_roles(user.id, account.id, given)
            uow.audit(principal.actor, "project.make", account.id, fields={"name": name})
            uow.event("project.made", (account.id,), f"The project {name} was added", {"name": name}, principal.actor)
            return Project(account.id, name, given)

        return await self._store.write(add, name="project.make")

    async def use_project(self, principal: Principal, wanted: str) -> Project:
        """Let the caller's session act in another project of the user, by its id or name. Raises NotFound."""

        def use(uow: UnitOfWork) -> Project:
            project, token, _ = self._token_in(uow, principal, wanted, principal.token_name, is_sign_in=True)
            if principal.session_id is None:
                raise Conflict("Only a session changes its project. For a token: windrow project use")
            uow[SessionRepository].move(principal.session_id, project.id, token.id)
            uow[TokenRepository].revoke_sign_in(principal.token_id, uow.now_wall_ns)
            uow.after_commit(self._asking.forget)
            return project

        return await self._store.write(use, name="session.project")

    async def token_in(self, principal: Principal, wanted: str, name: str) -> tuple[Project, ApiToken, str]:
        """A token of the caller's user in another project, with the roles and the end of the caller's. Raises
        NotFound, Forbidden where the caller's token has none of the roles there."""
        return await self._store.write(
            lambda uow: self._token_in(uow, principal, wanted, name, is_sign_in=False), name="token.make"
        )

    # --- invitations ---------------------------------------------------------------------------------------------

    async def invite(
        self,
        principal: Principal,
        address: str | None,
        role: Role | None,
        wanted: Mapping[str, frozenset[Role]],
        link_of: LinkOf,
    ) -> tuple[Invited, str | None]:
        """An invitation and its link, told this once; None: it was mailed to the address. address None: for whoever
        has the link. Raises InvalidInput, Forbidden where it would give more than the caller may."""
        checked = None if address is None else membership.check_address(address)

        def make(uow: UnitOfWork) -> tuple[Invited, str | None]:
            organisation = organisation_of(uow, principal)
            known = dict(uow[OrganisationRepository].projects(organisation.id))
            projects = _by_id(wanted, known)
            _check_gives(principal, role, projects, known)
            have = uow[OrganisationRepository].count_invitations(organisation.id, uow.now_wall_ns)
            way = "Withdraw some: windrow invitation rm"
            decide.check_number(principal, have, membership.INVITATIONS_MAX, "open invitations", way)
            user = uow[UserRepository].by_address(checked) if checked is not None else None
            if user is not None and uow[OrganisationRepository].role(organisation.id, user.id)[0]:
                raise Conflict(
                    f"The member {user.name} has the address {checked} already, and may have typed it without a proof. "
                    f"Look who that is before you change the roles: windrow member set {user.id}",
                    subject=user.id,
                )
            return self._renewed(
                uow,
                principal,
                organisation,
                Invitation(
                    id=uow.mint("invitation"),
                    organisation_id=organisation.id,
                    sha256=b"",
                    address=checked,
                    role=role,
                    projects=projects,
                    made_by=principal.actor,
                    created_at_ns=uow.now_wall_ns,
                    expires_at_ns=0,
                ),
                link_of,
            )

        return await self._store.write(make, name="invitation.make")

    async def invitations(self, principal: Principal, after: str, limit: int) -> Sequence[Invited]:
        """Those of the caller's organisation that can still be accepted."""

        def read(uow: UnitOfWork) -> list[Invited]:
            organisation = organisation_of(uow, principal)

            def rows(last: Invitation | None, size: int) -> Sequence[Invitation]:
                position = after if last is None else last.id
                return uow[OrganisationRepository].invitations(organisation.id, uow.now_wall_ns, position, size)

            seen = sift(rows, lambda one: _sees(principal, one), limit, None)[0]
            return [Invited(one, organisation, named(uow, one.projects)) for one in seen]

        return await self._store.read(read)

    async def renew_invitation(
        self, principal: Principal, invitation_id: str, link_of: LinkOf
    ) -> tuple[Invited, str | None]:
        """Another link for an invitation, good for another week; the one before opens nothing any more."""

        def renew(uow: UnitOfWork) -> tuple[Invited, str | None]:
            organisation, invitation = self._invitation(uow, principal, invitation_id)
            known = dict(uow[OrganisationRepository].projects(organisation.id))
            _check_gives(principal, invitation.role, invitation.projects, known)
            return self._renewed(uow, principal, organisation, replace(invitation, made_by=principal.actor), link_of)

        return await self._store.write(renew, name="invitation.renew")

    async def withdraw(self, principal: Principal, invitation_id: str) -> None:
        """Let an invitation open nothing any more."""

        def withdraw(uow: UnitOfWork) -> None:
            _, invitation = self._invitation(uow, principal, invitation_id)
            uow[OrganisationRepository].withdraw(invitation.id)
            uow.audit(principal.actor, "invitation.withdraw", invitation.id)

        await self._store.write(withdraw, name="invitation.withdraw")

    async def look_at(self, secret: str) -> Invited:
        """The invitation of a link, before it is accepted. Raises Unauthenticated for what is no link's secret,
        Conflict for one that can no longer be accepted."""
        digest = digest_of(secret, INVITATION_PREFIX, "This is no invitation.")

        def read(uow: UnitOfWork) -> Invited:
            found = uow[OrganisationRepository].invitation(digest)
            own = found.address if found is not None else None
            invitation = membership.check_accepts(found, own, uow.now_wall_ns)
            organisation = uow[OrganisationRepository].get(invitation.organisation_id)
            assert organisation is not None
            return Invited(invitation, organisation, named(uow, invitation.projects))

        return await self._store.read(read)

    async def accept_as_new(
        self, secret: str, name: str, address: str, password: str, code: str | None, browser: str, place: str
    ) -> tuple[Session, str, Principal]:
        """Make a user of who holds this link, and a session. A user with this address accepts by the own password, and
        code of the second factor, which is the only way back for who is in no project. Raises Conflict where that
        password is wrong, FactorRequired where a code is missing."""
        digest = digest_of(secret, INVITATION_PREFIX, "This is no invitation.")
        checked_name, checked = membership.check_person(name), membership.check_address(address)
        await self.look_at(secret)
        if await self._store.read(lambda uow: uow[UserRepository].by_address(checked)) is not None:
            return await self._accept_as_known(digest, checked, password, code, browser, place)
        encoded = await hashed(self._store, self._passwords, password, checked_name, checked)

        def accept(uow: UnitOfWork) -> tuple[Session, str, Principal]:
            found = uow[OrganisationRepository].invitation(digest)
            invitation = membership.check_accepts(found, checked, uow.now_wall_ns)
            check_free(uow, checked, None)
            check_name_free(uow, invitation.organisation_id, checked_name)
            user = User(UserId(uow.mint("user")), checked_name, uow.now_wall_ns, checked, encoded)
            uow[UserRepository].add(user)
            self._join(uow, user, invitation)
            first = next(iter(invitation.projects), None)
            return begin_for(uow, user, first, browser, place)

        return await self._store.write(accept, name="invitation.accept")

    async def accept(self, principal: Principal, secret: str) -> Organisation:
        """Make the caller's user a member. Raises Forbidden where the invitation is for another address."""
        digest = digest_of(secret, INVITATION_PREFIX, "This is no invitation.")

        def accept(uow: UnitOfWork) -> Organisation:
            invitation = self._accepted(uow, whole_user_of(uow, principal), digest)
            organisation = uow[OrganisationRepository].get(invitation.organisation_id)
            assert organisation is not None
            return organisation

        return await self._store.write(accept, name="invitation.accept")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _accept_as_known(
        self, digest: bytes, address: str, password: str, code: str | None, browser: str, place: str
    ) -> tuple[Session, str, Principal]:
        def accept(uow: UnitOfWork, user: User) -> AccountId | None:
            return next(iter(self._accepted(uow, user, digest).projects), None)

        try:
            return await self._sign_in.with_password(address, password, code, browser, place, accept)
        except FactorRequired:
            raise
        except Unauthenticated as wrong:
            raise Conflict(KNOWN_ADDRESS) from wrong

    def _accepted(self, uow: UnitOfWork, user: User, digest: bytes) -> Invitation:
        found = uow[OrganisationRepository].invitation(digest)
        invitation = membership.check_accepts(found, user.address, uow.now_wall_ns)
        if uow[OrganisationRepository].role(invitation.organisation_id, user.id)[0]:
            raise Conflict("You are a member of this organisation already.")
        self._join(uow, user, invitation)
        uow.after_commit(self._asking.forget)
        return invitation

    def _invitation(self, uow: UnitOfWork, principal: Principal, invitation_id: str) -> tuple[Organisation, Invitation]:
        organisation = organisation_of(uow, principal)
        found = uow[OrganisationRepository].invitation_of(invitation_id)
        is_own = found is not None and found.organisation_id == organisation.id and found.used_at_ns is None
        if found is None or not is_own or not _sees(principal, found):
            raise NotFound("There is no such invitation. List them: windrow invitation ls", subject=invitation_id[:64])
        return organisation, found

    def _renewed(
        self,
        uow: UnitOfWork,
        principal: Principal,
        organisation: Organisation,
        invitation: Invitation,
        link_of: LinkOf,
    ) -> tuple[Invited, str | None]:
        if invitation.address is not None and self._mail.is_on:
            self._check_pause(uow, organisation, invitation.address)
        secret = f"{INVITATION_PREFIX}{new_secret(uow)}.{self._secret_end}"
        until = uow.now_wall_ns + INVITATION_LIFE_NS
        renewed = replace(
            invitation, sha256=secret_sha256(secret), expires_at_ns=until, token_id=principal.token_id or None
        )
        uow[OrganisationRepository].invite(renewed)
        uow.audit(principal.actor, "invitation.make", renewed.id, fields={"role": renewed.role or "member"})
        invited, link = Invited(renewed, organisation, named(uow, renewed.projects)), link_of(secret)
        if renewed.address is None or not self._mail.is_on:
            return invited, link
        self._mail.write(uow, renewed.address, _invitation_letter(invited, principal.user_name, link))
        return invited, None

    def _check_pause(self, uow: UnitOfWork, organisation: Organisation, address: str) -> None:
        """Raises Conflict where this organisation has had a mail written to this address of late, withdrawn or not."""
        key, now_ns = (organisation.id, membership.address_key(address)), uow.now_wall_ns
        if now_ns - self._mailed.get(key, -MAIL_PAUSE_NS) < MAIL_PAUSE_NS:
            raise Conflict(f"A mail went to {address} less than five minutes ago. Wait, or give the link yourself.")
        self._mailed.pop(key, None)
        while len(self._mailed) >= MAILED_MAX:
            self._mailed.popitem(last=False)
        uow.after_commit(lambda: self._mailed.update({key: now_ns}))

    def _join(self, uow: UnitOfWork, user: User, invitation: Invitation) -> None:
        repository = uow[OrganisationRepository]
        if not _still_gives(uow, invitation):
            raise Conflict("Who invited you can no longer do so. Ask for a new invitation.")
        uow[UserRepository].forget_password_links(user.id)
        if repository.count(invitation.organisation_id) >= membership.MEMBERS_MAX:
            raise Conflict(f"An organisation has at most {membership.MEMBERS_MAX:,} members.")
        repository.set_role(invitation.organisation_id, user.id, invitation.role)
        for account_id, roles in invitation.projects.items():
            repository.set_project_roles(user.id, account_id, roles)
        repository.invite(replace(invitation, used_at_ns=uow.now_wall_ns, used_by=user.id))
        uow.audit(f"user/{user.id}", "invitation.accept", invitation.id, fields={"made_by": invitation.made_by})

    def _token_in(
        self, uow: UnitOfWork, principal: Principal, wanted: str, name: str, *, is_sign_in: bool
    ) -> tuple[Project, ApiToken, str]:
        user, asking = whole_user_of(uow, principal), uow[TokenRepository].get(principal.token_id)
        account = uow[AccountRepository].get(AccountId(wanted)) or uow[AccountRepository].by_name(wanted)
        try:
            found, standing = project_for(uow, user, account.id if account is not None else AccountId(""))
        except Forbidden:
            raise NotFound("There is no such project. List them: windrow project ls", subject=wanted[:64]) from None
        most = asking.roles if asking is not None else frozenset[Role]()
        if not most & standing:
            raise Forbidden(
                f"Your token has no role in the project {found.name}, where you are {', '.join(sorted(standing))}. "
                "Sign in again: windrow login URL --address ADDRESS"
            )
        if not is_sign_in:
            have = uow[TokenRepository].count(found.id, uow.now_wall_ns, user.id)
            decide.check_number(principal, have, decide.TOKENS_MAX, "API tokens", "Revoke some: windrow token rm")
        token, text = issue_token(
            uow,
            found.id,
            name,
            most,
            min(TOKEN_LIFE_NS_MAX, max(1, principal.expires_at_ns - uow.now_wall_ns)),
            principal.actor,
            made_by=principal.token_id,
            user_id=user.id,
            is_sign_in=is_sign_in,
        )
        if not is_sign_in:
            said = f"A token was made: {token.name} ({', '.join(sorted(most & standing))})"
            uow.event("token.made", (token.id, found.id), said, actor=principal.actor)
        return Project(found.id, found.name, most & standing), replace(token, roles=most & standing), text


def _others(uow: UnitOfWork, organisation: Organisation, user: User) -> int:
    """How many other owners an organisation has who are not disabled."""
    return uow[OrganisationRepository].count(organisation.id, Role.ORG_OWNER, but=user.id)


def _check_ends(
    uow: UnitOfWork, principal: Principal, organisation: Organisation, user: User, role: Role | None
) -> None:
    """Raises Forbidden where this principal may not end a membership: an admin of a project ends those of members who
    have nothing but that project."""
    if manages_all(principal):
        return
    projects = uow[OrganisationRepository].projects_of(user.id, organisation.id)
    if Role.ADMIN not in principal.roles or role is not None or set(projects) != {principal.account_id}:
        raise Forbidden(
            "Owners and admins of the organisation remove members; an admin of a project those who have nothing else. "
            f"To take somebody out of this project: windrow member set NAME --project {principal.account_name}:"
        )


def _check_gives(principal: Principal, role: Role | None, projects: Projects, known: Container[str]) -> None:
    """Raises InvalidInput or Forbidden where this principal cannot invite somebody to that."""
    if role is None and not any(projects.values()):
        said = "An invitation gives a role in the organisation or in one of its projects."
        raise InvalidInput(said, subject="projects")
    if role is not None:
        membership.check_role(principal, role)
    membership.check_projects(principal, projects, known)


def _seen(uow: UnitOfWork, principal: Principal) -> Container[str] | None:
    """The projects that the caller sees in the list of members; None: all."""
    if sees_all(principal):
        return None
    return {principal.account_id, *uow[OrganisationRepository].projects_of(principal.user_id or "")}


def _member_view(
    uow: UnitOfWork, organisation_id: str, user: User, role: Role | None, seen: Container[str] | None
) -> MemberView:
    """seen: the projects that are shown; None: all."""
    found = uow[OrganisationRepository].projects_of(user.id, organisation_id)
    projects = {one: roles for one, roles in found.items() if seen is None or one in seen}
    factor = uow[UserRepository].factor(user.id)
    has_factor = factor is not None and factor.confirmed_at_ns is not None
    return MemberView(Member(user, role, projects), has_factor, named(uow, projects))


def _invitation_letter(invited: Invited, by: str, link: str) -> Letter:
    name = invited.organisation.name
    return Letter(
        subject=f"{by or 'Somebody'} invites you to {name} on Windrow",
        paragraphs=(
            f"{by or 'An admin'} invites you to the organisation {name}.",
            "The link works once, for seven days. With it you choose a name and a password.",
        ),
        link=link,
        link_text="Accept the invitation",
    )


def _owner_letter(organisation: Organisation, user: User, reason: str, link: str) -> Letter:
    return Letter(
        subject=f"{user.name} is an owner of {organisation.name} on Windrow now",
        paragraphs=(
            f"An operator of this market made {user.name} an owner of your organisation {organisation.name}.",
            f"The reason: {reason}",
        ),
        link=link,
        link_text="Look at the members",
        below=("If nobody of you asked for this, write to who runs this market.",),
    )


def _sees(principal: Principal, invitation: Invitation) -> bool:
    return sees_all(principal) or (invitation.role is None and set(invitation.projects) == {principal.account_id})


def _still_gives(uow: UnitOfWork, invitation: Invitation) -> bool:
    """Return whether the user who made it may still give what it gives, and the organisation still has it."""
    repository = uow[OrganisationRepository]
    if not set(invitation.projects) <= set(dict(repository.projects(invitation.organisation_id))):
        return False  # one of them was deleted, or is another organisation's now
    kind, _, maker = invitation.made_by.partition("/")
    if kind != "user":
        return True
    user = uow[UserRepository].get(maker)
    if user is None or user.disabled_at_ns is not None:
        return False
    _, role = repository.role(invitation.organisation_id, maker)
    if invitation.role is Role.ORG_OWNER:
        return role is Role.ORG_OWNER
    if role in (Role.ORG_OWNER, Role.ORG_ADMIN):
        return True
    return invitation.role is None and all(
        {Role.ADMIN, *roles} <= repository.project_roles(maker, one) | {Role.VIEWER}
        for one, roles in invitation.projects.items()
    )


def _by_id(wanted: Mapping[str, frozenset[Role]], known: Mapping[AccountId, str]) -> Projects:
    """The same by ids, where a project was named; unknown ones stay as they are."""
    ids = {name: account_id for account_id, name in known.items()}
    return {ids.get(one, AccountId(one)): roles for one, roles in wanted.items()}


def _said(projects: Projects, known: Mapping[AccountId, str]) -> str:
    return "; ".join(f"{known.get(one, one)}: {','.join(sorted(roles)) or 'none'}" for one, roles in projects.items())
