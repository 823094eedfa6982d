"""Reads and writes users, organisations, members and invitations; rows are values of identity/people.py."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Text, cast, delete, func, insert, select, update

from windrow_master.identity.membership import address_key
from windrow_master.identity.model import Role
from windrow_master.identity.people import (
    Factor,
    Invitation,
    Organisation,
    PasswordLink,
    Projects,
    ProjectTransfer,
    User,
)
from windrow_master.identity.tables import (
    accounts,
    factors,
    invitations,
    organisation_members,
    organisations,
    password_links,
    project_members,
    project_transfers,
    users,
)
from windrow_master.store.prepared import page
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId


class UserRepository(Repository):
    """Users, their second factors, and the links by which they set a password."""

    def add(self, user: User) -> None:
        """Add one."""
        self._connection.execute(insert(users).values(**_user_row(user)))

    def save(self, user: User) -> None:
        """Write what changed."""
        self._connection.execute(update(users).where(users.c.id == user.id).values(**_user_row(user)))

    def get(self, user_id: str) -> User | None:
        """One user, or None."""
        return self._one(users.c.id == user_id)

    def by_address(self, address: str) -> User | None:
        """The user with this address, in any case of its letters."""
        return self._one(users.c.address_key == address_key(address))

    def with_role(self, role: Role) -> Sequence[User]:
        """Those with this role of the installation who are not disabled."""
        has_it = cast(users.c.roles, Text).contains(f'"{role.value}"', autoescape=True)
        rows = self._connection.execute(select(users).where(has_it, users.c.disabled_at_ns.is_(None))).mappings()
        return [_user(row) for row in rows]

    def of_project(self, account_id: str) -> Sequence[User]:
        """The members of a project who are not disabled."""
        query = select(users).join(project_members, project_members.c.user_id == users.c.id)
        query = query.where(project_members.c.account_id == account_id, users.c.disabled_at_ns.is_(None))
        return [_user(row) for row in self._connection.execute(query).mappings()]

    def factor(self, user_id: str) -> Factor | None:
        """The second factor of a user, confirmed or not."""
        row = self._connection.execute(select(factors).where(factors.c.user_id == user_id)).mappings().one_or_none()
        return (
            None
            if row is None
            else Factor(**dict(row) | {"sealed": bytes(row["sealed"]), "recovery": tuple(row["recovery"])})
        )

    def save_factor(self, factor: Factor) -> None:
        """Add or replace the second factor of its user."""
        values = asdict(factor) | {"recovery": list(factor.recovery)}
        done = self._connection.execute(update(factors).where(factors.c.user_id == factor.user_id).values(**values))
        if done.rowcount == 0:
            self._connection.execute(insert(factors).values(**values))

    def remove_factor(self, user_id: str) -> None:
        """Ask this user for no second factor any more."""
        self._connection.execute(delete(factors).where(factors.c.user_id == user_id))

    def add_password_link(self, link: PasswordLink) -> None:
        """Add one; those before it open nothing any more."""
        self.forget_password_links(link.user_id)
        self._connection.execute(insert(password_links).values(**asdict(link)))

    def password_link(self, sha256: bytes) -> PasswordLink | None:
        """The link whose secret has this hash, an expired one too."""
        row = self._connection.execute(select(password_links).where(password_links.c.sha256 == sha256)).mappings()
        found = row.one_or_none()
        return None if found is None else PasswordLink(**dict(found) | {"sha256": bytes(found["sha256"])})

    def password_link_of(self, user_id: str) -> PasswordLink | None:
        """The link of a user, an expired one too."""
        row = self._connection.execute(select(password_links).where(password_links.c.user_id == user_id)).mappings()
        found = row.one_or_none()
        return None if found is None else PasswordLink(**dict(found) | {"sha256": bytes(found["sha256"])})

    def forget_all_password_links(self) -> None:
        """Remove all of them."""
        self._connection.execute(delete(password_links))

    def forget_password_links_of(self, token_id: str) -> None:
        """Remove those that this token asked for."""
        self._connection.execute(delete(password_links).where(password_links.c.token_id == token_id))

    def forget_password_links(self, user_id: str) -> None:
        """Remove those of a user."""
        self._connection.execute(delete(password_links).where(password_links.c.user_id == user_id))

    def list(self, after: str, limit: int) -> Sequence[User]:
        """All that were not erased, in the order of their ids."""
        query = select(users).where(users.c.id > after, users.c.erased_at_ns.is_(None)).order_by(users.c.id)
        return page(self._connection, query, _user, limit)

    def _one(self, condition: Any) -> User | None:
        row = self._connection.execute(select(users).where(condition)).mappings().one_or_none()
        return None if row is None else _user(row)


def _user_row(user: User) -> dict[str, Any]:
    key = None if user.address is None else address_key(user.address)
    return asdict(user) | {"roles": sorted(user.roles), "address_key": key}


def _user(row: Mapping[Any, Any]) -> User:
    values = {name: value for name, value in row.items() if name != "address_key"}
    return User(**values | {"roles": frozenset(map(Role, row["roles"]))})


class OrganisationRepository(Repository):
    """Organisations, who is a member of them and of their projects, and invitations."""

    def add(self, organisation: Organisation) -> None:
        """Add one."""
        self._connection.execute(insert(organisations).values(**asdict(organisation)))

    def save(self, organisation: Organisation) -> None:
        """Write what changed."""
        is_it = organisations.c.id == organisation.id
        self._connection.execute(update(organisations).where(is_it).values(**asdict(organisation)))

    def get(self, organisation_id: str) -> Organisation | None:
        """One organisation, or None."""
        return self._one(organisations.c.id == organisation_id)

    def by_name(self, name: str) -> Organisation | None:
        """One organisation by its name, or None."""
        return self._one(organisations.c.name == name)

    def projects(self, organisation_id: str, after: str = "", limit: int = 1_000) -> Sequence[tuple[AccountId, str]]:
        """The ids and names of its projects, the oldest first, without those that were deleted."""
        is_its = (accounts.c.organisation_id == organisation_id) & accounts.c.deleted_at_ns.is_(None)
        query = (
            select(accounts.c.id, accounts.c.name)
            .where(is_its, accounts.c.id > after)
            .order_by(accounts.c.id)
            .limit(limit)
        )
        return [(AccountId(row[0]), str(row[1])) for row in self._connection.execute(query)]

    # --- members -------------------------------------------------------------------------------------------------

    def role(self, organisation_id: str, user_id: str) -> tuple[bool, Role | None]:
        """Whether a user is a member, and the user's role in the organisation."""
        is_it = (organisation_members.c.organisation_id == organisation_id) & (
            organisation_members.c.user_id == user_id
        )
        row = self._connection.execute(select(organisation_members.c.role).where(is_it)).one_or_none()
        return (False, None) if row is None else (True, None if row[0] is None else Role(row[0]))

    def set_role(self, organisation_id: str, user_id: str, role: Role | None) -> None:
        """Make a user a member, or change the member's role."""
        values = {"role": None if role is None else role.value}
        is_it = (organisation_members.c.organisation_id == organisation_id) & (
            organisation_members.c.user_id == user_id
        )
        done = self._connection.execute(update(organisation_members).where(is_it).values(**values))
        if done.rowcount == 0:
            ids = {"organisation_id": organisation_id, "user_id": user_id}
            self._connection.execute(insert(organisation_members).values(**values, **ids))

    def remove_member(self, organisation_id: str, user_id: str) -> None:
        """End a user's membership in the organisation and in all its projects."""
        its = select(accounts.c.id).where(accounts.c.organisation_id == organisation_id)
        is_there = (project_members.c.user_id == user_id) & project_members.c.account_id.in_(its)
        self._connection.execute(delete(project_members).where(is_there))
        is_it = (organisation_members.c.organisation_id == organisation_id) & (
            organisation_members.c.user_id == user_id
        )
        self._connection.execute(delete(organisation_members).where(is_it))

    def members(self, organisation_id: str, after: str, limit: int) -> Sequence[tuple[User, Role | None]]:
        """The members, in the order of their ids."""
        query = (
            select(users, organisation_members.c.role.label("organisation_role"))
            .join(organisation_members, organisation_members.c.user_id == users.c.id)
            .where(organisation_members.c.organisation_id == organisation_id, users.c.id > after)
            .order_by(users.c.id)
        )
        return page(self._connection, query, _member, limit)

    def members_named(self, organisation_id: str, wanted: str) -> Sequence[User]:
        """The members with this id, name or mail address: two of them where there are more. What looks like an address
        or an id is none's name."""
        is_it = (users.c.id == wanted) | (users.c.address_key == address_key(wanted))
        is_other = "@" in wanted or wanted.startswith("user_")
        is_it = is_it if is_other else is_it | (users.c.name == wanted)
        query = (
            select(users)
            .join(organisation_members, organisation_members.c.user_id == users.c.id)
            .where(organisation_members.c.organisation_id == organisation_id, is_it)
            .limit(2)
        )
        return [_user(row) for row in self._connection.execute(query).mappings()]

    def count(self, organisation_id: str, role: Role | None = None, but: str = "") -> int:
        """How many members it has, of this role where one is given; the disabled do not count, nor the user `but`."""
        query = (
            select(func.count())
            .select_from(organisation_members.join(users, organisation_members.c.user_id == users.c.id))
            .where(organisation_members.c.organisation_id == organisation_id, users.c.disabled_at_ns.is_(None))
            .where(users.c.id != but)
        )
        if role is not None:
            query = query.where(organisation_members.c.role == role.value)
        return int(self._connection.scalar(query) or 0)

    def has_members(self, organisation_id: str, but: str = "") -> bool:
        """True if it has a member, disabled or not, other than this user."""
        is_its = organisation_members.c.organisation_id == organisation_id
        query = select(organisation_members.c.user_id).where(is_its, organisation_members.c.user_id != but).limit(1)
        return self._connection.scalar(query) is not None

    def project_roles(self, user_id: str, account_id: str) -> frozenset[Role]:
        """The roles of a user in a project; none: not a member."""
        is_it = (project_members.c.user_id == user_id) & (project_members.c.account_id == account_id)
        row = self._connection.execute(select(project_members.c.roles).where(is_it)).one_or_none()
        return frozenset() if row is None else frozenset(map(Role, row[0]))

    def projects_of(self, user_id: str, organisation_id: str | None = None) -> Projects:
        """The user's roles in each project; only those of this organisation, where one is given."""
        query = select(project_members.c.account_id, project_members.c.roles).where(
            project_members.c.user_id == user_id
        )
        if organisation_id is not None:
            its = select(accounts.c.id).where(accounts.c.organisation_id == organisation_id)
            query = query.where(project_members.c.account_id.in_(its))
        rows = self._connection.execute(query.order_by(project_members.c.account_id))
        return {AccountId(row[0]): frozenset(map(Role, row[1])) for row in rows}

    def set_project_roles(self, user_id: str, account_id: str, roles: frozenset[Role]) -> None:
        """Give a user these roles in a project; none of them ends the membership."""
        is_it = (project_members.c.user_id == user_id) & (project_members.c.account_id == account_id)
        self._connection.execute(delete(project_members).where(is_it))
        if roles:
            row = {"user_id": user_id, "account_id": account_id, "roles": sorted(roles)}
            self._connection.execute(insert(project_members).values(**row))

    def forget_project(self, account_id: str) -> None:
        """End all memberships in a project."""
        self._connection.execute(delete(project_members).where(project_members.c.account_id == account_id))

    def organisations_of(self, user_id: str) -> Sequence[tuple[Organisation, Role | None]]:
        """The organisations that a user is a member of, and the user's role in each."""
        query = (
            select(organisations, organisation_members.c.role)
            .join(organisation_members, organisation_members.c.organisation_id == organisations.c.id)
            .where(organisation_members.c.user_id == user_id)
            .order_by(organisations.c.id)
        )
        found = []
        for row in self._connection.execute(query).mappings():
            values = {name: value for name, value in row.items() if name != "role"}
            found.append((Organisation(**values), None if row["role"] is None else Role(row["role"])))
        return found

    # --- invitations ---------------------------------------------------------------------------------------------

    def invite(self, invitation: Invitation) -> None:
        """Add or replace one."""
        self._connection.execute(delete(invitations).where(invitations.c.id == invitation.id))
        self._connection.execute(insert(invitations).values(**_invitation_row(invitation)))

    def invitation(self, sha256: bytes) -> Invitation | None:
        """The invitation whose secret has this hash, used and expired ones too."""
        return self._invitation(invitations.c.sha256 == sha256)

    def invitation_of(self, invitation_id: str) -> Invitation | None:
        """One invitation, or None."""
        return self._invitation(invitations.c.id == invitation_id)

    def invitations(self, organisation_id: str, now_ns: int, after: str, limit: int) -> Sequence[Invitation]:
        """Those that can still be accepted, the oldest first."""
        query = (
            select(invitations)
            .where(
                invitations.c.organisation_id == organisation_id,
                invitations.c.used_at_ns.is_(None),
                invitations.c.expires_at_ns > now_ns,
                invitations.c.id > after,
            )
            .order_by(invitations.c.id)
        )
        return page(self._connection, query, _invitation, limit)

    def count_invitations(self, organisation_id: str, now_ns: int) -> int:
        """How many can still be accepted."""
        is_open = invitations.c.used_at_ns.is_(None) & (invitations.c.expires_at_ns > now_ns)
        query = select(func.count()).select_from(invitations)
        query = query.where(invitations.c.organisation_id == organisation_id, is_open)
        return int(self._connection.scalar(query) or 0)

    def withdraw_open(self) -> None:
        """Remove all that nobody has accepted."""
        self._connection.execute(delete(invitations).where(invitations.c.used_at_ns.is_(None)))

    def withdraw_of(self, token_id: str) -> None:
        """Remove those that this token asked for and nobody has accepted."""
        is_open = (invitations.c.token_id == token_id) & invitations.c.used_at_ns.is_(None)
        self._connection.execute(delete(invitations).where(is_open))

    def forget_address(self, user_id: str) -> None:
        """Remove the address from those that this user accepted."""
        self._connection.execute(update(invitations).where(invitations.c.used_by == user_id).values(address=None))

    def withdraw(self, invitation_id: str) -> None:
        """Remove one."""
        self._connection.execute(delete(invitations).where(invitations.c.id == invitation_id))

    def _invitation(self, condition: Any) -> Invitation | None:
        row = self._connection.execute(select(invitations).where(condition)).mappings().one_or_none()
        return None if row is None else _invitation(row)

    def _one(self, condition: Any) -> Organisation | None:
        row = self._connection.execute(select(organisations).where(condition)).mappings().one_or_none()
        return None if row is None else Organisation(**row)


