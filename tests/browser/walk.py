"""Walks the console as one person: follows every link of every page, opens every tab, and notes whatever is wrong.

Wrong are: an answer of 4xx or 5xx, an error that a page throws, a page that does not come to rest, a page wider than
the window, and a rule of accessibility that is broken.
"""

import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Browser, Page, Request, Response
from playwright.async_api import Error as BrowserError

from tests.browser.axe import violations
from tests.browser.running import is_dropped
from tests.browser.width import wider_than_window
from tests.support.people import Person
from tests.waiting import PATIENCE_S, poll_async

WIDTHS = (1440, 390, 320)
HEIGHT = 900
CLICK_MS = 2_000
"""For a link in sight; one that is covered or gone by then is opened by its address."""
ID = re.compile(r"[0-9a-f]{6,}[0-9a-f-]{6,}")
FILE = re.compile(r"\.(json|png)$")
"""An address of no page."""
LINKS = "all => all.map(one => one.getAttribute('href')).filter(href => href.startsWith('/'))"
RESTS = """() => {
  const main = document.querySelector("main");
  return !!main && main.innerText.trim() !== "" && !document.querySelector("[aria-busy=true]");
}"""


def shape_of(address: str) -> str:
    """The address without the ids in it: pages of the same shape show different things in the same way."""
    return ID.sub("~", address)


@dataclass(slots=True)
class Walk:
    """One walk. axe: the checker's source; None: it is not asked. most: addresses of one shape that are opened. judged:
    shapes that axe has judged already, in all widths, also in the walks of others."""

    page: Page
    person: Person
    axe: str | None
    most: int
    judged: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    _known: set[str] = field(default_factory=set)
    _open: set[Request] = field(default_factory=set)

    async def run(self) -> None:
        """Sign in, and walk until every link was followed, from the home of each product."""
        self._listen()
        await self.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
        await self.page.goto(f"{self.person.url}/#token={self.person.token}")
        await self._look("/")
        self._known.add("/")
        todo = deque([*await self._links(), "/nowhere"])
        switch = self.page.get_by_role("group", name="Product").get_by_role("button")
        for product in await switch.all_inner_texts():
            await switch.filter(has_text=product).click()
            await self._look(f"/ ({product})")
            todo += await self._links()
        while todo:
            address = todo.popleft()
            if self.opened[shape_of(address)] >= self.most:
                continue
            if FILE.search(address):
                await self._fetch(address)
                continue
            await self._open_page(address)
            await self._look(address)
            todo += await self._links()
            for tab in await self._tabs():
                await self.page.get_by_role("tab", name=tab, exact=True).click()
                await self._look(f"{address} ({tab})")
                todo += await self._links()

    def _note(self, fault: str) -> None:
        """Keep a fault, and say it now: a walk takes an hour."""
        self.faults.append(f"{self.person.name} at {self.page.url.removeprefix(self.person.url)}: {fault}")
        print(self.faults[-1], flush=True)

    def _listen(self) -> None:
        def asked(request: Request) -> None:
            if not re.search(r"/stream\b|follow=true", request.url):
                self._open.add(request)

        def answered(response: Response) -> None:
            if response.status >= 400:
                url = response.url.removeprefix(self.person.url)
                self._note(f"{response.status} to {response.request.method} {url}")

        self.page.on("request", asked)
        self.page.on("requestfinished", lambda request: self._open.discard(request))
        self.page.on("requestfailed", lambda request: self._open.discard(request))
        self.page.on("response", answered)
        self.page.on("pageerror", lambda error: None if is_dropped(error) else self._note(f"the page threw: {error}"))

    async def _fetch(self, address: str) -> None:
        self.opened[shape_of(address)] += 1
        answer = await self.page.request.get(self.person.url + address)
        if not answer.ok:
            self._note(f"{answer.status} to its link {address}")

    async def _links(self) -> list[str]:
        """The addresses of links that were not met before."""
        found: Sequence[str] = await self.page.locator("a[href]").evaluate_all(LINKS)
        fresh = [one for one in dict.fromkeys(found) if one not in self._known]
        self._known.update(fresh)
        return fresh

    async def _tabs(self) -> list[str]:
        """The tabs of this page that are not shown."""
        return await self.page.locator("[role=tab][aria-selected=false]").all_inner_texts()

    async def _open_page(self, address: str) -> None:
        """By mouse where the link is in sight, else by its address."""
        link = self.page.locator(f'a[href="{address}"]').first
        try:
            if await link.is_visible():
                await link.click(timeout=CLICK_MS)
                return
        except BrowserError:
            pass  # a list has moved on
        await self.page.goto(self.person.url + address)

    async def _look(self, address: str) -> None:
        """Wait until the page rests, then judge it in all widths."""
        shape = shape_of(address)
        self.opened[shape] += 1
        await self._rests()
        is_new = self.axe is not None and shape not in self.judged
        for width in WIDTHS:
            await self.page.set_viewport_size({"width": width, "height": HEIGHT})
            if wider := await wider_than_window(self.page):
                self._note(f"wider than {width} px: {wider}")
            if is_new and self.axe is not None:
                self.judged.add(shape)
                for broken in await violations(self.page, self.axe):
                    self._note(f"at {width} px {broken}")
        await self.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})

    async def _rests(self) -> None:
        async def is_at_rest() -> bool:
            return not self._open and bool(await self.page.evaluate(RESTS))

        try:
            await poll_async(is_at_rest, PATIENCE_S, what="the page comes to rest")
        except AssertionError:
            self._note(f"no rest: {[one.url for one in self._open]}")


@asynccontextmanager
async def walking(
    browser: Browser, person: Person, axe: str | None, most: int, judged: set[str]
) -> AsyncIterator[Walk]:
    """A walk in a context of its own."""
    context = await browser.new_context(locale="en-GB", ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    try:
        yield Walk(await context.new_page(), person, axe, most, judged)
    finally:
        await context.close()
