"""The figures and records of the console: the overview, who did what, who is signed in, what is kept as a file."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.pretend_master import SECRET, Served
from tests.browser.pretend_records import DAYS
from tests.browser.pretend_rental import add_receipt
from tests.browser.pretend_world import at, state_of
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]
HOST = "host_019a0000-0000-7000-8000-000000000001"
SIMULATED = "host_019a0000-0000-7000-9000-000000000000"
COMMAND = "command_019a0000-1111-7000-8000-000000000000"


async def test_the_operators_home_counts_what_is_idle_rented_and_faulty_and_what_it_earned(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=8)
    for row, state in zip(served.world.gpu_rows.values(), ("rented", "rented", "faulty"), strict=False):
        row |= state_of(state)
    await signed_in(page, served, "/")
    of_gpus = page.get_by_test_id("uses-gpu")
    await expect(of_gpus).to_have_text(re.compile(r"Rented\s*2\s*Idle\s*61\s*Paused\s*0\s*Faulty\s*1\s*Offline\s*0"))
    await expect(page.get_by_test_id("revenue-today")).to_contain_text("0.0877")
    await expect(page.get_by_test_id("revenue-week")).to_contain_text("1.812")
    await expect(page.get_by_role("region", name="Recent events")).to_contain_text("workbench joined")
    served.world.event("host.lost", [HOST], "workbench is silent")
    await expect(page.get_by_role("region", name="Recent events")).to_contain_text("workbench is silent")


async def test_an_operator_is_led_through_the_first_steps_and_may_put_them_away(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.profile |= {"address": None, "has_password": False}
    served.world.command_line = None
    await signed_in(page, served, "/")
    steps = page.get_by_role("region", name=re.compile("^Get started: [0-9] of 5 done$"))
    password = steps.get_by_role("button", name="Set the password")
    await expect(password).to_be_disabled()
    await steps.get_by_label("Mail address").fill("ada@example.org")
    await steps.get_by_label("New password").fill("hay raked together")
    await password.click()
    await expect(steps.get_by_text("Set your password (done)")).to_be_visible()
    assert served.world.profile == served.world.profile | {"address": "ada@example.org", "has_password": True}
    await expect(steps.get_by_text("make up LISTEN=0.0.0.0 PUBLIC=ADDRESS")).to_be_visible()
    await steps.get_by_role("button", name="Add 50 simulated hosts").click()
    await expect(steps.get_by_role("button", name="Remove the simulated hosts")).to_be_visible()
    assert served.world.simulated_hosts == 50
    host = next(iter(served.world.hosts.values()))
    host["simulated"], host["slots"][0]["cluster_id"] = True, "cluster_019a0000-0000-7000-8000-000000000001"
    await steps.get_by_role("button", name="Remove the simulated hosts").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("One of them is rented now. What runs there ends with them.")
    assert served.world.simulated_hosts == 50
    await dialog.get_by_role("button", name="Remove them").click()
    await expect(steps.get_by_role("button", name="Add 50 simulated hosts")).to_be_visible()
    assert served.world.simulated_hosts == 0
    await steps.get_by_role("button", name="Hide").click()
    await expect(steps).to_have_count(0)
    await page.reload()
    await expect(page.get_by_role("region", name="Recent events")).to_be_visible()
    await expect(steps).to_have_count(0)


async def test_without_any_access_the_overview_and_health_say_that_nothing_is_heard(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    served.world.accesses = ()
    await signed_in(page, served, "/")
    await expect(page.get_by_text("No relay is connected")).to_be_visible()
    await page.get_by_role("link", name="Health", exact=True).click()
    await expect(page.get_by_role("heading", name="Relays (0)")).to_be_visible()
    await expect(page.get_by_label("next command", exact=True)).to_have_text("windrow doctor")


async def test_the_audit_log_is_filtered_by_its_address_and_verified(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served, "/audit")
    rows = page.get_by_role("region", name="Table of audit entries").locator("tbody tr")
    await expect(rows).to_have_count(3)
    form = page.get_by_role("search", name="Entries")
    await form.get_by_label("Action").fill("host.")
    await form.get_by_label("Action").press("Enter")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("fan is loud")
    await expect(rows.get_by_text("Host drained")).to_have_attribute("title", "host.drain")
    await expect(page).to_have_url(re.compile(r"action=host\."))
    await page.get_by_role("button", name="Verify now").click()
    await expect(page.get_by_test_id("verdict")).to_contain_text("Intact: 3 entries")
    served.world.audit_broken = 2
    await page.get_by_role("button", name="Verify now").click()
    await expect(page.get_by_test_id("verdict")).to_contain_text("Not intact: entry 2 is the first that does not fit")


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
    await signed_in(page, served, f"/hosts/{HOST}?tab=charts")
    await expect(page.get_by_test_id("no-history")).to_contain_text("History cannot be read.")
    await expect(page.get_by_role("img", name="CPU. CPU: now")).to_be_visible()


async def test_a_charts_series_is_kept_as_a_file_of_either_kind(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), f"/hosts/{HOST}?tab=charts")
    chart = page.locator("figure").filter(has_text="CPU").first
    await chart.get_by_text("As a table").click()
    for kind, ending in (("CSV", "csv"), ("Parquet", "parquet")):
        async with page.expect_download() as waited:
            await chart.get_by_role("button", name=f"Export CPU as {kind}").click()
        download = await waited.value
        assert download.suggested_filename == f"windrow-workbench-CPU.{ending}"
        assert Path(await download.path()).read_text().splitlines()[1] == f"{HOST},host_cpu_ratio,{ending}"


async def saved(page: Page, table: str) -> list[dict[str, str]]:
    """The rows of the file that a table's button gives."""
    async with page.expect_download() as waited:
        await page.get_by_role("button", name=f"Save {table} as CSV").click()
    return list(csv.DictReader(Path(await (await waited.value).path()).read_text().splitlines()))


