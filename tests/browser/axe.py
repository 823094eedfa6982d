"""Runs axe-core, the accessibility checker, in a page: which rules of WCAG 2.2 A and AA it breaks, and where."""

from typing import Any

from playwright.async_api import Page

from tests.browser.chromium import HERE, install_packages
from tests.ledger import is_short

SCRIPT = HERE / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async (onlyColours) => {
  const levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"];
  const wanted = onlyColours ? { type: "rule", values: ["color-contrast", "link-in-text-block"] } : levels;
  const found = await axe.run(document, { runOnly: wanted, resultTypes: ["violations"] });
  const told = (rule) => rule.nodes.map((node) => [rule.id, node.html.slice(0, 200), node.failureSummary]);
  return found.violations.flatMap(told);
}"""
STILL = """() => {
  const ends = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
  const late = new Promise((done) => setTimeout(done, 5000));
  return Promise.race([late, Promise.all(ends.map((one) => one.finished.catch(() => undefined)))]);
}"""
"""An animation of what is drawn no more never finishes: it is waited for five seconds."""

NOT_OURS = "html:not([data-mantine-color-scheme])"
"""A page that is none of the console's, such as one of the documentation: it follows the browser's own scheme."""


def axe_source() -> str:
    """The checker's own script, fetched by npm like the browser; raises NoBrowser where that is not possible."""
    if not SCRIPT.is_file():
        install_packages()
    return SCRIPT.read_text(encoding="utf-8")


async def violations(page: Page, source: str, dark: bool | None = None) -> list[str]:
    """Returns the rules that this page breaks just now: every rule in the light scheme, and in the dark one those that
    look at colours. dark: None: not in `make test`, since half of the time goes there.

    Half-faded text has no contrast: it is judged once nothing moves.
    """
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(source)
    found: list[Any] = []
    is_dark = not is_short() if dark is None else dark
    for scheme in ("dark", "light") if is_dark else ("light",):
        await page.emulate_media(color_scheme=scheme)
        await page.wait_for_selector(f"html[data-mantine-color-scheme={scheme}], {NOT_OURS}")
        await page.evaluate(STILL)
        told: list[Any] = await page.evaluate(RUN, scheme == "dark")
        found += [f"{scheme}: {rule}: {html}\n    {summary}" for rule, html, summary in told]
    return found
