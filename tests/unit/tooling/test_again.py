"""A few failures are judged again alone: one that stays has failed; one that passes is flaky, and with FLAKY=fail it
fails the run, too, unless it is listed."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
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


def _run(
    folder: Path, text: str, *arguments: str, flaky_list: Path = again.LIST, flaky: str = "fail"
) -> subprocess.CompletedProcess[str]:
    (folder / "test_made.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    line = [sys.executable, "-m", "tests.again", "-p", "xdist", "-q", str(folder), f"--rootdir={folder}", *arguments]
    few = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    few |= {"FLAKY_LIST": str(flaky_list), "FLAKY": flaky}
    more: dict[str, Any] = {"cwd": HERE, "env": few, "timeout": 100}
    return subprocess.run(
        [*line, "-c", str(folder / "pytest.ini")], capture_output=True, text=True, check=False, **more
    )


@pytest.mark.long
def test_what_passes_alone_is_flaky_and_fails_the_run(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY, "-n", "2")

    assert done.returncode == again.FAILED, done.stdout + done.stderr
    assert "test_made.py::test_flaky" in done.stdout.split("these are flaky: mend them")[1]


def test_it_is_only_said_where_the_run_is_not_to_fail_for_it(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY, flaky="")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_made.py::test_flaky" in done.stdout.split("these are flaky: mend them")[1]


@pytest.mark.long
def test_what_the_list_names_with_a_date_fails_nothing(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    named = tmp_path / "flaky.txt"
    for days, status in ((0, 0), (again.DAYS + 1, again.FAILED)):
        (tmp_path / "seen").unlink(missing_ok=True)
        named.write_text(f"# flaky\n{today - timedelta(days=days)} test_made.py::test_flaky  it races\n")
        done = _run(tmp_path, FLAKY, flaky_list=named)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("as flaky.txt says" in done.stdout) is (status == 0)
        assert ("the time in flaky.txt is over" in done.stdout) is (status != 0)


def test_what_fails_alone_too_has_failed(tmp_path: Path) -> None:
    done = _run(tmp_path, FLAKY + "def test_bad():\n    assert False\n")

    assert done.returncode == again.FAILED
    assert "test_bad" not in done.stdout.split("these are flaky")[1]


def test_the_shipped_list_can_be_read_and_a_line_that_is_none_is_refused() -> None:
    again.listed(again.LIST.read_text(), date(2026, 11, 27))
    for line in ("tests/a.py::test_b  why", "2026-11-27 tests/a.py::test_b", "2026-13-01 tests/a.py::test_b  why"):
        with pytest.raises((again.BadList, ValueError)):
            again.listed(line, date(2026, 11, 27))
    kept = "2026-11-27 tests/a.py::test_b[a b]  it races"
    assert again.listed(kept, date(2026, 12, 11)) == (frozenset({"tests/a.py::test_b[a b]"}), frozenset())
    assert again.listed(kept, date(2026, 12, 12)) == (frozenset(), frozenset({"tests/a.py::test_b[a b]"}))


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
