"""The map of the regions page: agents around their Accesses, seen moving when one dies; for eye, ear and keyboard."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.pretend_accesses import move
from tests.browser.pretend_master import Served
from tests.browser.pretend_world import add_host
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]
PLACE = "node => node.style.transform"
LASTS = "node => getComputedStyle(node).transitionDuration.split(',')[0]"


def dot(page: Page, host_id: str) -> Locator:
    """The dot of one host."""
    return page.get_by_test_id("map").locator(f'[data-at="{host_id}"]')


async def drawn(page: Page, served: Served) -> list[str]:
    """Go to the page and wait until every host is on its map; answers their ids."""
    await signed_in(page, served, "/regions")
    await expect(page.get_by_test_id("map").locator("[data-link]")).to_have_count(len(served.world.hosts))
    return list(served.world.hosts)


async def test_agents_of_an_access_that_dies_are_seen_moving_and_the_others_stay_where_they_are(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=9)
    hosts = await drawn(page, served)
    north = [one for one in hosts if served.world.hosts[one]["access_id"] == "access_north"]
    south = [one for one in hosts if one not in north]
    before = {one: await dot(page, one).evaluate(PLACE) for one in hosts}
    assert len(set(before.values())) == len(hosts), "each dot has a place of its own"
    assert await dot(page, north[0]).evaluate(LASTS) == "1.1s"

    served.world.accesses, served.world.departed = ("south",), ("access_north",)
    for host_id in north:
        move(served.world, host_id, "access_south")

    await expect(page.get_by_test_id("map-told")).to_have_text(
        f"{len(north)} agents moved from relay north to relay south."
    )
    for host_id in north:
        await expect(dot(page, host_id)).to_have_attribute("data-access", "access_south")
        assert await dot(page, host_id).evaluate(PLACE) != before[host_id]
    assert {one: await dot(page, one).evaluate(PLACE) for one in south} == {one: before[one] for one in south}
    died = page.get_by_test_id("map").locator('[data-at="access_north"]')
    await expect(died).to_have_attribute("data-state", "departed")
    await expect(died).to_contain_text("departed")
    await expect(died).to_contain_text("0 agents")


async def test_who_asks_for_less_motion_sees_the_move_without_a_flight(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await page.emulate_media(reduced_motion="reduce")
    first, *_ = await drawn(page, served)
    assert float((await dot(page, first).evaluate(LASTS)).removesuffix("s")) < 0.001


async def test_states_differ_by_shape_and_the_same_is_said_in_words(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=5)
    lost, suspect, *_ = (one for one, host in served.world.hosts.items() if host["access_id"] == "access_south")
    served.world.hosts[lost]["link_state"] = "lost"
    served.world.hosts[suspect]["link_state"] = "suspect"
    hosts = await drawn(page, served)
    shapes = [
        await dot(page, one).locator("> :last-child").evaluate("node => node.tagName + (node.getAttribute('d') ?? '')")
        for one in (lost, suspect, hosts[0])
    ]
    assert len(set(shapes)) == 3
    words = page.get_by_role("listitem").filter(has_text="in south")
    await expect(words).to_contain_text("serving, 3 agents: 1 online, 1 suspect, 1 lost")
    await expect(page.get_by_role("listitem").filter(has_text="in north")).to_contain_text("3 online, 0 suspect")


async def test_pointing_and_arrow_keys_tell_of_a_host_and_enter_opens_it(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    first, *_ = await drawn(page, served)
    looked = page.get_by_test_id("map-looked")
    await dot(page, first).locator("circle").last.hover()
    await expect(looked).to_have_text(re.compile("^workbench: online, round trip .* ms, at relay north in north$"))

    await page.get_by_role("group", name="Map of relays").focus()
    await page.keyboard.press("Home")
    await expect(looked).to_contain_text("relay north in north: serving, 1 agent: 1 online")
    await page.keyboard.press("ArrowRight")
    await expect(looked).to_contain_text("workbench: online")
    await page.keyboard.press("Escape")
    await expect(looked).to_have_text("")
    await page.keyboard.press("End")
    await expect(looked).to_contain_text("sim-000 (simulated): online")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/hosts/host_019a0000-0000-7000-9000-000000000000"))


async def test_more_agents_than_dots_can_show_are_circles_with_counts(page: Page, pretend: Pretend) -> None:
    served = pretend()
    for number in range(2_000):
        add_host(served.world, f"host_019a0000-0000-7000-a000-{number:012d}", f"sim-{number}", cards=0, simulated=True)
    await signed_in(page, served, "/regions")
    north = page.get_by_test_id("bubble").first
    await expect(north).to_contain_text(re.compile(r"(9|1,0)\d\d online"))
    await expect(page.get_by_test_id("map").locator("[data-link]")).to_have_count(0)


async def test_a_map_without_hosts_says_how_one_comes(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(real_host=False), "/regions")
    await expect(page.get_by_text("No host has come yet")).to_be_visible()
    await page.get_by_role("link", name="Add a host", exact=True).last.click()
    await expect(page).to_have_url(re.compile("/join$"))


@pytest.mark.parametrize("width", [375, 1280])
async def test_the_map_fits_a_telephone_and_a_desk(page: Page, pretend: Pretend, width: int) -> None:
    served = pretend(neighbours=3)
    await page.set_viewport_size({"width": width, "height": 800})
    await drawn(page, served)
    box = await page.get_by_test_id("map").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
