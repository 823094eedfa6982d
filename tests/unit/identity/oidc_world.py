"""An identity provider in this process, on which every lie can be switched on, and a market that people enter by it."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey

from tests.unit.identity.people_world import JSON, Market, ask, people_market
from windrow_master.app.wiring import Settings
from windrow_master.outgoing import Outgoing
from windrow_proto.units import SECOND

URL = "https://login.example.org"
CLIENT, SECRET = "windrow", "a secret of the client's"
PUBLIC_ADDRESS, INSIDE_ADDRESS = "93.184.215.14", "10.0.0.5"
NAME = "acme"
Reply = Callable[[httpx2.Request], Any]


def new_key(name: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": name})


def unpadded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Issuer:
    """Answers as an OpenID Connect provider does. claims: put over those of the next ID tokens; None leaves one out.
    metadata: put over the discovery document. said: what UserInfo tells. replies: answers of paths, in place of its
    own. sign: makes the text of an ID token."""

    now_s: Callable[[], int]
    keys: list[ECKey] = field(default_factory=lambda: [new_key("one")])
    signs_by: ECKey | None = None
    claims: JSON = field(default_factory=dict)
    metadata: JSON = field(default_factory=dict)
    said: JSON = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    sign: Callable[[JSON], str] | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    given: int = 0
    asked: list[str] = field(default_factory=list)
    address: str = PUBLIC_ADDRESS

    def sign_in(self, url: str) -> dict[str, str]:
        """The person at its page: what it sends the browser back with."""
        wanted = dict(parse_qsl(urlsplit(url).query))
        self.given += 1
        code = f"code-{self.given}"
        self.codes[code] = wanted
        return {"state": wanted["state"], "code": code, "iss": URL}

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        return [{"metadata.example.org": "169.254.169.254"}.get(host, self.address)]

    async def reply(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(f"{request.method} {request.headers['host']}{request.url.path}")
        if request.url.path in self.replies:
            found = self.replies[request.url.path](request)
            return found if isinstance(found, httpx2.Response) else await found
        match request.url.path:
            case "/.well-known/openid-configuration":
                return httpx2.Response(200, json=self._metadata())
            case "/keys":
                public = [key.as_dict(private=False) for key in self.keys]
                return httpx2.Response(200, json={"keys": [*public, {"kty": "unknown", "kid": "other"}]})
            case "/token":
                return self._token(request)
            case "/userinfo":
                assert request.headers["authorization"] == "Bearer access"
                return httpx2.Response(200, json={"sub": "ada-7", **self.said})
        return httpx2.Response(404)

    def _metadata(self) -> JSON:
        found = {
            "issuer": URL,
            "authorization_endpoint": f"{URL}/authorize",
            "token_endpoint": f"{URL}/token",
            "jwks_uri": f"{URL}/keys",
            "userinfo_endpoint": f"{URL}/userinfo",
            "code_challenge_methods_supported": ["S256", "plain"],
            "authorization_response_iss_parameter_supported": True,
        } | self.metadata
        return {name: value for name, value in found.items() if value is not None}

    def _token(self, request: httpx2.Request) -> httpx2.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        wanted = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '+').replace(chr(39), '%27')}".encode()).decode()
        if wanted is None or request.headers.get("authorization") != f"Basic {pair}":
            return httpx2.Response(400, json={"error": "invalid_grant"})
        challenge = unpadded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        assert wanted["code_challenge_method"] == "S256"
        if challenge != wanted["code_challenge"] or form.get("redirect_uri") != wanted["redirect_uri"]:
            return httpx2.Response(400, json={"error": "invalid_grant"})
        now_s = self.now_s()
        claims = {"iss": URL, "sub": "ada-7", "aud": CLIENT, "iat": now_s, "exp": now_s + 300, "nonce": wanted["nonce"]}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        token = self.sign(claims) if self.sign else self.signed(claims)
        return httpx2.Response(200, json={"id_token": token, "access_token": "access", "token_type": "Bearer"})

    def signed(self, claims: JSON, algorithm: str = "ES256", key: Any = None) -> str:
        key = key or self.signs_by or self.keys[-1]
        return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, [algorithm])


def unsigned(claims: JSON, algorithm: str, signature: bytes = b"", kid: str = "one") -> str:
    parts = [json.dumps(one).encode() for one in ({"alg": algorithm, "kid": kid}, claims)]
    return ".".join([*map(unpadded, parts), unpadded(signature)])


@dataclass
class Entrance:
    """A market with an identity provider."""

    market: Market
    issuer: Issuer

    async def set(self, status: int = 0, name: str = NAME, **changes: Any) -> Any:
        """Add the provider, or change it."""
        body: JSON = {"issuer": URL, "client_id": CLIENT, "client_secret": SECRET, "organisation": "home"}
        body |= {"creates_users": True, **changes}
        return await ask(self.market.owner, "PUT", f"/identity-providers/{name}", status, **body)

    async def start(self, **headers: str) -> Any:
        stranger = await self.market.client()
        answer = await stranger.post("/sign-in/provider", json={"provider": NAME}, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def finish(self, started: JSON, **changes: Any) -> httpx2.Response:
        """Come back from the provider with what it gave."""
        return await self.send(self.body_of(started, **changes))

    def body_of(self, started: JSON, **changes: Any) -> JSON:
        body = {"provider": NAME, "secret": started["secret"], **self.issuer.sign_in(started["url"]), **changes}
        return {name: value for name, value in body.items() if value is not None}

    async def send(self, body: JSON) -> httpx2.Response:
        return await (await self.market.client()).post("/sign-in/provider/finish", json=body)

    async def enter(self, status: int = 201, **changes: Any) -> Any:
        """Sign in; the answer, which has this status."""
        answer = await self.finish(await self.start(), **changes)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def entered(self) -> httpx2.AsyncClient:
        """A client that has signed in."""
        return await self.market.client((await self.enter())["secret"])


@asynccontextmanager
async def entrance(folder: Path, deadline_s: float = 5.0) -> AsyncIterator[Entrance]:
    """A market in this folder, and its provider."""
    issuer = Issuer(lambda: 0)
    outgoing = Outgoing(httpx2.MockTransport(issuer.reply), issuer.look_up, deadline_s)
    async with people_market(folder, Settings(outgoing=lambda: outgoing)) as market:
        issuer.now_s = lambda: market.clock.wall_ns() // SECOND
        yield Entrance(market, issuer)
