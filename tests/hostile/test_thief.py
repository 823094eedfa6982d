"""A thieving page in a real Chromium beside the signed-in console of a real Master: on another port or name.

What it tries is in thief.js. Nothing of the console's session reaches it, and no call of the API by it succeeds.
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.chromium import NoBrowser, find_chromium
from tests.browser.pretend_master import built_console
from tests.browser.running import started
from tests.hostile import IS_LONG
from tests.hostile.thieving_page import PAGE, TOSSED, ThievingPage
from tests.services import all_required
from tests.support.ports import own_port, own_ports
from tests.support.rental import Renter
from tests.support.stack import WINDROW, stack
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
F6 = pytest.mark.row("F6")

RULES = "MAP market.test 127.0.0.1, MAP *.market.test 127.0.0.1, MAP evil.test 127.0.0.1"
GUARDS = "LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights"
"""Of Chromium itself, for addresses of this machine: other browsers lack them, so it is the Master that must refuse."""
SERVICE = "p80-0192f7c4000000000000000000000001.svc.market.test"
CANARY = "ws_canary-of-a-server-that-uses-cookies"


@dataclass(frozen=True, slots=True)
class Master:
    """A Master process by its ports, and its first account's token."""

    http: int
    https: int
    token: str

    def ask(self, path: str) -> Any:
        """Returns the API's answer to a program that has the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx2.get(f"http://127.0.0.1:{self.http}/api/v1{path}", headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def state(self) -> dict[str, Any]:
        """All that the thief's calls would change."""
        found = {name: [one["id"] for one in self.ask(f"/{name}")["items"]] for name in ("tokens", "join-tokens")}
        return found | {"sessions": {one["id"] for one in self.ask("/sessions")["items"]}}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """A Master that serves the built console, also by HTTPS under the market's own name."""
    if built_console() is None:
        (pytest.fail if all_required() else pytest.skip)("the console is not built: make setup")
    folder = tmp_path_factory.mktemp("thief")
    data, ports = folder / "data", own_ports()
    words = ["--data-dir", str(data), "--public", "market.test", "--http-port", str(ports[0])]
    words += ["--https-port", str(ports[3]), "--trunk-port", str(ports[6])]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "windrow_master", *words], stdout=log, stderr=log)
    try:

        def answers() -> Master | None:
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            try:
                found = Master(ports[0], ports[3], json.loads((data / "cli.json").read_text())["token"])
                found.ask("/me")
            except (OSError, ValueError, httpx2.HTTPError):
                return None
            return found

        found = poll(answers, what="the Master answers")
        assert found is not None
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium that finds the market's names on this machine."""
    try:
        chromium = find_chromium()
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
    async with started(chromium, f"--host-resolver-rules={RULES}", f"--disable-features={GUARDS}") as running:
        yield running


async def _signed_in(context: BrowserContext, url: str, token: str) -> tuple[Page, str]:
    """The console's page, and its session's secret."""
    context.set_default_timeout(PATIENCE_S * 1000)
    console = await context.new_page()
    await console.goto(f"{url}/fleet#token={token}")
    await console.get_by_role("navigation", name="Screens").wait_for()
    secret = await console.evaluate("sessionStorage.getItem('windrow.session')")
    assert secret.startswith("ws_")
    return console, secret


async def _steal(context: BrowserContext, page: str, url: str) -> dict[str, str]:
    thief = await context.new_page()
    await thief.goto(page)
    loot: dict[str, str] = await thief.evaluate("url => window.steal(url)", url)
    await thief.close()
    return loot


