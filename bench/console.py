"""`console`: 10,000 live GPU rows in a real Chromium: first usable, filter, frames. Goals: 0.5 s and 0.15 s.

The built console, as the Master ships it, before a pretend fleet whose answers are encoded beforehand, so that the time
is the browser's and not a pretend server's. Limit in the same run: the same answer, fetched and put into a bare list of
the rows on the screen, without a library. First usable: from the start of the navigation of a browser that is signed in
and has the files, to the first row on the screen (seen by a mutation observer). Filter: from the last key, resting time
of the fingers included, to the table that shows only what matches. Frames: while rows change and nobody touches the
page, and while it is used: scrolled, sorted, filtered, turned to its hosts and back. None is to take 100 ms.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from typing import Any

from playwright.async_api import BrowserContext, Page, ViewportSize, async_playwright

from bench._report import last_line, percentile, scale, table
from tests.browser.chromium import NoBrowser, find_chromium
from tests.browser.pretend_fleet import CHANGED_PER_TICK
from tests.browser.pretend_master import Served, built_console
from tests.browser.pretend_world import make_world

CARDS_PER_HOST = 8
SIZE: ViewportSize = {"width": 1360, "height": 850}
ROWS = 10_000
ROUNDS = 7
WATCHED_S = 10.0
STAYED_MS = 2_000
"""On the page before it is opened again: a browser keeps the code that it compiled when the page has come to rest."""
FRAME_LATE_MS = 50.0
"""Three frames of a 60 Hz screen: from there on a person sees a jerk."""
FRAME_MOST_MS = 100.0
USED_S = 12.0
PAUSE_MS = 1_000
"""Between two things that a person does."""

USABLE = """() => { window.__usable = null;
  const shown = () => window.__usable === null && document.querySelector('[data-row="0"]');
  const look = () => { if (shown()) window.__usable = performance.now(); };
  new MutationObserver(look).observe(document, { childList: true, subtree: true }); }"""
FRAMES = """(ms) => new Promise((done) => { const gaps = []; let last = performance.now(); const end = last + ms;
  const frame = (now) => { gaps.push(now - last); last = now; now < end ? requestAnimationFrame(frame) : done(gaps); };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(frame); }); })"""
FILTERED = """(text) => new Promise((done) => {
  const box = document.querySelector('input[aria-label="Filter"]');
  const table = document.querySelector('[role="table"]');
  const began = performance.now();
  const before = table.getAttribute('aria-rowcount');
  new MutationObserver((_, seen) => {
    if (table.getAttribute('aria-rowcount') === before) return;
    seen.disconnect(); requestAnimationFrame(() => done(performance.now() - began));
  }).observe(table, { attributes: true });
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, text);
  box.dispatchEvent(new Event('input', { bubbles: true })); })"""
BARE = """async () => { const began = performance.now();
  const { items } = await (await fetch('/api/v1/gpus')).json();
  items.sort((a, b) => a.host_name < b.host_name ? -1 : 1);
  const list = document.createElement('div');
  for (const row of items.slice(0, 40)) {
    const line = document.createElement('div');
    line.textContent = [row.host_name, row.name, row.tier, row.link_state, row.slot_state].join(' ');
    list.append(line);
  }
  document.body.replaceChildren(list);
  await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - began; }"""


def encoded(app: Any, world: Any) -> Any:
    """The pretend Master with its two long lists encoded once."""
    rows = json.dumps({"items": list(world.gpu_rows.values()), "version": 1}).encode()
    bare = [host for host in world.hosts.values() if not host["gpus"]]
    hosts = json.dumps({"items": bare, "next_cursor": None}).encode()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        body = None
        if scope["type"] == "http" and scope["path"] == "/api/v1/gpus":
            body = rows
        elif scope["type"] == "http" and scope["path"] == "/api/v1/hosts":
            body = hosts
        if body is None:
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


async def first_usable_ms(page: Page, served: Served) -> float:
    """One navigation, files in the browser's cache, and compiled by it as far as it does that after a visit."""
    await page.wait_for_timeout(STAYED_MS)
    await page.goto("about:blank")
    await page.goto(f"{served.url}/fleet", wait_until="commit")
    await page.wait_for_function("() => window.__usable !== null", polling=20)
    return float(await page.evaluate("window.__usable"))


