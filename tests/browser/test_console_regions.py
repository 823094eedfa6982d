"""The regions page: each Access with what it carries, draining one by click, and its agents leaving live."""

from collections.abc import Callable

from playwright.async_api import Locator, Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_accesses import COUNTED, stop_test
from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]


def row(page: Page, access: str) -> Locator:
    """The row of one relay."""
    return page.get_by_role("row").filter(has_text=access)


async def test_each_region_shows_its_accesses_with_agents_load_round_trip_and_state(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    served.world.agents.update(north=7, south=0)
    served.world.departed = ("access_gone",)
    await signed_in(page, served, "/")
    await page.get_by_role("link", name="Relays", exact=True).click()
    await expect(page.get_by_role("heading", level=2)).to_have_text(["Map", "north", "south", "Region not known"])
    north = page.get_by_role("region", name="north")
    await expect(north).to_contain_text("Serving")
    await expect(north).to_contain_text("4.3 ms")
    await expect(north.get_by_role("cell", name="7", exact=True)).to_be_visible()
    await expect(north.get_by_role("meter", name="Load of relay north")).to_have_attribute("aria-valuenow", "3")
    await expect(page.get_by_role("region", name="south").get_by_role("cell").nth(4)).to_have_text("–")
    await expect(page.get_by_role("region", name="Region not known")).to_contain_text("Departed")
    await north.get_by_role("link", name="Events of relay north").click()
    await expect(page).to_have_url(f"{served.url}/events?subject=access_north")


async def test_an_access_is_drained_by_click_and_its_agents_are_seen_leaving(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.agents["north"] = 8
    await signed_in(page, served, "/regions")
    await expect(page.get_by_test_id("map")).to_be_visible()  # what is below moves down when the map comes
    await page.get_by_role("button", name="Drain relay north").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Its 8 agents move one after the other")
    await expect(dialog).to_contain_text("the one other relay that serves, in south")
    await dialog.get_by_label("Reason").fill("new disk")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog).to_have_count(0)
    assert served.world.drains == {"access_north": "new disk"}
    await expect(row(page, "relay north")).to_contain_text("Draining")
    leaving = page.get_by_test_id("leaving")
    await expect(leaving).to_contain_text("0 of 8 agents have left")
    served.world.agents["north"] = 2
    await expect(leaving).to_contain_text("6 of 8 agents have left")
    served.world.agents["north"] = 0
    await expect(leaving).to_have_text("all agents have left")

    await page.get_by_role("button", name="Resume relay north").click()
    await expect(dialog).to_contain_text("It takes agents again")
    await dialog.get_by_role("button", name="Resume").click()
    await expect(row(page, "relay north")).to_contain_text("Serving")
    assert served.world.drains == {}


async def test_the_last_access_that_serves_is_not_drained_and_the_page_says_why(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.drains["access_south"] = ""
    await signed_in(page, served, "/regions")
    await expect(page.get_by_test_id("map")).to_be_visible()  # what is below moves down when the map comes
    await page.get_by_role("button", name="Drain relay north").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("No other relay serves: this will be refused")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("No other relay could take its agents.")
    await expect(row(page, "relay north")).to_contain_text("Serving")


async def test_without_any_access_the_page_says_what_one_is_and_what_to_type(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.accesses = ()
    await signed_in(page, served, "/regions")
    await expect(page.get_by_text("No relay is known")).to_be_visible()
    await expect(page.get_by_label("next command", exact=True)).to_have_text("windrow doctor")


async def test_a_relay_is_stopped_only_by_its_name_and_the_panel_ends_with_what_was_lost(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=3)
    world = served.world
    world.stop_names.update(access_north="access-local-a", access_south="access-local-b")
    await signed_in(page, served, "/regions")
    await expect(page.get_by_test_id("map")).to_be_visible()  # what is below moves down when the map comes
    await page.get_by_role("button", name="Stop relay north as a test").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("killed at once (SIGKILL)")
    press = dialog.get_by_role("button", name="Stop it")
    await expect(press).to_be_disabled()
    await dialog.get_by_label("Type access-local-a to confirm").fill("access-local-b")
    await expect(press).to_be_disabled()
    assert world.stops == {}
    await dialog.get_by_label("Type access-local-a to confirm").fill("access-local-a")
    await press.click()
    await expect(dialog).to_have_count(0)

    test = page.get_by_test_id("stop-test")
    await expect(test).to_contain_text("2 of 2 agents look for another relay")
    await expect(test).to_contain_text("0 of 2, 0 of them at another relay")
    world.stops["access_north"].update(back=2, elsewhere=2, away_s=1.4)
    await expect(test).to_contain_text("waiting until each has sent anew")
    world.stops["access_north"].update(phase="finished", counted=COUNTED)
    await expect(test.get_by_test_id("lost")).to_have_text("0")
    await expect(test.get_by_role("status")).to_have_text("No acknowledged sample was lost")
    await expect(test).to_contain_text("6.4 s between two batches of one agent")
    await test.get_by_text("How this was counted").click()
    await expect(test).to_contain_text("Counted from the log.")
    assert await violations(page, axe_source()) == []
    await page.reload()
    await expect(page.get_by_test_id("lost")).to_have_text("0")


async def test_a_test_that_lost_something_or_did_not_finish_says_so(page: Page, pretend: Pretend) -> None:
    served = pretend()
    world = served.world
    world.stops["access_north"] = stop_test("access_north", "access-local-a", 4) | {
        "phase": "finished",
        "counted": COUNTED | {"lost_samples": 35, "lost_batches": 1},
    }
    world.stops["access_south"] = stop_test("access_south", "access-local-b", 4) | {"phase": "unfinished", "back": 3}
    await signed_in(page, served, "/regions")
    first, second = page.get_by_test_id("stop-test").first, page.get_by_test_id("stop-test").last
    await expect(first.get_by_role("status")).to_have_text("Acknowledged samples were lost")
    await expect(first.get_by_test_id("lost")).to_have_text("35")
    await expect(second.get_by_role("status")).to_contain_text("Not every agent was back")


async def test_outside_of_development_nothing_offers_to_stop_a_relay(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/regions")
    await expect(page.get_by_role("button", name="Drain relay north")).to_be_visible()
    await expect(page.get_by_role("button", name="as a test")).to_have_count(0)
