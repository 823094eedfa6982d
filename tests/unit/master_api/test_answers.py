"""Promises of answers: each field is read from a value as its type is written."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import pytest
from pydantic import Field

from windrow_master.api.answers import Amount, Isolated, Money, Out, Read, Span, Time
from windrow_proto.model import Isolation
from windrow_proto.units import SECOND, Microcents, time_text

NOTHING = Microcents(0)


class Colour(StrEnum):
    RED = "red"


@dataclass
class Part:
    name: str


@dataclass
class Thing:
    thing_id: str = "thing_1"
    colour: Colour = Colour.RED
    made_at_ns: int = 5 * SECOND
    sold_at_ns: int | None = None
    price: Microcents = NOTHING
    offer: Microcents | None = None
    note: str = ""
    count: int | None = 0
    kept_ns: int | None = 1_500_000_000
    isolation: Isolation = Isolation.MIG
    first: Part = field(default_factory=lambda: Part("a"))
    parts: tuple[Part, ...] = (Part("b"), Part("c"))
    tags: tuple[str, ...] = ("x",)


class PartOut(Out):
    name: str


class ThingOut(Out):
    id: Annotated[str, Read("thing_id")]
    colour: str
    made_at: Time
    sold_at: Annotated[Time | None, Field(description="Null: not yet")]
    price: Money
    offer: Amount
    note: str | None
    count: int | None
    kept_s: Annotated[Span | None, Read("kept_ns")]
    isolation: Isolated
    first: PartOut | None
    first_name: Annotated[str, Read("first.name")]
    parts: list[PartOut]
    tags: list[str]
    size: Annotated[int, Read(lambda thing: len(thing.parts))]
    owner: str


def test_each_field_is_read_and_written_as_its_type_says() -> None:
    assert ThingOut.of(Thing(), owner="anna") == {
        "id": "thing_1",
        "colour": "red",
        "made_at": time_text(5 * SECOND),
        "sold_at": None,
        "price": "0.00",
        "offer": None,
        "note": None,
        "count": 0,
        "kept_s": 1.5,
        "isolation": "mig",
        "first": {"name": "a"},
        "first_name": "a",
        "parts": [{"name": "b"}, {"name": "c"}],
        "tags": ["x"],
        "size": 2,
        "owner": "anna",
    }


def test_a_field_that_neither_the_value_nor_the_caller_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="owner"):
        ThingOut.of(Thing())
