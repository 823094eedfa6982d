"""`fresh`: from the reading of a card to the pixel of the console that is watched; from a fault to its row.

The whole shipped chain: a reading changes in the tests' fake driver, the agent reads it through nvidia-ml-py, then
Access, Master, the stream of the host's page, and a real Chromium, whose own clock stamps the frame after the text
changed. The driver stamps when it was asked first after the change; all clocks are this machine's wall clock. Goals:
from that first asking to the pixel p99 at most 1.5 s, from a fault to its row on the host's page at most 2 s. Between a
change and the first asking lies up to one sampling period, which nobody who looks once a second can save: it is told
beside.

Peer: a page that asks a bare server for the same reading each second, as a dashboard does that polls; the server reads
the card at each question, so that nothing but the period and the browser is in it.
"""

import asyncio
import http.server
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from bench._cards import cards, why_none
from bench._report import last_line, median, percentile, scale, table
from tests.browser.chromium import NoBrowser, find_chromium
from tests.browser.pretend_master import built_console
from tests.fake_nvml.build import FakeNvml
from tests.support.rental import Renter
from tests.support.stack import Stack, stack, wait_for

CHANGES, CHANGES_MIN = 100, 50
FAULTS, FAULTS_MIN = 20, 5
LOSSES = 2
XID = 31
"""A fault of the program and not of the card: it stands on the page, and the card stays on the market."""
BETWEEN_S = (1.6, 2.6)
"""Longer than a sampling period and drawn anew each time, so that no change keeps step with anything."""
PATIENCE_S = 15.0
LOW_C, SPAN_C = 31, 50
CARD = 0

WATCH_READING = """() => { window.__read = [];
  const keys = () => [...document.querySelectorAll('.wr-chart')]
    .filter((one) => one.querySelector('strong')?.textContent === 'GPU temperature')
    .map((one) => one.querySelector('.wr-chart-keys > span > span')?.textContent)[0];
  let before = keys();
  new MutationObserver(() => { const now = keys(); if (now === before || !now) return; before = now;
    requestAnimationFrame(() => setTimeout(() => window.__read.push([parseFloat(now), Date.now()]), 0)); })
    .observe(document.body, { childList: true, subtree: true, characterData: true }); }"""
WATCH_EVENTS = """() => { window.__rows = [];
  const count = () => [...document.querySelectorAll('[aria-label="Table of events"] tbody tr')].map((row) =>
    row.textContent.toLowerCase()).join(' ').match(/xid|lost/g)?.length ?? 0;
  let before = count();
  new MutationObserver(() => { const now = count(); if (now <= before) return; before = now;
    requestAnimationFrame(() => setTimeout(() => window.__rows.push(Date.now()), 0)); })
    .observe(document.body, { childList: true, subtree: true, characterData: true }); }"""
POLLING = """<!doctype html><body><p id=r></p><script>window.__read = []; let before = '';
  setInterval(async () => { const now = await (await fetch('/reading')).text();
    if (now === before) return;
    before = now;
    document.getElementById('r').textContent = now;
    requestAnimationFrame(() => setTimeout(() => window.__read.push([parseFloat(now), Date.now()]), 0)); }, 1000);
  </script></body>"""
"""A frame is drawn after its animation callbacks, so the task after one stamps when the change could be seen."""


@dataclass(frozen=True, slots=True)
class Change:
    """One reading that changed. Seconds of the wall clock; None where it was not seen in time."""

    at: float
    read: float
    seen: float | None
    polled: float | None


@contextmanager
def bare_server(fake: FakeNvml) -> Iterator[str]:
    """The peer's server: the page that polls, and the card's reading as it is when asked for."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = str(fake.state.gpu(CARD).temperature) if self.path == "/reading" else POLLING
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if body is POLLING else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, name="bare")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def when_read(page: Page, celsius: int) -> float | None:
    """When the page showed a temperature, in wall seconds; None if it does not in time."""
    look = f"window.__read.filter(([value]) => value === {celsius}).map(([, at]) => at)[0] ?? null"
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        at = await page.evaluate(look)
        if at is not None:
            return float(at) / 1000
        await asyncio.sleep(0.1)
    return None


async def changes(host: Page, polling: Page, fake: FakeNvml, count: int, chance: random.Random) -> list[Change]:
    """Change the reading again and again, each time to another value than the ones before."""
    found, card = [], fake.state.gpu(CARD)
    for number in range(count):
        await asyncio.sleep(chance.uniform(*BETWEEN_S))
        for page in (host, polling):
            await page.evaluate("window.__read.length = 0")
        celsius = LOW_C + number % SPAN_C
        at, card.temperature = time.time(), celsius
        seen, polled = await when_read(host, celsius), await when_read(polling, celsius)
        found.append(Change(at, card.temperature_read_ns / 1e9, seen, polled))
    return found


async def row_after(page: Page, at: float) -> float | None:
    """Seconds from a fault at wall time `at` to its row on the page; None if it does not come in time."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        times = [one / 1000 for one in await page.evaluate("window.__rows")]
        if late := [one - at for one in times if one >= at]:
            return min(late)
        await asyncio.sleep(0.1)
    return None


