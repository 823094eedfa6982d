"""The page of faults names tests that are there, at least one for each fault."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture" / "faults.md"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_fault_names_tests_that_are_there() -> None:
    assert len(rows()) >= 25
    for fault, what, shown in rows():
        named = NAMED.findall(shown)
        assert what and named, fault
        for file, test in named:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{fault}: {file}::{test}"
