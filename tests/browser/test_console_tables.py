"""Every list of the console is searched, narrowed, ordered and fitted to a phone in the same way."""

import re
from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_access import opened
from tests.browser.test_console_states import signed_in
from tests.browser.width import PHONE

Pretend = Callable[..., Served]


async def test_a_list_keeps_its_search_facets_and_order_in_the_address(page: Page, pretend: Pretend) -> None:
    served = pretend()
    for kind, text in (("token.made", "the token b was made"), ("token.made", "the token a was made")):
        served.world.event(kind, ["token_1"], text)
    await signed_in(page, served, "/events?subject=token_1")
    rows = page.get_by_role("region", name="Table of events").locator("tbody tr")
    await expect(rows).to_have_count(2)
    served.world.event("token.revoked", ["token_1"], "the token a was revoked")
    await page.reload()
    await expect(page.get_by_test_id("shown")).to_have_text("3 shown")
    await page.get_by_role("button", name="What").first.click()
    await page.get_by_role("menuitemcheckbox", name=re.compile("Token made")).click()
    await page.keyboard.press("Escape")
    await page.get_by_role("columnheader", name="Message").get_by_role("button").click()
    await expect(rows).to_have_text([re.compile("token a was made"), re.compile("token b was made")])
    await page.get_by_label("Filter", exact=True).fill("token b")
    await expect(page.get_by_test_id("shown")).to_have_text("1 of 3 shown")
    await expect(page).to_have_url(re.compile(r"/events\?subject=token_1&q=token\+b&kind=Token\+made&sort=text$"))
    await page.reload()
    await expect(rows).to_have_text([re.compile("token b was made")])
    await page.get_by_label("Filter", exact=True).fill("zebra")
    await expect(page.get_by_test_id("empty")).to_contain_text("No event matches")
    await page.get_by_role("button", name="Show all 3").click()
    await expect(rows).to_have_count(3)


async def test_chosen_columns_are_remembered_until_the_first_ones_are_wanted_again(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served, "/offers")
    heads = page.get_by_role("columnheader")
    await expect(heads.filter(has_text="Runtimes")).to_have_count(1)
    await page.get_by_role("button", name="Columns").click()
    await page.get_by_role("menuitemcheckbox", name="Runtimes").click()
    await page.get_by_role("menuitemcheckbox", name="Currency").click()
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(heads.filter(has_text="Currency")).to_have_count(1)
    await expect(heads.filter(has_text="Runtimes")).to_have_count(0)
    await page.get_by_role("button", name="Columns").click()
    await page.get_by_role("menuitem", name="As at first").click()
    await expect(heads.filter(has_text="Runtimes")).to_have_count(1)
    await expect(heads.filter(has_text="Currency")).to_have_count(0)


async def test_on_a_phone_cells_name_their_columns(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    await signed_in(page, served)
    await page.set_viewport_size(PHONE)
    await opened(page, served, "/offers")
    free = page.get_by_role("row").filter(has_text="cpu/A").first.locator("td[data-label=Free]")
    total = page.get_by_role("row").filter(has_text="cpu/A").first.locator("td[data-label=Of]")
    await expect(total).to_have_text(re.compile(r"^\d+ hosts?$"))
    assert "Free" in await free.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    await page.get_by_label("Order").select_option("By free")
    await expect(page).to_have_url(re.compile(r"/offers\?sort=-free$"))
