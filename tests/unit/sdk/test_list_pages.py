"""Every list of the command on screens of four widths, with long names: what stands there, and what never does."""

import re

import pytest
from rich.cells import cell_len

from tests.support import list_pages
from tests.support.filled import ID
from windrow.cli.tables import table_lines
from windrow.explained import PARAGRAPHS

TABLES = list_pages.tables()
ODD = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|\{'|\b[a-z]{2,12}_[0-9a-f]{32}\b|\b(GPU|MIG|MPS)-[0-9a-f]{8}-|\b[a-z]+_[a-z_]+\b"
)
"""Python's values, whole ids, and codes of the API."""


def test_every_list_is_as_it_was_looked_at() -> None:
    """After a change that is wanted: python -m tests.support.list_pages, and look at the difference."""
    assert list_pages.PAGE.read_text(encoding="utf-8").split("\n---") == "\n".join(list_pages.pages()).split("\n---")


@pytest.mark.parametrize("width", list_pages.WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_no_list_shows_values_of_python_whole_ids_or_codes(name: str, width: int) -> None:
    lines = list_pages.lines(name, TABLES[name], width)

    assert all(cell_len(line) <= width for line in lines)
    codes = PARAGRAPHS if name == "explain.CODES" else ()  # which is the list of codes
    assert [line for line in lines if (odd := ODD.search(line)) and odd[0] not in codes] == []


def test_whole_ids_are_there_for_who_asks() -> None:
    lines = table_lines(TABLES["clusters.CLUSTERS"].columns, list_pages.rows("clusters.CLUSTERS"), None)

    assert all(ID.format("thing") in line for line in lines[1:])
