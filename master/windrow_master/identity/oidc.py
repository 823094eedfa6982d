"""Speaks OpenID Connect with a provider: discovery, the address of its sign-in page, the code's exchange, the checks of
the ID token. The one adapter of authlib and joserfc.
"""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, KeySet

from windrow_master.identity.providers import (
    SUBJECT_CHARS_MAX,
    Claims,
    Provider,
    check_url,
    claims_of,
    private_host,
)
from windrow_master.outgoing import Answer, Outgoing
from windrow_proto.errors import InvalidInput, Unauthenticated, Unavailable
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND

ALGORITHMS: Final = ("RS256", "ES256", "PS256", "EdDSA")
"""Signatures alone, with a key pair: never `none`, nor a shared secret, for which a public key could be taken."""
LEEWAY_S: Final = 60
"""By which the provider's clock may be off."""
AGE_S_MAX: Final = 600
"""Of an ID token that has just been asked for."""
DISCOVERY_LIFE_NS: Final = 10 * SECOND
KEYS_LIFE_NS: Final = 10 * MINUTE
"""After which a key that the provider took back counts no more."""
KEYS_PAUSE_NS: Final = 5 * SECOND
"""Between two readings of a provider's keys, whatever key a token names."""
KEYS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a provider says of itself. sends_issuer: with each code (RFC 9207). posts_secret: takes the client's secret
    in the form alone."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    sends_issuer: bool
    posts_secret: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """One sign-in under way. verifier: of PKCE; it never leaves the Master before the code is exchanged."""

    provider: str
    metadata: Metadata
    redirect_uri: str
    verifier: str
    nonce: str


@dataclass(frozen=True, slots=True)
class _Keys:
    jwks_uri: str
    keys: KeySet
    read_at_ns: int


class OpenIdClient:
    """Asks providers; knows nothing of users."""

    def __init__(self, outgoing: Outgoing, clock: Clock) -> None:
        self._outgoing, self._clock = outgoing, clock
        self._keys: dict[str, _Keys] = {}
        self._found: dict[str, tuple[Metadata, int]] = {}

    async def discover(self, provider: Provider) -> Metadata:
        """What the provider says of itself, at most DISCOVERY_LIFE_NS old. Raises Unavailable."""
        now_ns, kept = self._clock.monotonic_ns(), self._found.get(provider.name)
        if kept is not None and kept[0].issuer == provider.issuer and now_ns - kept[1] < DISCOVERY_LIFE_NS:
            return kept[0]
        url = provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
        answer = await self._ask("GET", url, provider)
        if answer.status != 200:
            raise Unavailable(f"{url} answers with the status {answer.status}: there is no identity provider.")
        found = _metadata(provider, answer.said)
        self._found[provider.name] = found, now_ns
        return found

    def forget(self, provider: Provider) -> None:
        """Ask the provider again: it is tested or was changed."""
        self._found.pop(provider.name, None)

    async def keys(self, provider: Provider, metadata: Metadata, *, is_fresh: bool = False) -> KeySet:
        """The keys by which the provider signs; read again where those at hand are too old, or a fresh reading is
        wanted. Raises Unavailable."""
        now_ns, kept = self._clock.monotonic_ns(), self._keys.get(provider.name)
        life_ns = KEYS_PAUSE_NS if is_fresh else KEYS_LIFE_NS
        if kept is not None and kept.jwks_uri == metadata.jwks_uri and now_ns - kept.read_at_ns < life_ns:
            return kept.keys
        answer = await self._ask("GET", metadata.jwks_uri, provider)
        listed = answer.said.get("keys")
        if answer.status != 200 or not isinstance(listed, list):
            raise Unavailable(f"{provider.name} does not tell its keys (status {answer.status}).")
        read = KeySet([key for one in listed[:KEYS_MAX] if (key := _key(one)) is not None])
        self._keys[provider.name] = _Keys(metadata.jwks_uri, read, now_ns)
        return read

    async def claims(self, provider: Provider, asked: Asked, code: str, secret: str | None) -> Claims:
        """What the provider says of the person whom a code is for. secret: the client's. Raises Unauthenticated where a
        check fails, Unavailable where the provider does."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": asked.redirect_uri,
            "code_verifier": asked.verifier,
        }
        headers = {}
        if secret is None or asked.metadata.posts_secret:
            form |= {"client_id": provider.client_id} | ({} if secret is None else {"client_secret": secret})
        else:
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        answer = await self._ask("POST", asked.metadata.token_endpoint, provider, form=form, headers=headers)
        if answer.status >= 500:
            raise Unavailable(f"{provider.name} answers with the status {answer.status}.")
        token, access = answer.said.get("id_token"), answer.said.get("access_token")
        if answer.status != 200 or not isinstance(token, str):
            raise Unauthenticated(f"{provider.name} does not take the code: {_error(answer)}. Begin again.")
        said = await self._checked(provider, asked, token, access)
        if isinstance(access, str) and asked.metadata.userinfo_endpoint is not None:
            more = await self._userinfo(provider, asked.metadata.userinfo_endpoint, access, said)
            of_address = said if "email" in said else more  # whether one is verified is not said of the other
            said = {**more, **said, "email_verified": of_address.get("email_verified")}
        return claims_of(said, provider.group_claim)

    async def _ask(self, method: str, url: str, provider: Provider, **sent: Mapping[str, str]) -> Answer:
        host = private_host(provider)
        try:
            check_url(url, host)
        except InvalidInput as wrong:
            raise Unavailable(f"The identity provider gives an address that is not asked: {wrong.detail}") from None
        return await self._outgoing.ask(method, url, host, **sent)

    async def _checked(self, provider: Provider, asked: Asked, token: str, access: object) -> Mapping[str, Any]:
        try:
            try:
                read = jwt.decode(token, await self.keys(provider, asked.metadata), ALGORITHMS)
            except (InvalidKeyIdError, BadSignatureError):  # its keys may have changed
                read = jwt.decode(token, await self.keys(provider, asked.metadata, is_fresh=True), ALGORITHMS)
            now_s = self._clock.wall_ns() // SECOND
            claims = CodeIDToken(
                read.claims,
                read.header,
                options={
                    "iss": {"essential": True, "value": provider.issuer},
                    "aud": {"essential": True, "value": provider.client_id},
                },
                params={"nonce": asked.nonce, "client_id": provider.client_id, "access_token": access},
            )
            claims.validate(now=now_s, leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError) as wrong:
            said = str(wrong)[:200]
            raise Unauthenticated(f"The answer of {provider.name} is not valid: {said}. Begin again.") from None
        subject = claims["sub"]
        if not (0 < len(subject) <= SUBJECT_CHARS_MAX and subject.isascii() and subject.isprintable()):
            raise Unauthenticated(f"The answer of {provider.name} names nobody (sub).")
        if now_s - claims["iat"] > AGE_S_MAX:
            raise Unauthenticated(f"The answer of {provider.name} is old (iat): its clock and this Master's differ.")
        return dict(claims)

    async def _userinfo(
        self, provider: Provider, url: str, access: str, claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {access}"}
        answer = await self._ask("GET", url, provider, headers=headers)
        if answer.status != 200:
            raise Unavailable(f"{provider.name} does not say who you are (status {answer.status}).")
        if answer.said.get("sub") != claims["sub"]:
            raise Unauthenticated(f"The answer of {provider.name} is about somebody else (sub).")
        return answer.said


def sign_in_url(provider: Provider, asked: Asked, state: str) -> str:
    """The address of the provider's page, where the person signs in."""
    place = asked.metadata.authorization_endpoint
    words = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": asked.redirect_uri,
        "scope": " ".join(dict.fromkeys(("openid", *provider.scopes))),
        "state": state,
        "nonce": asked.nonce,
        "code_challenge": create_s256_code_challenge(asked.verifier),
        "code_challenge_method": "S256",
    }
    return f"{place}{'&' if urlsplit(place).query else '?'}{urlencode(words)}"


