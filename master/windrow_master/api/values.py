"""Checks what a request brings before any route sees it: names in the query, texts and numbers anywhere.

A query parameter that the route does not know is refused, because it would be ignored in silence. What passes can be
stored, sent to a host and written into an answer: texts are Unicode without NUL, numbers are finite and fit 64 bits,
and nothing is nested or longer than any request of ours. What a field means is its route's to check.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.routing import APIRoute

from windrow_proto.errors import InvalidInput

TEXT_MAX: Final = 128 * 1024
"""Characters of one text: what Linux lets one argument of a program have."""
QUERY_MAX: Final = 4_096
NAME_MAX: Final = 64
"""Characters of an unknown name that a refusal repeats."""
DEPTH_MAX: Final = 16
NODES_MAX: Final = 10_000
"""Of a body; the largest of ours, a job with its packages, has some 1,500. Each is looked at on the one loop."""
QUERY_FIELDS_MAX: Final = 100
NUMBER_MAX: Final = 2**63 - 1
PROGRAMS: Final[Mapping[str, int]] = {"argv": TEXT_MAX, "env": TEXT_MAX, "code": 2 * 1024 * 1024}
"""Fields of programs, with the most characters of a text: any control character but NUL is taken as it is."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Also those above ASCII, which terminals obey too, and what shows a text in another order than it is read."""
_NUMBERS: Final = (int, float)


def queries_of(route: APIRoute) -> Mapping[str, bool]:
    """The query parameters that a route knows, each with whether it is a number."""
    found: dict[str, bool] = {}
    left = [route.dependant]
    while left:
        one = left.pop()
        left += one.dependencies
        found |= {field.alias: _is_number(field.field_info.annotation) for field in one.query_params}
    return found


async def check(request: Request, queries: Mapping[str, bool], *, has_body: bool) -> None:
    """Raise InvalidInput that names the query parameter that is not one of `queries`, or the field whose text or
    number nobody could store, send or show."""
    for name, value in request.path_params.items():
        _check_text(name, str(value), QUERY_MAX)
    for name, value in _asked(request.scope["query_string"].decode("latin-1")):
        _check_text("query", name, QUERY_MAX)
        if name not in queries:
            raise _unknown(name[:NAME_MAX], sorted(queries))
        _check_text(name, value, QUERY_MAX)
        if queries[name]:
            _check_written(name, value)
    if has_body:
        _check_body(await request.body())


def _unknown(name: str, known: Sequence[str]) -> InvalidInput:
    """Return the refusal of a query parameter that the route does not know."""
    near = get_close_matches(name, known, n=1)
    takes = f"This path takes {', '.join(known)}." if known else "This path takes none."
    meant = f"Do you mean {near[0]}? " if near else ""
    return InvalidInput(f"There is no query parameter {name}. {meant}{takes}", subject=name)


def _asked(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise InvalidInput(f"query: It has more than {QUERY_FIELDS_MAX} fields.") from None


def _is_number(annotation: Any) -> bool:
    return annotation in _NUMBERS or any(_is_number(one) for one in get_args(annotation))


def _check_written(name: str, text: str) -> None:
    try:
        number = float(text)
    except ValueError:
        return  # its route says what it wants
    if not math.isfinite(number) or abs(number) > NUMBER_MAX:
        raise InvalidInput(f"{name}: This number is out of range.")


def _check_body(body: bytes) -> None:
    try:
        said = json.loads(body)
    except RecursionError:
        raise InvalidInput(f"body: It is nested deeper than {DEPTH_MAX} levels.") from None
    except ValueError:
        return  # no JSON: the framework says where
    for place, value in _values(said):
        if len(place) > DEPTH_MAX:
            raise InvalidInput(f"{_name(place)}: It is nested deeper than {DEPTH_MAX} levels.")
        if isinstance(value, str):
            field = place[0] if place else ""
            _check_text(_name(place), value, PROGRAMS.get(field, TEXT_MAX), is_program=field in PROGRAMS)
        elif isinstance(value, _NUMBERS) and not (abs(value) <= NUMBER_MAX):  # also for what is no number
            raise InvalidInput(f"{_name(place)}: This number is out of range.")


def _values(said: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value and every key with where it stands; without recursion, since its depth is a stranger's. Raises
    InvalidInput before it goes through more than NODES_MAX."""
    left: list[tuple[tuple[str, ...], Any]] = [((), said)]
    count = 1
    while left:
        place, value = left.pop()
        yield place, value
        if len(place) > DEPTH_MAX:
            continue
        count += len(value) if isinstance(value, Mapping | list) else 0
        if count > NODES_MAX:
            raise InvalidInput(f"body: It has more than {NODES_MAX} values.")
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield (*place, "key"), key
                left.append(((*place, str(key)), inner))
        elif isinstance(value, list):
            left.extend(((*place, str(index)), inner) for index, inner in enumerate(value))


def _name(place: tuple[str, ...]) -> str:
    """Return the path of a value, as text that can be shown whatever it holds."""
    return ".".join(place)[:200].encode("ascii", "backslashreplace").decode() or "body"


def _check_text(name: str, text: str, longest: int, *, is_program: object = False) -> None:
    if len(text) > longest:
        raise InvalidInput(f"{name}: A text has at most {longest} characters here.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{name}: This text is not Unicode: it has half of a surrogate pair.") from None
    if text.isprintable():
        return
    if "\0" in text or (not is_program and _CONTROL.search(text)):
        raise InvalidInput(f"{name}: This text has a control character.")
