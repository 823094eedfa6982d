"""Usage & billing and Earnings: one click to the month's spend, other months, by what it was, for whom, as CSV."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window

Pretend = Callable[..., Served]


async def saved(page: Page, name: str) -> str:
    """The text of the CSV file that a button saves."""
    async with page.expect_download() as waited:
        await page.get_by_role("button", name=name).click()
    return (await (await waited.value).path()).read_text()


@pytest.mark.proves("console: a month's spend in one click, with forecast, limit and until when there is money")
async def test_the_months_spend_is_one_click_away(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend())
    await page.get_by_role("link", name="Usage & billing").click()
    main = page.get_by_role("main")
    await expect(main.get_by_test_id("spent")).to_contain_text("so far")
    for words in ("forecast to the month's end", "limit a month", "reserved now", "balance", "empty in", "is passed"):
        await expect(main).to_contain_text(words)
    await expect(main.get_by_role("img", name=re.compile(r"^By day: \d{4}-"))).to_be_visible()
    await expect(main.get_by_role("img", name=re.compile(r"so far, forecast [\d.]+, limit [\d.]+ CRD"))).to_be_visible()
    await expect(main.get_by_role("link", name="training <b>run</b>")).to_have_attribute("href", "/clusters/cluster_1")
    assert "training <b>run</b>" in await saved(page, "Save the days as CSV")
    await main.get_by_role("radiogroup", name="By", exact=True).get_by_text("Person").click()
    await expect(main.get_by_role("row").filter(has_text="ada")).to_be_visible()
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await wider_than_window(page) is None
    await main.get_by_label("Month", exact=True).select_option(index=1)
    await expect(main.get_by_test_id("empty")).to_contain_text("Nothing was charged in")


async def test_earnings_tell_what_was_rented_and_what_was_lost_and_operators_see_all(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served, "/earnings")
    main = page.get_by_role("main")
    await expect(main.get_by_test_id("earned")).to_be_visible()
    await expect(main.get_by_role("img", name=re.compile("^GPU hours: 300 rented, 100 idle"))).to_be_visible()
    await expect(main.get_by_test_id("hours")).to_contain_text("lost 12.50 CRD")
    await expect(main.get_by_role("list", name="Part of the time that was rented, by day")).to_be_visible()
    await expect(main.get_by_role("row").filter(has_text="rack7-node1")).to_contain_text("73%")
    await main.get_by_text("All projects").click()
    await expect(main.get_by_role("row").filter(has_text="another account")).to_be_visible()
    await expect(main.get_by_text("fees", exact=False).first).to_be_visible()
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await wider_than_window(page) is None


async def test_who_has_spent_and_earned_nothing_reads_the_next_command(page: Page, pretend: Pretend) -> None:
    served = pretend(real_host=False)
    for path, command in (("/usage", "windrow run --gpus 1"), ("/earnings", "windrow token add --join")):
        await signed_in(page, served, path)
        await expect(page.get_by_test_id("empty").get_by_label("next command", exact=True)).to_contain_text(command)


async def test_a_report_is_chosen_drawn_opened_to_its_rows_and_saved(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/reports")
    main = page.get_by_role("main")
    await expect(main.get_by_role("img", name=re.compile("^Cost by day: 2026-11-01 0.25"))).to_be_visible()
    await main.get_by_label("And by").select_option("project")
    await expect(main.get_by_role("row").filter(has_text="first <b>account</b>").first).to_be_visible()
    await expect(page).to_have_url(re.compile("by=day,project"))
    await main.get_by_role("button", name="Rows of 2026-11-01, first <b>account</b>").click()
    await expect(main.get_by_role("link", name="training <b>run</b>")).to_have_attribute("href", "/receipts/receipt_1")
    await expect(main.get_by_role("button", name=re.compile("Project: account_1"))).to_be_visible()
    async with page.expect_download() as waited:
        await main.get_by_role("button", name="CSV", exact=True).click()
    assert (await waited.value).suggested_filename == "windrow-CSV-this-month.csv"
    await main.get_by_role("button", name="By mail").click()
    await expect(page.get_by_role("dialog").get_by_label("Subject")).to_have_value("Windrow report")
    await page.keyboard.press("Escape")
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await wider_than_window(page) is None
    await main.get_by_label("Period").select_option("last-week")
    await expect(main.get_by_test_id("empty").first).to_contain_text("Nothing from")
