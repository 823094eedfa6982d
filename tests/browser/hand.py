"""A hand that does a job in the console by what a person sees: visible texts, labels and roles. It counts."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import FileChooser, Locator, Page, expect


@dataclass(slots=True)
class Hand:
    """One job's hand. clicks, fields: so far; a press of a key on what has the focus counts as a click. seconds: from
    the first to the last of what it does or waits for, None before."""

    page: Page
    clicks: int = 0
    fields: int = 0
    _began_s: float | None = field(default=None, repr=False)
    _ended_s: float | None = field(default=None, repr=False)

    @property
    def seconds(self) -> float | None:
        """Of the job, waits included."""
        return None if self._began_s is None or self._ended_s is None else self._ended_s - self._began_s

    async def click(self, name: str | Any, role: Any = "button", within: Locator | None = None) -> None:
        """Click on what has this role and name; the first in sight where several have."""
        await self.click_on((within or self.page).get_by_role(role, name=name, exact=isinstance(name, str)).first)

    async def go(self, name: str) -> None:
        """Go to a page of the menu, and wait until it is there."""
        await self.click(name, "link", within=self.page.get_by_role("navigation", name="Screens"))
        await self.sees(self.page.get_by_role("heading", name=name, level=1, exact=True))

    async def click_on(self, what: Locator) -> None:
        """Click on something found by what is seen of it."""
        await expect(what).to_be_visible()
        await self._do(what.click())
        self.clicks += 1

    async def fill(self, label: str, text: str, within: Locator | None = None) -> None:
        """Type into the field with this label."""
        await self.fill_on((within or self.page).get_by_label(label, exact=True).first, text)

    async def fill_on(self, what: Locator, text: str) -> None:
        """Type into a field found by its label."""
        await self._do(what.fill(text))
        self.fields += 1

    async def choose(self, label: str, option: str) -> None:
        """Choose an option of the field with this label."""
        await self._do(self.page.get_by_label(label, exact=True).first.select_option(option))
        self.fields += 1

    async def give(self, chooser: FileChooser, path: Path) -> None:
        """Choose a file or folder in the browser's own window: counts as a field."""
        await self._do(chooser.set_files(path))
        self.fields += 1

    async def sees(self, what: Locator, text: Any = None) -> None:
        """Wait until it is in sight, and says this."""
        await self._do(expect(what.first).to_be_visible())
        if text is not None:
            await self._do(expect(what.first).to_contain_text(text))

    async def sees_not(self, what: Locator) -> None:
        """Wait until it is gone."""
        await self._do(expect(what).to_have_count(0))

    async def _do(self, doing: Any) -> None:
        if self._began_s is None:
            self._began_s = time.monotonic()
        await doing
        self._ended_s = time.monotonic()
