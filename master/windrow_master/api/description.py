"""Describes the HTTP API: completes what FastAPI says of each route by what the route declares. Pure.

Who may ask, how a route refuses, which uploads it takes and whether a repeated request is safe follow from its
Declaration (auth.py); nothing of it is written by hand for a route.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from windrow_master.api.auth import V1, Declaration, Declarations, Reach, Repeat
from windrow_master.api.problems import MEDIA_TYPE, Problem
from windrow_master.identity.decide import GRANTS, Permission
from windrow_master.identity.model import Role

Json = dict[str, Any]

TITLE: Final = "Windrow"
VERSION: Final = "1"
TEXT: Final = f"""An open GPU marketplace: rent GPUs of the hosts in it, and offer your own.

Paths begin with `{V1}`. Sign in with an API token: `Authorization: Bearer wt_...`.

Lists have pages: `limit` items, and `next_cursor`, which you give as `cursor` for the next page; null ends the list.

A refusal is a problem document (RFC 9457). Its `code` is stable, its `detail` says what to do, and `retryable` says
whether the same request may succeed later. A query parameter or a body's field that a route does not know is refused
with 422.

A POST that carries an `Idempotency-Key` may be sent again with the same key: it happens once.
"""
LICENCE: Final = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
SERVERS: Final = [{"url": "/", "description": "The Master that serves this description"}]
SCHEME: Final = "bearer"
SECURITY: Final = {
    SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "wt_... (an API token) or ws_... (a browser's session)",
        "description": "An API token, which `windrow token add` or `POST /api/v1/tokens` makes, or the secret of a "
        "browser's session, which `POST /api/v1/session` makes. Cookies are not read.",
    }
}
API: Final = "/api/"
KEY: Final = "Idempotency-Key"
KEY_NAME: Final = "IdempotencyKey"
PARAMETERS: Final = {
    KEY_NAME: {
        "name": KEY,
        "in": "header",
        "required": False,
        "description": "Names this request for 24 hours: sent again with the same key, it gets the first answer again",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    }
}
REF: Final = "#/components"
_NO_VALIDATION: Final = ("HTTPValidationError", "ValidationError")
"""FastAPI's own model of a 422, which our problems replace."""
_TEXT: Final = {"type": "string"}
_HEADERS: Final[dict[int, Json]] = {
    401: {"WWW-Authenticate": {"description": "`Bearer`", "schema": _TEXT}},
    429: {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way in which a route refuses. name: of the component that describes it."""

    status: int | str
    name: str
    text: str


FAILED: Final = Refusal("default", "Failed", "Any other failure, of the Master or of a host")
TAKEN: Final = Refusal(400, "AlreadyRegistered", "An object of this id is registered")
UNKNOWN: Final = Refusal(401, "Unauthenticated", "No token, or one that is not valid")
NO_PROOF: Final = Refusal(403, "Refused", "The proof in the body does not admit its sender")
NO_FUNDS: Final = Refusal(402, "InsufficientFunds", "The account cannot fund what it asks for")
NAMED_NONE: Final = Refusal(404, "NotFound", "The request names an object that does not exist, or is not in reach")
CONFLICT: Final = Refusal(
    409, "Conflict", "The state of an object does not allow it, a name is not unique, or no host fits"
)
TOO_LARGE: Final = Refusal(413, "TooLarge", "The body is longer than this route allows")
MISDIRECTED: Final = Refusal(421, "Misdirected", "The request names a host that this Master is not")
NOT_VALID: Final = Refusal(422, "NotValid", "A field or a query parameter is not valid, or not known")
TOO_MANY: Final = Refusal(429, "TooMany", "Too many requests, or as many objects as an account may have")


def described(found: Json, declared: Declarations) -> Json:
    """Return FastAPI's description of the routes with what they declare."""
    by_path = {(method, re.sub(r":\w+}", "}", path)): rules for (method, path), rules in declared.items()}
    refusals = {FAILED.name: FAILED}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            rules = by_path[method.upper(), path]
            _complete(operation, method.upper(), rules)
            known = [*_refusals(operation, path, method.upper(), rules), FAILED]
            refusals |= {one.name: one for one in known}
            operation["responses"] = {
                status: said for status, said in operation["responses"].items() if status < "400" or status >= "500"
            } | {str(one.status): {"$ref": f"{REF}/responses/{one.name}"} for one in known}
    components = found.setdefault("components", {})
    components["schemas"] = _schemas(components.get("schemas", {}))
    components["parameters"] = PARAMETERS
    components["responses"] = {name: _response(one) for name, one in sorted(refusals.items())}
    components["securitySchemes"] = SECURITY
    return found


def _complete(operation: Json, method: str, rules: Declaration) -> None:
    """Add the sign-in, the key of a repeated request and the body of an upload."""
    is_open = rules.may is Permission.NOBODY
    operation["security"] = [] if is_open and not rules.hears_token else [*([{}] if is_open else []), {SCHEME: []}]
    parameters = [one for one in operation.get("parameters", ()) if one["name"].lower() != KEY.lower()]
    if method == "POST" and not is_open and rules.repeat is not Repeat.ALWAYS:
        parameters.append({"$ref": f"{REF}/parameters/{KEY_NAME}"})
    operation["parameters"] = parameters
    if rules.body_max is not None and "requestBody" not in operation:
        schema = {"type": "string", "format": "binary"}
        operation["requestBody"] = {
            "required": True,
            "description": f"At most {rules.body_max:,} bytes",
            "content": {"application/octet-stream": {"schema": schema}},
        }


def _refusals(operation: Json, path: str, method: str, rules: Declaration) -> Iterator[Refusal]:
    """Yield how this route refuses, by status."""
    is_open = rules.may is Permission.NOBODY
    changes, has_body = method != "GET", "requestBody" in operation
    proves = is_open and has_body
    """Its body carries what other requests show as a token."""
    if rules.is_local and method == "POST":
        yield TAKEN
    if not is_open or rules.hears_token or proves:
        yield UNKNOWN
    if rules.may is Permission.RENT and method == "POST":
        yield NO_FUNDS
    if proves:
        yield NO_PROOF
    elif not is_open or rules.hears_token:
        yield _forbidden(Permission.SIGNED_IN if is_open else rules.may)
    if rules.reach is not None:
        yield _not_found(rules.reach)
    elif operation["parameters"] or has_body:
        yield NAMED_NONE
    if changes or rules.reach is not None:
        yield CONFLICT
    if has_body:
        yield TOO_LARGE
    yield MISDIRECTED
    if path.startswith(API):
        yield NOT_VALID
    if not rules.is_unlimited:
        yield TOO_MANY


def _forbidden(may: Permission) -> Refusal:
    roles = GRANTS[may]
    if roles >= frozenset(Role):
        return Refusal(403, "Forbidden", "The caller's roles do not allow what this request asks for")
    name = "".join(word.capitalize() for word in re.split(r"\W|_", may))
    return Refusal(403, f"Forbidden{name}", f"This needs the role {' or '.join(sorted(roles))}")


def _not_found(reach: Reach) -> Refusal:
    name = "".join(word.capitalize() for word in reach.name.split("_"))
    return Refusal(404, f"NotFound{name}", f"There is no such object, or it is not in reach (in reach: {reach})")


def _response(one: Refusal) -> Json:
    title = "" if isinstance(one.status, str) else f"{HTTPStatus(one.status).phrase}: "
    said: Json = {"description": f"{title}{one.text}."}
    if isinstance(one.status, int) and one.status in _HEADERS:
        said["headers"] = _HEADERS[one.status]
    schema = {"$ref": f"{REF}/schemas/{Problem.__name__}"}
    return said | {"content": {MEDIA_TYPE: {"schema": schema}}}


def _schemas(found: Json) -> Json:
    problem = Problem.model_json_schema(ref_template=f"{REF}/schemas/{{model}}")
    parts = problem.pop("$defs", {})
    kept = {name: schema for name, schema in found.items() if name not in _NO_VALIDATION}
    return dict(sorted({**kept, **parts, Problem.__name__: problem}.items()))
