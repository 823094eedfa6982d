"""Takes the pictures of the README: `python -m tests.browser.pictures`. They show this very host on the shipped stack.

The neighbours are simulated and marked so; what is rented in the pictures runs on this host.
"""

import asyncio
import os
import re
from pathlib import Path

from playwright.async_api import Page, ViewportSize, async_playwright, expect

from tests.browser.chromium import find_chromium
from tests.support.stack import Stack, stack, wait_for

IMAGES = Path(__file__).parents[2] / "docs" / "images"
NEIGHBOURS = 12
SIZE = {"width": 1360, "height": 850}
MOVED_MS = 6_000
"""For the map to have shown the last of them on its way, and for the message to go."""
TALL = ViewportSize(width=1360, height=1100)
WAIT_MS = 60_000
SETTLE_MS = 20_000
"""For charts to have something to show."""
LOOP = 'for n in 1 2 3 4 5 6; do echo "step $n of 6: load $(cut -d" " -f1 /proc/loadavg)"; sleep 2; done; sleep 600'
PROGRAM = f"sh -c '{LOOP}'"


async def take(page: Page, market: Stack) -> None:
    """Walk through the first rental and keep what one sees."""
    await page.goto(f"{market.cli['url']}/fleet#token={market.cli['token']}")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Online", timeout=WAIT_MS)
    await page.wait_for_timeout(SETTLE_MS)
    await page.screenshot(path=IMAGES / "fleet.png")
    await page.get_by_role("row").nth(1).click()
    await page.get_by_role("radio", name="5 min").locator("xpath=following-sibling::label").first.click()
    await page.wait_for_timeout(SETTLE_MS)
    await page.screenshot(path=IMAGES / "host.png")
    await page.get_by_role("link", name="New cluster here").click()
    await page.get_by_role("textbox", name="Command").fill(PROGRAM)
    await page.get_by_role("textbox", name="Name").fill("first-rental")
    await page.get_by_role("button", name="Create cluster").click()
    await expect(page.get_by_test_id("log")).to_contain_text("step 6 of 6", timeout=WAIT_MS)
    await page.screenshot(path=IMAGES / "cluster.png")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_label("Type first-rental to confirm").fill("first-rental")
    await page.get_by_role("button", name="Delete cluster").click()
    await page.get_by_text("Receipt: ").click(timeout=WAIT_MS)
    await expect(page.get_by_test_id("amount")).to_be_visible()
    await page.screenshot(path=IMAGES / "receipt.png")
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_test_id("revenue-today")).to_be_visible()
    await page.screenshot(path=IMAGES / "overview.png")


async def take_regions(page: Page) -> None:
    """The regions as they are, then while the agents of one Access leave it."""
    await page.set_viewport_size(TALL)
    await page.get_by_role("link", name="Regions").click()
    await expect(page.get_by_role("button", name=re.compile("^Drain ")).first).to_be_visible(timeout=WAIT_MS)
    await page.wait_for_timeout(SETTLE_MS)
    await page.screenshot(path=IMAGES / "regions.png")
    await page.get_by_role("button", name=re.compile("^Drain ")).first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("new disk")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_test_id("leaving")).to_have_text("all agents have left", timeout=WAIT_MS)
    await page.wait_for_timeout(MOVED_MS)
    await page.screenshot(path=IMAGES / "regions-drained.png")


async def main() -> None:
    """Start the stack and a browser, take the pictures, stop both."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    found = find_chromium()
    with stack("--simulate", str(NEIGHBOURS)) as market:
        wait_for(lambda: market.cli["url"])
        async with async_playwright() as playwright:
            environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
            browser = await playwright.chromium.launch(
                executable_path=found.path, args=["--no-sandbox"], env=environment
            )
            page = await browser.new_page(locale="en-GB", viewport=SIZE)  # type: ignore[arg-type]  # a TypedDict
            await take(page, market)
            await take_regions(page)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
