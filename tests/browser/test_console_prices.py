"""The shop with its filter, the setting of prices, and what a GPU costs elsewhere."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window

Pretend = Callable[..., Served]

pytestmark = pytest.mark.slow


async def test_an_offer_leads_to_the_prices_of_the_same_gpu_elsewhere(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await page.goto(served.sign_in_url)
    await page.get_by_role("link", name="Pricing").click()
    offer = page.get_by_role("row").filter(has_text="h100/")
    await offer.get_by_role("link", name="1.74/h").click()
    await expect(page.get_by_role("heading", name="Prices elsewhere", level=1)).to_be_visible()
    rows = page.get_by_role("row")
    await expect(rows.nth(1)).to_contain_text("vastai")
    await expect(rows.nth(1)).to_contain_text("2026-08-23")
    for row in await rows.all():
        assert "Provider" in await row.inner_text() or "× h100" in await row.inner_text()
    await expect(rows.filter(has_text="lambda")).to_contain_text("8 × h100")


@pytest.mark.proves("console: the shop is narrowed in the address, for one's own hours, and Rent keeps the filter")
async def test_the_shop_is_narrowed_in_the_address_and_rent_keeps_the_filter(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=8)
    for gpu in served.world.gpu_rows.values():
        gpu["slot_state"] = "running" if gpu["tier"] == "a100/A" else "free"
    await signed_in(page, served, "/shop")
    main = page.get_by_role("main")
    rows = main.get_by_role("region", name="Machine types", exact=True).locator("tbody tr")
    await expect(rows).to_have_count(1)  # the real one
    await main.get_by_role("button", name=re.compile(r"^Show \d+ simulated machine types$")).click()
    await expect(rows.filter(has_text="A100").first).to_contain_text("next lease ends in 3 h")
    await expect(rows.filter(has_text="A100").first.get_by_role("link")).to_have_text("Queue a job")
    await expect(main.get_by_role("img", name=re.compile(r"^GPUs by price: 0\.95 .* free"))).to_be_visible()
    await main.get_by_label("GPU", exact=True).select_option("H100")
    await main.get_by_label("GPUs on one host").fill("2")
    await main.get_by_label("My hours").fill("10")
    await expect(page).to_have_url(re.compile(r"/shop\?gpu=h100&gpus=2&hours=10$"))
    await main.get_by_label("Region", exact=True).select_option("north")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("38.00 TEST")
    await expect(rows).to_contain_text("NVIDIA H100 80GB HBM3")
    rent = rows.get_by_role("link", name="Rent H100, 8 on one host")
    await expect(rent).to_have_attribute(
        "href", re.compile(r"/clusters/new\?tier=h100/A&hardware=gpu&simulated=true&gpus=2&hours=10&host=host_")
    )
    await expect(main.get_by_role("img", name=re.compile(r"^Price paid for H100"))).to_be_visible()
    await page.reload()
    await expect(rows).to_have_count(1)
    await main.get_by_role("button", name="Clear the filter").click()
    await main.get_by_role("slider", name="Highest price").press("ArrowLeft")
    await expect(page).to_have_url(re.compile(r"/shop\?to=1\.8905$"))
    await expect(rows.filter(has_text="H100")).to_have_count(0)
    for width in (390, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await wider_than_window(page) is None


@pytest.mark.proves("console: a price is changed in three clicks, a slip of the point is asked about, and undone")
async def test_a_price_is_set_in_three_clicks_asked_about_where_it_changes_much_and_undone(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served)
    await page.get_by_role("link", name="Pricing").click()
    price, dialog = page.get_by_role("button", name="change the price of cpu/A"), page.get_by_role("dialog")
    await price.click()
    await dialog.get_by_label("Price per hour of cpu/A").fill("0.09")
    await expect(dialog).to_contain_text("+12.5%")
    await expect(dialog).to_contain_text("your own hosts, new rentals only")
    await dialog.get_by_role("button", name="Set", exact=True).click()
    await expect(price).to_have_text("0.09/h")
    await page.get_by_role("button", name="Undo").click()
    await expect(price).to_have_text("0.08/h")
    assert served.world.set_prices == {}
    await price.click()
    await dialog.get_by_label("Price per hour of cpu/A").fill("0.09")
    await dialog.get_by_role("button", name="Set", exact=True).click()
    await expect(price).to_have_text("0.09/h")
    served.world.set_prices["cpu/A"] = "7.77"
    await page.get_by_role("button", name="Undo").last.click()
    await expect(page.get_by_role("alert").filter(has_text="Not undone")).to_contain_text("Otto has set that")
    await expect(price).to_have_text("7.77/h")
    del served.world.set_prices["cpu/A"]
    await page.reload()
    await price.click()
    await dialog.get_by_label("Price per hour of cpu/A").fill("7.5")
    await dialog.get_by_role("button", name="Set", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("This is 93.8 times the price now")
    assert served.world.set_prices == {}
    await dialog.get_by_role("button", name="Set 7.5 anyway").click()
    await expect(price).to_have_text("7.50/h")
