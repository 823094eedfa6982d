"""Identity providers (OpenID Connect): their settings, the roles that their groups give, what they say of a person.
Pure.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from windrow_master.identity.membership import NAME_MAX, address_key, check_address, check_person, fits_name
from windrow_master.identity.model import Role
from windrow_master.identity.people import Projects
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import AccountId

PROVIDERS_MAX: Final = 100
GROUPS_MAX: Final = 10_000
"""Groups of one person that are looked at; a provider that names more is asked to send fewer."""
GROUP_CHARS_MAX: Final = 256
SUBJECT_CHARS_MAX: Final = 255
"""As OpenID Connect Core has it."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
STANDARD_SCOPES: Final = ("openid", "profile", "email")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_ORDER: Final = (Role.ORG_OWNER, Role.ORG_ADMIN, Role.ORG_BILLING, Role.ORG_AUDITOR)
"""Of several roles in the organisation, the first of these is given."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Roles in one organisation: one of its own, and some in its projects."""

    role: Role | None = None
    projects: Projects = field(default_factory=dict)


NOTHING: Final = Grants()


@dataclass(frozen=True, slots=True)
class Provider:
    """An identity provider. name: in addresses and on its button; it never changes, nor do issuer and organisation.

    sealed: the client's secret, sealed by the Master's key; None: a public client. domains: of verified mail addresses
    that may become users; none: any. creates_users: at their first sign-in. is_private: the issuer's own host may lie
    in a private network, and on this machine be asked without TLS. groups: what each group gives.
    """

    name: str
    issuer: str
    client_id: str
    sealed: bytes | None
    organisation_id: str | None
    domains: tuple[str, ...]
    creates_users: bool
    is_private: bool
    scopes: tuple[str, ...]
    group_claim: str
    groups: Mapping[str, Grants]
    created_at_ns: int


@dataclass(frozen=True, slots=True)
class Identity:
    """A person at a provider, who is a user here. label: shown to the user. granted: what groups gave the last time."""

    provider: str
    subject: str
    user_id: str
    label: str
    granted: Grants
    created_at_ns: int
    last_used_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Claims:
    """What a provider says of a person, checked. address: verified by the provider; None: it says none."""

    subject: str
    name: str
    address: str | None
    groups: frozenset[str]

    @property
    def label(self) -> str:
        """By which the user knows the identity again."""
        return self.address or self.name


def check_url(url: str, private_host: str) -> str:
    """A URL that this Master may ask; raises InvalidInput. private_host: may be asked by http where it is this
    machine; empty: none may."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    is_clear = parts.scheme == "http" and host == private_host and host in LOOPBACK
    if not host or "@" in parts.netloc or parts.fragment or len(url) > 1_000 or not url.isascii():
        raise InvalidInput(f"{url[:100]!r} is no URL of an identity provider. It looks like https://login.example.org.")
    if parts.scheme != "https" and not is_clear:
        raise InvalidInput(f"{url[:100]!r} is not asked over TLS. Give an https URL.")
    return url


def private_host(provider: Provider) -> str:
    """The host of a provider that may lie in a private network; empty: none may."""
    return (urlsplit(provider.issuer).hostname or "") if provider.is_private else ""


def check_settings(provider: Provider) -> Provider:
    """The same with its domains in lower case; raises InvalidInput."""
    check_url(provider.issuer, private_host(provider))
    if urlsplit(provider.issuer).query:
        raise InvalidInput("issuer: An issuer has no query.", subject="issuer")
    domains = tuple(dict.fromkeys(one.strip().lower() for one in provider.domains))
    for domain in domains:
        if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
            raise InvalidInput(f"domains: {domain[:60]!r} is no domain. It looks like example.org.", subject="domains")
    if provider.organisation_id is None and (provider.creates_users or provider.groups):
        said = "organisation: Name the organisation that new users join, and in which groups give roles."
        raise InvalidInput(said, subject="organisation")
    return replace(provider, domains=domains)


def given(provider: Provider, groups: frozenset[str]) -> Grants:
    """What these groups give together; nothing is the default."""
    found = [grants for group, grants in provider.groups.items() if group in groups]
    projects: dict[AccountId, frozenset[Role]] = {}
    for grants in found:
        for project, roles in grants.projects.items():
            projects[project] = projects.get(project, frozenset()) | roles
    role = next((one for one in _ORDER if any(grants.role is one for grants in found)), None)
    return Grants(role, projects)


def role_after(now: Role | None, before: Grants, after: Grants) -> Role | None:
    """The role in the organisation after a sign-in. One that was given by hand stays. before, after: what groups gave
    the last time, and give now."""
    return after.role if now is None or now is before.role else now


def project_roles_after(
    now: Mapping[AccountId, frozenset[Role]], before: Grants, after: Grants
) -> Mapping[AccountId, frozenset[Role]]:
    """The roles in each project that changes at a sign-in. Roles that groups gave are taken back with them."""
    none = frozenset[Role]()
    found = {
        one: (now.get(one, none) - before.projects.get(one, none)) | after.projects.get(one, none)
        for one in {*before.projects, *after.projects}
    }
    return {one: roles for one, roles in found.items() if roles != now.get(one, none)}


def check_enters(provider: Provider, claims: Claims) -> None:
    """Raises Forbidden unless this person may become a user."""
    if not provider.creates_users:
        raise Forbidden(
            f"No user of this market is linked with your identity at {provider.name}. Sign in another way and link it "
            "under Settings, or ask an admin of your organisation for an invitation."
        )
    domain = address_key(claims.address or "").rpartition("@")[2]
    if provider.domains and domain not in provider.domains:
        raise Forbidden(f"{provider.name} is for verified addresses of {', '.join(provider.domains)}.")


def claims_of(said: Mapping[str, object], group_claim: str) -> Claims:
    """What an ID token and the UserInfo endpoint say. An address that the provider has not verified counts as none.
    Raises Forbidden for more groups than GROUPS_MAX."""
    groups = said.get(group_claim)
    listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    if len(listed) > GROUPS_MAX:
        raise Forbidden(
            f"Your identity provider names more than {GROUPS_MAX:,} groups. Its admin can have it send only those that "
            "count here."
        )
    known = frozenset(one for one in listed if isinstance(one, str) and len(one) <= GROUP_CHARS_MAX)
    return Claims(str(said["sub"]), _name(said.get("name") or said.get("preferred_username")), _address(said), known)


def _address(said: Mapping[str, object]) -> str | None:
    verified = said.get("email_verified")  # some write it as a text
    if not (verified is True or verified == "true") or not isinstance(said.get("email"), str):
        return None
    try:
        return check_address(str(said["email"]))
    except InvalidInput:
        return None


def _name(said: object) -> str:
    """A name without what a name may not have: markup, and what cannot be seen."""
    text = unicodedata.normalize("NFC", said if isinstance(said, str) else "")
    try:
        return check_person("".join(one for one in text if fits_name(one))[:NAME_MAX])
    except InvalidInput:
        return "user"
