"""Fixtures of tests with real processes."""

from collections.abc import Iterator

import pytest

from tests.support.agent_world import world as world
from tests.support.rental import Renter, renting

SIMULATED = 5
"""Hosts of the market `fleet` beside this one."""


@pytest.fixture(scope="package")
def fleet() -> Iterator[Renter]:
    """A market with a few simulated hosts for every test that leaves both its Accesses serving and nothing rented; its
    daemons may have been killed."""
    with renting("--simulate", str(SIMULATED)) as found:
        yield found


@pytest.fixture(scope="package")
def renter() -> Iterator[Renter]:
    """A market for every test that leaves it as it was: nothing rented, no daemon killed, the price of this host kept.

    Hosts that others joined by hand may be there and away.
    """
    with renting() as found:
        yield found
