"""Decides what a join or renewal gets, and which roles allow which permission. Pure.

renewal by generation (g is the newest issued):
  asks with g        -> Issue(g + 1), until 30 days after the newest certificate ended
  asks with g - 1    -> Repeat when it is the request that g answered (the answer was lost), else Clone
  asks with less     -> Clone: two processes hold this identity
  asks with more     -> Issue after that one, once after a restore: the backup may lack renewals; else Refuse
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.identity.model import (
    ORGANISATION_ROLES,
    RETURN_NS,
    Account,
    ApiToken,
    JoinToken,
    Member,
    MemberRole,
    Principal,
    Role,
    Standing,
)
from windrow_proto.errors import (
    Banned,
    CertificateRefused,
    Conflict,
    Forbidden,
    InvalidInput,
    JoinTokenRefused,
    TooMany,
    WindrowError,
)
from windrow_proto.ids import NO_ID, resembles_id
from windrow_proto.units import time_text

TOKENS_MAX: Final = 200
"""API tokens of one account that are good."""
JOIN_TOKENS_MAX: Final = 200
"""Join tokens of one account that can still be used."""
SESSIONS_MAX: Final = 100
"""Sessions of one account that have not ended."""
NAME_MAX: Final = 128
ADDRESSES_MAX: Final = 16
_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.@_-]{0,63}")
_ALLOWED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._:@/+()-")


@dataclass(frozen=True, slots=True)
class Admit:
    """A new member, generation 1."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """A known key comes back with a fresh token: same id, next generation."""

    generation: int


@dataclass(frozen=True, slots=True)
class Issue:
    """The next certificate."""

    generation: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """The answer was lost on the way: say it again."""


@dataclass(frozen=True, slots=True)
class Clone:
    """Two processes hold this identity: quarantine it, whoever asked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """No; nothing changes."""

    error: WindrowError


def judge_join(
    token: JoinToken | None, role: MemberRole, known: Member | None, csr_sha256: bytes, now_ns: int
) -> Admit | Rejoin | Repeat | Refuse:
    """Return the answer to a join. known: the member that holds this Ed25519 key already, if one does."""
    if token is None or token.revoked_at_ns is not None or now_ns >= token.expires_at_ns:
        return Refuse(JoinTokenRefused())
    if token.role is not role:
        return Refuse(JoinTokenRefused(f"This join token is for a member of kind {token.role}, not {role}."))
    if known is not None and known.standing is not Standing.GOOD:
        return Refuse(Banned(subject=known.id))
    if token.used_by is not None:
        # The one who used it may ask again while its first certificate is the newest: its answer was lost.
        is_same = known is not None and known.id == token.used_by and known.generation == 1
        if not is_same or known is None:
            return Refuse(JoinTokenRefused())
        return Repeat() if known.csr_sha256 == csr_sha256 else Rejoin(1)
    if known is None:
        return Admit()
    if known.purchase_id != token.purchase_id:
        return Refuse(Conflict("This host was bought for another purchase, or was not bought.", subject=known.id))
    if known.account_id != token.account_id or known.role is not role:
        return Refuse(Conflict("This key has joined for another account or in another role.", subject=known.id))
    return Rejoin(known.generation + 1)


def judge_renewal(
    member: Member | None, generation: int, csr_sha256: bytes, now_ns: int, backup_at_ns: int | None = None
) -> Issue | Repeat | Clone | Refuse:
    """Return the answer to a renewal once its proof holds. now_ns is the Master's wall clock; the member's own is
    not asked. backup_at_ns: of the backup that this market was restored from, if it was."""
    if member is None:
        return Refuse(CertificateRefused(f"This Master does not know that id{forgetting(backup_at_ns)}"))
    if member.standing is not Standing.GOOD:
        return Refuse(Banned(subject=member.id))
    if generation > member.generation and member.may_jump(now_ns):
        return Issue(generation + 1)
    if generation > member.generation:
        return Refuse(
            CertificateRefused(f"Generation {generation} was never issued here. Join again.", subject=member.id)
        )
    if generation == member.generation - 1 and csr_sha256 == member.csr_sha256:
        return Repeat()
    if generation < member.generation:
        return Clone(
            f"generation {generation} was asked to renew although {member.generation} had been issued: "
            "two processes hold this identity"
        )
    if now_ns > member.not_after_ns + RETURN_NS:
        return Refuse(
            CertificateRefused("The certificate ended over 30 days ago. Join with a join token.", subject=member.id)
        )
    return Issue(member.generation + 1)


