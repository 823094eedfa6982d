"""The charts of what a cluster uses, in a real browser over the pretend Master."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window

FIRST = "cluster_019a0000-2222-7000-8000-000000000001"
SPANS = ["1 h", "6 h", "24 h", "7 d", "30 d"]


@pytest.mark.proves(
    "console: what a cluster uses is drawn, over five spans, and before its first figures the page says so"
)
async def test_what_a_cluster_uses_is_drawn_once_it_was_measured(page: Page, pretend: Callable[..., Served]) -> None:
    served = pretend()
    served.world.unmeasured.add(FIRST)
    await signed_in(page, served, "/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("python train.py")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await page.get_by_role("tab", name="Charts").click()
    panel = page.get_by_role("region", name="What it uses")
    await expect(panel).to_contain_text("No figures yet")
    await expect(panel).to_contain_text("The first come after 10 s.")
    await expect(panel).to_contain_text("kept for 4 days, means of minutes and hours for 30 days, nothing longer")

    served.world.unmeasured.clear()
    await expect(panel.get_by_role("img", name=re.compile(r"^CPUs in use\. CPUs: now \d"))).to_be_visible()
    network = re.compile(r"^Network\. Received: now [\d.]+ MiB.s, .*; Sent: now ")
    await expect(panel.get_by_role("img", name=network)).to_be_visible()
    await expect(panel.get_by_role("img")).to_have_count(5)
    control = panel.get_by_role("radiogroup", name="Span of time")
    assert [await one.inner_text() for one in await control.locator("label").all()] == SPANS
    await control.get_by_text("30 d", exact=True).click()
    await expect(panel.get_by_role("img", name=re.compile(r"^Memory\. Memory: now [\d.]+ GiB"))).to_be_visible()

    served.world.clusters[FIRST]["request"]["gpus"] = 1
    await expect(panel.get_by_role("img", name=re.compile(r"^GPU use\. GPU: now \d+%"))).to_be_visible()
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await wider_than_window(page) is None
