"""One real Chromium for all browser tests, and a fresh page for each. Tests here are coroutines: one loop for all."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.busy_market import BusyMarket
from tests.browser.chromium import Chromium, NoBrowser, find_chromium
from tests.browser.pretend_master import Served, built_console
from tests.browser.pretend_world import make_world
from tests.browser.running import started
from tests.browser.ux_market import ux_market
from tests.services import all_required
from tests.support.rental import Renter
from tests.support.stack import Stack, stack
from tests.waiting import PATIENCE_S

PATIENCE_MS = PATIENCE_S * 1000
ONE_TEST_S = 600
"""Also for the first, which may have to fetch the browser."""
POLICY = "violates the following Content Security Policy directive"
"""As Chromium says it on the console of a page."""
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder drive the one browser."""
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(ONE_TEST_S))


@pytest.fixture(scope="session")
def chromium() -> Chromium:
    """The browser to start; without one the tests are skipped, or fail where all services are required."""
    try:
        return find_chromium()
    except NoBrowser as missing:
        if all_required():
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    """A running Chromium, started once."""
    async with started(chromium) as running:
        yield running


@pytest.fixture
async def page(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page of its own context; the locale is fixed because a POSIX one breaks number formatting in pages. A test that
    fails shows what the page lacked. No page may break its Content Security Policy, but for what a test has planted."""
    context = await browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    made, under_way = await context.new_page(), set[str]()
    made.on("request", lambda one: under_way.add(one.url))
    made.on("requestfinished", lambda one: under_way.discard(one.url))
    made.on("requestfailed", lambda one: print(f"{one.url} failed: {one.failure}"))
    made.on("pageerror", lambda error: print(f"a script failed: {error}"))
    made.on("console", lambda said: print(f"console, {said.type}: {said.text}"))
    refused: list[str] = []
    made.on("console", lambda said: refused.append(said.text) if POLICY in said.text else None)
    yield made
    for url in under_way:
        print(f"{url} was under way at the end")
    await context.close()
    assert "planted" in request.fixturenames or [one for one in refused if "frame-ancestors" not in one] == []


@pytest.fixture(scope="package")
def market() -> Iterator[Stack]:
    """`windrow up` with this very host and nothing simulated; what is rented ends with its test, daemons may die."""
    with stack() as running:
        Renter(running).online()
        yield running


@pytest.fixture(scope="package")
def ux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BusyMarket]:
    """The market of `make ux`."""
    with ux_market(tmp_path_factory.mktemp("ux") / "market") as running:
        yield running


@pytest.fixture
def pretend() -> Iterator[Callable[..., Served]]:
    """Start pretend Masters: `pretend(neighbours=200)`. They serve the built console and made-up data."""
    if built_console() is None:
        (pytest.fail if all_required() else pytest.skip)("the console is not built: make setup")
    started: list[Served] = []

    def start(neighbours: int = 0, *, real_host: bool = True) -> Served:
        served = Served(make_world(neighbours, real_host=real_host))
        served.start()
        started.append(served)
        return served

    yield start
    for served in started:
        served.stop()
