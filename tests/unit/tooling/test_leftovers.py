"""Remains of a test run on the machine are found by kind and name, and things that go on being used are not."""

import os
import subprocess
import sys
import tempfile

from tests import leftovers
from tests.waiting import poll


def test_what_is_left_is_found_and_what_has_gone_is_not() -> None:
    before = leftovers.here()
    with tempfile.TemporaryDirectory(prefix="windrow-left-", dir="/tmp") as folder:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        stranger = subprocess.Popen(["sleep", "600"], env={leftovers.MARK: "another run"})
        try:
            poll(lambda: os.readlink(f"/proc/{process.pid}/exe") and stranger.pid in leftovers.others())
            new = leftovers.here() - before
        finally:
            for one in (process, stranger):
                one.kill()
                one.wait()
    assert ("file", folder) in new
    assert [name for kind, name in new if kind == "process" and name.startswith(f"{process.pid} ")]
    assert not [name for kind, name in new if name.startswith(f"{stranger.pid} ")]
    after = leftovers.here() - before
    assert ("file", folder) not in after and not [name for _, name in after if name.startswith(f"{process.pid} ")]


def test_a_run_is_known_by_its_command_line() -> None:
    for words in (
        "/x/.venv/bin/python -m pytest -q tests",
        "/usr/bin/python3.11 /x/.venv/bin/pytest",
        "python -m tests.again",
    ):
        assert leftovers.RUNS.match(words), words
    for words in ("/bin/bash -c python -m pytest", "python -m windrow_agent", "vim tests/pytest.ini"):
        assert not leftovers.RUNS.match(words), words
