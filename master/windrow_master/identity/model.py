"""Values of identity: accounts and their roles, tokens by hash, members (hosts and Accesses) and their certificates.
Pure.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

from windrow_master.shares import MASTER
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.units import DAY

SessionId = NewType("SessionId", str)

RETURN_NS: Final = 30 * DAY
"""How long after its certificate ended, or after a restore, a member may still come back by proof of its key."""


class Role(StrEnum):
    """A role: a named bundle of permissions. Its scope is the installation, an organisation or a project."""

    OPERATOR = "operator"
    AUDITOR = "auditor"
    ORG_OWNER = "org_owner"
    ORG_ADMIN = "org_admin"
    ORG_BILLING = "org_billing"
    ORG_AUDITOR = "org_auditor"
    ADMIN = "admin"
    RENTER = "renter"
    VIEWER = "viewer"
    PROVIDER = "provider"


ALL_ROLES = frozenset(Role)
SESSION_TOKEN_NAME: Final = "sign-in"  # a name
INSTALLATION_ROLES = frozenset({Role.OPERATOR, Role.AUDITOR})
ORGANISATION_ROLES = frozenset({Role.ORG_OWNER, Role.ORG_ADMIN, Role.ORG_BILLING, Role.ORG_AUDITOR})
PROJECT_ROLES = ALL_ROLES - INSTALLATION_ROLES - ORGANISATION_ROLES
MARKET_ROLES = frozenset({Role.RENTER, Role.PROVIDER})
"""Roles of a project that operators give or keep back: its members have them only where the project has them."""
BUYER_ACCOUNT: Final = AccountId("account_buyer")
"""The Master's own, which the machines belong to that it buys at providers: it has no token. Its hosts are neither
proved nor challenged: their provider vouches for them."""
BUYER_NAME: Final = "machines bought by the Master"
"""Its name, wherever people see it."""
SERVICE_ROLES = PROJECT_ROLES - {Role.ADMIN}
"""Roles that a service account may have: people alone decide about people."""


class AccountState(StrEnum):
    """The state of an account: active, or suspended or deleted and unable to do anything."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Account:
    """A project, which owns, rents and pays. organisation_id: None for the Master's own, which nobody signs in to.
    purged_at_ns: since when what a deleted one kept is gone, so that it cannot be restored."""

    id: AccountId
    name: str
    roles: frozenset[Role]
    created_at_ns: int
    suspended_at_ns: int | None = None
    organisation_id: str | None = None
    deleted_at_ns: int | None = None
    purged_at_ns: int | None = None

    @property
    def state(self) -> AccountState:
        """The state of the account."""
        if self.deleted_at_ns is not None:
            return AccountState.DELETED
        return AccountState.ACTIVE if self.suspended_at_ns is None else AccountState.SUSPENDED


@dataclass(frozen=True, slots=True)
class SignInLink:
    """A single-use way into an account, known by the SHA-256 of its secret only. made_by: the token that asked
    for it."""

    id: str
    account_id: AccountId
    sha256: bytes
    created_at_ns: int
    expires_at_ns: int
    used_at_ns: int | None = None
    made_by: TokenId | None = None


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of an account, known by the SHA-256 of its text only. made_by: the token that asked for it. user_id: its
    user, whose roles it never exceeds; None: the account's own. is_sign_in: it was made by a sign-in and lives as long
    as its session, without being shown. service_id: the service account that it belongs to. last_used_address: from
    where it was last used."""

    id: TokenId
    account_id: AccountId
    name: str
    sha256: bytes
    roles: frozenset[Role]
    created_at_ns: int
    expires_at_ns: int
    revoked_at_ns: int | None
    last_used_at_ns: int | None = None
    made_by: TokenId | None = None
    user_id: str | None = None
    is_sign_in: bool = False
    service_id: str | None = None
    last_used_address: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that was signed in, with a token or a password; it has a secret of its own, known here by hash only.
    address: from where. proved_at_ns: when its user last showed a password, a code or a token."""

    id: SessionId
    account_id: AccountId
    token_id: TokenId
    sha256: bytes
    browser: str
    created_at_ns: int
    last_used_at_ns: int
    expires_at_ns: int
    revoked_at_ns: int | None
    user_id: str | None = None
    address: str | None = None
    proved_at_ns: int = 0


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A program that acts in a project, with tokens of its own. It never signs in to the console."""

    id: str
    account_id: AccountId
    name: str
    roles: frozenset[Role]
    created_at_ns: int
    made_by: str


class DeviceState(StrEnum):
    """The state of a device's request to be signed in. There is no row once the device has its token."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The request of a device to be signed in (RFC 8628), known by the SHA-256 of its two codes only.

    name: what the device says of itself. address, network: where it asks from. interval_ns: the pause between two of
    its questions; asked_at_ns: the last one. approved_by: the token of who approved it.
    """

    id: str
    device_sha256: bytes
    user_sha256: bytes
    name: str
    address: str
    network: str
    created_at_ns: int
    expires_at_ns: int
    interval_ns: int
    asked_at_ns: int | None = None
    state: DeviceState = DeviceState.WAITING
    approved_by: TokenId | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a user or service account that acts in a project, or a project itself, through a token, with the
    roles that all have.

    session_id: the browser's session, where the token came by way of one; expires_at_ns is then the session's end.
    user_id, service_id: None: not a user's, not a service account's token; both: the project's own. has_all: its token
    has all that its user has. may: what operators let the project do. proved_at_ns: when the session's user last showed
    a password, a code or a token. own_account_id: where an object is shared with the caller, the project it acts in;
    account_id is then the object's (object_shares.py). spenders: the ids that its spending counts for beside the
    project's: of its token and of those by which that was made, or of its service account.
    """

    account_id: AccountId
    account_name: str
    roles: frozenset[Role]
    token_id: TokenId
    token_name: str
    expires_at_ns: int
    session_id: SessionId | None = None
    user_id: str | None = None
    user_name: str = ""
    organisation_id: str | None = None
    has_all: bool = False
    service_id: str | None = None
    may: frozenset[Role] = MARKET_ROLES
    proved_at_ns: int = 0
    own_account_id: AccountId | None = None
    spenders: tuple[str, ...] = ()

    @property
    def home_id(self) -> AccountId:
        """The project that the caller acts in, also where an object of another one is shared with it."""
        return self.account_id if self.own_account_id is None else self.own_account_id

    @property
    def holder(self) -> str:
        """Whom shares of what accounts use together are counted for: the Master itself where no token was shown."""
        return self.home_id if self.token_id else MASTER

    @property
    def is_trusted(self) -> bool:
        """True if the reserve of such shares is open to it: an operator, or the Master itself."""
        return Role.OPERATOR in self.roles or not self.token_id

    @property
    def actor(self) -> str:
        """How this principal is named in audit and events."""
        if self.service_id is not None:
            return f"service/{self.service_id}"
        return f"account/{self.home_id}" if self.user_id is None else f"user/{self.user_id}"


