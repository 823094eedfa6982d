"""Tests that share something costly run on one worker, long ones begin first, and none is lost on the way."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import spread

HERE = Path(__file__).parents[3]
COUNTED = """
import os
import pathlib
import pytest

@pytest.fixture(scope="module")
def costly():
    with open(os.environ["MADE"], "a") as made:
        made.write(pathlib.Path(__file__).stem + os.linesep)

@pytest.mark.parametrize("number", range(5))
def test_one(costly, number):
    pass
"""


@pytest.mark.parametrize(
    ("node_id", "unit"),
    [
        ("tests/unit/access/test_relay.py::test_one[a::b]", "tests/unit/access/test_relay.py"),
        ("tests/browser/test_console_map.py::test_one", "another Chromium"),
        ("tests/browser/test_console_members.py::test_one", "one Chromium"),
        ("tests/integration/test_faults_link.py::test_one", "one market"),
        ("tests/integration/test_faults_work.py::Test::test_one", "one market"),
        ("test_alone.py::test_one", "test_alone.py"),
    ],
)
def test_a_test_belongs_to_its_file_or_to_what_its_file_shares(node_id: str, unit: str) -> None:
    assert spread.unit_of(node_id) == unit


def test_every_name_leads_to_a_file_or_to_files_that_are_together() -> None:
    names = [*spread.TOGETHER, *(unit for unit in spread.LONGEST if unit not in spread.TOGETHER.values())]
    assert [name for name in names if not (HERE / name).exists()] == []


def test_the_longest_come_first_and_the_others_as_they_were_with_the_tests_of_a_unit_in_a_row() -> None:
    first, second = spread.LONGEST[1:3]
    ids = ["b.py::1", f"{second}::1", "a.py::1", "b.py::2", f"{first}::1", f"{second}::2", "tests/browser/x.py::1"]
    items: Any = [SimpleNamespace(nodeid=one) for one in ids]
    assert [item.nodeid for item in spread.in_order(items)] == [
        *("tests/browser/x.py::1", f"{first}::1", f"{second}::1", f"{second}::2"),
        *("b.py::1", "b.py::2", "a.py::1"),
    ]


def test_what_a_file_shares_is_made_once_beside_other_workers(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(COUNTED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    made = tmp_path / "made"
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "MADE": str(made)}
    line = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.spread", "-p", "no:cacheprovider", "-n", "2"]
    done = subprocess.run(
        [*line, f"--rootdir={tmp_path}", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=HERE,
        env=os.environ | alone,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0 and "15 passed" in done.stdout, done.stdout + done.stderr
    assert sorted(made.read_text().split()) == ["test_a", "test_b", "test_c"]
