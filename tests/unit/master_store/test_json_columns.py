"""The texts of JSON columns say what the standard library's say, whatever is in them."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.store.json_columns import read, written

TEXTS = st.text(st.characters(categories=["Cs", "Cc", "L", "P", "So"]) | st.sampled_from('"\\/\x00\x7f\u2028'))
ATOMS = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | TEXTS
VALUES = st.recursive(ATOMS, lambda one: st.lists(one, max_size=4) | st.dictionaries(TEXTS, one, max_size=4))


def same(one: Any) -> str:
    """In a form in which not a number is equal to itself, and 1 is not 1.0."""
    return repr(one)


@given(VALUES)
def test_a_value_is_read_as_the_standard_library_would_by_whoever_has_written_it(value: Any) -> None:
    text, usual = written(value), json.dumps(value)

    assert text.isascii()
    assert same(json.loads(text)) == same(read(text)) == same(read(usual)) == same(json.loads(usual))


@pytest.mark.parametrize(
    "value", [1e16, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 2**64, -(2**63) - 1]
)
def test_numbers_at_the_edges_stay_what_they_are(value: float) -> None:
    assert same(read(written([value]))) == same([value]) == same(json.loads(written([value])))


def test_what_is_nested_deeper_than_the_fast_reader_goes_is_read_all_the_same() -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]

    assert read(written(deep)) == deep


def test_keys_keep_their_order_and_the_last_of_two_counts() -> None:
    assert list(read(written({"b": 1, "a": 2}))) == ["b", "a"]
    assert read('{"a": 1, "a": 2}') == {"a": 2}


def test_what_is_no_value_of_json_is_refused() -> None:
    with pytest.raises(TypeError):
        written({"a": object()})
    for text in ("", "{", "nonsense", "[1,]"):
        with pytest.raises(ValueError, match=r"."):
            read(text)
