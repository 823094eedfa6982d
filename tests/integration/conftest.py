"""Fixtures of tests with real processes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

import pytest

from tests.spread import unit_of
from tests.support.agent_world import world as world
from tests.support.rental import Renter, renting

NO_PIP: Final = {"PIP_NO_INDEX": "1"}
"""Who is invited asks how to install the command line, and the Master would fetch its wheels: 24 s of a processor."""
SIMULATED = 5
"""Hosts of the market `fleet` beside this one."""


class _Shared:
    """The markets that several files have together, by the names of their fixtures: each is up while its unit runs."""

    def __init__(self) -> None:
        self.markets: dict[str, Renter] = {}
        self._ends = ExitStack()

    def market(self, name: str, market: AbstractContextManager[Renter]) -> Renter:
        """The one of that name that is up, else this one."""
        if name not in self.markets:
            self.markets[name] = self._ends.enter_context(market)
        return self.markets[name]

    def end(self) -> None:
        """End all; an idle market takes a fifteenth of a processor."""
        self.markets.clear()
        self._ends.close()


_shared: Final = _Shared()


@contextmanager
def _living() -> Iterator[Renter]:
    with renting(environment=NO_PIP) as found:
        yield found
        deaths = found.stack.deaths()
    assert not deaths, "daemons have ended that nobody had killed:\n" + "\n".join(deaths)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """One test that ends a daemon fails by itself, not all that come after it."""
    for name, market in _shared.markets.items():
        if name in getattr(item, "fixturenames", ()):
            market.stack.must_answer()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The last test of a unit ends what the unit shares, also where its worker goes on with another one."""
    if nextitem is None or unit_of(nextitem.nodeid) != unit_of(item.nodeid):
        _shared.end()


def pytest_sessionfinish() -> None:
    """A run that was stopped ends them, too."""
    _shared.end()


@pytest.fixture(scope="module")
def fleet() -> Renter:
    """A market with a few simulated hosts for every test that leaves both its Accesses serving and nothing rented; its
    daemons may have been killed."""
    return _shared.market("fleet", renting("--simulate", str(SIMULATED)))


@pytest.fixture(scope="module")
def renter() -> Renter:
    """A market for every test that leaves it as it was: nothing rented, no daemon killed, the price of this host kept.

    Hosts that others joined by hand may be there and away.
    """
    return _shared.market("renter", _living())
