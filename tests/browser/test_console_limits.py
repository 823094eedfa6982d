"""Spending limits: set, refused and removed by keyboard; one that is reached says so."""

import json
import re
from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_limits import limit
from tests.browser.pretend_master import Served
from tests.browser.pretend_world import at
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window

Pretend = Callable[..., Served]
PROJECT = "account_1"


async def test_the_limits_of_a_project_are_set_and_removed_by_keyboard(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/members")
    opens = page.get_by_role("button", name="Limits: first account")
    await opens.press("Enter")
    await expect(dialog.get_by_label("Per hour")).to_be_focused()
    await expect(dialog).to_contain_text("In a calendar month, in UTC. Used: 12.50.")
    act = dialog.get_by_role("button", name="Set the limits")
    await expect(act).to_be_disabled()
    await page.keyboard.type("much")
    await expect(dialog.get_by_text("An amount such as 0.50")).to_be_visible()
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Per hour").fill("2")
    await dialog.get_by_label("Per month").fill("0.000000001")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_label("Per month")).to_be_focused()
    await expect(dialog.get_by_text("Money has at most eight decimals")).to_be_visible()
    await dialog.get_by_label("Per month").fill("100")
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(opens).to_be_focused()
    row = page.get_by_role("region", name="Projects").get_by_role("row", name="first account")
    await expect(row).to_contain_text("Per hour0.80 / 2.00Per month, 2.00 set aside12.50 / 100.00")

    await page.keyboard.press("Enter")
    for label, value in (("Per hour", "2"), ("Per month", "100")):
        await expect(dialog.get_by_label(label)).to_have_value(value)
        await dialog.get_by_label(label).fill("")
    await dialog.get_by_role("button", name="Remove the limits").press("Enter")
    await expect(row.get_by_role("meter")).to_have_count(0)
    assert served.world.limits == {}


async def test_a_limit_that_is_reached_says_so_and_a_token_does_not_limit_itself(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    reached = limit(PROJECT, "first account", max_monthly_cost="14.50", max_leases=3, updated_at=at())
    served.world.limits[PROJECT] = reached
    await page.set_viewport_size({"width": 390, "height": 900})
    await signed_in(page, served, "/members")
    row = page.get_by_role("row", name="first account").filter(has=page.get_by_role("meter"))
    await expect(row.get_by_role("meter", name="Per month")).to_have_attribute("aria-valuenow", "100")
    await expect(row).to_contain_text(re.compile("set asideReached.*Leases2 / 3"))

    await page.goto(f"{served.url}/tokens")
    await page.get_by_role("button", name="Limits: first").click()
    await dialog.get_by_label("In all").fill("50")
    await dialog.get_by_role("button", name="Set the limits").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("A token sets no limits of its own")
    assert await violations(page, axe_source()) == []
    assert await wider_than_window(page) is None
    await page.keyboard.press("Escape")

    await page.get_by_role("button", name="New token").click()
    await dialog.get_by_label("Name").fill("ci")
    await dialog.get_by_text("Spending limits").click()
    await dialog.get_by_label("Leases").fill("1.5")
    await expect(dialog.get_by_role("button", name="Make token")).to_be_disabled()
    await dialog.get_by_label("Leases").fill("1")
    async with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/tokens")) as sent:
        await dialog.get_by_role("button", name="Make token").click()
    assert json.loads((await sent.value).post_data or "null")["limits"] == {"max_leases": 1}
