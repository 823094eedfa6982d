"""A service of one's own, opened from the console in a real browser through an Access."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS
from tests.support.ports import own_port
from tests.support.rental import Renter
from tests.support.stack import Stack, wait_for

PROGRAM = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>mine</title><p id=out></p><script>" \\
               b"fetch('/a').then(a => a.text()).then(t => out.textContent = isSecureContext + ' ' + t.length)</script>"
        self.send_response(200); self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
print("serving", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""


def _served(renter: Renter) -> str:
    port = own_port()
    program = PROGRAM.replace("PORT", str(port))
    made = renter.create("python3", "-u", "-c", program, kind="service", ports=[port], name="opened")
    wait_for(lambda: b"serving" in renter.log(made["id"]))
    return str(made["id"])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.proves("console: a service is opened in a browser over HTTPS by the link on its page")
async def test_the_link_on_a_clusters_page_opens_the_service_over_https(browser: Browser, market: Stack) -> None:
    renter = Renter(market)
    cluster_id = await asyncio.to_thread(_served, renter)
    # The market's authority is not this browser's; that it holds is tested with a client that trusts it.
    context = await browser.new_context(locale="en-GB", ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    url = renter.stack.cli["url"]
    await page.goto(f"{url}/fleet#token={renter.stack.cli['token']}")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Online")
    await page.goto(f"{url}/clusters/{cluster_id}")
    shown = page.get_by_test_id("addresses")
    await expect(shown).to_contain_text("Whoever knows an address may call it")
    await expect(shown.get_by_role("button", name=re.compile("Copy address of port"))).to_be_visible()
    async with page.expect_popup() as opened:
        await shown.get_by_role("link").click()
    service = await opened.value
    await expect(service).to_have_title("mine")
    await expect(service.locator("#out")).to_have_text(re.compile(r"^true \d+$"))
    assert re.match(r"https://p\d+-[0-9a-f]{32}\.svc\.localhost:\d+/", service.url)
    await context.close()
    await asyncio.to_thread(renter.delete, cluster_id)
