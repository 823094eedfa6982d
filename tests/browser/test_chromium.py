"""The browser tests run in a real Chromium."""

import pytest
from playwright.async_api import Page


@pytest.mark.proves("browser tests in a real Chromium")
async def test_a_real_chromium_runs_scripts_and_formats_numbers(page: Page) -> None:
    await page.set_content("<h1>Windrow</h1>")
    assert await page.text_content("h1") == "Windrow"
    assert await page.evaluate("new Intl.NumberFormat().format(1234.5)") == "1,234.5"
