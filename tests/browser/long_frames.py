"""Measures how long a page takes between frames while something goes on."""

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
    """Of one window of time: the longest gap between two frames, in ms, and how many there were."""

    longest_ms: float
    count: int


async def measure(page: Page, meanwhile: Callable[[Page], Awaitable[None]]) -> Frames:
    """Watch the frames while `meanwhile` runs."""
    await page.evaluate(START)
    await meanwhile(page)
    longest, count = await page.evaluate(STOP)
    return Frames(float(longest), int(count))
