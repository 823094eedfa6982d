"""A person pastes a program into *Where to run*, has it run on the resource that is recommended, and sees it end."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from playwright.async_api import Page, expect

from tests.waiting import poll

PROGRAM = "import time\nprint(6 * 7, flush=True)\ntime.sleep(8)\n"


async def paste_and_run(page: Page, cli: Mapping[str, Any], resource: str, status: Callable[[], str]) -> None:
    """By mouse and keyboard alone. status: the resource's, by another way than the browser."""
    await page.goto(f"{cli['url']}/route#token={cli['token']}")
    await page.get_by_label("Program").fill(PROGRAM)
    await page.get_by_label("GPUs").fill("0")
    await page.get_by_label("Run time, hours").fill("0.1")
    await page.get_by_label("Cost limit, USD").fill("5")
    place = page.get_by_role("region", name="Places").get_by_role("listitem").filter(has_text=f"resource/{resource}")
    await expect(place).to_contain_text("your own machine")

    await place.get_by_role("button", name="Run a job here").click()
    await expect(page.get_by_role("textbox", name="Program")).to_have_value(re.compile("6 \\* 7"))
    await expect(page.get_by_text("Its cost is compared with the estimate")).to_be_visible()
    await expect(page.get_by_label("Budget")).to_have_value("")  # the rent of one's own machine comes back
    await page.get_by_role("button", name="Submit job").click()

    await expect(page.get_by_test_id("state")).to_contain_text("Running")
    assert status() == "busy"
    await expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text("42")
    await expect(page.get_by_test_id("state")).to_contain_text("Succeeded")
    await expect(page.get_by_role("region", name="Forecast")).to_contain_text(f"resource/{resource}")
    await page.get_by_role("link", name="Where to run").click()
    await expect(page.get_by_role("region", name="Kept estimates")).to_contain_text("Succeeded")
    assert poll(lambda: status() == "available")