async def use(page: Page) -> None:
    """Scrolls, sorts and filters the table as a person does, within USED_S."""
    await page.mouse.move(700, 500)
    for _ in range(20):
        await page.mouse.wheel(0, 2_400)
        await page.wait_for_timeout(PAUSE_MS / 10)
    await page.get_by_role("columnheader", name="Use").get_by_role("button").click()
    await page.wait_for_timeout(PAUSE_MS)
    await page.keyboard.press("/")
    await page.keyboard.type("util>20", delay=80)
    await page.wait_for_timeout(PAUSE_MS)
    await page.get_by_role("button", name="Clear filter text").click()
    await page.wait_for_timeout(PAUSE_MS)
    for view in ("Hosts", "GPUs"):
        await page.get_by_role("radiogroup", name="Rows").get_by_text(view, exact=True).click()
        await page.wait_for_timeout(PAUSE_MS)


async def measure(browser: BrowserContext, served: Served, rounds: int, watched_s: float) -> dict[str, Any]:
    """All figures, in ms."""
    page = await browser.new_page()
    await page.add_init_script(f"({USABLE})()")
    await page.goto(served.sign_in_url)
    await page.wait_for_function("() => window.__usable !== null", timeout=60_000)
    usable = [await first_usable_ms(page, served) for _ in range(rounds)]
    await page.wait_for_timeout(1500)
    filtered = []
    for number in range(rounds):
        filtered.append(float(await page.evaluate(FILTERED, f"sim-{number + 1:03d}")))
        await page.evaluate(FILTERED, "")
    gaps = [float(gap) for gap in await page.evaluate(FRAMES, watched_s * 1000)]
    used, _ = await asyncio.gather(page.evaluate(FRAMES, USED_S * 1000), use(page))
    bare_page = await browser.new_page()
    blank = "<!doctype html><body></body>"
    await bare_page.route("**/blank", lambda route: route.fulfill(body=blank, content_type="text/html"))
    await bare_page.goto(f"{served.url}/blank")
    bare = [float(await bare_page.evaluate(BARE)) for _ in range(rounds)]
    return {"usable": usable, "filtered": filtered, "gaps": gaps, "used": [float(gap) for gap in used], "bare": bare}


def frames(name: str, gaps: list[float]) -> dict[str, Any]:
    """Figures of the times between frames, in ms."""
    return {
        f"{name}frames": len(gaps),
        f"{name}frames_late": sum(gap > FRAME_LATE_MS for gap in gaps),
        f"{name}frames_over_100_ms": sum(gap > FRAME_MOST_MS for gap in gaps),
        f"{name}frame_ms_p99": round(percentile(gaps, 0.99), 1),
        f"{name}frame_ms_max": round(max(gaps), 1),
    }


async def run() -> None:
    """Start the fleet and the browser, measure, print."""
    rows = max(800, int(ROWS * min(1.0, scale())))
    rounds, watched_s = max(3, int(ROUNDS * scale())), max(2.0, WATCHED_S * scale())
    world = make_world(rows // CARDS_PER_HOST)
    served = Served(world, lambda app: encoded(app, world))
    served.start()
    found = find_chromium()
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
        with tempfile.TemporaryDirectory(prefix="windrow-console-") as profile:
            browser = await playwright.chromium.launch_persistent_context(
                profile,
                executable_path=found.path,
                args=["--no-sandbox"],
                env=environment,
                locale="en-GB",
                viewport=SIZE,
            )
            version = browser.browser.version if browser.browser else "unknown"
            got = await measure(browser, served, rounds, watched_s)
            await browser.close()
    served.stop()
    usable, bare = statistics.median(got["usable"]), statistics.median(got["bare"])
    detail = {
        "rows": rows,
        "changed_per_s": CHANGED_PER_TICK,
        "first_usable_s": round(usable / 1000, 4),
        "filter_s": round(statistics.median(got["filtered"]) / 1000, 4),
        **frames("", got["gaps"]),
        **frames("used_", got["used"]),
        "bare_list_s": round(bare / 1000, 4),
        "chromium": version,
    }
    table(list(detail.items()))
    last_line("console", usable / 1000, "s", "the same rows in a bare list", usable / bare, detail)


def main() -> None:
    """Measure, or say what is missing."""
    if built_console() is None:
        sys.exit("The console is not built: make setup")
    try:
        asyncio.run(run())
    except NoBrowser as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
