"""The figures and records of the console: the overview, who did what, who is signed in, what is kept as a file."""

from collections.abc import Callable
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]
HOST = "host_019a0000-0000-7000-8000-000000000001"
COMMAND = "command_019a0000-1111-7000-8000-000000000000"


async def test_the_overview_counts_what_is_idle_rented_and_faulty_and_what_it_earned(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=8)
    slots = [row["slot_state"] for row in served.world.gpu_rows.values() if row["link_state"] == "online"]
    await signed_in(page, served, "/")
    of_gpus = page.get_by_test_id("uses-gpu")
    await expect(of_gpus.get_by_text("idle", exact=False).locator("..").locator("dd")).to_have_text(
        str(slots.count("free"))
    )
    await expect(page.get_by_test_id("revenue-today")).to_contain_text("0.0876")
    await expect(page.get_by_test_id("revenue-week")).to_contain_text("1.812")
    await expect(page.get_by_role("heading", name="Recent events")).to_be_visible()


async def test_without_any_access_the_overview_says_that_nothing_is_heard(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.accesses = ()
    await signed_in(page, served, "/")
    await expect(page.get_by_text("No Access is connected")).to_be_visible()


async def test_the_audit_log_is_filtered_and_the_filter_is_in_the_address(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/audit")
    rows = page.get_by_role("region", name="Table of entries").locator("tbody tr")
    await expect(rows).to_have_count(3)
    form = page.get_by_role("search", name="Entries")
    await form.get_by_label("Action").fill("host.")
    await form.get_by_label("Action").press("Enter")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("fan is loud")
    assert "action=host." in page.url


async def test_another_browser_is_signed_out_from_here(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/settings")
    rows = page.get_by_role("region", name="Table of sessions").locator("tbody tr")
    await expect(rows).to_have_count(2)
    await page.get_by_role("button", name="End the session: Firefox on <b>X</b>").click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("this one")


async def test_a_command_shows_what_it_printed(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.commands[COMMAND]["result"] = {"exit_code": 3, "output": "first line\nsecond <b>line</b>"}
    await signed_in(page, served, f"/commands/{COMMAND}")
    await expect(page.get_by_label("output", exact=False)).to_have_text("first line\nsecond <b>line</b>")


async def test_a_history_that_is_away_leaves_the_live_charts_and_says_so(page: Page, pretend: Pretend) -> None:
    served = pretend()
    down = {"status": 503, "code": "unavailable", "title": "Not possible now", "detail": "History cannot be read."}
    served.world.problems[f"/hosts/{HOST}/history"] = down
    await signed_in(page, served, f"/hosts/{HOST}")
    await expect(page.get_by_test_id("no-history")).to_contain_text("History cannot be read.", timeout=20_000)
    await expect(page.get_by_role("img", name="CPU. CPU: now")).to_be_visible()


async def test_a_charts_series_is_kept_as_a_file_of_either_kind(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), f"/hosts/{HOST}")
    chart = page.locator("figure").filter(has_text="CPU").first
    await chart.get_by_text("As a table").click()
    for kind, ending in (("CSV", "csv"), ("Parquet", "parquet")):
        async with page.expect_download() as waited:
            await chart.get_by_role("button", name=f"Export CPU as {kind}").click()
        download = await waited.value
        assert download.suggested_filename == f"windrow-workbench-CPU.{ending}"
        assert Path(await download.path()).read_text().splitlines()[1] == f"{HOST},host_cpu_ratio,{ending}"
