"""Messages of identity to the packages above it: machines that join, certificates that are no longer honoured, and the
end of users and projects. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from windrow_master.identity.model import Member
from windrow_master.store.messages import Fact
from windrow_proto.ids import AccountId, TokenId


@dataclass(frozen=True, slots=True)
class AccountMade(Fact):
    """The account of whoever started this Master has been made."""

    account_id: AccountId


@dataclass(frozen=True, slots=True)
class ProjectPurged(Fact):
    """A project was deleted long enough ago: what it kept is deleted."""

    account_id: AccountId


@dataclass(frozen=True, slots=True)
class ProjectLeft(Fact):
    """A project was deleted, or was transferred to another organisation: it has nothing of the one before any more."""

    account_id: AccountId


@dataclass(frozen=True, slots=True)
class UserErased(Fact):
    """A user was erased: the names of these tokens are, too."""

    user_id: str
    token_ids: Sequence[TokenId]


@dataclass(frozen=True, slots=True)
class HostJoined(Fact):
    """A host has joined, perhaps again."""

    member: Member


@dataclass(frozen=True, slots=True)
class CloneFound(Fact):
    """Two machines use the identity of one member."""

    member: Member
    reason: str


@dataclass(frozen=True, slots=True)
class StandingChanged(Fact):
    """The certificate of a member is honoured again, or is no longer."""

    member_id: str
