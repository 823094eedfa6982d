"""Every link of every page, on the shipped stack: no refusal, no error, nothing wider than the window.

`make test` walks as a renter; `make walk` as each role, and on a busy market of 50 simulated hosts, with WALK addresses
of each shape, by axe in all widths.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.axe import axe_source
from tests.browser.busy_market import busy_market
from tests.browser.chromium import NoBrowser
from tests.browser.walk import walking
from tests.services import all_required
from tests.support.people import Person, added, limited
from tests.support.rental import Renter
from tests.support.stack import Stack, wait_for

ADDRESSES = int(os.environ.get("WALK") or 0)
"""Of each shape, on the busy market; 0: it is not walked, and only a renter walks the quiet one."""
HOSTS = 50
PLACES = ("/", "/fleet", "/hosts/host_~", "/shop", "/settings")
"""Shapes of pages that every role comes to by links: a control that the walk walks."""


@pytest.fixture
def everybody(market: Stack) -> Iterator[tuple[Person, ...]]:
    """The first account as renter and as provider, and others who oversee it; something of each kind is there."""
    renter = Renter(market)
    ended = renter.create("sh", "-c", "echo 42 | tee made; exit 3", until="Failed", name="walked-ended")
    renter.cleared(ended["id"])
    done, waits = (renter.ask("POST", "/jobs", {"argv": ["true"], "gpus": gpus})["jobs"][0]["id"] for gpus in (0, 64))
    wait_for(lambda: renter.ask("GET", f"/jobs/{done}")["ended_at"])
    running = renter.create("sleep", "600", name="walked", env={"A": "b"})
    renter.ask("POST", "/volumes", {"name": "walked"})
    people = [limited(market, "renter", "renter")]
    if ADDRESSES:
        people.append(limited(market, "provider", "provider"))
        people += [added(market, f"walk-{role}", role) for role in ("operator", "auditor")]
    yield tuple(people)
    renter.ask("POST", f"/jobs/{waits}/cancel")
    renter.delete(running["id"])
    renter.ask("DELETE", "/volumes/walked")


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return axe_source()
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
        raise


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.proves("console: every link of every page opens, at 320, 390 and 1440 px")
async def test_every_link_of_every_page_opens(browser: Browser, everybody: tuple[Person, ...]) -> None:
    await _walked(browser, everybody, None, 1)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.proves("console: the same on a busy market, with no violation by axe in any of the widths")
@pytest.mark.skipif(not ADDRESSES, reason="a walk of minutes over a busy market: make walk")
async def test_every_link_of_a_busy_market_opens_for_every_role(browser: Browser, tmp_path: Path, axe: str) -> None:
    with busy_market(tmp_path, HOSTS) as market:
        await _walked(browser, market.people, axe, ADDRESSES)


async def _walked(browser: Browser, people: tuple[Person, ...], axe: str | None, most: int) -> None:
    """Walk as each of these people; fails with all that is wrong."""
    faults, judged = list[str](), set[str]()
    for person in people:
        async with walking(browser, person, axe, most, judged) as walk:
            await walk.run()
        faults += walk.faults
        print(f"{person.name}: {walk.opened.total()} pages of {len(walk.opened)} shapes", flush=True)
        faults += [f"{person.name} never came to {shape}" for shape in PLACES if not walk.opened[shape]]
    assert not faults, "\n".join(dict.fromkeys(faults))
