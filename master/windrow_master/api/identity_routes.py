"""Routes of identity: who am I, sign in, tokens, join tokens, joining, renewal, the authority, the regions."""

import base64
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from windrow_master.api import out
from windrow_master.api.deps import Asking, Serving, bearer_of
from windrow_master.api.idempotency import make_router
from windrow_master.api.onboarding_routes import join_command
from windrow_master.api.paging import Cursor, Limit, page, read_cursor, time_or_none
from windrow_master.identity.model import (
    ApiToken,
    JoinAnswer,
    JoinRequest,
    JoinToken,
    MemberRole,
    Principal,
    RenewRequest,
    Role,
    Session,
    SessionId,
)
from windrow_proto.errors import InvalidInput, Unauthenticated
from windrow_proto.ids import TokenId
from windrow_proto.units import CURRENCY_TEST, SECOND, money_text, time_text

router = make_router("identity")


class Body(BaseModel):
    """A request's body: unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class SessionBody(Body):
    token: Annotated[str, Field(max_length=200)]


class TokenBody(Body):
    name: Annotated[str, Field(min_length=1, max_length=128)]
    roles: Annotated[list[Role] | None, Field(max_length=4)] = None
    expires_in_s: Annotated[int, Field(gt=0, le=90 * 86_400)] = 30 * 86_400


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
    addresses: Annotated[list[str], Field(max_length=16)] = []


class RenewBody(Body):
    id: Annotated[str, Field(max_length=64)]
    generation: Annotated[int, Field(ge=0, lt=2**31)]
    tls_csr_pem: Annotated[str, Field(max_length=8_192)]
    wall_ns: Annotated[int, Field(ge=0, lt=2**63)]
    proof: Annotated[str, Field(max_length=128)]


@router.get("/me", responses=out.ME)
async def me(services: Serving, principal: Asking) -> Any:
    """Who asks, the balance, and which Master this is."""
    balance = await services.market.balance_now(principal.account_id)
    ends = time_text(principal.expires_at_ns)
    return {
        "account": {"id": principal.account_id, "name": principal.account_name},
        "roles": sorted(principal.roles),
        "token": {"id": principal.token_id, "name": principal.token_name, "expires_at": ends},
        "session": None if principal.session_id is None else {"id": principal.session_id, "expires_at": ends},
        "balance": {"amount": money_text(balance), "currency": CURRENCY_TEST},
        "master": {"version": services.version, "epoch": services.store.epoch, "currency_is_test": True},
    }


@router.post("/session", responses=out.SIGNED_IN)
async def sign_in(request: Request, services: Serving, body: SessionBody) -> Any:
    """Sign a browser in: it gets a session with a secret of its own, told this once, and need not keep the token.

    Further requests carry the secret as `Authorization: Bearer ws_...`. No cookie is set."""
    browser = request.headers.get("user-agent", "")
    session, secret, principal = await services.identity.asking.sign_in(body.token, browser)
    return {
        "account": {"id": principal.account_id, "name": principal.account_name},
        "session": {"id": session.id, "expires_at": time_text(session.expires_at_ns)},
        "secret": secret,
    }


@router.delete("/session", status_code=204)
async def sign_out(request: Request, services: Serving) -> Response:
    """End the session whose secret this request carries. Its token stays good: remove that under tokens."""
    with suppress(Unauthenticated):
        principal = await services.identity.asking.authenticate_session(bearer_of(request))
        assert principal.session_id is not None
        await services.identity.asking.end_session(principal, principal.session_id)
    return Response(status_code=204)


@router.get("/sessions", responses=out.SESSIONS)
async def sessions(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Browsers that are signed in to the account."""
    found = await services.identity.asking.list_sessions(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, lambda pair: _session_json(*pair, principal), lambda pair: pair[0].id)


@router.delete("/sessions/{session_id}", status_code=204)
async def end_session(services: Serving, principal: Asking, session_id: str) -> Response:
    """Sign a browser out at once."""
    await services.identity.asking.end_session(principal, SessionId(session_id))
    return Response(status_code=204)