class ProjectTransferRepository(Repository):
    """Offers to transfer projects."""

    def save(self, transfer: ProjectTransfer) -> None:
        """Add one, in place of one of the same project."""
        self.remove(transfer.account_id)
        self._connection.execute(insert(project_transfers).values(**asdict(transfer)))

    def of_organisation(self, organisation_id: str, now_ns: int) -> Sequence[ProjectTransfer]:
        """Those by and to an organisation that have not expired, in the order of their projects."""
        own = select(accounts.c.id).where(accounts.c.organisation_id == organisation_id)
        is_its = project_transfers.c.account_id.in_(own) | (project_transfers.c.organisation_id == organisation_id)
        query = select(project_transfers).where(is_its, project_transfers.c.expires_at_ns > now_ns)
        rows = self._connection.execute(query.order_by(project_transfers.c.account_id)).mappings()
        return [ProjectTransfer(**row) for row in rows]

    def remove(self, account_id: str) -> None:
        """Remove that of a project, if there is one."""
        self._connection.execute(delete(project_transfers).where(project_transfers.c.account_id == account_id))


def _member(row: Mapping[Any, Any]) -> tuple[User, Role | None]:
    values = {name: value for name, value in row.items() if name != "organisation_role"}
    role = row["organisation_role"]
    return _user(values), None if role is None else Role(role)


def _invitation_row(invitation: Invitation) -> dict[str, Any]:
    projects = {account_id: sorted(roles) for account_id, roles in invitation.projects.items()}
    role = None if invitation.role is None else invitation.role.value
    return asdict(invitation) | {"projects": projects, "role": role}


def _invitation(row: Mapping[Any, Any]) -> Invitation:
    projects = {AccountId(account_id): frozenset(map(Role, roles)) for account_id, roles in row["projects"].items()}
    role = None if row["role"] is None else Role(row["role"])
    return Invitation(**dict(row) | {"projects": projects, "role": role, "sha256": bytes(row["sha256"])})
