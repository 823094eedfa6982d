"""Routes of identity: who am I, sign in, tokens, join tokens, joining, renewal, the authority, the regions."""

import base64
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Money, Out, Read, Time, Written
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving, bearer_of
from windrow_master.api.limit_routes import LimitsBody
from windrow_master.api.onboarding_routes import join_command
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import (
    JoinRequest,
    MemberRole,
    Principal,
    RenewRequest,
    Role,
    Session,
    SessionId,
    SpenderKind,
)
from windrow_master.market.limits import NO_LIMITS
from windrow_proto.errors import InvalidInput, Unauthenticated
from windrow_proto.ids import TokenId
from windrow_proto.units import CURRENCY_TEST, SECOND, money_text, time_text

route = Routes("identity")


class SessionBody(Body):
    token: Annotated[str, Field(max_length=200)]


class TokenBody(Body):
    name: Annotated[str, Field(min_length=1, max_length=128)]
    roles: Annotated[list[Role] | None, Field(max_length=10)] = None
    expires_in_s: Annotated[int, Field(gt=0, le=90 * 86_400)] = 30 * 86_400
    limits: LimitsBody = LimitsBody()


class JoinTokenBody(Body):
    role: MemberRole = MemberRole.HOST
    expires_in_s: Annotated[int, Field(gt=0, le=86_400)] = 900


class JoinBody(Body):
    join_token: Annotated[str, Field(max_length=200)]
    tls_csr_pem: Annotated[str, Field(max_length=8_192)]
    sign_public: Annotated[str, Field(max_length=64)]
    proof: Annotated[str, Field(max_length=128)]
    host_name: Annotated[str, Field(max_length=1_024)] = ""
    role: MemberRole = MemberRole.HOST
    simulated: bool = False
    addresses: Annotated[list[str], Field(default_factory=list, max_length=16)]


class RenewBody(Body):
    id: Annotated[str, Field(max_length=64)]
    generation: Annotated[int, Field(ge=0, lt=2**31)]
    tls_csr_pem: Annotated[str, Field(max_length=8_192)]
    wall_ns: Annotated[int, Field(ge=0, lt=2**63)]
    proof: Annotated[str, Field(max_length=128)]


class AccountOut(Out):
    """An account, which pays and is paid."""

    id: str
    name: str


class BalanceNowOut(Out):
    """The amount that an account can spend."""

    amount: Annotated[Money, Read(lambda amount: amount)]
    currency: Annotated[str, Read(lambda _: CURRENCY_TEST)]


class MyTokenOut(Out):
    """The token by which one asks."""

    id: str
    name: str
    expires_at: Time


class MySessionOut(Out):
    """The browser's session by which one asks."""

    id: str
    expires_at: Time


class MasterOut(Out):
    """The Master that answers."""

    version: str
    epoch: int
    currency_is_test: bool


class UserOut(Out):
    """The user or service account that asks."""

    id: str
    name: str


class MeOut(Out):
    """The caller, and the Master that answers. user: null for a service account and a project's own token. account: the
    project."""

    account: AccountOut
    user: UserOut | None
    service: Annotated[UserOut | None, Field(description="The service account that asks")]
    roles: list[Role]
    token: MyTokenOut
    session: MySessionOut | None
    balance: BalanceNowOut
    master: MasterOut


class SignedInOut(Out):
    """A browser that has just signed in."""

    account: AccountOut
    session: MySessionOut
    secret: Annotated[str, Field(description="The bearer token for further requests of this browser")]


class SessionOut(Out):
    """A browser that is signed in."""

    id: str
    token_id: str
    token_name: str
    browser: str | None
    address: Annotated[str | None, Field(description="From where it was signed in")]
    created_at: Time
    last_used_at: Time | None
    expires_at: Time
    current: Annotated[bool, Field(description="True for the session that asks")]


class TokenOut(Out):
    """An API token, without its text."""

    id: str
    name: str
    roles: Annotated[list[Role], Read(lambda token: sorted(token.roles))]
    created_at: Time
    expires_at: Time
    last_used_at: Time | None
    last_used_address: Annotated[str | None, Field(description="From where it was last used")]


class TokenMadeOut(TokenOut):
    """A new API token."""

    token: Annotated[str, Field(description="Its text, shown this once")]


