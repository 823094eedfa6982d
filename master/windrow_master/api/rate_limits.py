"""Limits how often anybody may ask: per token, per address without one, and strictly for what turns out to be no token.

A right token is never refused for wrong ones: only an answer that says 401 can become one that says 429.

The counts are the bus's: shared by all processes while its server answers, each process' own while it does not.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from fastapi import Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow_master.api import problems
from windrow_master.api.auth import Declarations
from windrow_master.api.deps import bearer_of
from windrow_master.store.bus import Bus, Limit, Taken
from windrow_proto.errors import TooMany
from windrow_proto.networks import network_of
from windrow_proto.units import MILLISECOND, SECOND

PROVEN_MAX: Final = 10_000
"""Tokens this process remembers as real; a forgotten one is looked up once more."""

TOKEN: Final = Limit("token", burst=5_000, refill_ns=2 * MILLISECOND)
"""Per token. Generous beside what the console and the command line need (a few a second), strict beside what hurts: a
Master answers some 1,000 small requests a second and core."""
ADDRESS: Final = Limit("address", burst=5_000, refill_ns=5 * MILLISECOND)
"""Without a token: the console's files, and hosts that join from behind one address."""
ATTEMPT: Final = Limit("attempt", burst=5_000, refill_ns=2 * MILLISECOND)
"""With what may be a token, per address. Apart from the others, so that whoever asks without one takes nothing away."""
SIGN_IN: Final = Limit("sign_in", burst=30, refill_ns=4 * SECOND)
"""Refused tokens per address, and per beginning of a token from any address."""
PASSWORD: Final = Limit("password", burst=60, refill_ns=SECOND)
"""Passwords per address, right ones too: each costs a hash, some 40 ms of a core."""
PREFIX_CHARS: Final = 11
"""Of a token, counted as one: its kind and 8 characters of chance."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one application."""

    token: Limit = TOKEN
    address: Limit = ADDRESS
    attempt: Limit = ATTEMPT
    sign_in: Limit = SIGN_IN
    password: Limit = PASSWORD


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request as the limits see it: by whom, and the count that was closest to its limit."""

    address: str
    digest: str | None
    prefix: str | None
    is_attempt: bool
    limit: Limit
    taken: Taken


class Limited:
    """The application behind its limits."""

    def __init__(self, app: ASGIApp, bus: Bus, limits: Limits | None, declared: Declarations) -> None:
        """limits: None lets everything through. declared: the routes behind it, by method and path."""
        self._app = app
        self._bus = bus
        self._limits = limits
        self._proven: OrderedDict[str, None] = OrderedDict()
        self._unlimited = frozenset(path for (_, path), one in declared.items() if one.is_unlimited)
        self._sign_ins = frozenset(route for route, one in declared.items() if one.signs_in)
        self._hashing = frozenset(route for route, one in declared.items() if one.hashes)
        self.refused: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it before it costs."""
        if self._limits is None or scope["type"] != "http" or scope["path"] in self._unlimited:
            await self._app(scope, receive, send)
            return
        asked = await self._count(Request(scope), self._limits)
        if asked.taken.is_allowed and (scope["method"], scope["path"]) in self._hashing:
            taken = await self._bus.take(f"password {asked.address}", self._limits.password)
            asked = asked if taken.is_allowed else replace(asked, limit=self._limits.password, taken=taken)
        if not asked.taken.is_allowed:
            await self._refused(scope, asked)(scope, receive, send)
            return
        is_refused = False

        async def sending(message: Message) -> None:
            # Judged when an answer begins: a stream may never end.
            nonlocal is_refused
            if is_refused:
                return  # what the application says to a guess beyond the limit
            if message["type"] == "http.response.start":
                beyond = await self._judge(asked, message["status"])
                if beyond is not None:
                    is_refused = True
                    await self._refused(scope, beyond)(scope, receive, send)
                    return
                if scope["path"].startswith("/api/"):
                    MutableHeaders(scope=message).update(_headers(asked))
            await send(message)

        await self._app(scope, receive, sending)

    async def _count(self, request: Request, limits: Limits) -> _Asked:
        address, bearer = _address(request), bearer_of(request)
        digest, prefix = _digest(bearer), _digest(bearer[:PREFIX_CHARS])
        if digest is not None and digest in self._proven:
            self._proven.move_to_end(digest)
            return _Asked(address, digest, prefix, True, limits.token, await self._bus.take(digest, limits.token))
        is_attempt = digest is not None or (request.method, request.url.path) in self._sign_ins
        limit = limits.attempt if is_attempt else limits.address
        return _Asked(address, digest, prefix, is_attempt, limit, await self._bus.take(address, limit))

    async def _judge(self, asked: _Asked, status: int) -> _Asked | None:
        """Count an attempt by how it ended; one that failed beyond the limit is returned with the limit."""
        assert self._limits is not None
        if status == 401 and asked.digest is not None:
            self._proven.pop(asked.digest, None)
        if asked.is_attempt and status == 401:
            for key in (asked.address, asked.prefix):
                taken = await self._bus.take(key, self._limits.sign_in) if key is not None else None
                if taken is not None and not taken.is_allowed:
                    return replace(asked, limit=self._limits.sign_in, taken=taken)
        elif asked.is_attempt and asked.digest is not None and status < 400:
            self._proven[asked.digest] = None
            while len(self._proven) > PROVEN_MAX:
                self._proven.popitem(last=False)
        return None

    def _refused(self, scope: Scope, asked: _Asked) -> Response:
        self.refused[asked.limit.name] = self.refused.get(asked.limit.name, 0) + 1
        return _refusal(Request(scope), asked)


def _refusal(request: Request, asked: _Asked) -> Response:
    wait_s = max(1, -(-asked.taken.retry_after_ns // SECOND))
    what = {"sign_in": "refused tokens", "password": "passwords from your address"}.get(asked.limit.name, "requests")
    error = TooMany(f"Too many {what} in a short time; nothing was changed. Try again in {wait_s} s.")
    return problems.problem(request, error, headers={"Retry-After": str(wait_s), **_headers(asked)})


def _headers(asked: _Asked) -> dict[str, str]:
    """The limit and what is left of it, as the IETF's draft of RateLimit fields writes them; seconds rounded up."""
    limit, taken = asked.limit, asked.taken
    window_s = -(-limit.burst * limit.refill_ns // SECOND)
    reset_s = -(-taken.reset_ns // SECOND)
    return {
        "RateLimit-Policy": f'"{limit.name}";q={limit.burst};w={window_s}',
        "RateLimit": f'"{limit.name}";r={taken.remaining};t={reset_s}',
    }


def _digest(credential: str) -> str | None:
    """Return the hash that stands for a token, or its beginning; the bus never sees either."""
    return hashlib.sha256(credential.encode()).hexdigest()[:32] if credential else None


def _address(request: Request) -> str:
    return network_of(request.client.host if request.client is not None else "") or "unknown"
