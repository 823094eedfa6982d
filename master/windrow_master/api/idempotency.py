"""Implements Idempotency-Key: a POST repeated with its key gets the first answer again, for 24 hours and per account.

The key is reserved before the route runs. An answer is remembered; a refusal is forgotten, for nothing was changed;
what was cut short (a crash, a deadline) stays reserved, and its repetition is told that the outcome is not known.
"""

import hashlib
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response

from windrow_master.api.deps import principal_of, services_of
from windrow_master.identity.decide import check_number
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
remembered. A route with a longer one is repeatable (auth.py): it may run again."""
SHORT_MAX: Final = 4 * 1024
LOGIN: Final = "registry_login"
REPLAYED: Final = "Idempotency-Replayed"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


async def once(request: Request, handler: Handler, *, may_resume: bool) -> Response:
    """The answer of the handler, or the one that this key has got before. may_resume: what was cut short runs again."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return await handler(request)
    if not 1 <= len(key) <= KEY_MAX or not key.isprintable():
        raise InvalidInput(f"Idempotency-Key must be 1 to {KEY_MAX} printable characters.")
    return await _once(request, handler, key, may_resume)


async def _once(request: Request, handler: Handler, key: str, may_resume: bool) -> Response:
    services, principal = services_of(request), await principal_of(request)
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(_without_login(await request.body()))
    asked = services.identity.seal_key.digest(digest.digest())
    longest = BODY_MAX

    def reserve(uow: UnitOfWork) -> RememberedAnswer | None:
        nonlocal longest
        uow.idempotency.forget_older(uow.now_wall_ns - KEEP_NS)
        present = uow.idempotency.get(principal.home_id, key)
        if present is None:
            have, way = uow.idempotency.count(principal.home_id), "Ask without a key, or try again tomorrow."
            check_number(principal, have, KEYS_MAX, "Idempotency-Keys of the last 24 hours", way)
            longest = BODY_MAX if have < LONG_MAX else SHORT_MAX
            uow.idempotency.reserve(principal.home_id, key, asked, uow.epoch, uow.now_wall_ns)
        return present

    present = await services.store.write(reserve, name="idempotency.reserve")
    may_run = present is None or (may_resume and present.status is None and present.request_sha256 == asked)
    if present is not None and not may_run:
        return _replay(present, asked)
    try:
        answer = await handler(request)
    except WindrowError as error:
        is_unsure = isinstance(error, DeadlineExceeded | StorageFailed) and not isinstance(error, DiskFull)
        is_known = error.fault is not Fault.OURS and not is_unsure
        if is_known:
            await services.store.write(
                lambda uow: uow.idempotency.forget(principal.home_id, key), name="idempotency.forget"
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
            lambda uow: uow.idempotency.forget(principal.home_id, key), name="idempotency.forget"
        )
        return
    kept = {name: answer.headers[name] for name in ("content-type", "location", "etag") if name in answer.headers}
    await services.store.write(
        lambda uow: uow.idempotency.remember(principal.home_id, key, answer.status_code, kept, body),
        name="idempotency.remember",
    )
