"""The market of `make ux`: 50 simulated hosts and this machine, sick cards, a host that is gone, two weeks of past."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.browser.busy_market import SICK_HOSTS, BusyMarket, await_hosts, operate, own_hosts, rent
from tests.browser.two_weeks import write_two_weeks
from tests.support.people import Person, added
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from windrow_proto.ids import AccountId
from windrow_proto.units import parse_money

HOSTS: Final = 50
GONE_SEED: Final = 8
TROUBLES: Final = ("faulty", "hot", "offline")
"""What needs attention once all of it has come about."""


@contextmanager
def ux_market(folder: Path) -> Iterator[BusyMarket]:
    """Start it for the first time, stop it, write its past, start it again. folder: for its data."""
    # This machine runs processes, with its own Jupyter: an image would have to be fetched.
    own = {"DOCKER_HOST": f"unix://{folder}/no-docker.sock"}
    flags = ("--simulate", str(HOSTS))
    with stack(*flags, folder=folder, environment=own) as market:
        Renter(market).online()
        people = (
            added(market, "rosa", "renter", credit="2000"),
            added(market, "pia", "provider"),
            added(market, "otto", "operator"),
            added(market, "ada", "auditor"),
        )
        await_hosts(market, HOSTS)
        with market.client() as api:
            prices = {one["tier"]: parse_money(one["price_per_hour"]) for one in api.items("/offers")}
        found = BusyMarket(market, *people)
        owner, renter, provider = (_account(one) for one in (found.owner, found.renter, found.provider))
    made = write_two_weeks(folder / "data", (owner, renter), provider, prices)
    print(f"two weeks with {made} rentals are written", flush=True)
    with stack(*flags, folder=folder, environment=own) as market:
        Renter(market).online()
        with market.client() as api:
            api.request("POST", "/audit/reanchor", body={"reason": "two weeks of past were written"})
        found = BusyMarket(market, *people)
        with own_hosts(found, folder / "provider", SICK_HOSTS, "tests.support.sick_agent"):
            with own_hosts(found, folder / "gone", 1, "windrow_agent", GONE_SEED):
                await_hosts(market, HOSTS + SICK_HOSTS + 1)
            operate(found)
            rent(found)
            wait_for(lambda: set(TROUBLES) <= _troubles(found))
            yield found


def _troubles(market: BusyMarket) -> set[str]:
    with market.operator.client() as api:
        return {one["kind"] for one in api.request("GET", "/overview/attention")["items"]}


def _account(person: Person) -> AccountId:
    with person.client() as api:
        return AccountId(api.request("GET", "/me")["account"]["id"])
