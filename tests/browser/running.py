"""Starts the Chromium of the tests.

Chromium drops what is under way when a network address of its machine changes, as each container brings one. For people
it loads such a page again (`--enable-auto-reload`); a test that asked for the page meets the error, and asks again.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Final

from playwright.async_api import Browser, Error, Page, async_playwright

from tests.browser.chromium import Chromium
from tests.waiting import PATIENCE_S

DROPPED: Final = ("net::ERR_NETWORK_CHANGED", 'interrupted by another navigation to "chrome-error:')
"""The error, and the page that tells of it, which can come after the next try has begun."""
ITSELF: Final = re.compile(r'Navigation to "(.*)" is interrupted by another navigation to "\1"')
"""Chromium loads a page that was dropped again by itself, beside the next try."""
DROPPED_PART: Final = ("Failed to fetch dynamically imported module", "Unable to preload CSS for")
"""The errors that a script throws for the same reason; the console loads such a part again."""
TRIES: Final = 5
PAUSE_S: Final = 1.0


def is_dropped(thrown: Error) -> bool:
    """True for an error of a page of which the browser dropped a part, and for no fault of the page's own."""
    return any(words in thrown.message for words in DROPPED_PART)


def _again(navigate: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(navigate)
    async def patient(*given: Any, **named: Any) -> Any:
        for number in range(TRIES - 1):
            try:
                return await navigate(*given, **named)
            except Error as error:
                if not (any(words in error.message for words in DROPPED) or ITSELF.search(error.message)):
                    raise
                await asyncio.sleep(PAUSE_S * number)  # tries that follow at once interrupt each other
        return await navigate(*given, **named)

    return patient


for _name in ("goto", "reload"):
    setattr(Page, _name, _again(getattr(Page, _name)))


@asynccontextmanager
async def started(chromium: Chromium, *flags: str) -> AsyncIterator[Browser]:
    """A browser with these flags. It also runs as root and in containers."""
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=chromium.path,
            headless=True,
            args=["--no-sandbox", "--enable-auto-reload", *flags],
            env={**os.environ, **chromium.environment},
            timeout=PATIENCE_S * 1000,
        )
        try:
            yield running
        finally:
            await running.close()
