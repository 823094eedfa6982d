"""Every case has a test, and every test names a case that there is."""

import ast
from pathlib import Path

from tests.hostile.rows import ROWS


def named_rows() -> set[str]:
    """The ids that the marks of this folder name."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "row":
                found |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    return found


def test_every_case_has_a_test() -> None:
    assert sorted(set(ROWS) - named_rows()) == []


def test_no_test_names_a_case_that_is_not_listed() -> None:
    assert sorted(named_rows() - set(ROWS)) == []
