"""Work that ended by itself, by mouse on the shipped stack: its log and files outlive its clearing away by the host."""

import asyncio
import io
import tarfile
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.test_console_refusals import enter
from tests.support.killing import remains
from tests.support.rental import Renter
from tests.support.stack import Stack, wait_for

KEPT = "sh -c 'echo the answer is $((6 * 7)); echo 42 >answer; exit {code}'"
ENDED = {0: "Finished", 3: "Failed"}


def _cleared_away(renter: Renter, cluster_id: str) -> None:
    """Wait until its host has nothing of it: what is read from then on is what the Master has kept."""
    renter.cleared(cluster_id)
    wait_for(lambda: not remains(renter, renter.host()["id"], cluster_id))


@pytest.mark.slow
@pytest.mark.parametrize("code", ENDED)
@pytest.mark.proves("console: log and files of a run that ended with 0 or 3 are there after its host cleared it away")
async def test_log_and_files_outlive_the_run(page: Page, market: Stack, code: int) -> None:
    thrown = await enter(page, market)
    await page.goto(f"{market.cli['url']}/clusters/new")
    await page.get_by_role("textbox", name="Command").fill(KEPT.format(code=code))
    await page.get_by_role("textbox", name="Name").fill(f"ended-{code}")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text(ENDED[code])
    cluster_id = page.url.rsplit("/", 1)[1]

    await asyncio.to_thread(_cleared_away, Renter(market), cluster_id)
    await page.reload()

    await expect(page.get_by_test_id("phase")).to_have_text(ENDED[code])
    await expect(page.get_by_role("main")).to_contain_text(f"exit {code}")
    await expect(page.get_by_test_id("log")).to_contain_text("the answer is 42")
    await page.get_by_role("tab", name="Files").click()
    async with page.expect_download() as loaded:
        await page.get_by_role("button", name="Download what changed").click()
    archive = Path(await (await loaded.value).path()).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        assert {one.name: one.size for one in files if one.isfile()} == {"answer": 3}
    assert thrown == []
