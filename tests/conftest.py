"""Fixtures for every test; the services found and the closing table live in `ledger.py`, the order in `spread.py`."""

import gc
import os
from collections.abc import Generator, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests import as_it_was
from tests.waiting import poll as poll
from tests.waiting import poll_async as poll_async

pytest_plugins = ["tests.ledger", "tests.leftovers", "tests.spread", "tests.support.postgres"]

# A busy machine is no counter-example: no input is judged by the time it took. And every machine draws the same inputs,
# so that what passed on one is not refused on another: SEED=n asks for fresh ones. TORTURE=1 and SEED=n draw more.
settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=100 if os.environ.get("SEED") or os.environ.get("TORTURE") else 40,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("SEED"),  # make exports it empty
)
settings.load_profile("untimed")


# Where the environment names a proxy, what listens on this machine is asked without it, here and in every child.
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "localhost", "127.0.0.1", "::1")))


YOUNG_MAX = 7_000
"""Objects between two searches of the youngest, ten times as many as by default; another number than a daemon's, so
that a test is seen that runs one and does not put it back."""


def plain_log() -> None:
    """The log as structlog has it, but for tracebacks: coloured, with every variable, one takes seconds to write."""
    structlog.reset_defaults()
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


plain_log()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without searches for garbage, and keep what was collected from the later ones: with it they took an
    eighth of the processor time of the unit tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG_MAX, *gc.get_threshold()[1:])
        gc.enable()


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """A test leaves this process as it found it, or fails; the log that a daemon set up in it ends with its test."""
    before = as_it_was.seen()
    yield
    plain_log()
    if changed := as_it_was.put_back(before):
        pytest.fail("this test left behind " + "; ".join(changed), pytrace=False)
