"""What every test may use; the services found and the closing table live in `tests/ledger.py`."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.waiting import poll as poll
from tests.waiting import poll_async as poll_async

pytest_plugins = ["tests.ledger", "tests.support.postgres"]

# A busy machine is no counter-example: no input is judged by the time it took.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def log_of_its_own() -> Iterator[None]:
    """What a daemon started in this process does to the log ends with its test: the stream it had is closed then."""
    yield
    structlog.reset_defaults()
