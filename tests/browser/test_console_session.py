"""The console's session: kept by the tab, sent in a header, handed to further tabs, and never changed in silence."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, Request, expect

from tests.browser.pretend_master import OTHER_TOKEN, SECRET, Served
from tests.browser.running import is_dropped
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]


async def test_every_request_carries_the_secret_in_a_header_and_nothing_is_a_cookie(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one))
    await signed_in(page, served)
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    host = next(iter(served.world.hosts))
    await page.goto(f"{served.url}/hosts/{host}")
    await expect(page.get_by_test_id("cpu")).to_be_visible()

    is_open = re.compile("/session$|/sign-in/")  # asked before anybody is signed in
    calls = [one for one in asked if "/api/v1/" in one.url and not is_open.search(one.url)]
    assert any(one.url.endswith("/stream") or "/stream?" in one.url for one in calls), "control: a stream is among them"
    assert {one.headers.get("authorization") for one in calls} == {f"Bearer {SECRET}"}
    assert [one.url for one in asked if SECRET in one.url] == []
    assert await page.context.cookies() == []
    places = ("JSON.stringify({...sessionStorage})", "JSON.stringify({...localStorage})", "document.cookie")
    stored = [await page.evaluate(place) for place in places]
    assert [SECRET in text for text in stored] == [True, False, False]


async def test_a_reload_and_a_second_tab_stay_signed_in_and_another_browser_does_not(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served)
    await page.reload()
    await expect(page.get_by_text("workbench")).to_be_visible()

    second = await page.context.new_page()
    await second.goto(f"{served.url}/offers")
    await expect(second.get_by_role("heading", name="Pricing", level=1)).to_be_visible()

    assert page.context.browser is not None
    context = await page.context.browser.new_context(locale="en-GB")
    stranger = await context.new_page()
    await stranger.goto(f"{served.url}/offers")
    await expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()
    await context.close()

    served.world.is_signed_out = True  # its project was deleted, its user disabled, its time is over
    await second.get_by_role("link", name="Fleet", exact=True).click()
    await expect(second.get_by_role("status").filter(has_text="not valid. Sign in again.")).to_be_visible()


async def test_a_filled_form_outlives_its_session_for_its_own_person(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    await page.goto(f"{served.url}/new?what=job")
    await page.get_by_role("textbox", name="Command").fill("python train.py")

    served.world.is_signed_out = True
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")  # what is shown is asked for again
    await expect(page.get_by_role("status").filter(has_text="What you filled in is kept.")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Command")).to_be_hidden()

    served.world.is_signed_out = False
    await page.get_by_role("button", name="Use a token instead").click()
    await page.get_by_role("textbox", name="Token").fill(served.sign_in_url.rpartition("=")[2])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("textbox", name="Command")).to_have_value("python train.py")


async def test_signing_out_in_one_tab_signs_nobody_in_again(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    second = await page.context.new_page()
    await second.goto(f"{served.url}/fleet")
    await expect(second.get_by_text("workbench")).to_be_visible()

    await second.get_by_role("button", name="first account").click()
    await second.get_by_role("menuitem", name="Sign out").click()

    await expect(second.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await second.evaluate("sessionStorage.length") == 0


async def test_a_link_of_another_account_asks_before_it_changes_the_account(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    link = f"{served.url}/fleet#token={OTHER_TOKEN}"

    second = await page.context.new_page()
    await second.goto(link)
    await expect(second.get_by_role("heading", name="Change the account?")).to_be_visible()
    await expect(second.get_by_text("This link signs in as another account.")).to_be_visible()
    assert "token" not in second.url
    await second.get_by_role("button", name="Stay signed in as first account").click()
    await expect(second.get_by_role("button", name="first account")).to_be_visible()

    await second.goto(served.url)
    await second.goto(link)
    await second.get_by_role("button", name="Sign in as another account").click()
    await expect(second.get_by_role("button", name="another account")).to_be_visible()
    await expect(page.get_by_role("button", name="first account")).to_be_visible()


async def test_the_same_accounts_link_asks_nothing(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    second = await page.context.new_page()
    await second.goto(served.sign_in_url)
    await expect(second.get_by_text("workbench")).to_be_visible()


@pytest.mark.parametrize("file", ["FleetPage-*.js", "state-*.js"])
async def test_a_page_that_did_not_arrive_costs_nobody_the_sign_in(page: Page, pretend: Pretend, file: str) -> None:
    await page.route(f"**/assets/{file}", lambda route: route.abort("connectionaborted"), times=1)
    await signed_in(page, pretend())


async def test_a_sign_in_that_did_not_arrive_is_sent_again(page: Page, pretend: Pretend) -> None:
    await page.route("**/api/v1/session", lambda route: route.abort("connectionaborted"), times=2)
    await signed_in(page, pretend())


@pytest.mark.parametrize("file", ["index-*.js", "main-*.js", "libraries-*.js", "main-*.css"])
async def test_a_file_that_did_not_arrive_is_fetched_again(page: Page, pretend: Pretend, file: str) -> None:
    thrown: list[str] = []
    page.on("pageerror", lambda error: None if is_dropped(error) else thrown.append(str(error)))
    await page.route(f"**/assets/{file}", lambda route: route.abort("connectionaborted"), times=2)
    await signed_in(page, pretend())
    assert thrown == []
    assert await page.evaluate("sessionStorage.getItem('windrow.loads')") is None


async def test_a_console_that_never_arrives_says_so(page: Page, pretend: Pretend) -> None:
    await page.route("**/assets/libraries-*.js", lambda route: route.abort("connectionaborted"))
    await page.goto(pretend().url)
    await expect(page.get_by_text("The console did not load.")).to_be_visible()
