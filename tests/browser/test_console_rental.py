"""The first rental by mouse, on the shipped stack: this host live, a cluster made, watched and deleted, its receipt.

Once in peace, and once while every daemon is killed under the page.
"""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.running import is_dropped
from tests.support.killing import Killer, command_flaws, remains
from tests.support.rental import Renter
from tests.support.stack import Stack, wait_for


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.proves("console: sign in, this host live, create, progress, log, delete, receipt, all by mouse")
async def test_this_host_is_rented_by_mouse_and_leaves_a_receipt(page: Page, market: Stack) -> None:
    page.on("pageerror", lambda error: None if is_dropped(error) else pytest.fail(f"the page threw: {error}"))
    await page.goto(f"{market.cli['url']}/fleet#token={market.cli['token']}")
    await expect(page).not_to_have_url(re.compile("token"))

    row = page.get_by_role("row").nth(1)
    await expect(row).to_contain_text("Online")
    await expect(row.get_by_text("simulated")).to_have_count(0)
    await row.click()
    await expect(page.get_by_test_id("cpu")).to_have_text(re.compile(r"^\d+%$"))
    await expect(page.get_by_role("region", name="Tier")).to_contain_text("cpu")
    await page.get_by_role("tab", name="Charts").click()
    await expect(page.get_by_role("img", name=re.compile(r"^CPU\. CPU: now \d+%"))).to_be_visible()

    await page.get_by_role("link", name="New machine here").click()
    await expect(page.get_by_test_id("plan")).to_contain_text("Fits")
    await page.get_by_role("textbox", name="Command").fill("sh -c 'echo the answer is $((6 * 7)); sleep 600'")
    await page.get_by_role("textbox", name="Name").fill("by-mouse")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await expect(page.get_by_test_id("log")).to_contain_text("the answer is 42")

    await page.get_by_role("tab", name="Run a command inside").click()
    await page.get_by_placeholder("ls -la").fill("sh -c 'echo inside; exit 3'")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_test_id("exec")).to_contain_text("inside")
    await expect(page.get_by_text("Exit code 3")).to_be_visible()

    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Delete machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Deleted")
    await page.get_by_text(re.compile(r"^Receipt: ")).click()
    await expect(page.get_by_text("Test money: it buys nothing outside this installation")).to_be_visible()
    shown = await page.get_by_test_id("amount").inner_text()

    with market.client() as api:
        receipts = list(api.items("/receipts"))
    mine = next(receipt for receipt in receipts if receipt["cluster_name"] == "by-mouse")
    assert float(mine["amount"]) > 0
    assert shown.split()[1] == mine["currency"]
    assert float(mine["running_seconds"]) > 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.proves("console: a rental by mouse while Agent, Master and Access are killed, nothing left behind")
async def test_a_rental_by_mouse_outlives_the_death_of_every_daemon(page: Page, market: Stack) -> None:
    killer = Killer(Renter(market))
    await page.goto(f"{market.cli['url']}/fleet#token={market.cli['token']}")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Online")
    await page.goto(f"{market.cli['url']}/clusters/new")
    await expect(page.get_by_test_id("plan")).to_contain_text("Fits")
    await page.get_by_role("textbox", name="Command").fill("sh -c 'echo it began; sleep 600'")
    await page.get_by_role("textbox", name="Name").fill("killed")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("log")).to_contain_text("it began")
    cluster_id = page.url.rstrip("/").rsplit("/", 1)[1]

    for kind in ("agent", "master", "access"):
        await asyncio.to_thread(killer.kill_and_wait, kind)

    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Delete machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Deleted")
    await page.get_by_text(re.compile(r"^Receipt: ")).click()
    await expect(page.get_by_test_id("amount")).to_be_visible()

    wait_for(lambda: not remains(killer.renter, killer.renter.host()["id"], cluster_id))
    assert command_flaws(market.data_dir, cluster_id) == []