class SpenderKind(StrEnum):
    """The kind of what spends, and whose spending can be limited."""

    PROJECT = "project"
    TOKEN = "token"
    SERVICE_ACCOUNT = "service_account"

    @property
    def words(self) -> str:
        """As a sentence has it."""
        return self.value.replace("_", " ")

    @classmethod
    def of(cls, spender_id: str) -> "SpenderKind":
        """The kind that an id is of."""
        kinds = {"account": cls.PROJECT, "token": cls.TOKEN, "service": cls.SERVICE_ACCOUNT}
        return kinds[spender_id.partition("_")[0]]


class MemberRole(StrEnum):
    """The kind of machine that joins with a certificate."""

    HOST = "host"
    ACCESS = "access"


class Standing(StrEnum):
    """The standing of a member: it says whether its certificate is honoured and renewed."""

    GOOD = "good"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class JoinToken:
    """A single-use ticket for one host or Access of an account, known by the SHA-256 of its text only.

    made_by: the API token that asked for it; None for those of older releases, and for the Master's own. purchase_id:
    of the machine that it was made for, which was bought at a provider; None: for any.
    """

    id: TokenId
    account_id: AccountId
    role: MemberRole
    sha256: bytes
    created_at_ns: int
    expires_at_ns: int
    used_at_ns: int | None
    used_by: str | None
    revoked_at_ns: int | None
    made_by: TokenId | None = None
    purchase_id: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A host or an Access: its keys, its newest certificate and its standing.

    generation counts its certificates from 1; csr_sha256 is of the request that the newest one answered.
    used_generation: the newest with which it has been heard (0: only the first, if any); older ones are refused.
    restored_at_ns: when this record came from a backup that may lack renewals: until the member has come with a newer
    certificate than the record knows, once, it may. None: the record is whole. purchase_id: of the purchase that it is
    the machine of, bought at a provider; None: nobody bought it.
    """

    id: str
    role: MemberRole
    account_id: AccountId
    name: str
    simulated: bool
    sign_public: bytes
    generation: int
    csr_sha256: bytes
    certificate_pem: str
    not_after_ns: int
    standing: Standing
    reason: str
    addresses: tuple[str, ...]
    joined_at_ns: int
    used_generation: int = 0
    restored_at_ns: int | None = None
    purchase_id: str | None = None

    def is_in_force(self, now_ns: int) -> bool:
        """Return whether its certificate is honoured and has not ended."""
        return self.standing is Standing.GOOD and self.not_after_ns > now_ns

    def may_jump(self, now_ns: int) -> bool:
        """Return whether it may come with a newer certificate than this record knows of."""
        return self.restored_at_ns is not None and now_ns < self.restored_at_ns + RETURN_NS


@dataclass(frozen=True, slots=True)
class SignedRegions:
    """A serialised region map and the Master's signature over it."""

    signed: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """The answer to a member that joins or renews. is_bought: it is a machine that was bought at a provider."""

    id: str
    generation: int
    certificate_pem: str
    ca_pem: str
    master_public: bytes
    regions: SignedRegions
    not_after_ns: int
    trunk_addresses: tuple[str, ...]
    is_bought: bool


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The request of a joiner; the proof shows that it holds the Ed25519 key, the CSR that it holds the TLS key."""

    join_token: str
    tls_csr_pem: bytes
    sign_public: bytes
    proof: bytes
    host_name: str
    role: MemberRole
    simulated: bool
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenewRequest:
    """The request of a member for its next certificate; the proof covers all other fields."""

    id: str
    generation: int
    tls_csr_pem: bytes
    wall_ns: int
    proof: bytes
