"""A few failures are judged again alone; more of them, or one that stays, fail the run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import again

HERE = Path(__file__).parents[3]
FLAKY = """
import pathlib
def test_flaky():
    seen = pathlib.Path(__file__).with_name("seen")
    was = seen.exists()
    seen.touch()
    assert was
def test_good():
    pass
"""


def _run(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_made.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    line = [sys.executable, "-m", "tests.again", "-p", "xdist", "-q", str(folder), f"--rootdir={folder}", *arguments]
    few = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    more: dict[str, Any] = {"cwd": HERE, "env": few, "timeout": 100}
    return subprocess.run(
        [*line, "-c", str(folder / "pytest.ini")], capture_output=True, text=True, check=False, **more
    )


def test_what_passes_alone_is_named_and_fails_nothing(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY, "-n", "2")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed beside others" in done.stdout and "test_made.py::test_flaky" in done.stdout.split("having failed")[1]


def test_what_fails_alone_too_has_failed(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY + "def test_bad():\n    assert False\n")

    assert done.returncode == again.FAILED
    assert "test_bad" not in done.stdout.split("having failed")[1]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("".join(f"def test_{n}():\n    assert False\n" for n in range(again.FEW + 1)), again.FAILED),
        ("import nothing_of_this_name\n", 2),
        ("", 5),
        ("def test_good():\n    pass\n", 0),
    ],
    ids=["many", "a file that cannot be read", "no test", "nothing failed"],
)
def test_nothing_else_runs_again(tmp_path: Path, text: str, status: int) -> None:
    done = _run(tmp_path, text)

    assert done.returncode == status
    assert "again:" not in done.stdout