def forgetting(backup_at_ns: int | None) -> str:
    """The end of a sentence to a member that is not known, with the way out. backup_at_ns: of the backup that this
    market was restored from, if it was."""
    if backup_at_ns is None:
        return ": join again with a new join token."
    return (
        f": this market was restored from a backup of {time_text(backup_at_ns)}, and who joined after it has to join "
        "again. Uninstall here, then join with a new join token."
    )


def clean_name(text: str, fallback: str) -> str:
    """A name fit for every screen: NFC, printable ASCII of a short list, at most 128 characters; others become `_`."""
    composed = unicodedata.normalize("NFC", text)[:NAME_MAX]
    cleaned = "".join(c if c in _ALLOWED else "_" for c in composed).strip()
    return cleaned or fallback


def check_token_name(name: str) -> None:
    """Raises InvalidInput for a name that would be taken for an id: `windrow token rm` takes both."""
    if resembles_id(name):
        raise InvalidInput(f"A token's name is {NO_ID}.", subject="name")


def check_addresses(addresses: Iterable[str]) -> tuple[str, ...]:
    """DNS names and IPs that may stand in an Access's certificate; raises InvalidInput for anything else.

    A star stands for the first label of services' names, above two more: `*.windrow` would be the Master's name too.
    """
    given = tuple(dict.fromkeys(addresses))
    if len(given) > ADDRESSES_MAX:
        raise InvalidInput(f"At most {ADDRESSES_MAX} addresses fit in a certificate; {len(given)} were given.")
    for address in given:
        if resembles_id(address):
            raise InvalidInput(f"{address[:60]!r} would be taken for an id: a relay's address is {NO_ID}.")
        plain = address.removeprefix("*.") if address.count(".") > 1 else address
        if not 1 <= len(address) <= 253 or not all(c.isascii() and (c.isalnum() or c in ".-:") for c in plain):
            raise InvalidInput(f"{address[:60]!r} is neither a DNS name nor an IP address.")
    return given


def check_account_name(name: str) -> str:
    """The name of a new account as it is; raises InvalidInput for one that could be mistaken or badly shown."""
    if not _ACCOUNT_NAME.fullmatch(name):
        raise InvalidInput(
            "name: An account's name is 1 to 64 lower-case letters, digits and .@_-, and begins with a letter or digit."
        )
    return name


def reaches(principal: Principal, token: ApiToken) -> bool:
    """Return whether this token may see and end that one: of its own account and user, with at most its roles. Admins
    of the account reach those of all its users."""
    if token.account_id != principal.account_id:
        return False
    is_own = (token.user_id, token.service_id) == (principal.user_id, principal.service_id)
    if is_own and principal.has_all:
        return True
    return token.roles <= principal.roles and (is_own or Role.ADMIN in principal.roles)


def check_opens(principal: Principal, account: Account, *, is_first: bool) -> None:
    """Raises Forbidden for a sign-in link that would open more than its maker has, or outlive the token it was made
    with. is_first: the account owns this Master, whose own command line lets it in."""
    if account.id == principal.account_id:
        raise Forbidden(
            "You are signed in to this account already. For another device: windrow token add", subject=account.id
        )
    if is_first:
        raise Forbidden(
            "This account owns the Master: sign in with the cli.json of its data directory.", subject=account.id
        )
    if Role.OPERATOR in account.roles and not account.roles <= principal.roles:
        raise Forbidden(
            "A sign-in link for an operator can be made only by somebody with all roles of that account.",
            subject=account.id,
        )


