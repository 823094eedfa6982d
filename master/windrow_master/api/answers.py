"""The parts that answers share: their base class, pages, times and money, operations and events.

A field of an answer is written once, in its model: the model describes the answer and reads it from a value of the
domain, `VolumeOut.of(volume)`. By default a field is the attribute of its name; a time is the attribute's nanoseconds,
an amount its microcents, and an empty text is null where the field may be null. `Read` says what else it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, TypeVar, Union, get_args, get_origin

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from windrow_master.api.event_severity import EventSeverity, severity_of
from windrow_master.api.event_texts import title_of
from windrow_proto.model import Isolation
from windrow_proto.units import money_text, seconds, time_text

T = TypeVar("T")

Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Read:
    """The source of a field: an attribute, a path of them such as `account.id`, or a function's result."""

    source: str | Reader


@dataclass(frozen=True, slots=True)
class Written:
    """The format in which values of a kind are written; None is null. ending: what the attribute's name has after
    the field's."""

    write: Reader
    ending: str = ""


class Out(BaseModel):
    """An answer: all of its fields are always there, absent values are null."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True, defer_build=True)
    """defer_build: a validator is made for nothing here, and would be a tenth of the Master's start."""

    @classmethod
    def of(cls, value: object, /, **known: Any) -> dict[str, Any]:
        """The answer for JSON, read from a value. known: fields that the value does not have."""
        return {name: known[name] if name in known else read(value) for name, read in _readers(cls)}


@cache
def _readers(answer: type[Out]) -> tuple[tuple[str, Reader], ...]:
    """Return how each field of an answer is read."""
    found = []
    for name, field in answer.model_fields.items():
        written = _written(field.annotation, field.metadata)
        said = next((one.source for one in field.metadata if isinstance(one, Read)), name + written.ending)
        found.append((name, _read(attrgetter(said) if isinstance(said, str) else said, written.write)))
    return tuple(found)


def _read(get: Reader, write: Reader) -> Reader:
    if write is _as_it_is:
        return get
    return lambda value: None if (found := get(value)) is None else write(found)


def _written(kind: Any, said: Iterable[Any] = ()) -> Written:
    """Return how a value of this type is written."""
    for one in said:
        if isinstance(one, Written):
            return one
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _written(parts[0], parts[1:])
    if origin in (Union, UnionType):
        inner = [_written(part) for part in parts if part is not NoneType]
        write = inner[0].write if len(inner) == 1 else _as_it_is
        return Written(lambda value: None if value == "" else write(value), inner[0].ending)
    if origin is list:
        of_one = _written(parts[0]).write
        return Written(list if of_one is _as_it_is else lambda value: [of_one(one) for one in value])
    if origin is dict:
        return Written(dict)
    return Written(kind.of if isinstance(kind, type) and issubclass(kind, Out) else _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def isolation_text(isolation: Isolation) -> str | None:
    """Return the isolation of a part of a card, as one word; None for processors."""
    return None if isolation is Isolation.UNSPECIFIED else isolation.name.lower()


Time = Annotated[str, Field(description="RFC 3339 in UTC, with milliseconds"), Written(time_text, "_ns")]
Span = Annotated[float, Written(seconds)]
"""In seconds; its attribute is in nanoseconds, and `Read` names it."""
Isolated = Annotated[
    str | None,
    Field(description="What keeps it apart from its neighbours: whole, mig, mps or shared"),
    Written(isolation_text),
]
VALUES: Final = "By name: a value where it is shown to its renter, null where it is not: elsewhere, and at its end"
Tests = Annotated[bool, Query(description="Also the rentals by which the Master itself tests hosts")]
Amount = Annotated[str | None, Field(description="A decimal amount of money"), Written(money_text)]
Money = Annotated[str, Field(description="A decimal amount of money"), Written(money_text)]


class Page(Out, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: Annotated[str | None, Field(description="Give it as `cursor` for what follows; null at the end")]


class EventOut(Out):
    """Something that happened."""

    id: str
    number: Annotated[int, Field(description="Grows by one with each event")]
    at: Time
    kind: str
    title: Annotated[
        str,
        Field(description="Its kind in a few words"),
        Read(lambda row: title_of(row.kind, row.subjects, row.fields)),
    ]
    severity: Annotated[
        EventSeverity,
        Field(description="`info` is everyday work; `error`: something is broken or lost"),
        Read(lambda row: severity_of(row.kind, row.fields)),
    ]
    subjects: Annotated[list[str], Field(description="The ids of what it is about")]
    names: Annotated[
        dict[str, str],
        Field(description="Names by id, for the subjects and the actor; only names that the caller may see"),
        Read(lambda row: {}),
    ]
    text: Annotated[str, Field(description="With names in the place of ids")]
    actor: str | None
    fields: dict[str, Any]


class OperationErrorOut(Out):
    """The error of a long action."""

    code: Annotated[str, Read("error_code")]
    detail: Annotated[str | None, Read("error_detail")]


class OperationOut(Out):
    """A long action and how far it has come."""

    id: str
    kind: str
    subject: str
    state: str
    error: Annotated[OperationErrorOut | None, Read(lambda one: None if one.error_code is None else one)]
    created_at: Time
    done_at: Time | None


def other(media_type: str, said: str, *, is_binary: bool = False) -> dict[str, Any]:
    """Return the arguments after the path of a route whose answer is no JSON document: `**other("text/plain", "The
    log.")`."""
    schema = {"type": "string", **({"format": "binary"} if is_binary else {})}
    answer = {"description": said, "content": {media_type: {"schema": schema}}}
    return {"response_class": Response, "responses": {200: answer}}


STREAM: Final = other("text/event-stream", "Server-sent events: named, each with one JSON document.")
