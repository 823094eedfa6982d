"""Routes of identity providers (OpenID Connect): signing in, the own identities, the providers' settings."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Path, Request, Response
from pydantic import Field, SecretStr

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat, check_unlimited
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.identity_routes import SignedInOut
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.people_routes import (
    Given,
    GrantBody,
    OrganisationRole,
    ProjectOut,
    grants_of,
    seen_from,
    signed_in,
)
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Role
from windrow_master.identity.people import Projects
from windrow_master.identity.provider_service import Came, GrantsView, ProviderView
from windrow_master.identity.providers import GROUP_CHARS_MAX, STANDARD_SCOPES, Grants, Provider
from windrow_proto.ids import AccountId

route = Routes("identity providers")

NAME: Final = r"^[a-z0-9][a-z0-9-]{0,31}$"
ProviderName = Annotated[str, Field(max_length=32)]
Group = Annotated[str, Field(min_length=1, max_length=GROUP_CHARS_MAX)]
Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,100}$")]
Secret = Annotated[str, Field(max_length=200)]


class GroupBody(Body):
    """A group of a provider, and the roles that its members get."""

    group: Group
    role: Annotated[OrganisationRole | None, Field(description="In the organisation")] = None
    projects: Annotated[tuple[GrantBody, ...], Field(max_length=100)] = ()


class ProviderBody(Body):
    """An identity provider. client_secret: null keeps the present one. domains: mail domains whose verified addresses
    may become users; empty: all. private: the issuer's host may be in a private network."""

    issuer: Annotated[str, Field(min_length=1, max_length=1_000)]
    client_id: Annotated[str, Field(min_length=1, max_length=500)]
    client_secret: Annotated[SecretStr | None, Field(max_length=1_000)] = None
    organisation: Annotated[str | None, Field(max_length=128, description="Id or name")] = None
    domains: Annotated[tuple[Annotated[str, Field(max_length=253)], ...], Field(max_length=100)] = ()
    creates_users: bool = False
    private: bool = False
    scopes: Annotated[tuple[Scope, ...], Field(max_length=20)] = STANDARD_SCOPES
    group_claim: Annotated[str, Field(min_length=1, max_length=128)] = "groups"
    groups: Annotated[tuple[GroupBody, ...], Field(max_length=200)] = ()


class ProviderStartBody(Body):
    """The provider to sign in by."""

    provider: ProviderName


class LinkStartBody(ProviderStartBody):
    """The provider to link with. password: the present password, if the user has one."""

    password: Given | None = None


class ProviderCallbackBody(ProviderStartBody):
    """The parameters of the provider's redirect, and the secret that the browser got at the start."""

    state: Secret
    secret: Secret
    code: Annotated[str | None, Field(max_length=4_096)] = None
    iss: Annotated[str | None, Field(max_length=1_000)] = None
    error: Annotated[str | None, Field(max_length=200)] = None


class GroupsBody(Body):
    """Groups to try."""

    groups: Annotated[list[Group], Field(max_length=1_000)]


class SignInProviderOut(Out):
    """An identity provider for sign-in."""

    name: str


class ProviderStartedOut(Out):
    """A sign-in that has begun. The browser opens the URL, and sends state and secret back with the code."""

    url: str
    state: str
    secret: str


class GrantsOut(Out):
    """Roles in the organisation and its projects."""

    role: Role | None
    projects: list[ProjectOut]


class GroupOut(GrantsOut):
    """A group, and the roles that its members get."""

    group: str


class ProviderOut(Out):
    """An identity provider. The client secret is never shown."""

    name: Annotated[str, Read("provider.name")]
    issuer: Annotated[str, Read("provider.issuer")]
    client_id: Annotated[str, Read("provider.client_id")]
    has_client_secret: Annotated[bool, Read(lambda one: one.provider.sealed is not None)]
    organisation: str | None
    domains: Annotated[list[str], Read(lambda one: list(one.provider.domains))]
    creates_users: Annotated[bool, Read("provider.creates_users")]
    private: Annotated[bool, Read("provider.is_private")]
    scopes: Annotated[list[str], Read(lambda one: list(one.provider.scopes))]
    group_claim: Annotated[str, Read("provider.group_claim")]
    groups: list[GroupOut]
    redirect_uri: Annotated[str, Field(description="Register this URI at the provider")]
    created_at: Annotated[Time, Read("provider.created_at_ns")]


