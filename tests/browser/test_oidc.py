"""Signing in by a real OpenID Connect provider in a real Chromium: first user, groups, rotated keys, a provider that is
killed and comes back; and the page on which operators set providers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from socket import socket

import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import NoBrowser
from tests.browser.pretend_master import Served
from tests.browser.pretend_members import provider as pretend_provider
from tests.browser.provider_process import CLIENT, SECRET, ProviderProcess, provider_process
from tests.browser.test_console_states import signed_in
from tests.services import all_required
from tests.support.stack import Stack
from windrow.errors import ApiProblem

Pretend = Callable[..., Served]


async def test_an_operator_adds_tests_and_removes_a_provider(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/identity-providers")
    await expect(page.get_by_test_id("empty")).to_contain_text("windrow identity-provider add")
    await page.get_by_role("button", name="Add a provider").click()
    add = dialog.get_by_role("button", name="Add", exact=True)
    await expect(add).to_be_disabled()
    await dialog.get_by_label("Name", exact=True).fill("acme")
    await dialog.get_by_label("Issuer").fill("https://acme.example")
    await dialog.get_by_label("Client id").fill("windrow")
    await dialog.get_by_label("Groups", exact=True).fill("ml=lab")
    await expect(dialog.get_by_text("GROUP=PROJECT:ROLE,ROLE")).to_be_visible()
    await dialog.get_by_label("Groups", exact=True).fill("ml=lab:renter")
    await dialog.get_by_label("Organisation").fill("home")
    await add.click()
    await expect(dialog.get_by_label("redirect URI", exact=True)).to_have_text("https://market.example:8443/oidc/acme")
    await dialog.get_by_role("button", name="Done").click()

    await page.get_by_role("button", name="Test: acme").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("did not answer within 5 s")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Remove: acme").click()
    await dialog.get_by_label("Type acme to confirm").fill("acme")
    await dialog.get_by_role("button", name="Remove", exact=True).click()
    await expect(page.get_by_test_id("empty")).to_be_visible()


async def test_an_answer_that_this_tab_did_not_ask_for_signs_nobody_in(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.providers.append(pretend_provider("acme"))
    await page.goto(f"{served.url}/oidc/acme?code=of-eve&state=of-eve&iss=https%3A%2F%2Facme.example")
    await expect(page.get_by_role("alert")).to_contain_text("was begun in another tab or browser")
    assert "of-eve" not in page.url
    await page.get_by_role("button", name="Back").click()
    await expect(page.get_by_role("button", name="Continue with acme")).to_be_visible()


@pytest.fixture
def provider(market: Stack, tmp_path: Path) -> Iterator[ProviderProcess]:
    """A provider that knows this market."""
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        with provider_process(tmp_path, port, f"{market.cli['url']}/oidc/acme") as running:
            yield running
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))


@asynccontextmanager
async def _somebody(page: Page) -> AsyncIterator[Page]:
    """A page in a browser of its own."""
    assert page.context.browser is not None
    context = await page.context.browser.new_context(locale="en-GB")
    yield await context.new_page()
    await context.close()


async def _by_acme(page: Page, url: str, login: str) -> None:
    """Sign in by the provider, on its own pages."""
    await page.goto(url)
    await page.get_by_role("button", name="Continue with acme").click()
    await _at_acme(page, login)


async def _at_acme(page: Page, login: str) -> None:
    await page.locator("input[name=login]").fill(login)
    await page.locator("input[name=password]").fill("any")
    await page.get_by_role("button", name="Sign-in").click()
    await page.get_by_role("button", name="Continue").click()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.proves("OpenID Connect with a real provider: first user, groups, rotated keys, killed and back, linking")
async def test_people_sign_in_by_a_real_provider(page: Page, market: Stack, provider: ProviderProcess) -> None:
    url, dialog = market.cli["url"], page.get_by_role("dialog")
    await page.goto(f"{url}/identity-providers#token={market.cli['token']}")
    await page.get_by_role("button", name="Add a provider").click()
    await dialog.get_by_label("Name", exact=True).fill("acme")
    await dialog.get_by_label("Issuer").fill(provider.issuer)
    await dialog.get_by_label("Client id").fill(CLIENT)
    await dialog.get_by_label("Client secret").fill(SECRET)
    await dialog.get_by_label("Organisation").fill("home")
    await dialog.get_by_label("Make a user at the first sign-in").check()
    await dialog.get_by_label("Groups", exact=True).fill("ml=default:renter")
    await dialog.get_by_label("It may lie on this machine").check()
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_label("redirect URI", exact=True)).to_contain_text("/oidc/acme")
    await dialog.get_by_role("button", name="Done").click()
    with market.client() as api:
        try:
            asked = api.get("/identity-providers")["items"][0]
            body = {name: asked[name] for name in ("issuer", "client_id", "organisation", "creates_users", "private")}
            groups = [{"group": "ml", "projects": [{"project": "default", "roles": ["renter"]}]}]
            scopes = ["openid", "profile", "email", "groups"]
            api.request("PUT", "/identity-providers/acme", body={**body, "groups": groups, "scopes": scopes})
            await page.get_by_role("button", name="Test: acme").click()
            await expect(dialog.get_by_text(f"{provider.issuer}/token")).to_be_visible()
            await page.keyboard.press("Escape")
            await _story(page, market, provider)
        finally:
            api.request("DELETE", "/identity-providers/acme")


async def _story(page: Page, market: Stack, provider: ProviderProcess) -> None:
    url = market.cli["url"]
    async with _somebody(page) as ada, _somebody(page) as bob:
        await _by_acme(ada, url, "ada")
        await expect(ada.get_by_role("alert")).to_contain_text("have no role in any project")

        provider.groups(ada=["ml"], bob=["ml"])
        await ada.get_by_role("button", name="Back").click()
        await ada.get_by_role("button", name="Continue with acme").click()  # its session at the provider goes on
        await expect(ada.get_by_role("button", name="ada of acme")).to_be_visible()
        await expect(ada.get_by_role("link", name="New machine").first).to_be_visible()
        await expect(ada.get_by_role("link", name="People")).to_have_count(0)
        assert "code=" not in ada.url

        provider.kill()
        assert "does not answer" in await asyncio.to_thread(_wrong_with_acme, market)
        await ada.reload()
        await expect(ada.get_by_role("button", name="ada of acme")).to_be_visible()
        await bob.goto(url)
        await bob.get_by_role("button", name="Continue with acme").click()
        await expect(bob.get_by_role("alert")).to_contain_text("The identity provider acme cannot be used now")
        await page.goto(f"{url}/health")
        await expect(page.get_by_text("Identity provider does not answer").first).to_be_visible()

        provider.start()  # with another key
        await _by_acme(bob, url, "bob")
        await expect(bob.get_by_role("button", name="bob of acme")).to_be_visible()

    await page.goto(f"{url}/settings")
    await page.get_by_role("button", name="Link an identity").click()
    await page.get_by_role("dialog").get_by_role("button", name="Go to the provider").click()
    await _at_acme(page, "boss")
    await expect(page.get_by_role("row", name="boss@acme.example")).to_be_visible()
    assert page.url == f"{url}/settings"
    async with _somebody(page) as elsewhere:
        await _by_acme(elsewhere, url, "boss")
        await expect(elsewhere.get_by_role("link", name="People")).to_be_visible()


def _wrong_with_acme(market: Stack) -> str:
    """What a test by an operator finds wrong."""
    with market.client() as api, pytest.raises(ApiProblem) as found:
        api.request("POST", "/identity-providers/acme/test")
    assert found.value.status == 503
    return found.value.detail