@router.get("/tokens", responses=out.TOKENS)
async def tokens(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The account's tokens, without their texts."""
    found = await services.identity.list_tokens(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, token_json, lambda token: token.id)


@router.post("/tokens", status_code=201, responses=out.TOKEN_MADE)
async def make_token(services: Serving, principal: Asking, body: TokenBody) -> Any:
    """A new token; its text is shown this once."""
    roles = principal.roles if body.roles is None else frozenset(body.roles)
    token, text = await services.identity.make_token(principal, body.name, roles, body.expires_in_s * SECOND)
    return {**token_json(token), "token": text}


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(services: Serving, principal: Asking, token_id: str) -> Response:
    """Make a token worthless at once."""
    await services.identity.revoke_token(principal, TokenId(token_id))
    return Response(status_code=204)


@router.get("/join-tokens", responses=out.JOIN_TOKENS)
async def join_tokens(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The account's join tokens that can still be used."""
    found = await services.identity.list_join_tokens(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, _join_token_json, lambda token: token.id)


@router.post("/join-tokens", status_code=201, responses=out.JOIN_TOKEN_MADE)
async def make_join_token(services: Serving, principal: Asking, body: JoinTokenBody) -> Any:
    """A single-use ticket for one host; its text, and the command that uses it, are shown this once."""
    token, text = await services.identity.make_join_token(principal, body.role, body.expires_in_s * SECOND)
    command = join_command(services, text) if body.role is MemberRole.HOST else None
    return {**_join_token_json(token), "join_token": text, "command": command}


@router.delete("/join-tokens/{token_id}", status_code=204)
async def revoke_join_token(services: Serving, principal: Asking, token_id: str) -> Response:
    """Make a join token worthless at once."""
    await services.identity.revoke_join_token(principal, TokenId(token_id))
    return Response(status_code=204)


@router.post("/join", responses=out.MEMBER)
async def join(services: Serving, body: JoinBody) -> Any:
    """Become a host or an Access, by join token and proof of possession of both keys."""
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
    return _answer_json(await services.identity.join(request))


@router.post("/renew", responses=out.MEMBER)
async def renew(services: Serving, body: RenewBody) -> Any:
    """The next certificate, by proof of the member's Ed25519 key and generation."""
    proof = _decode("proof", body.proof)
    request = RenewRequest(body.id, body.generation, body.tls_csr_pem.encode(), body.wall_ns, proof)
    return _answer_json(await services.identity.renew(request))


@router.get("/ca", **out.other("application/x-pem-file", "The root certificate."))
async def authority(services: Serving) -> Response:
    """The root certificate; check its key's hash against the one in your join token before you trust it."""
    return Response(services.identity.ca_pem, media_type="application/x-pem-file")


@router.get("/regions", responses=out.REGIONS)
async def regions(services: Serving) -> Any:
    """The signed map of Accesses."""
    found = services.identity.signed_regions()
    return {"signed": _encode(found.signed), "signature": _encode(found.signature)}


def _session_json(session: Session, token_name: str, principal: Principal) -> dict[str, Any]:
    return {
        "id": session.id,
        "token_id": session.token_id,
        "token_name": token_name,
        "browser": session.browser,
        "created_at": time_text(session.created_at_ns),
        "last_used_at": time_text(session.last_used_at_ns),
        "expires_at": time_text(session.expires_at_ns),
        "current": session.id == principal.session_id,
    }


def token_json(token: ApiToken) -> dict[str, Any]:
    """An API token for JSON, without its text."""
    return {
        "id": token.id,
        "name": token.name,
        "roles": sorted(token.roles),
        "created_at": time_text(token.created_at_ns),
        "expires_at": time_text(token.expires_at_ns),
        "last_used_at": time_or_none(token.last_used_at_ns),
    }


def _join_token_json(token: JoinToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "role": token.role.value,
        "created_at": time_text(token.created_at_ns),
        "expires_at": time_text(token.expires_at_ns),
    }


def _answer_json(answer: JoinAnswer) -> dict[str, Any]:
    return {
        "id": answer.id,
        "generation": answer.generation,
        "certificate_pem": answer.certificate_pem,
        "ca_pem": answer.ca_pem,
        "master_public": _encode(answer.master_public),
        "regions": {"signed": _encode(answer.regions.signed), "signature": _encode(answer.regions.signature)},
        "not_after": time_text(answer.not_after_ns),
        "trunk_addresses": list(answer.trunk_addresses),
    }


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # not the alphabet, not even ASCII, or of a wrong length
        raise InvalidInput(f"{field} is not base64.") from None