class JoinTokenOut(Out):
    """A ticket for one host or relay, without its text."""

    id: str
    role: str
    created_at: Time
    expires_at: Time
    used_by: Annotated[str | None, Field(description="Id of the host or relay that joined with it")]


class JoinTokenMadeOut(JoinTokenOut):
    """A new ticket."""

    join_token: Annotated[str, Field(description="Its text, shown this once")]
    command: Annotated[str | None, Field(description="The line that lets a host join; null for a relay")]


Base64 = Annotated[str, Written(lambda data: base64.b64encode(data).decode())]


class SignedOut(Out):
    """Bytes and their Ed25519 signature, both in base64."""

    signed: Base64
    signature: Base64


class CertificateOut(Out):
    """The certificate and keys that a host or a relay gets when it joins or renews; keys in base64."""

    id: str
    generation: int
    certificate_pem: str
    ca_pem: str
    master_public: Base64
    regions: SignedOut
    not_after: Time
    trunk_addresses: list[str]
    is_bought: Annotated[bool, Field(description="True for a machine that this market bought at a provider")]


@route.get("/me", may=Permission.SIGNED_IN, answer=MeOut)
async def me(services: Serving, principal: Asking) -> Any:
    """The caller, the caller's balance, and the Master that answers."""
    balance = await services.market.balance_now(principal.account_id)
    ends = time_text(principal.expires_at_ns)
    return {
        "account": {"id": principal.account_id, "name": principal.account_name},
        "user": None if principal.user_id is None else {"id": principal.user_id, "name": principal.user_name},
        "service": None if principal.service_id is None else {"id": principal.service_id, "name": principal.user_name},
        "roles": sorted(principal.roles),
        "token": {"id": principal.token_id, "name": principal.token_name, "expires_at": ends},
        "session": None if principal.session_id is None else {"id": principal.session_id, "expires_at": ends},
        "balance": {"amount": money_text(balance), "currency": CURRENCY_TEST},
        "master": {"version": services.version, "epoch": services.store.epoch, "currency_is_test": True},
    }


@route.post("/session", may=Permission.NOBODY, signs_in=True, answer=SignedInOut)
async def sign_in(request: Request, services: Serving, body: SessionBody) -> Any:
    """Sign a browser in: it gets a session with a secret of its own, told this once, and need not keep the token.

    Further requests carry the secret as `Authorization: Bearer ws_...`. No cookie is set."""
    browser = request.headers.get("user-agent", "")
    address = request.client.host if request.client is not None else ""
    session, secret, principal = await services.identity.asking.sign_in(body.token, browser, address)
    return {
        "account": {"id": principal.account_id, "name": principal.account_name},
        "session": {"id": session.id, "expires_at": time_text(session.expires_at_ns)},
        "secret": secret,
    }


@route.delete("/session", may=Permission.NOBODY, hears_token=True, status_code=204)
async def sign_out(request: Request, services: Serving) -> Response:
    """End the session whose secret this request carries. Its token stays good: remove that under tokens."""
    with suppress(Unauthenticated):
        principal = await services.identity.asking.authenticate_session(bearer_of(request))
        assert principal.session_id is not None
        await services.identity.asking.end_session(principal, principal.session_id)
    return Response(status_code=204)