class Permission(StrEnum):
    """The permission that a route asks for; `NOBODY` is for a route that needs no sign-in."""

    NOBODY = "nobody"
    SIGNED_IN = "signed_in"
    FLEET_READ = "fleet.read"
    FLEET_OPERATE = "fleet.operate"
    MARKET_READ = "market.read"
    PRICE_SET = "price.set"
    RENT = "rent"
    RENT_READ = "rent.read"
    LEDGER_READ = "ledger.read"
    TOKENS = "tokens"
    JOIN_TOKENS = "join_tokens"
    ACCOUNTS_READ = "accounts.read"
    ACCOUNTS = "accounts"
    HEALTH_READ = "health.read"
    AUDIT_READ = "audit.read"
    AUDIT_ANCHOR = "audit.anchor"
    RESOURCES = "resources"
    CLOUDS_READ = "clouds.read"
    CLOUDS = "clouds"
    MEMBERS_READ = "members.read"
    MEMBERS = "members"
    PROJECTS = "projects"
    SECRETS_READ = "secrets.read"
    SECRETS = "secrets"
    SHARES = "shares"
    LIMITS = "limits"
    QUOTAS = "quotas"
    SIMULATED_HOSTS = "simulated_hosts"
    ALERTS_READ = "alerts.read"
    ALERTS = "alerts"


_EVERYONE: Final = frozenset(Role)
GRANTS: Final[dict[Permission, frozenset[Role]]] = {
    Permission.SIGNED_IN: _EVERYONE,
    Permission.FLEET_READ: _EVERYONE,
    Permission.FLEET_OPERATE: frozenset({Role.OPERATOR, Role.PROVIDER}),
    Permission.MARKET_READ: _EVERYONE,
    Permission.PRICE_SET: frozenset({Role.OPERATOR, Role.PROVIDER}),
    Permission.RENT: frozenset({Role.RENTER}),
    Permission.RENT_READ: frozenset({Role.RENTER, Role.VIEWER, Role.ADMIN, Role.OPERATOR, Role.AUDITOR}),
    Permission.LEDGER_READ: _EVERYONE,
    Permission.TOKENS: _EVERYONE,
    Permission.JOIN_TOKENS: frozenset({Role.OPERATOR, Role.PROVIDER}),
    Permission.ACCOUNTS_READ: frozenset({Role.OPERATOR, Role.AUDITOR}),
    Permission.ACCOUNTS: frozenset({Role.OPERATOR}),
    Permission.HEALTH_READ: frozenset({Role.OPERATOR, Role.AUDITOR}),
    Permission.AUDIT_READ: frozenset({Role.OPERATOR, Role.AUDITOR}),
    Permission.AUDIT_ANCHOR: frozenset({Role.OPERATOR}),
    Permission.RESOURCES: frozenset({Role.OPERATOR}),
    Permission.CLOUDS_READ: frozenset({Role.OPERATOR, Role.AUDITOR}),
    Permission.CLOUDS: frozenset({Role.OPERATOR}),
    Permission.MEMBERS_READ: frozenset({*ORGANISATION_ROLES, Role.ADMIN}),
    Permission.MEMBERS: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN, Role.ADMIN}),
    Permission.PROJECTS: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN}),
    Permission.SECRETS_READ: frozenset({Role.RENTER, Role.VIEWER, Role.ADMIN}),
    Permission.SECRETS: frozenset({Role.RENTER, Role.ADMIN}),
    Permission.SHARES: frozenset({Role.RENTER, Role.ADMIN}),
    Permission.LIMITS: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN, Role.ADMIN, Role.OPERATOR}),
    Permission.QUOTAS: frozenset({Role.ORG_OWNER, Role.ORG_ADMIN, Role.OPERATOR}),
    Permission.SIMULATED_HOSTS: frozenset({Role.OPERATOR}),
    Permission.ALERTS_READ: _EVERYONE,
    Permission.ALERTS: frozenset({Role.OPERATOR, Role.PROVIDER, Role.RENTER, Role.ADMIN}),
}
"""Which roles have which permission; one of them is enough."""


def is_allowed(roles: frozenset[Role], permission: Permission) -> bool:
    """Return whether these roles have the permission."""
    return permission is Permission.NOBODY or bool(GRANTS[permission] & roles)


def check_number(who: Principal, have: int, most: int, what: str, way: str) -> None:
    """Raises TooMany where an account has as many as it may; operators may have more."""
    if have >= most and not who.is_trusted:
        raise TooMany(f"This account has {have:,} {what}, of at most {most:,}. {way}")
