"""Cursors, entity tags and the JSON shapes that all routers share."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import structlog
from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from windrow_master.api.answers import OperationOut
from windrow_master.store.model import Operation
from windrow_proto.errors import InvalidInput
from windrow_proto.units import parse_time, time_text

T = TypeVar("T")

log = structlog.get_logger(__name__)

LIMIT_MAX = 1_000
NUMBER_DIGITS_MAX: Final = 16
"""Of a number in a cursor: what JavaScript still counts exactly."""
PAGE_CHARS_MAX: Final = 1 << 20
"""Of a page, some: a page of large items is shorter than was asked for, and goes on behind its last one."""

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="The most items of one page")]
Cursor = Annotated[
    str | None, Query(max_length=400, description="The `next_cursor` of the page before; without one, the first page")
]
"""Use as parameter types: `limit: Limit = 100, cursor: Cursor = None`. Every list has both."""
Moment = Annotated[str | None, Query(max_length=40, description="RFC 3339, such as 2026-01-31T12:00:00Z")]
"""The type of a parameter that `moment` reads."""


def page(
    items: Sequence[T],
    limit: int,
    shape: Callable[[T], Mapping[str, Any]],
    key: Callable[[T], str],
) -> Any:
    """`{items, next_cursor}` of at most `limit` items, and of PAGE_CHARS_MAX and one item; ask the source for
    `limit + 1` to know whether more follow."""
    found: list[Mapping[str, Any]] = []
    room, at = PAGE_CHARS_MAX, 0
    while at < min(limit, len(items)) and room > 0:
        shaped = shapes(items[at : at + 1], shape)
        room -= sum(len(str(one)) for one in shaped)
        found += shaped
        at += 1
    return {"items": found, "next_cursor": write_cursor(key(items[at - 1])) if at < len(items) else None}


def page_of(
    items: Sequence[T], limit: int, cursor: str | None, shape: Callable[[T], Mapping[str, Any]], key: Callable[[T], str]
) -> Any:
    """As `page`, of a list that is wholly at hand, behind the item whose key the cursor stands for."""
    after = read_cursor(cursor)
    keys = [key(item) for item in items]
    begin = keys.index(after) + 1 if after in keys else sum(one <= after for one in keys)  # that item may be gone
    return page(items[begin:], limit, shape, key)


def sifted(
    found: tuple[Sequence[T], T | None], shape: Callable[[T], Mapping[str, Any]], key: Callable[[T], str]
) -> Any:
    """`{items, next_cursor}` of what `sift` found."""
    rows, last = found
    whole = page(rows, len(rows), shape, key)
    if whole["next_cursor"] is None and last is not None:
        whole["next_cursor"] = write_cursor(key(last))
    return whole


class LeftOut:
    """The number of list items that could not be shown since this process began."""

    def __init__(self) -> None:
        self.count = 0


LEFT_OUT: Final = LeftOut()


def shapes(items: Iterable[T], shape: Callable[[T], Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each item as JSON. One whose shape cannot be made is left out, counted and logged: it does not end the list."""
    found = []
    for item in items:
        try:
            found.append(shape(item))
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError):
            LEFT_OUT.count += 1
            log.exception("item_left_out", kind=type(item).__name__)
    return found


class Json(JSONResponse):
    """JSON that always can be written: a text that is not Unicode is escaped, a number that is none is null."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer."""
        try:
            return super().render(content)
        except ValueError:
            log.warning("answer_escaped")
            return json.dumps(_finite(content), separators=(",", ":")).encode()


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def read_number(cursor: str | None) -> int | None:
    """The number a cursor stands for; None for none."""
    position = read_cursor(cursor)
    if position and not (position.isascii() and position.isdecimal() and len(position) <= NUMBER_DIGITS_MAX):
        raise InvalidInput("cursor is not one that a list returned.")
    return int(position) if position else None


def write_cursor(key: str) -> str:
    """A position in a list as a text that callers do not look into."""
    return base64.urlsafe_b64encode(key.encode()).rstrip(b"=").decode()


def read_cursor(cursor: str | None) -> str:
    """The position a cursor stands for; the empty text for none."""
    if not cursor:
        return ""
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        raise InvalidInput("cursor is not one that a list returned.") from None


def entity_tag(version: int | str) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def tagged(request: Request, body: Mapping[str, Any], version: int | str) -> Response:
    """The body with its ETag, or 304 when the caller has this version."""
    tag = entity_tag(version)
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers={"ETag": tag})
    return Json(dict(body), headers={"ETag": tag})


def moment(name: str, text: str | None) -> int | None:
    """The time of a query, in nanoseconds. Raises InvalidInput for what is none."""
    try:
        # A `+` of an offset arrives as a space from callers that did not escape it.
        return None if text is None else parse_time(text.replace(" ", "+"))
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is not a time such as 2026-01-31T12:00:00Z.") from None


def time_or_none(wall_ns: int | None) -> str | None:
    """A time for JSON; absent stays absent."""
    return None if wall_ns is None else time_text(wall_ns)


def accepted(operation: Operation, extra: Mapping[str, Any] | None = None) -> Response:
    """202 with the operation, where to look for it, and what else the route has to say."""
    body = {"operation": OperationOut.of(operation), **(extra or {})}
    return Json(body, 202, headers={"Location": f"/api/v1/operations/{operation.id}"})
