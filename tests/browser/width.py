"""Says what makes a page wider than its window, once nothing moves and what measures itself was drawn again."""

from typing import Final

from playwright.async_api import Page, ViewportSize

from tests.browser.axe import STILL

SECOND_LOOK_MS = 500
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
WIDER = """() => {
  const most = window.innerWidth;
  if (document.documentElement.scrollWidth <= most) return null;
  const inScroller = (one) => {
    for (let up = one.parentElement; up; up = up.parentElement)
      if (up !== document.body && getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  const wide = [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > most + 0.5 && !inScroller(one));
  return `${document.documentElement.scrollWidth} px: ` + wide.slice(-2).map((one) => one.outerHTML.slice(0, 160));
}"""


PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
DESK: Final[ViewportSize] = {"width": 1280, "height": 800}


async def wider_than_window(page: Page) -> str | None:
    """The page's width in pixels and the innermost elements that reach beyond the window; None where none does."""
    await page.evaluate(STILL)
    await page.evaluate(DRAWN)
    found: str | None = await page.evaluate(WIDER)
    if found is not None:
        await page.wait_for_timeout(SECOND_LOOK_MS)
        found = await page.evaluate(WIDER)
    return found