@route.get("/sessions", may=Permission.TOKENS, answer=answers.Page[SessionOut])
async def sessions(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Browsers that are signed in to the account."""
    found = await services.identity.asking.list_sessions(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, lambda pair: _session_json(*pair, principal), lambda pair: pair[0].id)


@route.delete("/sessions/{session_id}", may=Permission.TOKENS, reach=Reach.OWN, status_code=204)
async def end_session(services: Serving, principal: Asking, session_id: str) -> Response:
    """Sign a browser out at once."""
    await services.identity.asking.end_session(principal, SessionId(session_id))
    return Response(status_code=204)


@route.get("/tokens", may=Permission.TOKENS, answer=answers.Page[TokenOut])
async def tokens(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The account's tokens, without their texts."""
    found = await services.identity.list_tokens(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, TokenOut.of, lambda token: token.id)


@route.post(
    "/tokens",
    may=Permission.TOKENS,
    changes_rights=True,
    keeps_limits=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=TokenMadeOut,
)
async def make_token(services: Serving, principal: Asking, body: TokenBody) -> Any:
    """A new token; its text is shown this once. What it spends counts for the token that asks, too."""
    roles = None if body.roles is None else frozenset(body.roles)
    limits = body.limits.parsed()
    token, text = await services.identity.make_token(principal, body.name, roles, body.expires_in_s * SECOND)
    if limits != NO_LIMITS:  # before anybody knows its text
        await services.spending.set(principal, SpenderKind.TOKEN, token.id, limits)
    shown = replace(token, roles=token.roles & principal.roles)
    return {**TokenOut.of(shown), "token": text}


@route.delete("/tokens/{token_id}", may=Permission.TOKENS, reach=Reach.OWN, status_code=204)
async def revoke_token(services: Serving, principal: Asking, token_id: str) -> Response:
    """Make a token worthless at once."""
    await services.identity.revoke_token(principal, TokenId(token_id))
    return Response(status_code=204)


@route.get("/join-tokens", may=Permission.JOIN_TOKENS, answer=answers.Page[JoinTokenOut])
async def join_tokens(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The account's join tokens that can still be used."""
    found = await services.identity.list_join_tokens(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, JoinTokenOut.of, lambda token: token.id)


@route.post("/join-tokens", may=Permission.JOIN_TOKENS, repeat=Repeat.ALWAYS, status_code=201, answer=JoinTokenMadeOut)
async def make_join_token(services: Serving, principal: Asking, body: JoinTokenBody) -> Any:
    """A single-use ticket for one host; its text, and the command that uses it, are shown this once."""
    token, text = await services.identity.make_join_token(principal, body.role, body.expires_in_s * SECOND)
    command = join_command(services, text) if body.role is MemberRole.HOST else None
    return {**JoinTokenOut.of(token), "join_token": text, "command": command}


@route.get("/join-tokens/{token_id}", may=Permission.JOIN_TOKENS, reach=Reach.OWN, answer=JoinTokenOut)
async def join_token(services: Serving, principal: Asking, token_id: str) -> Any:
    """One join token of the account, used or not."""
    return JoinTokenOut.of(await services.identity.join_token(principal, TokenId(token_id)))


@route.delete("/join-tokens/{token_id}", may=Permission.JOIN_TOKENS, reach=Reach.OWN, status_code=204)
async def revoke_join_token(services: Serving, principal: Asking, token_id: str) -> Response:
    """Make a join token worthless at once."""
    await services.identity.revoke_join_token(principal, TokenId(token_id))
    return Response(status_code=204)


@route.post("/join", may=Permission.NOBODY, answer=CertificateOut)
async def join(services: Serving, body: JoinBody) -> Any:
    """Become a host or a relay, by join token and proof of possession of both keys."""
    request = JoinRequest(
        join_token=body.join_token,
        tls_csr_pem=body.tls_csr_pem.encode(),
        sign_public=_decode("sign_public", body.sign_public),
        proof=_decode("proof", body.proof),
        host_name=body.host_name,
        role=body.role,
        simulated=body.simulated,
        addresses=tuple(body.addresses),
    )
    return CertificateOut.of(await services.identity.join(request))


@route.post("/renew", may=Permission.NOBODY, answer=CertificateOut)
async def renew(services: Serving, body: RenewBody) -> Any:
    """The next certificate, by proof of the member's Ed25519 key and generation."""
    proof = _decode("proof", body.proof)
    request = RenewRequest(body.id, body.generation, body.tls_csr_pem.encode(), body.wall_ns, proof)
    return CertificateOut.of(await services.identity.renew(request))


@route.get("/ca", may=Permission.NOBODY, **answers.other("text/plain; charset=utf-8", "The root certificate."))
async def authority(services: Serving) -> Response:
    """The root certificate; check its key's hash against the one in your join token before you trust it."""
    return Response(services.identity.ca_pem, media_type="text/plain; charset=utf-8")


@route.get("/regions", may=Permission.NOBODY, answer=SignedOut)
async def regions(services: Serving) -> Any:
    """The signed map of relays."""
    return SignedOut.of(services.identity.signed_regions())


def _session_json(session: Session, token_name: str, principal: Principal) -> dict[str, Any]:
    return SessionOut.of(session, token_name=token_name, current=session.id == principal.session_id)


def _decode(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # not the alphabet, not even ASCII, or of a wrong length
        raise InvalidInput(f"{field} is not base64.") from None