async def rented(page: Page, served: Served) -> None:
    """Let there be a cluster and its receipt."""
    body = {"kind": "box", "gpus": 0, "cpus": 1, "argv": ["true"], "name": "=mine"}
    await page.request.post(f"{served.url}/api/v1/clusters", data=body, headers={"Authorization": f"Bearer {SECRET}"})
    for cluster in served.world.clusters.values():
        add_receipt(served.world, cluster)


async def test_every_table_is_kept_as_csv(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    world = served.world
    await signed_in(page, served)
    await rented(page, served)
    rows: dict[str, list[dict[str, str]]] = {}
    for key, tables in {
        "f": ["the fleet"],
        "v": ["revenue"],
        "e": ["the events"],
        "m": ["the commands"],
        "a": ["the audit entries"],
        "c": ["the machines"],
        "r": ["the receipts"],
        "o": ["the offers"],
    }.items():
        await page.keyboard.type(f"g{key}")
        rows |= {table: await saved(page, table) for table in tables}
    assert {row["id"] for row in rows["the fleet"]} == {HOST, *world.gpu_rows}
    assert [row["amount_CRD"] for row in rows["revenue"]] == list(DAYS)
    assert {row["id"] for row in rows["the events"]} == {one["id"] for one in world.events if one["severity"] != "info"}
    assert {row["id"] for row in rows["the commands"]} == set(world.commands)
    assert [row["number"] for row in rows["the audit entries"]] == ["3", "2", "1"]
    assert [(row["id"], row["name"]) for row in rows["the machines"]] == [(one, "'=mine") for one in world.clusters]
    assert {row["id"] for row in rows["the receipts"]} == set(world.receipts)


async def test_a_hosts_cards_read_what_its_stream_tells_and_what_they_do_not_report_is_a_dash(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=1)
    served.world.unsupported = {"gpu_power_watts"}
    assert not any(gpu["live"] for gpu in served.world.hosts[SIMULATED]["gpus"]), "the stream alone tells readings"
    await signed_in(page, served, f"/hosts/{SIMULATED}?tab=gpus")
    await expect(page.get_by_role("meter", name="GPU 7 use")).to_be_visible()
    cells = page.get_by_role("row", name=re.compile("Events of GPU 7")).get_by_role("cell")
    await expect(cells.nth(6)).to_have_text(re.compile(r"^\d+ °C$"))
    await expect(cells.nth(7)).to_have_text("–")
    found = await saved(page, "the GPUs")
    assert [bool(row["utilization_ratio"]) for row in found] == [True] * 8
    assert {row["power_watts"] for row in found} == {""}


async def test_every_resource_leads_to_its_events(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    served.world.event("token.made", ["token_1"], "the token first was made")
    served.world.join_tokens.append({"id": "jt_1", "role": "host", "created_at": at(), "expires_at": at(-900)})
    await signed_in(page, served)
    await rented(page, served)
    gpu = served.world.hosts[SIMULATED]["gpus"][0]["uuid"]
    for path, name, subject in (
        (f"/hosts/{SIMULATED}?tab=gpus", "Events of GPU 0", gpu),
        ("", f"Events of slot {SIMULATED}/{gpu}", f"{SIMULATED}/{gpu}"),
        ("/offers", "Events of tier cpu/A", "tier/cpu/A"),
        ("/receipts/receipt_1", "Events of this rental", "rental_1"),
        ("/health", "Events of relay north", "access_north"),
        (f"/clusters/{next(iter(served.world.clusters))}?tab=details", "Events of workload work_1", "work_1"),
        ("/settings", "Events of the account", "account_1"),
        ("/tokens", "Events of join token jt_1", "jt_1"),
        ("", "Events of token first", "token_1"),
    ):
        if path:
            await page.goto(served.url + path)
        link = page.get_by_role("link", name=name, exact=True)
        await expect(link).to_have_attribute("href", f"/events?subject={subject}")
    await page.get_by_role("button", name="Revoke join token jt_1").click()
    await expect(page.get_by_text("No join tokens")).to_be_visible()
    await link.click()
    rows = page.get_by_role("region", name="Table of events").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("the token first was made")


async def test_events_leave_out_everyday_work_join_what_repeats_and_name_what_they_are_about(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=3)
    for host_id in served.world.hosts:
        served.world.event("host.listed", [host_id], f"{host_id} is listed")
    await signed_in(page, served, "/events")
    rows = page.get_by_role("region", name="Table of events").locator("tbody tr")
    await expect(rows.filter(has_text="is listed").first).to_contain_text("more like this")
    await expect(rows.filter(has_text="sim-002").first.get_by_role("link", name="sim-002")).to_be_visible()
    await expect(rows.filter(has_text="Command done")).to_have_count(0)
    await page.get_by_label("Severity").select_option("Everything")
    await expect(rows.filter(has_text="Command done").first).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/events\?severity=info$"))
    await page.get_by_label("Severity").select_option("Errors")
    await expect(page.get_by_test_id("empty")).to_contain_text("Nothing of note")