async def faults(
    page: Page, fake: FakeNvml, count: int, losses: int, chance: random.Random
) -> tuple[list[float | None], list[float | None]]:
    """Seconds from XIDs to their rows, and from lost cards to theirs."""
    xids: list[float | None] = []
    lost: list[float | None] = []
    for _ in range(count):
        await asyncio.sleep(chance.uniform(*BETWEEN_S))
        at = time.time()
        fake.state.xid(CARD, XID)
        xids.append(await row_after(page, at))
    for number in range(losses):
        await asyncio.sleep(chance.uniform(*BETWEEN_S))
        at = time.time()
        fake.state.gpu(1 + number).lost = 1
        lost.append(await row_after(page, at))
    return xids, lost


async def in_browser(browser: Browser, running: Stack, fake: FakeNvml, bare_url: str, host_id: str) -> dict[str, Any]:
    """Sign in, watch one host, and let things happen to it."""
    chance = random.Random(1)
    context = await browser.new_context(locale="en-GB")
    page, told, polling = await context.new_page(), await context.new_page(), await browser.new_page()
    await page.goto(f"{running.cli['url']}/#token={running.cli['token']}")
    await page.wait_for_function("async () => (await fetch('/api/v1/me')).ok", polling=200, timeout=60_000)
    await page.goto(f"{running.cli['url']}/hosts/{host_id}?tab=charts")
    await page.locator(".wr-chart strong", has_text="GPU temperature").wait_for(timeout=60_000)
    await told.goto(f"{running.cli['url']}/hosts/{host_id}?tab=events")
    await told.get_by_role("region", name="Table of events").wait_for(timeout=60_000)
    await polling.goto(bare_url)
    await page.evaluate(WATCH_READING)
    await told.evaluate(WATCH_EVENTS)
    fake.state.gpu(CARD).temperature = LOW_C + SPAN_C
    await when_read(page, LOW_C + SPAN_C)
    changed = await changes(page, polling, fake, max(CHANGES_MIN, round(CHANGES * scale())), chance)
    count = max(FAULTS_MIN, round(FAULTS * scale()))
    xids, lost = await faults(told, fake, count, LOSSES, chance)
    return {"changes": changed, "xids": xids, "lost": lost, "chromium": browser.version}


async def measure() -> dict[str, Any]:
    """Start everything, measure, stop everything."""
    found = find_chromium()
    with cards() as fake:
        wanted = {name: fake.environment[name] for name in ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")}
        with stack(environment=wanted) as running, bare_server(fake) as bare_url:
            renter = Renter(running)
            host_id = str((await asyncio.to_thread(renter.online))["id"])
            await asyncio.to_thread(wait_for, lambda: len(renter.host()["gpus"]) > CARD)
            async with async_playwright() as playwright:
                environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
                browser = await playwright.chromium.launch(
                    executable_path=found.path, args=["--no-sandbox"], env=environment
                )
                try:
                    return await in_browser(browser, running, fake, bare_url, host_id)
                finally:
                    await browser.close()


def spread(name: str, values: list[float]) -> dict[str, float | None]:
    """p50, p99 and the longest, in seconds."""
    if not values:
        return {f"{name}_{part}_s": None for part in ("p50", "p99", "max")}
    return {
        f"{name}_p50_s": round(median(values), 3),
        f"{name}_p99_s": round(percentile(values, 0.99), 3),
        f"{name}_max_s": round(max(values), 3),
    }


def detail_of(found: dict[str, Any]) -> dict[str, Any]:
    """All figures under their agreed names; what was never seen counts as missed, not as fast."""
    every: list[Change] = found["changes"]
    seen = [change for change in every if change.seen is not None]
    return {
        "changes": len(every),
        "changes_missed": len(every) - len(seen),
        **spread("read_to_pixel", [change.seen - change.read for change in seen if change.seen is not None]),
        **spread("change_to_read", [change.read - change.at for change in seen]),
        **spread("change_to_pixel", [change.seen - change.at for change in seen if change.seen is not None]),
        **spread("polling_change_to_pixel", [one.polled - one.at for one in every if one.polled is not None]),
        "faults": len(found["xids"]),
        "faults_missed": sum(one is None for one in found["xids"]),
        **spread("fault_to_row", [one for one in found["xids"] if one is not None]),
        "losses": len(found["lost"]),
        "losses_missed": sum(one is None for one in found["lost"]),
        **spread("lost_to_row", [one for one in found["lost"] if one is not None]),
        "chromium": found["chromium"],
    }


def main() -> None:
    """Measure, print, end."""
    if reason := why_none():
        sys.exit(reason)
    if built_console() is None:
        sys.exit("The console is not built: make setup")
    try:
        detail = detail_of(asyncio.run(measure()))
    except NoBrowser as missing:
        sys.exit(str(missing))
    table(list(detail.items()))
    ours, polled = detail["change_to_pixel_p99_s"], detail["polling_change_to_pixel_p99_s"]
    ratio = ours / polled if ours and polled else None
    peer = "a page that polls a bare server each second, change to pixel"
    last_line("fresh", detail["read_to_pixel_p99_s"] or PATIENCE_S, "s", peer, ratio, detail)


if __name__ == "__main__":
    main()
