"""People: accounts are searched, added with a link that shows once, credited, suspended and resumed; links sign in."""

from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.chromium import NoBrowser
from tests.browser.pretend_master import Served
from tests.browser.pretend_people import LINK, person
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window
from tests.services import all_required
from tests.support.stack import Stack

Pretend = Callable[..., Served]


async def test_a_person_is_added_and_the_link_shows_once(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/people")
    await expect(page.get_by_test_id("empty")).to_contain_text("There is no other account")
    await page.get_by_role("button", name="Add a person").click()
    add = dialog.get_by_role("button", name="Add and show the link")
    await expect(add).to_be_disabled()
    await dialog.get_by_label("Name").fill("ada")
    await dialog.get_by_label("Credit").fill("much")
    await expect(dialog.get_by_text("An amount such as 0.50")).to_be_visible()
    await dialog.get_by_label("Credit").fill("50")
    await add.click()
    await expect(dialog.get_by_label("sign-in link", exact=True)).to_have_text(
        f"https://market.example:8443/#sign-in={LINK}"
    )
    await expect(dialog.get_by_role("button", name="Copy sign-in link")).to_be_visible()
    await dialog.get_by_role("button", name="Done").click()
    row = page.get_by_role("region", name="Accounts").get_by_role("row", name="ada")
    await expect(row).to_contain_text("50.00 CRD")
    assert LINK not in await page.content()

    await page.get_by_role("button", name="Add a person").click()
    await dialog.get_by_label("Name").fill("ada")
    await add.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("There is an account ada already.")


async def test_people_are_credited_suspended_with_their_name_typed_and_resumed(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    served.world.people.append(person("account_7", "bob", ["renter"], "10.00"))
    await signed_in(page, served, "/people")
    row = page.get_by_role("row", name="bob")
    await page.get_by_role("button", name="Add credit: bob").click()
    await dialog.get_by_label("Amount").fill("5")
    await dialog.get_by_role("button", name="Add credit").click()
    await expect(row).to_contain_text("15.00 CRD")
    await page.get_by_role("button", name="Suspend: bob").click()
    act = dialog.get_by_role("button", name="Suspend", exact=True)
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Type bob to confirm").fill("bob")
    await act.click()
    await expect(row).to_contain_text("Suspended")
    await page.get_by_role("button", name="Resume: bob").click()
    await dialog.get_by_role("button", name="Resume", exact=True).click()
    await expect(row).to_contain_text("Active")
    await expect(page.get_by_role("button", name="Suspend: first account")).to_have_count(0)

    await page.get_by_label("Filter", exact=True).fill("bob")
    await expect(page.get_by_role("region", name="Accounts").get_by_test_id("shown")).to_have_text("1 of 2 shown")
    await page.get_by_label("Filter", exact=True).fill("zebra")
    await expect(page.get_by_test_id("empty")).to_contain_text("No person matches")


async def test_a_list_that_cannot_be_read_says_why(page: Page, pretend: Pretend) -> None:
    served = pretend()
    told = {"status": 500, "code": "internal", "title": "Our fault", "detail": "The accounts could not be read."}
    served.world.problems["/accounts"] = told
    await signed_in(page, served, "/people")
    await expect(page.get_by_role("alert")).to_contain_text("The accounts could not be read.")
    served.world.problems.clear()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("region", name="Accounts").get_by_role("row", name="first account")).to_be_visible()


async def test_a_sign_in_link_signs_in_once_and_leaves_the_address(page: Page, pretend: Pretend) -> None:
    served = pretend()
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    await page.goto(f"{served.url}/#sign-in={LINK}")
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    assert "sign-in" not in page.url and not [url for url in asked if LINK in url]
    assert LINK not in str(await page.evaluate("[JSON.stringify({...sessionStorage}), JSON.stringify(history.state)]"))

    assert page.context.browser is not None
    context = await page.context.browser.new_context(locale="en-GB")
    late = await context.new_page()
    await late.goto(f"{served.url}/#sign-in={LINK}")
    await expect(late.get_by_role("alert")).to_contain_text("This sign-in link was used")
    await context.close()


async def test_a_sign_in_link_is_not_used_up_before_somebody_who_is_signed_in_says_so(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served)
    second = await page.context.new_page()
    await second.goto(f"{served.url}/#sign-in={LINK}")
    await expect(second.get_by_text("This is a sign-in link of another account.")).to_be_visible()
    await second.get_by_role("button", name="Stay signed in as first account").click()
    await expect(second.get_by_role("button", name="first account")).to_be_visible()
    assert served.world.used_links == []
    await second.goto(f"{served.url}/offers")
    await second.goto(f"{served.url}/#sign-in={LINK}")
    await second.get_by_role("button", name="Use the link").click()
    await expect(second.get_by_role("button", name="another account")).to_be_visible()


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.long)])
async def test_the_page_and_its_dialogs_break_no_rule_and_do_not_scroll_sideways(
    page: Page, pretend: Pretend, width: int
) -> None:
    try:
        axe = axe_source()
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
    served = pretend()
    served.world.people.append(person("account_7", "bob", ["renter"], "10.00"))
    await page.set_viewport_size({"width": width, "height": 900})
    await signed_in(page, served, "/people")
    await expect(page.get_by_role("region", name="Accounts").get_by_role("row", name="bob")).to_be_visible()
    assert await violations(page, axe) == []
    assert await wider_than_window(page) is None
    for name in ("Add a person", "Add credit: bob", "New link: bob", "Suspend: bob"):
        await page.get_by_role("button", name=name).click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations(page, axe) == [], name
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.proves("console: a person is added by mouse, opens the link and has an account of their own")
async def test_a_second_person_is_added_and_signs_in_on_the_shipped_stack(page: Page, market: Stack) -> None:
    dialog = page.get_by_role("dialog")
    await page.goto(f"{market.cli['url']}/people#token={market.cli['token']}")
    await page.get_by_role("button", name="Add a person").click()
    await dialog.get_by_label("Name").fill("ada")
    await dialog.get_by_label("Credit").fill("50")
    await dialog.get_by_role("button", name="Add and show the link").click()
    link = await dialog.get_by_label("sign-in link", exact=True).inner_text()
    assert page.context.browser is not None
    context = await page.context.browser.new_context(locale="en-GB", ignore_https_errors=True)
    hers = await context.new_page()
    await hers.goto(link)
    await expect(hers.get_by_role("button", name="ada")).to_be_visible()
    await expect(hers.get_by_test_id("balance")).to_have_text("50.00")
    await expect(hers.get_by_role("link", name="People")).to_have_count(0)
    await hers.get_by_role("link", name="Tokens").click()
    await expect(hers.get_by_role("row", name="sign-in link")).to_be_visible()
    await expect(hers.get_by_role("alert")).to_have_count(0)
    await context.close()
