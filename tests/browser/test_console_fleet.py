"""A fleet of 1,600 changing rows is used like a small one, fed by the pretend Master and by the real one.

How long its frames take depends on the machine: that is a figure of the bench (`bench/console.py`). The real Master
has 200 hosts in `make chaos`, where a minute goes for their joining; else fewer, and the pretend one has all rows.
"""

import os
import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.long_frames import Frames, measure
from tests.browser.pretend_master import Served
from tests.support.stack import stack, wait_for

HOSTS = 200
SHIPPED_HOSTS = HOSTS if os.environ.get("CHAOS") else 13
"""Of the shipped stack: their rows fill the screen three times at least."""
FEW_HOSTS = 13
"""The same of the pretend one."""
DEARER_MAX = 8.0
"""The most work of a page with 1,600 rows, in work of a page with 104. It draws those on the screen, and sorts and
filters all: about twice as much. Drawing all is forty times as much (seen in a window of 60,000 pixels)."""
PAUSE_MS = 1_250
JOINED_S = 300.0
"""For all of them to have joined, and to be connected at once, on a machine with other things to do."""


async def use_the_table(page: Page) -> None:
    """Acts as a person does meanwhile: scroll a long way, sort, filter."""
    await page.mouse.move(700, 500)
    for _ in range(12):
        await page.mouse.wheel(0, 2_400)
        await page.wait_for_timeout(PAUSE_MS / 10)
    await page.get_by_role("columnheader", name="Use").get_by_role("button").click()
    await page.wait_for_timeout(PAUSE_MS)
    await page.keyboard.press("/")
    await page.keyboard.type("util>20")
    await page.wait_for_timeout(PAUSE_MS)
    await page.get_by_role("button", name="Clear filter text").click()
    await page.wait_for_timeout(PAUSE_MS)


async def rows_change(page: Page) -> None:
    """Wait until a reading on the screen has changed by itself."""
    before = await page.get_by_role("table", name="Fleet").inner_text()
    await expect(page.get_by_role("table", name="Fleet")).not_to_have_text(before)


async def used(page: Page, served: Served, hosts: int) -> Frames:
    """Open a fleet of that many hosts, each with eight GPUs and this one with none, and use its table."""
    await page.goto(served.sign_in_url)
    await expect(page.get_by_role("table", name="Fleet")).to_have_attribute("aria-rowcount", str(8 * hosts + 2))
    await rows_change(page)
    frames = await measure(page, use_the_table)
    print(f"{8 * hosts} rows: {frames}")
    return frames


@pytest.mark.long
@pytest.mark.slow
async def test_1600_rows_of_which_half_change_each_second_cost_the_page_little_more_than_a_hundred(
    page: Page, pretend: Callable[..., Served]
) -> None:
    few = await used(page, pretend(neighbours=FEW_HOSTS), FEW_HOSTS)
    many = await used(page, pretend(neighbours=HOSTS), HOSTS)

    assert many.cpu_s <= DEARER_MAX * few.cpu_s, (few, many)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.proves("console: live rows of simulated hosts on the shipped stack, scrolled, sorted and filtered")
@pytest.mark.long
async def test_the_rows_of_simulated_hosts_on_the_shipped_stack_are_used_while_they_change(page: Page) -> None:
    gpus = f"{8 * SHIPPED_HOSTS:,}"
    with stack("--simulate", str(SHIPPED_HOSTS)) as market:
        wait_for(lambda: market.cli["url"])
        with market.client() as api:
            wait_for(lambda: len(list(api.items("/hosts"))) > SHIPPED_HOSTS, JOINED_S, pause_s=0.5)
        await page.goto(f"{market.cli['url']}/fleet#token={market.cli['token']}")
        totals = page.get_by_test_id("totals")
        await expect(totals).to_contain_text(re.compile(rf"{gpus}\s*GPUs"), timeout=JOINED_S * 1000)
        await rows_change(page)
        print(await measure(page, use_the_table))
        await rows_change(page)


async def test_hosts_are_selected_and_drained_together_with_a_result_each_and_a_view_is_kept(
    page: Page, pretend: Callable[..., Served]
) -> None:
    served = pretend(neighbours=3)
    await page.goto(served.sign_in_url)
    await page.get_by_role("radiogroup", name="Rows").get_by_text("Hosts", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/fleet\?view=hosts$"))
    hosts = {host["name"]: host for host in served.world.hosts.values()}
    hosts["sim-000"] |= {"admin_state": "maintenance", "headline": "maintenance", "headline_reason": "new PSU"}
    for name in ("sim-000", "sim-001", "sim-002"):
        await page.get_by_label(f"Select {name}").check()
    await page.get_by_role("button", name="3 selected").click()
    await page.get_by_role("menuitem", name="Drain").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("new switch")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(dialog.get_by_role("listitem").filter(has_text="Accepted")).to_have_count(3)
    await dialog.get_by_role("button", name="Close", exact=True).last.click()
    assert {hosts[f"sim-00{n}"]["admin_state"] for n in range(3)} == {"draining"}
    hosts["sim-002"]["admin_state"] = "quarantined"
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("alert").filter(has_text="not undone")).to_contain_text(
        "sim-002: It is quarantined now"
    )
    assert [hosts[f"sim-00{n}"]["admin_state"] for n in range(3)] == ["maintenance", "active", "quarantined"]

    await page.get_by_role("button", name="Views").click()
    await page.get_by_label("Name of this view").fill("by host")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.goto(f"{served.url}/fleet")
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("button", name="by host", exact=True).click()
    await expect(page.get_by_label("Select sim-000")).to_be_visible()
