"""Parts that answers share: their base class, pages, times and money, operations and events.

The models describe and never run: answers are written straight from values, and tests hold them to their models.
"""

from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class Out(BaseModel):
    """An answer: all of its fields are always there, absent values are null."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


Time = Annotated[str, Field(description="RFC 3339 in UTC, with milliseconds")]
Isolated = Annotated[
    str | None, Field(description="What keeps it apart from its neighbours: whole, mig, mps or shared")
]
VALUES: Final = "By name: a value where it is shown to its renter, null where it is not: elsewhere, and at its end"
Amount = Annotated[str | None, Field(description="A decimal amount of money")]
Money = Annotated[str, Field(description="A decimal amount of money")]


class Page(Out, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: Annotated[str | None, Field(description="Give it as `cursor` for what follows; null at the end")]


class EventOut(Out):
    """What happened."""

    id: str
    number: Annotated[int, Field(description="Grows by one with each event")]
    at: Time
    kind: str
    subjects: Annotated[list[str], Field(description="The ids of what it is about")]
    text: str
    actor: str | None
    fields: dict[str, Any]


class OperationErrorOut(Out):
    """Why a long action failed."""

    code: str
    detail: str | None


class OperationOut(Out):
    """A long action and how far it has come."""

    id: str
    kind: str
    subject: str
    state: str
    error: OperationErrorOut | None
    created_at: Time
    done_at: Time | None


def described(model: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that writes this answer itself."""
    return {status: {"model": model}}


def other(media_type: str, said: str, *, is_binary: bool = False) -> dict[str, Any]:
    """What a route takes after its path whose answer is no JSON document: `**other("text/plain", "The log.")`."""
    schema = {"type": "string", **({"format": "binary"} if is_binary else {})}
    answer = {"description": said, "content": {media_type: {"schema": schema}}}
    return {"response_class": Response, "responses": {200: answer}}


STREAM: Final = other("text/event-stream", "Server-sent events: named, each with one JSON document.")
