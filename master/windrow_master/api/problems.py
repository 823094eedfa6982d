"""Writes every failure as application/problem+json (RFC 9457) from the one table of errors; callers see less than
the log."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from windrow_master.api.paging import Json
from windrow_master.api.refusals import ReasonOut, RefusalOut, WayOut
from windrow_master.clusters.needs import Refused
from windrow_master.lifecycle import StillInUse
from windrow_proto.errors import (
    Fault,
    InvalidInput,
    NoCapacity,
    NotFound,
    TooLarge,
    TooMany,
    Unauthenticated,
    Unavailable,
    WindrowError,
)
from windrow_proto.units import SECOND

MEDIA_TYPE: Final = "application/problem+json"
TYPE_BASE: Final = "https://windrow.dev/errors/"
RETRY_AFTER_S: Final = 2
"""The pause that a retryable refusal asks of callers: long beside a group commit, short beside a person's patience."""
REASONS_MAX: Final = 200
_TITLES: Final[dict[int, str]] = {
    400: "Bad request", 401: "Not signed in", 402: "Not enough funds", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 409: "Conflict", 413: "Too large",
    421: "Not this Master's address", 422: "Not valid", 429: "Too many", 500: "Our fault",
    503: "Not possible now", 504: "Not in time",
}  # fmt: skip
_TITLES_BY_CODE: Final = {NoCapacity.code: "No host fits"}

log = structlog.get_logger(__name__)


class ProblemReason(BaseModel):
    """One reason of a refusal, of a field of the request or of a project."""

    model_config = ConfigDict(extra="allow")

    reason: str
    field: Annotated[
        str, Field(description="Of the request: its path in the body, or a query parameter. Or a project")
    ] = ""