def check_issuer(metadata: Metadata, issuer: str | None) -> None:
    """Raises Unauthenticated where a code came from another provider than it was asked of (RFC 9207)."""
    if (issuer is not None or metadata.sends_issuer) and not hmac.compare_digest(
        (issuer or "").encode(), metadata.issuer.encode()
    ):
        raise Unauthenticated("The code is of another identity provider than the one you chose. Begin again.")


def _metadata(provider: Provider, said: Mapping[str, Any]) -> Metadata:
    if said.get("issuer") != provider.issuer:
        raise Unavailable(
            f"The identity provider says that its issuer is {str(said.get('issuer'))[:200]!r}, not {provider.issuer!r}."
        )
    places = [said.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    userinfo = said.get("userinfo_endpoint")
    try:
        for place in [*places, *([] if userinfo is None else [userinfo])]:
            check_url(str(place), private_host(provider))
    except InvalidInput as wrong:
        raise Unavailable(f"The identity provider names an address that is not asked: {wrong.detail}") from None
    methods = said.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise Unavailable("The identity provider does not know PKCE with S256, without which codes can be stolen.")
    ways = said.get("token_endpoint_auth_methods_supported")
    return Metadata(
        issuer=provider.issuer,
        authorization_endpoint=str(places[0]),
        token_endpoint=str(places[1]),
        jwks_uri=str(places[2]),
        userinfo_endpoint=None if userinfo is None else str(userinfo),
        sends_issuer=said.get("authorization_response_iss_parameter_supported") is True,
        posts_secret=isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways,
    )


def _key(said: Any) -> Any:
    """A key that signatures are checked with; None for what is none."""
    if not isinstance(said, dict) or said.get("kty") not in ("RSA", "EC", "OKP") or said.get("use", "sig") != "sig":
        return None
    try:
        return JWKRegistry.import_key(said)
    except (JoseError, ValueError, TypeError):
        return None


def _error(answer: Answer) -> str:
    return f"{str(answer.said.get('error', 'no ID token'))[:64]} (status {answer.status})"
