"""Everybody can use the console: no page breaks WCAG A or AA in either scheme, and the keyboard goes everywhere."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.chromium import NoBrowser
from tests.browser.pretend_master import Served
from tests.browser.pretend_resources import add_resource
from tests.browser.pretend_volumes import add_volume
from tests.browser.width import DESK, PHONE, wider_than_window
from tests.services import all_required

Pretend = Callable[..., Served]
HOST = "host_019a0000-0000-7000-8000-000000000001"
SIMULATED = "host_019a0000-0000-7000-9000-000000000000"
COMMAND = "command_019a0000-1111-7000-8000-000000000000"
DARK = 6
"""So many pages are looked at in the dark scheme by `make test`, which opens every third page. `make long` judges all
of these in both schemes, `make walk` all that the pages of a busy market link to."""
PAGES = (
    "/",
    "/fleet",
    "/fleet/map",
    "/join",
    f"/hosts/{HOST}",
    f"/hosts/{HOST}?tab=commands",
    f"/hosts/{SIMULATED}?tab=gpus",
    f"/hosts/{SIMULATED}?tab=charts",
    f"/hosts/{SIMULATED}?tab=hardware",
    "/clusters",
    "/clusters/new",
    "/new?what=job",
    "/queue",
    "/volumes",
    "/secrets",
    "/shared",
    "/resources",
    "/clouds",
    "/receipts",
    "/usage",
    "/earnings",
    "/reports?by=project,day",
    "/reports?by=project&rows=1",
    "/offers",
    "/shop",
    "/prices",
    "/route",
    "/alerts",
    "/alerts?tab=rules",
    "/alerts?tab=channels",
    "/alerts/alert_1",
    "/events",
    "/commands",
    f"/commands/{COMMAND}",
    "/audit",
    "/people",
    "/members",
    "/identity-providers",
    "/device",
    "/tokens",
    "/regions",
    "/health",
    "/settings",
    "/nowhere",
    "/docs",
    "/docs/machines",
    "/docs?q=drain",
)


@pytest.fixture(scope="session")
def axe() -> str:
    """The checker."""
    try:
        return axe_source()
    except NoBrowser as missing:
        if all_required():
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


async def opened(page: Page, served: Served, path: str) -> None:
    """Go to a screen and wait until its skeletons are gone."""
    await page.goto(served.url + path)
    await expect(page.get_by_role("main")).not_to_be_empty()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


async def rented(page: Page, served: Served) -> str:
    """Rent something, so that the pages of clusters and receipts have rows; returns its page."""
    await page.goto(f"{served.url}/clusters/new")
    await page.get_by_role("textbox", name="Name").fill("mine")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    return page.url.removeprefix(served.url)


def assert_none(found: dict[str, list[str]]) -> None:
    """Fail with every rule that a page breaks, and where."""
    told = [f"{path}: {broken}" for path, all_broken in found.items() for broken in all_broken]
    assert not told, "\n".join(told)


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)], ids=["every third", "all"])
@pytest.mark.proves("console: no violation of WCAG 2.2 A or AA on its pages, by axe, light and dark")
async def test_no_page_breaks_a_rule_of_wcag_a_or_aa(page: Page, pretend: Pretend, axe: str, each: int) -> None:
    served = pretend(neighbours=1)
    found = {}
    await page.goto(served.url)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    found["signed out"] = await violations(page, axe)
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    cluster = await rented(page, served)
    for number, path in enumerate((*PAGES[::each], cluster)):
        await opened(page, served, path)
        found[path] = await violations(page, axe, dark=number < DARK or None)
        await page.set_viewport_size(PHONE)
        if wide := await wider_than_window(page):
            found[path].append(f"wider than a phone: {wide}")
        await page.set_viewport_size(DESK)
    await _palette(page)
    found["palette"] = await violations(page, axe)
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Keys")
    found["help"] = await violations(page, axe)
    assert_none(found)


async def test_empty_and_failing_pages_and_open_dialogs_break_no_rule_either(
    page: Page, pretend: Pretend, axe: str
) -> None:
    served = pretend(real_host=False)
    served.world.accesses = ()
    told = {"status": 500, "code": "internal", "title": "Ours", "detail": "The prices could not be read."}
    served.world.problems["/offers"] = told
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    found = {}
    for path in ("/", "/fleet", "/clusters", "/events", "/commands", "/regions", "/health", "/offers"):
        await opened(page, served, path)
        found[path] = await violations(page, axe)
    await opened(page, served, "/tokens")
    await page.get_by_role("button", name="New token").click()
    await page.get_by_role("button", name="Show API and CLI call").click()
    await expect(page.get_by_label("HTTP call", exact=True)).to_be_visible()
    found["new token"] = await violations(page, axe)
    served.world.accesses = ("north", "south")
    served.world.drains["access_north"] = "new disk"
    served.world.agents["north"] = 3
    served.world.departed = ("access_gone",)
    await opened(page, served, "/regions")
    await expect(page.get_by_test_id("leaving")).to_be_visible()
    await page.get_by_role("button", name="Drain relay south").click()
    await expect(page.get_by_role("dialog")).to_contain_text("refused")
    found["drain"] = await violations(page, axe)
    assert_none(found)


async def test_filled_volumes_their_dialogs_and_the_work_that_has_them_break_no_rule(
    page: Page, pretend: Pretend, axe: str
) -> None:
    served, dialog, found = pretend(neighbours=1), page.get_by_role("dialog"), {}
    for name in ("data", "models", "unused"):
        add_volume(served.world, name)
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    await opened(page, served, "/clusters/new")
    await page.get_by_role("textbox", name="Volumes").fill("data")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_text("Not NAME:/path or NAME:/path:ro: data").first).to_be_visible()
    found["volumes of a form"] = await violations(page, axe)
    await page.get_by_role("textbox", name="Volumes").fill("data:/data\nmodels:/models:ro")
    await page.get_by_role("button", name="Create machine").click()
    beside = page.get_by_test_id("volumes")
    await beside.get_by_role("button", name="Save now").click()
    await expect(beside.get_by_role("status")).to_contain_text("data: version 1")
    served.world.volumes["models"]["problem"] = "a file was written to while it was read"
    found["volumes of a cluster"] = await violations(page, axe)
    await opened(page, served, "/volumes")
    await expect(page.get_by_role("row")).to_have_count(4)
    await expect(page.get_by_text("Not saved")).to_be_visible()
    found["volumes"] = await violations(page, axe)
    await page.get_by_role("button", name="New volume").click()
    await dialog.get_by_role("button", name="Make volume").click()
    await expect(dialog).to_contain_text("lower-case letters")
    found["new volume"] = await violations(page, axe)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Delete the volume data").click()
    await dialog.get_by_role("textbox").fill("data")
    await dialog.get_by_role("button", name="Delete volume").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("in use by")
    found["delete volume"] = await violations(page, axe)
    assert_none(found)


async def test_a_filled_registry_and_its_dialogs_break_no_rule(page: Page, pretend: Pretend, axe: str) -> None:
    served, dialog, found = pretend(neighbours=1), page.get_by_role("dialog"), {}
    add_resource(served.world, {"resource_id": "lab-01", "resource_type": "on-premise", "capabilities": {"gpu": True}})
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    await opened(page, served, "/resources")
    await expect(page.get_by_role("row")).to_have_count(2)
    found["resources"] = await violations(page, axe)
    await page.get_by_role("button", name="Register a resource").click()
    await dialog.get_by_role("button", name="Register").click()
    await expect(dialog).to_contain_text("1 to 128 letters")
    found["register"] = await violations(page, axe)
    for button in ("Status of lab-01", "Remove lab-01"):
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name=button).click()
        await expect(dialog).to_be_visible()
        found[button] = await violations(page, axe)
    assert_none(found)


async def test_the_checker_sees_what_is_planted(page: Page, pretend: Pretend, axe: str) -> None:
    served = pretend()
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    await page.evaluate(
        "() => document.getElementById('main').append("
        "document.createElement('button'), Object.assign(document.createElement('img'), { src: '/windrow.svg' }))"
    )
    broken = "\n".join(await violations(page, axe))
    assert "button-name" in broken
    assert "image-alt" in broken


async def _palette(page: Page) -> None:
    """Open it, and wait until it is what takes the keys."""
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Go to a page")).to_be_focused()


async def test_the_palette_goes_to_pages_hosts_and_actions_by_the_keyboard_alone(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    await _palette(page)
    await page.keyboard.type("recei")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("Receipts")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Receipts", level=1)).to_be_visible()
    await _palette(page)
    await page.keyboard.type("workb")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("workbench")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="workbench")).to_be_visible()
    await _palette(page)
    await page.keyboard.type("drain workb")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("Drain workbench")
    await page.keyboard.press("Enter")
    asked = page.get_by_role("dialog", name="Drain: workbench")
    await expect(asked.get_by_role("textbox", name="Reason")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(asked).to_have_count(0)
    await _palette(page)
    await page.keyboard.type("no_capacity")
    await page.get_by_role("option", name="no_capacity").click()
    await expect(page.get_by_role("heading", name="no_capacity")).to_be_in_viewport()
    await page.go_back()
    await expect(page.get_by_role("heading", name="workbench")).to_be_visible()
    await _palette(page)
    await page.keyboard.type("dark")
    chosen = page.get_by_role("dialog").get_by_role("option", selected=True)  # the page behind has lists of its own
    await expect(chosen).to_contain_text(re.compile("dark", re.I))
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await expect(chosen).to_contain_text(re.compile("dark", re.I))
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")


async def test_a_chosen_scheme_is_remembered_and_the_system_decides_until_then(page: Page, pretend: Pretend) -> None:
    served = pretend()
    html = page.locator("html")
    await page.emulate_media(color_scheme="dark")
    await page.goto(served.sign_in_url)
    await expect(html).to_have_attribute("data-mantine-color-scheme", "dark")
    await expect(page.get_by_text("workbench")).to_be_visible()
    await page.goto(f"{served.url}/settings")
    await page.get_by_role("radiogroup", name="Colours").get_by_text("Light", exact=True).click()
    await expect(html).to_have_attribute("data-mantine-color-scheme", "light")
    await page.reload()
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await expect(html).to_have_attribute("data-mantine-color-scheme", "light")


async def test_question_mark_shows_the_keys_and_each_jump_lands_and_moves_the_focus_to_the_page(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Audit")
    await page.keyboard.type("ga")  # a dialog is open: keys are its own
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    for key, name in (("v", "Home"), ("a", "Audit"), ("m", "Commands"), ("s", "Settings"), ("h", "Health")):
        await page.keyboard.type(f"g{key}")
        await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        await expect(page.locator("#main")).to_be_focused()
        await expect(page).to_have_title(f"{name} · Windrow")


async def test_the_first_tab_skips_to_the_page_and_what_has_the_focus_shows_it(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    await page.keyboard.press("Tab")
    outline = (
        "() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + ' ' + s.outlineWidth; }"
    )
    for _ in range(12):
        await page.keyboard.press("Tab")
        assert re.match(r"solid [1-9]", await page.evaluate(outline)), await page.evaluate(
            "document.activeElement.outerHTML"
        )


async def test_nothing_moves_where_less_motion_is_asked_for(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await page.emulate_media(reduced_motion="reduce")
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    longest = await page.evaluate(
        "() => Math.max(0, ...document.getAnimations().map((one) => Number(one.effect.getComputedTiming().duration)))"
    )
    assert longest <= 1