class Problem(BaseModel):
    """A refusal or a failure (RFC 9457); some kinds have more fields."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(description="An address that ends with `code`")]
    title: Annotated[str, Field(description="What happened, in a few words")]
    status: int
    detail: Annotated[str, Field(description="What happened, and what to do next")]
    code: Annotated[str, Field(description="Stable, for programs")]
    subject: Annotated[str, Field(description="The id or the field that it is about; empty where there is none")]
    retryable: Annotated[bool, Field(description="The same request may succeed later")]
    request_id: Annotated[str, Field(description="By which the Master's log names this request")]
    reasons: Annotated[
        list[ReasonOut | ProblemReason], Field(default_factory=list, description="Left out where there are none")
    ]
    ways: Annotated[list[WayOut], Field(default_factory=list, description="Of a request that fits nowhere now")]
    is_possible: Annotated[bool, Field(description="False: waiting does not help")] = True


def request_id_of(request: Request) -> str:
    """The id under which the log knows this request."""
    return str(request.scope.get("windrow.request_id", ""))


def problem(
    request: Request,
    error: WindrowError,
    *,
    status: int | None = None,
    reasons: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer that says what went wrong, to whom, and whether trying again helps."""
    code = status or error.http
    body: dict[str, Any] = {
        "type": TYPE_BASE + error.code,
        "title": _TITLES_BY_CODE.get(error.code) or _TITLES.get(code, "Failed"),
        "status": code,
        "detail": error.detail,
        "code": error.code,
        "subject": error.subject,
        "retryable": error.retryable,
        "request_id": request_id_of(request),
    }
    if reasons:
        body["reasons"] = list(reasons)[:REASONS_MAX]
    if isinstance(error, StillInUse):
        body["reasons"] = [{"field": project, "reason": said} for project, said in error.reasons][:REASONS_MAX]
    if isinstance(error, Refused):
        body |= RefusalOut.of(error.refusal)
    extra = dict(headers or {})
    if error.retry_after_ns > 0:
        extra.setdefault("Retry-After", str(-(-error.retry_after_ns // SECOND)))
    if isinstance(error, TooMany | Unavailable):
        extra.setdefault("Retry-After", str(RETRY_AFTER_S))
    if isinstance(error, Unauthenticated):
        extra.setdefault("WWW-Authenticate", "Bearer")
    return Json(body, code, headers=extra, media_type=MEDIA_TYPE)


_PLAIN: Final = (
    (re.compile(r"^Input should be greater than or equal to (\S+)$"), r"has to be \1 or more"),
    (re.compile(r"^Input should be less than or equal to (\S+)$"), r"has to be \1 or less"),
    (re.compile(r"^Input should be greater than (\S+)$"), r"has to be more than \1"),
    (re.compile(r"^Input should be less than (\S+)$"), r"has to be less than \1"),
    (re.compile(r"^Input should be "), "has to be "),
)
"""Forms of pydantic's sentences, and our words behind the name of a field."""


def _field(place: Sequence[str | int]) -> str:
    """The path of a field in a body, or the name of a parameter."""
    return ".".join(str(part) for part in place[1:]) or str(place[0])


def _rule(request: Request, found: Mapping[str, Any]) -> str:
    """What a value has to be: where it has to have a form, the words of its description and not the expression."""
    said = str(found["msg"])
    for form, words in _PLAIN:
        said = form.sub(words, said)
    if found["type"] != "string_pattern_mismatch":
        return said
    words = _description(request.scope.get("route"), found["loc"])
    return f"Wrong form. Expected: {words[0].lower()}{words[1:]}" if words else said


def _description(route: Any, place: Sequence[str | int]) -> str:
    """The description of a parameter or of a field of the body; empty where there is none."""
    dependant, where = getattr(route, "dependant", None), str(place[0])
    name = next(str(part) for part in reversed(place) if isinstance(part, str))  # of a list, not the place in it
    for one in getattr(dependant, f"{where}_params", ()):
        own = {one.alias: one.field_info}
        fields = getattr(one.field_info.annotation, "model_fields", {}) if where == "body" else own
        if name in fields:
            return str(fields[name].description or "")
    return ""


def _is_only_the_console(request: Request) -> bool:
    """True for an address below /api that no route has: the console's route, which has every address, was found."""
    path = getattr(request.scope.get("route"), "path", "")
    return request.url.path.startswith("/api/") and path == "/{path:path}"


def install(app: FastAPI) -> None:
    """Answer every exception of this application with a problem."""

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, WindrowError)
        if error.fault is Fault.OURS:
            log.error("request_failed", request_id=request_id_of(request), path=request.url.path, error=str(error))
        return problem(request, error)

    async def not_valid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        reasons = [{"field": _field(found["loc"]), "reason": _rule(request, found)} for found in error.errors()]
        fields = ", ".join(sorted({reason["field"] for reason in reasons}))[:200]
        return problem(request, InvalidInput(f"The request is not valid: {fields}."), reasons=reasons)

    async def by_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kinds: dict[int, type[WindrowError]] = {404: NotFound, 413: TooLarge, 401: Unauthenticated}
        if error.status_code == 404:
            said: WindrowError = NotFound(f"There is nothing at {request.url.path[:200]}.")
        elif error.status_code == 405 and _is_only_the_console(request):
            said, error.status_code = NotFound(f"There is nothing at {request.url.path[:200]}."), 404
        elif error.status_code == 405:
            said = InvalidInput(f"{request.method} is not possible at {request.url.path[:200]}.")
        elif error.status_code == 400:  # the framework's, for a body that no parser takes
            said, error.status_code = InvalidInput("body: It is no JSON in UTF-8.", subject="body"), 422
        else:
            said = kinds.get(error.status_code, InvalidInput)(str(error.detail)[:400])
        return problem(request, said, status=error.status_code, headers=error.headers)

    async def broken_off(request: Request, error: Exception) -> Response:
        log.info("request_broken_off", request_id=request_id_of(request), path=request.url.path)
        return problem(request, InvalidInput("The request's body was broken off. Nothing of it was kept."))

    async def unexpected(request: Request, error: Exception) -> Response:
        request_id = request_id_of(request)
        if isinstance(error, ConnectionAbortedError):
            return problem(request, InvalidInput("The answer was broken off."))  # nobody is told: it had begun
        log.error("request_crashed", request_id=request_id, path=request.url.path, exc_info=error)
        said = WindrowError(f"Something failed in the Master. Its log says more, by the request id {request_id}.")
        return problem(request, said)

    app.add_exception_handler(WindrowError, known)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(HTTPException, by_status)
    app.add_exception_handler(ClientDisconnect, broken_off)
    app.add_exception_handler(Exception, unexpected)
