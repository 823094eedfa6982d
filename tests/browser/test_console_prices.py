"""What a GPU costs elsewhere: from the offer of its tier to the prices of the same GPU, each with its day."""

from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served

Pretend = Callable[..., Served]

pytestmark = pytest.mark.slow


async def test_an_offer_leads_to_the_prices_of_the_same_gpu_elsewhere(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await page.goto(served.sign_in_url)
    await page.get_by_role("link", name="GPUs & prices").click()
    offer = page.get_by_role("row").filter(has_text="h100/")
    await offer.get_by_role("link", name="1.74/h").click()
    await expect(page.get_by_role("heading", name="Prices elsewhere", level=1)).to_be_visible()
    rows = page.get_by_role("row")
    await expect(rows.nth(1)).to_contain_text("vastai")
    await expect(rows.nth(1)).to_contain_text("2026-08-23")
    for row in await rows.all():
        assert "Provider" in await row.inner_text() or "× h100" in await row.inner_text()
    await expect(rows.filter(has_text="lambda")).to_contain_text("8 × h100")
