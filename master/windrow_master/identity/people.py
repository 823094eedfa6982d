"""Values of people: users, their organisations and projects, and invitations into them. Pure.

A project is an account: it owns, rents and pays. An organisation has projects; a user is a member of an organisation
and of some of its projects, each with roles of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from windrow_master.identity.model import Role
from windrow_proto.ids import AccountId

UserId = NewType("UserId", str)
OrganisationId = NewType("OrganisationId", str)

Projects = Mapping[AccountId, frozenset[Role]]
"""Roles in each project."""


@dataclass(frozen=True, slots=True)
class User:
    """A person who signs in.

    address: for mail and sign-in, as it was given; None: none, so that only links and tokens let the user in.
    password: an encoded Argon2id hash; None: none. roles: of the installation. erased_at_ns: since when the personal
    data is gone; the id stays in audit and ledger.
    """

    id: UserId
    name: str
    created_at_ns: int
    address: str | None = None
    password: str | None = None
    roles: frozenset[Role] = frozenset()
    disabled_at_ns: int | None = None
    erased_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """The second factor of a user. sealed: the TOTP secret, sealed by the Master's key. confirmed_at_ns: since when it
    is asked for; None: it was never shown to work. last_step: of the last code that was used, in steps of 30 s; an
    earlier or equal one is refused. recovery: SHA-256 of the codes that are left, in hexadecimal."""

    user_id: UserId
    sealed: bytes
    confirmed_at_ns: int | None = None
    last_step: int = 0
    recovery: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Organisation:
    """Owns projects."""

    id: OrganisationId
    name: str
    created_at_ns: int


@dataclass(frozen=True, slots=True)
class Member:
    """A user in an organisation. role: of the organisation; None: only what the projects give."""

    user: User
    role: Role | None
    projects: Projects = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Invitation:
    """A way into an organisation that works once, known by the SHA-256 of its secret only.

    address: who may accept it; None: whoever has the link. role, projects: what its user becomes. used_by: who did.
    token_id: the token that asked for it, with which it ends.
    """

    id: str
    organisation_id: OrganisationId
    sha256: bytes
    address: str | None
    role: Role | None
    projects: Projects
    made_by: str
    created_at_ns: int
    expires_at_ns: int
    used_at_ns: int | None = None
    used_by: UserId | None = None
    token_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectTransfer:
    """An offer to transfer a project to another organisation. made_by: the actor, an owner of its organisation."""

    account_id: AccountId
    organisation_id: OrganisationId
    made_by: str
    expires_at_ns: int


@dataclass(frozen=True, slots=True)
class PasswordLink:
    """A link to set a password that works once, known by the SHA-256 of its secret only. token_id: the token that asked
    for it, with which it ends; None: it was mailed to its user."""

    id: str
    user_id: UserId
    sha256: bytes
    expires_at_ns: int
    token_id: str | None = None
