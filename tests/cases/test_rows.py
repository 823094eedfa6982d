"""Every row has a test somewhere, and every test names a row that there is."""

import re
from pathlib import Path

from tests.cases.rows import KINDS, ROWS

TESTS = Path(__file__).parents[1]
MARK = re.compile(r"mark\.case\(([^)]*)\)", re.DOTALL)


def named_rows() -> set[str]:
    """The ids that the marks of all tests name."""
    told = (mark for path in TESTS.rglob("test_*.py") for mark in MARK.findall(path.read_text(encoding="utf-8")))
    return {row for mark in told for row in re.findall(r'"([BM]-[A-Z]?\d+)"', mark)}


def test_every_row_has_a_test() -> None:
    assert sorted(set(ROWS) - named_rows()) == []


def test_no_test_names_a_row_that_is_not_listed() -> None:
    assert sorted(named_rows() - set(ROWS)) == []


def test_every_kind_is_known() -> None:
    assert {row.kind for row in ROWS.values()} <= set(KINDS)