class ProviderTestedOut(Out):
    """The metadata of a provider, and its keys."""

    issuer: Annotated[str, Read("metadata.issuer")]
    authorization_endpoint: Annotated[str, Read("metadata.authorization_endpoint")]
    token_endpoint: Annotated[str, Read("metadata.token_endpoint")]
    userinfo_endpoint: Annotated[str | None, Read("metadata.userinfo_endpoint")]
    jwks_uri: Annotated[str, Read("metadata.jwks_uri")]
    sends_issuer: Annotated[
        bool, Read("metadata.sends_issuer"), Field(description="True if it sends `iss` with each code (RFC 9207)")
    ]
    keys: Annotated[int, Field(description="Number of its signing keys")]


class IdentityOut(Out):
    """An identity of the caller's user at a provider."""

    provider: str
    label: Annotated[str, Field(description="As the provider named it")]
    created_at: Time
    last_used_at: Time | None


# --- signing in ------------------------------------------------------------------------------------------------------


@route.get("/sign-in/providers", may=Permission.NOBODY, answer=answers.Page[SignInProviderOut])
async def sign_in_providers(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The identity providers for sign-in."""
    found = await services.identity.providers.all()
    return page_of(found, limit, cursor, SignInProviderOut.of, lambda one: one.name)


@route.post(
    "/sign-in/provider",
    may=Permission.NOBODY,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=ProviderStartedOut,
)
async def start_sign_in(request: Request, services: Serving, body: ProviderStartBody) -> Any:
    """Begin a sign-in by a provider. 503: the provider does not answer."""
    _, place = seen_from(request)
    return ProviderStartedOut.of(await services.identity.providers.start(body.provider, _origin(request), place))


@route.post(
    "/sign-in/provider/finish",
    may=Permission.NOBODY,
    signs_in=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=SignedInOut,
)
async def finish_sign_in(request: Request, services: Serving, body: ProviderCallbackBody) -> Any:
    """Finish a sign-in by a provider. It works once, in the browser that began it."""
    return signed_in(*await services.identity.providers.finish(_came(body), *seen_from(request)))


# --- the own identities ----------------------------------------------------------------------------------------------


@route.get("/user/identities", may=Permission.SIGNED_IN, answer=answers.Page[IdentityOut])
async def own_identities(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The identities at providers that are linked with the caller's user."""
    found = await services.identity.providers.identities(principal)
    return page_of(found, limit, cursor, IdentityOut.of, lambda one: one.provider)


@route.post(
    "/user/identities",
    may=Permission.SIGNED_IN,
    hashes=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=ProviderStartedOut,
)
async def start_link(request: Request, services: Serving, principal: Asking, body: LinkStartBody) -> Any:
    """Begin to link the caller's user with an identity at a provider."""
    await check_unlimited(services, principal)
    password = None if body.password is None else body.password.get_secret_value()
    _, place = seen_from(request)
    started = await services.identity.providers.start_link(principal, body.provider, password, _origin(request), place)
    return ProviderStartedOut.of(started)


@route.put("/user/identities", may=Permission.SIGNED_IN, answer=IdentityOut)
async def finish_link(services: Serving, principal: Asking, body: ProviderCallbackBody) -> Any:
    """Finish the link with the identity at a provider."""
    return IdentityOut.of(await services.identity.providers.finish_link(principal, _came(body)))


@route.delete("/user/identities/{provider}", may=Permission.SIGNED_IN, reach=Reach.OWN, status_code=204)
async def unlink(services: Serving, principal: Asking, provider: str) -> Response:
    """Remove the link with an identity at a provider."""
    await services.identity.providers.unlink(principal, provider)
    return Response(status_code=204)


# --- for operators ---------------------------------------------------------------------------------------------------


@route.get("/identity-providers", may=Permission.ACCOUNTS_READ, answer=answers.Page[ProviderOut])
async def identity_providers(
    request: Request, services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None
) -> Any:
    """The identity providers of this installation."""
    found = await services.identity.providers.views()
    return page_of(found, limit, cursor, lambda one: _shown(request, services, one), lambda one: one.provider.name)


@route.put(
    "/identity-providers/{provider}", may=Permission.ACCOUNTS, reach=Reach.ALL, changes_rights=True, answer=ProviderOut
)
async def set_identity_provider(
    request: Request,
    services: Serving,
    principal: Asking,
    provider: Annotated[str, Path(pattern=NAME)],
    body: ProviderBody,
) -> Any:
    """Create or replace the identity provider of this name. Fields that are left out get their defaults."""
    wanted = Provider(
        name=provider,
        issuer=body.issuer,
        client_id=body.client_id,
        sealed=None,
        organisation_id=body.organisation,
        domains=body.domains,
        creates_users=body.creates_users,
        is_private=body.private,
        scopes=body.scopes,
        group_claim=body.group_claim,
        groups={one.group: _grants(one) for one in body.groups},
        created_at_ns=0,
    )
    secret = None if body.client_secret is None else body.client_secret.get_secret_value()
    return _shown(request, services, await services.identity.providers.save(principal, wanted, secret))


@route.delete(
    "/identity-providers/{provider}", may=Permission.ACCOUNTS, reach=Reach.ALL, changes_rights=True, status_code=204
)
async def remove_identity_provider(services: Serving, principal: Asking, provider: str) -> Response:
    """Remove an identity provider. Its users stay; they need another way to sign in."""
    await services.identity.providers.remove(principal, provider)
    return Response(status_code=204)


@route.post(
    "/identity-providers/{provider}/test",
    may=Permission.ACCOUNTS,
    reach=Reach.ALL,
    repeat=Repeat.ALWAYS,
    answer=ProviderTestedOut,
)
async def test_identity_provider(services: Serving, principal: Asking, provider: str) -> Any:
    """Read the metadata and the keys of a provider. 503: the detail says what is wrong."""
    return ProviderTestedOut.of(await services.identity.providers.test(provider))


@route.post(
    "/identity-providers/{provider}/preview",
    may=Permission.ACCOUNTS_READ,
    reach=Reach.ALL,
    repeat=Repeat.ALWAYS,
    answer=GrantsOut,
)
async def preview_roles(services: Serving, principal: Asking, provider: str, body: GroupsBody) -> Any:
    """The roles that these groups would give."""
    return GrantsOut.of(None, **_granted(await services.identity.providers.preview(provider, body.groups)))


# --- inside ----------------------------------------------------------------------------------------------------------


def _origin(request: Request) -> str:
    """The address of this Master as the browser has it, so that it comes back to the same origin. Its host is the one
    that the request came to, which is one of the Master's own names."""
    origin = request.headers.get("origin", "")
    scheme, _, host = origin.partition("://")
    is_own = scheme in ("http", "https") and host == request.headers.get("host")
    return origin if is_own else str(request.base_url).rstrip("/")


def _came(body: ProviderCallbackBody) -> Came:
    return Came(body.provider, body.state, body.secret, body.code, body.iss, body.error)


def _grants(one: GroupBody) -> Grants:
    projects: Projects = {AccountId(name): roles for name, roles in grants_of(one.projects).items()}
    return Grants(None if one.role is None else Role(one.role), projects)


def _granted(view: GrantsView) -> Mapping[str, Any]:
    return {"role": view.role, "projects": [ProjectOut.of(one) for one in view.projects]}


def _shown(request: Request, services: Serving, view: ProviderView) -> Any:
    base = services.https_url or str(request.base_url).rstrip("/")
    groups = [{"group": group, **_granted(grants)} for group, grants in view.groups.items()]
    return ProviderOut.of(view, groups=groups, redirect_uri=f"{base}/oidc/{view.provider.name}")
