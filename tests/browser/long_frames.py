"""Measures what a page needs while something goes on: the time between frames, and its own processor time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page

START = """() => {
  const seen = { last: performance.now(), longest: 0, frames: 0, on: true };
  const frame = (now) => {
    seen.longest = Math.max(seen.longest, now - seen.last);
    seen.last = now;
    seen.frames += 1;
    if (seen.on) requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { seen.last = now; requestAnimationFrame(frame); });
  window.__frames = seen;
}"""
STOP = "() => { window.__frames.on = false; return [window.__frames.longest, window.__frames.frames]; }"


@dataclass(frozen=True, slots=True)
class Frames:
    """Of one window of time: the longest gap between two frames, in ms, how many there were, and the seconds that the
    page's own thread worked, which other work on the machine does not change."""

    longest_ms: float
    count: int
    cpu_s: float


async def measure(page: Page, meanwhile: Callable[[Page], Awaitable[None]]) -> Frames:
    """Watch the page while `meanwhile` runs."""
    tools = await page.context.new_cdp_session(page)
    await tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    async def cpu_s() -> float:
        metrics = (await tools.send("Performance.getMetrics"))["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    before = await cpu_s()
    await page.evaluate(START)
    await meanwhile(page)
    longest, count = await page.evaluate(STOP)
    worked_s = await cpu_s() - before
    await tools.detach()
    return Frames(float(longest), int(count), worked_s)
