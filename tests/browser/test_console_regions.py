"""The regions page: each Access with what it carries, draining one by click, and its agents leaving live."""

from collections.abc import Callable

from playwright.async_api import Locator, Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]


def row(page: Page, access: str) -> Locator:
    """The row of one Access."""
    return page.get_by_role("row").filter(has=page.get_by_role("button", name=f"Copy {access}"))


async def test_each_region_shows_its_accesses_with_agents_load_round_trip_and_state(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    served.world.agents.update(north=7, south=0)
    served.world.departed = ("access_gone",)
    await signed_in(page, served, "/")
    await page.get_by_role("link", name="Regions").click()
    await expect(page.get_by_role("heading", level=2)).to_have_text(["Map", "north", "south", "Region not known"])
    north = page.get_by_role("region", name="north")
    await expect(north).to_contain_text("Serving")
    await expect(north).to_contain_text("4.3 ms")
    await expect(north.get_by_role("cell", name="7", exact=True)).to_be_visible()
    await expect(north.get_by_role("meter", name="Load of access_north")).to_have_attribute("aria-valuenow", "3")
    await expect(page.get_by_role("region", name="south").get_by_role("cell").nth(4)).to_have_text("–")
    await expect(page.get_by_role("region", name="Region not known")).to_contain_text("Departed")
    await north.get_by_role("link", name="Events of Access access_north").click()
    await expect(page).to_have_url(f"{served.url}/events?subject=access_north")


async def test_an_access_is_drained_by_click_and_its_agents_are_seen_leaving(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.agents["north"] = 8
    await signed_in(page, served, "/regions")
    await page.get_by_role("button", name="Drain access_north").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Its 8 agents move one after the other")
    await expect(dialog).to_contain_text("the one other Access that serves, in south")
    await dialog.get_by_label("Reason").fill("new disk")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog).to_have_count(0)
    assert served.world.drains == {"access_north": "new disk"}
    await expect(row(page, "access_north")).to_contain_text("Draining")
    leaving = page.get_by_test_id("leaving")
    await expect(leaving).to_contain_text("0 of 8 agents have left")
    served.world.agents["north"] = 2
    await expect(leaving).to_contain_text("6 of 8 agents have left")
    served.world.agents["north"] = 0
    await expect(leaving).to_have_text("all agents have left")

    await page.get_by_role("button", name="Resume access_north").click()
    await expect(dialog).to_contain_text("It takes agents again")
    await dialog.get_by_role("button", name="Resume").click()
    await expect(row(page, "access_north")).to_contain_text("Serving")
    assert served.world.drains == {}


async def test_the_last_access_that_serves_is_not_drained_and_the_page_says_why(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.drains["access_south"] = ""
    await signed_in(page, served, "/regions")
    await page.get_by_role("button", name="Drain access_north").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("No other Access serves: this will be refused")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("No other Access could take its agents.")
    await expect(row(page, "access_north")).to_contain_text("Serving")


async def test_without_any_access_the_page_says_what_one_is_and_what_to_type(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.accesses = ()
    await signed_in(page, served, "/regions")
    await expect(page.get_by_text("No Access is known")).to_be_visible()
    await expect(page.get_by_label("next command", exact=True)).to_have_text("windrow doctor")
