"""Changes that a test leaves in its process are seen, named and put back, and fail that test and no other."""

import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import as_it_was

ROOT = Path(__file__).parents[3]
RUN_S = 100

BREACHES: dict[str, Callable[[], object]] = {
    "the umask": lambda: os.umask(os.umask(0) ^ 0o057),
    "the working directory": lambda: os.chdir("/"),
    "the environment": lambda: os.environ.update(WINDROW_LEFT="a secret"),
    "the root logger's handlers": lambda: logging.getLogger().handlers.insert(0, logging.NullHandler()),
    "the root logger's level": lambda: logging.getLogger().setLevel(5),
    "the hooks for crashes": lambda: setattr(sys, "excepthook", print),
    "the signal handlers": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    "the garbage collector": lambda: gc.set_threshold(1_234),
}
LEAKY = """
import os

from tests.conftest import process_as_it_was

def test_that_leaks():
    os.umask(0o077)

def test_after_it():
    assert os.umask(0o022) == 0o022
"""


@pytest.mark.parametrize("what", as_it_was.KEPT)
def test_what_is_left_behind_is_named_and_put_back(what: str) -> None:
    before = as_it_was.seen()
    BREACHES[what]()
    (said,) = as_it_was.put_back(before)
    assert said.startswith(what) and "a secret" not in said
    assert as_it_was.put_back(before) == []


def test_what_runs_contained_leaves_nothing() -> None:
    before = as_it_was.seen()
    with as_it_was.contained():
        for breach in BREACHES.values():
            breach()
    assert as_it_was.put_back(before) == []


def test_the_test_that_leaks_fails_and_the_next_one_sees_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)]
    own = {name: value for name, value in os.environ.items() if name not in {"PYTEST_ADDOPTS", "PYTEST_PLUGINS"}}
    done = subprocess.run(
        ["sh", "-c", 'umask 022; exec "$@"', "sh", *command],
        env={**own, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "this test left behind the umask: 18 became 63" in done.stdout
