"""Fixtures of tests with real processes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.agent_world import world as world
from tests.support.rental import Renter, renting

SIMULATED = 5
"""Hosts of the market `fleet` beside this one."""


_shared: dict[str, Renter] = {}
"""The markets of the package that are up, by the names of their fixtures."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """One test that ends a daemon fails by itself, not all that come after it."""
    for name, market in _shared.items():
        if name in getattr(item, "fixturenames", ()):
            market.stack.must_answer()


@contextmanager
def _sharing(name: str, *flags: str) -> Iterator[Renter]:
    with renting(*flags) as found:
        _shared[name] = found
        try:
            yield found
        finally:
            del _shared[name]


@pytest.fixture(scope="package")
def fleet() -> Iterator[Renter]:
    """A market with a few simulated hosts for every test that leaves both its Accesses serving and nothing rented; its
    daemons may have been killed."""
    with _sharing("fleet", "--simulate", str(SIMULATED)) as found:
        yield found


@pytest.fixture(scope="package")
def renter() -> Iterator[Renter]:
    """A market for every test that leaves it as it was: nothing rented, no daemon killed, the price of this host kept.

    Hosts that others joined by hand may be there and away.
    """
    with _sharing("renter") as found:
        yield found
        deaths = found.stack.deaths()
    assert not deaths, "daemons have ended that nobody had killed:\n" + "\n".join(deaths)