def _nothing_of(loot: dict[str, str], thief: ThievingPage, url: str, *secrets: str) -> None:
    """Neither what its tries got nor what its server was sent holds a secret or an answer of the API at this URL."""
    assert len(loot) > 80, "control: all was tried"
    for name, got in loot.items():
        assert not [secret for secret in secrets if secret in got], name
        assert '"account"' not in got and '"items"' not in got and "open " not in got, f"{name}: {got[:300]}"
    assert thief.loot.holds('"EventSource"'), "control: what it got was sent home"
    assert not [secret for secret in secrets if thief.loot.holds(secret)]
    assert not thief.loot.holds("Authorization: ") and not thief.loot.holds("authorization: ")
    assert not thief.loot.holds(f"Referer: {url}")


PLACES = {
    "another port of the same address": ("http://127.0.0.1:{http}", "http://127.0.0.1:{port}", "plain"),
    "another port of localhost": ("http://localhost:{http}", "http://localhost:{port}", "plain"),
    "a forwarded port's own name": ("http://localhost:{http}", "http://lab.localhost:{port}", "plain"),
    "a service by the market's name": ("https://market.test:{https}", f"https://{SERVICE}:{{port}}", "tls"),
    "another port of the market's name": ("https://market.test:{https}", "https://market.test:{port}", "tls"),
    "plain HTTP beside HTTPS": ("https://127.0.0.1:{https}", "http://127.0.0.1:{port}", "plain"),
}
QUICK = ("another port of the same address", "a forwarded port's own name", "a service by the market's name")
"""A port, a name of this machine and one of the market's, for `make test`: each takes 5 s of a processor."""


@F6
@pytest.mark.slow
@pytest.mark.proves("a thieving page on another port or name of this machine gets nothing of the console's session")
async def test_a_page_of_another_origin_gets_nothing_and_changes_nothing(master: Master, browser: Browser) -> None:
    async def played(name: str, console_url: str, thief_url: str, kind: str) -> None:
        port = own_port()
        ports = {"http": master.http, "https": master.https, "port": port}
        url, page = console_url.format(**ports), thief_url.format(**ports)
        domain = ("windrow_session=tossed; Path=/; Domain=market.test", "windrow_session=x; Secure; Domain=localhost")
        names = ("market.test", "*.svc.market.test") if kind == "tls" else ()
        context = await browser.new_context(locale="en-GB", ignore_https_errors=True)
        with ThievingPage(port, (*TOSSED, *domain), names) as thief:
            console, secret = await _signed_in(context, url, master.token)
            loot = await _steal(context, page, url)
            _nothing_of(loot, thief, url, secret, master.token)
            for left in context.pages:  # consoles that the thief opened, and could not close: a browser has six streams
                if left is not console:
                    await left.close()
            await console.reload()
            await console.get_by_role("navigation", name="Screens").wait_for()
            assert await console.evaluate("sessionStorage.getItem('windrow.session')") == secret, name
        await context.close()

    async def in_turn(name: str, places: tuple[str, str, str]) -> None:
        async with two_at_once:  # each loads the console twice
            await played(name, *places)

    two_at_once = asyncio.Semaphore(2)
    before = await asyncio.to_thread(master.state)
    tried = {name: PLACES[name] for name in (PLACES if IS_LONG else QUICK)}
    await asyncio.gather(*(in_turn(name, places) for name, places in tried.items()))
    after = await asyncio.to_thread(master.state)

    assert {name: after[name] for name in ("tokens", "join-tokens")} == {
        name: before[name] for name in ("tokens", "join-tokens")
    }
    assert len(after["sessions"] - before["sessions"]) == len(tried), "none ended, none began but the consoles'"


@F6
async def test_the_same_page_does_get_a_session_that_is_a_cookie(browser: Browser) -> None:
    """Control: what the thief tries works where a server keeps its session in a cookie, however that is marked."""
    server, thief = own_port(), own_port()
    cookie = f"windrow_session={CANARY}; Path=/; HttpOnly; SameSite=Strict"
    context = await browser.new_context()
    with ThievingPage(server, (cookie,)) as site, ThievingPage(thief, ()) as page:
        visitor = await context.new_page()
        await visitor.goto(f"http://127.0.0.1:{server}/")
        await _steal(context, f"http://127.0.0.1:{thief}/", f"http://127.0.0.1:{server}")
        assert page.loot.holds(CANARY), "it goes to every port"
        assert any(one.startswith("POST /api/v1/tokens") and CANARY in one for one in site.loot.requests)
    await context.close()


