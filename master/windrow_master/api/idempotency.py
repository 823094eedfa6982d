"""Idempotency-Key: a POST repeated with its key gets the first answer again, for 24 hours and per account.

The key is reserved before the route runs. An answer is remembered; a refusal is forgotten, for nothing was changed;
what was cut short (a crash, a deadline) stays reserved, and its repetition is told that the outcome is not known.
"""

import hashlib
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from windrow_master.api import names, streaming, values
from windrow_master.api.auth import RULES, V1, authorise
from windrow_master.api.deps import principal_of, services_of
from windrow_master.identity.decide import Permission, check_number
from windrow_master.store.model import RememberedAnswer
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    Conflict,
    DeadlineExceeded,
    DiskFull,
    Fault,
    IdempotencyMismatch,
    InvalidInput,
    StorageFailed,
    WindrowError,
)
from windrow_proto.units import DAY

KEEP_NS: Final = DAY
KEY_MAX: Final = 200
KEYS_MAX: Final = 20_000
"""Of one account within KEEP_NS; an operator's may be more."""
BODY_MAX: Final = 256 * 1024
"""Longer answers are not remembered; no POST of ours gives one."""
LONG_MAX: Final = 200
"""Keys of one account within KEEP_NS whose answers may be so long; of the others those above SHORT_MAX are not
remembered. What has a longer one is of REPEATABLE, or says how something is to be: it may run again."""
SHORT_MAX: Final = 4 * 1024
LOGIN: Final = "registry_login"
REPLAYED: Final = "Idempotency-Replayed"
SECRET_ANSWERS: Final = frozenset(
    {
        *(f"{V1}/tokens", f"{V1}/join-tokens", f"{V1}/clusters/{{cluster_id}}/tunnels"),
        *(f"{V1}/accounts", f"{V1}/accounts/{{account_id}}/link"),
    }
)
"""Their answers hold a secret that is shown once and stored nowhere, so they are made again instead."""
_MADE_AGAIN: Final = SECRET_ANSWERS | {f"{V1}/clusters/{{cluster_id}}/renew"}
"""The last one is asked for every few minutes of each cluster with a client, and does no harm twice."""
_STATED: Final = frozenset({f"{V1}/clusters/{{cluster_id}}/{what}" for what in ("stop", "start")})
"""They say how something is to be, so they are answered again where it is so already."""
REPEATABLE: Final = _STATED | {
    *(f"{V1}/clusters", f"{V1}/jobs", f"{V1}/jobs/{{job_id}}/rerun", f"{V1}/accounts/{{account_id}}/credit"),
}
"""Of the others the rooms keep the key in the transaction that does the work; so what was cut short may run again."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose POSTs honour Idempotency-Key, that reads no body of anybody who may not ask, and that is asked
    nothing whose texts and numbers cannot be (values.py)."""

    def get_route_handler(self) -> Handler:
        """The handler FastAPI makes, wrapped."""
        handler = super().get_route_handler()
        is_post = "POST" in (self.methods or ())

        async def permitted(request: Request) -> Response:
            template = getattr(request.scope.get("route"), "path", "")
            if RULES.get((request.method, template)) is Permission.NOBODY:
                await values.check(request, self)
                return await handler(request)
            await authorise(request)
            principal = await principal_of(request)
            shares = services_of(request).shares
            shares.take(request.scope, template, principal)
            if shares.kind(request.method, template) is shares.uploads:
                return await streaming.while_allowed(request, once(request, template))
            return await once(request, template)

        async def once(request: Request, template: str) -> Response:
            await values.check(request, self)
            names.resolve(request, services_of(request))
            key = request.headers.get("idempotency-key") if is_post else None
            if key is None or template in _MADE_AGAIN:
                return await handler(request)
            if not 1 <= len(key) <= KEY_MAX or not key.isprintable():
                raise InvalidInput(f"Idempotency-Key must be 1 to {KEY_MAX} printable characters.")
            return await _once(request, handler, key)

        return permitted


def make_router(tag: str) -> APIRouter:
    """A router under /api/v1 whose POSTs honour Idempotency-Key; every room makes its router with this."""
    return APIRouter(prefix=V1, tags=[tag], route_class=IdempotentRoute)


async def _once(request: Request, handler: Handler, key: str) -> Response:
    services, principal = services_of(request), await principal_of(request)
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(_without_login(await request.body()))
    asked = services.identity.seal_key.digest(digest.digest())
    longest = BODY_MAX

    def reserve(uow: UnitOfWork) -> RememberedAnswer | None:
        nonlocal longest
        uow.idempotency.forget_older(uow.now_wall_ns - KEEP_NS)
        present = uow.idempotency.get(principal.account_id, key)
        if present is None:
            have, way = uow.idempotency.count(principal.account_id), "Ask without a key, or try again tomorrow."
            check_number(principal, have, KEYS_MAX, "Idempotency-Keys of the last 24 hours", way)
            longest = BODY_MAX if have < LONG_MAX else SHORT_MAX
            uow.idempotency.reserve(principal.account_id, key, asked, uow.epoch, uow.now_wall_ns)
        return present

    present = await services.store.write(reserve, name="idempotency.reserve")
    template = getattr(request.scope.get("route"), "path", "")
    may_run = present is None or (present.status is None and present.request_sha256 == asked and template in REPEATABLE)
    if present is not None and not may_run:
        return _replay(present, asked)
    try:
        answer = await handler(request)
    except WindrowError as error:
        is_unsure = isinstance(error, DeadlineExceeded | StorageFailed) and not isinstance(error, DiskFull)
        is_known = error.fault is not Fault.OURS and not is_unsure
        if is_known:
            await services.store.write(
                lambda uow: uow.idempotency.forget(principal.account_id, key), name="idempotency.forget"
            )
        raise
    await _remember(request, key, answer, longest)
    return answer


def _without_login(body: bytes) -> bytes:
    """The body without a registry's login: another one makes no other request."""
    if LOGIN.encode() not in body:
        return body
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body  # it is refused, and forgotten with that
    if not isinstance(said, dict):
        return body
    return json.dumps({key: value for key, value in said.items() if key != LOGIN}).encode()


def _replay(present: RememberedAnswer, asked: bytes) -> Response:
    if present.request_sha256 != asked:
        raise IdempotencyMismatch
    if present.status is None:
        raise Conflict(
            "A request with this Idempotency-Key is still being served, or was cut short and its outcome is not "
            "known. Look at what there is before you repeat it with a new key."
        )
    return Response(present.body, present.status, headers={**present.headers, REPLAYED: "true"})


async def _remember(request: Request, key: str, answer: Response, longest: int) -> None:
    services, principal = services_of(request), await principal_of(request)
    body = bytes(getattr(answer, "body", b""))
    is_whole = hasattr(answer, "body") and len(body) <= longest
    if not is_whole or answer.status_code >= 400:
        # A stream cannot be repeated and a refusal changed nothing: the next request with this key runs.
        await services.store.write(
            lambda uow: uow.idempotency.forget(principal.account_id, key), name="idempotency.forget"
        )
        return
    kept = {name: answer.headers[name] for name in ("content-type", "location", "etag") if name in answer.headers}
    await services.store.write(
        lambda uow: uow.idempotency.remember(principal.account_id, key, answer.status_code, kept, body),
        name="idempotency.remember",
    )
