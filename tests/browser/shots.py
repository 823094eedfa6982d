"""Takes the pictures of the docs again: `make shots`. They show a busy market of simulated hosts and this very host.

What is simulated is marked so; the run in the picture of a cluster is real, on this host.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.busy_market import BusyMarket, busy_market
from tests.browser.chromium import find_chromium
from tests.browser.running import started
from tests.support.people import Person
from tests.waiting import poll_async

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOSTS = 50
SIZE = ViewportSize(width=1360, height=850)
TALL = ViewportSize(width=1360, height=1100)
WAIT_MS = 60_000
SETTLE_MS = 20_000
"""For charts to have something to show."""
MOVED_MS = 6_000
"""For the map to have shown the last of them on its way, and for the message to go."""
LOOP = 'for n in 1 2 3 4 5 6; do echo "step $n of 6: load $(cut -d" " -f1 /proc/loadavg)"; sleep 2; done; sleep 600'
PROGRAM = f"sh -c '{LOOP}'"


@asynccontextmanager
async def signed_in(browser: Browser, person: Person, path: str = "/") -> AsyncIterator[Page]:
    """A page of this person, in a context of its own."""
    context = await browser.new_context(locale="en-GB", viewport=SIZE)
    context.set_default_timeout(WAIT_MS)
    page = await context.new_page()
    await page.goto(f"{person.url}{path}#token={person.token}")
    yield page
    await context.close()


async def keep(page: Page, name: str, settle_ms: int = SETTLE_MS) -> None:
    """Wait until charts have something to show, and keep the picture."""
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    await page.wait_for_timeout(settle_ms)
    await page.screenshot(path=IMAGES / f"{name}.png")
    print(f"{name}.png", flush=True)


async def of_the_fleet(browser: Browser, market: BusyMarket) -> None:
    """What an operator sees: the whole market, a host that works, and one that needs somebody."""
    async with signed_in(browser, market.operator) as page:
        await expect(page.get_by_test_id("uses-gpu")).to_be_visible()
        await page.get_by_role("button", name="Hide").click()
        await keep(page, "overview", 2_000)
        await page.get_by_role("link", name="Fleet", exact=True).click()
        await page.get_by_role("columnheader", name="Use").get_by_role("button").click()
        await keep(page, "fleet", 4_000)
        await page.get_by_role("row").filter(has_text="H100").filter(has_text="Rented").first.click()
        await expect(page.get_by_role("tab", name="Details")).to_be_visible()
        await page.get_by_role("main").get_by_role("link").first.click()
        await expect(page.get_by_role("tab", name="Settings")).to_be_visible()
        await page.get_by_role("tab", name="Charts").click()
        await page.get_by_role("radio", name="5 min").locator("xpath=following-sibling::label").first.click()
        await keep(page, "host")
        host_id = await poll_async(lambda: degraded(market), what="a host is degraded")
        await page.goto(f"{market.operator.url}/hosts/{host_id}")
        await expect(page.get_by_text("What to do").first).to_be_visible()
        await keep(page, "host-degraded", 4_000)


def degraded(market: BusyMarket) -> str | None:
    """The id of a host that is degraded; None: there is none yet."""
    with market.operator.client() as api:
        return next((str(one["id"]) for one in api.items("/hosts") if one["headline"] == "degraded"), None)


async def of_a_run(browser: Browser, market: BusyMarket) -> None:
    """What the owner of this machine sees of a real run on it."""
    async with signed_in(browser, market.owner, "/clusters/new") as page:
        await page.get_by_role("textbox", name="Command").fill(PROGRAM)
        await page.get_by_role("textbox", name="Name").fill("first-rental")
        await page.get_by_role("button", name="Create machine").click()
        await expect(page.get_by_test_id("log")).to_contain_text("step 6 of 6")
        await keep(page, "cluster", 0)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("button", name="Delete machine").click()
        await page.get_by_text("Receipt: ").click()
        await expect(page.get_by_test_id("amount")).to_be_visible()
        await keep(page, "receipt", MOVED_MS)


async def of_jobs(browser: Browser, market: BusyMarket) -> None:
    """What a renter sees: jobs that run, wait and have ended, and why one waits."""
    async with signed_in(browser, market.renter, "/jobs") as page:
        await expect(page.get_by_role("row").filter(has_text="eval-b200")).to_contain_text("Queued")
        await keep(page, "jobs", 2_000)
        await page.get_by_role("link", name="eval-b200").click()
        await expect(page.get_by_test_id("refusal")).to_be_visible()
        await keep(page, "job-waits", 2_000)


async def of_regions(browser: Browser, market: BusyMarket) -> None:
    """The regions as they are, then while the agents of one Access leave it."""
    async with signed_in(browser, market.operator, "/regions") as page:
        await page.set_viewport_size(TALL)
        await expect(page.get_by_role("button", name=re.compile("^Drain ")).first).to_be_visible()
        await keep(page, "regions")
        await page.get_by_role("button", name=re.compile("^Drain ")).first.click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Reason").fill("new disk")
        await dialog.get_by_role("button", name="Drain").click()
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_test_id("leaving")).to_have_text("all agents have left")
        await keep(page, "regions-drained", MOVED_MS)


async def main() -> None:
    """Start the market and a browser, take the pictures, stop both."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=WAIT_MS)
    found = find_chromium()
    with tempfile.TemporaryDirectory(prefix="windrow-shots-") as folder, busy_market(Path(folder), HOSTS) as market:
        async with started(found) as browser:
            for take in (of_the_fleet, of_jobs, of_a_run, of_regions):
                await take(browser, market)


if __name__ == "__main__":
    asyncio.run(main())