@F6
async def test_a_page_whose_name_is_rebound_to_the_master_reads_nothing(master: Master, browser: Browser) -> None:
    """Its first load came from its own server; then its name leads here, and the Master is of its own origin."""
    context = await browser.new_context()
    _, secret = await _signed_in(context, f"http://127.0.0.1:{master.http}", master.token)
    origin = f"http://evil.test:{master.http}"
    page = await context.new_page()
    await page.route(f"{origin}/", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    await page.goto(f"{origin}/")
    await page.unroute(f"{origin}/")
    for path in ("/", "/fleet", "/api/v1/me", "/api/v1/ca", "/healthz", "/metrics", "/install.sh"):
        with_secret = {"Authorization": f"Bearer {secret}"}
        for headers in ({}, with_secret):
            asked = "([path, headers]) => fetch(path, {headers}).then(async (a) => [a.status, await a.text()])"
            status, text = await page.evaluate(asked, [path, headers])
            assert status == 421 and "does not answer under the name" in text, path
    assert await page.evaluate("sessionStorage.length") == 0
    await context.close()


@F6
async def test_a_page_that_the_console_opens_has_no_way_back_to_it(master: Master, browser: Browser) -> None:
    context = await browser.new_context()
    port = own_port()
    with ThievingPage(port) as thief:
        console, secret = await _signed_in(context, f"http://127.0.0.1:{master.http}", master.token)
        async with context.expect_page() as opened:
            await console.evaluate(f"window.open('http://lab.localhost:{port}/'); null")
        page = await opened.value
        await page.wait_for_load_state()
        assert await page.evaluate("window.opener") is None
        assert await page.evaluate("document.referrer") == ""
        assert not thief.loot.holds(f"Referer: http://127.0.0.1:{master.http}") and not thief.loot.holds(secret)
    await context.close()


FORWARDED = """
import base64, http.server, zlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.requestline, self.headers, flush=True)
        self.send_response(200); self.send_header("Content-Type", "text/html"); self.end_headers()
        self.wfile.write(zlib.decompress(base64.b64decode({packed!r})))
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(self.requestline, self.headers, body, flush=True)
        self.send_response(200); self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""


@contextlib.contextmanager
def _forwarding(found: dict[str, Any], port: int) -> Iterator["subprocess.Popen[str]"]:
    own = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
    command = [WINDROW, "cluster", "forward", "lab", str(port), "--json"]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)


@pytest.mark.skipif(not IS_LONG, reason="a whole market: make hostile")
async def test_a_hosts_page_through_the_real_forward_gets_nothing(browser: Browser) -> None:
    with stack() as running, contextlib.ExitStack() as cleanup:
        renter = Renter(running)
        await asyncio.to_thread(renter.online)
        remote = own_port()
        program = FORWARDED.format(packed=base64.b64encode(zlib.compress(PAGE.encode())).decode(), port=remote)
        made = await asyncio.to_thread(renter.create, "python3", "-u", "-c", program, name="lab")
        found = running.cli
        forward = cleanup.enter_context(_forwarding(found, remote))
        assert forward.stdout is not None
        url = json.loads(await asyncio.to_thread(forward.stdout.readline))["url"]
        assert url.startswith("http://lab.localhost:")
        context = await browser.new_context()
        _, secret = await _signed_in(context, found["url"], found["token"])
        loot = await _steal(context, url, found["url"])
        log = await asyncio.to_thread(renter.windrow, "cluster", "logs", made["id"])
        for text in (json.dumps(loot), log.stdout):
            assert secret not in text and found["token"] not in text and '"account"' not in text
        assert "POST /loot" in log.stdout, "control: the page sent home what it got"
        await context.close()
