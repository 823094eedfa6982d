"""A person approves a device in the console, signs in again before acts of weight, and looks after service accounts."""

from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.chromium import NoBrowser
from tests.browser.pretend_master import Served
from tests.browser.pretend_members import PASSWORD
from tests.browser.pretend_sign_in import DEVICE_CODE, SERVICE_TOKEN
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window
from tests.services import all_required

Pretend = Callable[..., Served]


async def test_a_device_is_approved_by_its_button_alone(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.devices[DEVICE_CODE] = "waiting"
    await signed_in(page, served, f"/device?code={DEVICE_CODE}")
    await expect(page.get_by_label("Code")).to_have_value(DEVICE_CODE)
    assert served.world.devices[DEVICE_CODE] == "waiting"
    await page.get_by_role("button", name="Continue").click()
    facts = page.locator("dl")
    for said in ("laptop", "192.0.2.7", "first account", "Project admin, Renter"):
        await expect(facts).to_contain_text(said)
    assert served.world.devices[DEVICE_CODE] == "waiting"
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("laptop is signed in")
    assert served.world.devices[DEVICE_CODE] == "approve"


async def test_a_device_is_refused_and_a_wrong_code_is_said(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.devices[DEVICE_CODE] = "waiting"
    await signed_in(page, served, "/device")
    await page.get_by_label("Code").fill("bcdfghjl")
    await expect(page.get_by_label("Code")).to_have_value("BCDF-GHJL")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("There is no such code")
    await page.get_by_label("Code").fill(DEVICE_CODE)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Refuse").click()
    await expect(page.get_by_role("status")).to_contain_text("laptop is refused")
    assert served.world.devices[DEVICE_CODE] == "refuse"


async def test_an_act_of_weight_asks_for_the_password_again_and_goes_on(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.is_stale = True
    await signed_in(page, served, "/tokens")
    await page.get_by_role("button", name="New token").click()
    await page.get_by_role("dialog", name="New token").get_by_label("Name").fill("ci")
    await page.get_by_role("button", name="Make token").click()
    again = page.get_by_role("dialog", name="Sign in again")
    await again.get_by_label("Password", exact=True).fill("wrong")
    await again.get_by_role("button", name="Go on").click()
    await expect(again.get_by_role("alert")).to_contain_text("The password is wrong.")
    await expect(again.get_by_role("button", name="Use a token")).to_be_visible()
    await again.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Your token")).to_contain_text("wt_")
    assert [one["name"] for one in served.world.tokens][-1] == "ci"


async def test_who_does_not_sign_in_again_changes_nothing(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.is_stale = True
    before = len(served.world.tokens)
    await signed_in(page, served, "/tokens")
    await page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog", name="New token")
    await dialog.get_by_label("Name").fill("ci")
    await page.get_by_role("button", name="Make token").click()
    await page.get_by_role("dialog", name="Sign in again").get_by_role("button", name="Cancel").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("more than ten minutes ago")
    assert len(served.world.tokens) == before


async def test_a_service_account_is_added_gets_another_token_and_is_removed(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/members")
    panel = page.get_by_role("region", name="Service accounts")
    await expect(panel.get_by_test_id("empty")).to_contain_text("windrow service-account add")
    await panel.get_by_role("button", name="New service account").click()
    await dialog.get_by_label("Name").fill("ci")
    await dialog.get_by_label("Renter").check()
    await dialog.get_by_role("button", name="Add it").click()
    await expect(dialog.get_by_label("token", exact=True)).to_have_text(SERVICE_TOKEN)
    await dialog.get_by_role("button", name="Done").click()
    row = panel.get_by_role("row", name="ci")
    await expect(row).to_contain_text("Renter, Viewer")
    await expect(row).to_contain_text("192.0.2.7")
    assert SERVICE_TOKEN not in await page.content()
    await page.get_by_role("button", name="New token: ci").click()
    await dialog.get_by_role("button", name="Make the token").click()
    await expect(dialog.get_by_label("token", exact=True)).to_have_text(SERVICE_TOKEN)
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Remove: ci").click()
    await dialog.get_by_label("Type ci to confirm").fill("ci")
    await dialog.get_by_role("button", name="Remove").click()
    await expect(panel.get_by_test_id("empty")).to_be_visible()


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.long)])
async def test_the_page_and_dialogs_break_no_rule_and_do_not_scroll_sideways(
    page: Page, pretend: Pretend, width: int
) -> None:
    try:
        axe = axe_source()
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
    served = pretend()
    served.world.devices[DEVICE_CODE] = "waiting"
    await page.set_viewport_size({"width": width, "height": 900})

    async def check(name: str) -> None:
        assert await violations(page, axe) == [], name
        assert await wider_than_window(page) is None, name

    await signed_in(page, served, f"/device?code={DEVICE_CODE}")
    await expect(page.get_by_label("Code")).to_have_value(DEVICE_CODE)
    await check("code")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("button", name="Approve")).to_be_visible()
    await check("device")
    served.world.is_stale = True
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("dialog", name="Sign in again")).to_be_visible()
    await check("sign in again")
    await page.goto(f"{served.url}/members")
    await page.get_by_role("button", name="New service account").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await check("service account")
