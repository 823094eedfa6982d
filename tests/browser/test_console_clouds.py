"""Clouds in the console: what is owed, backends against their caps, and a machine that is bought, seen and ended."""

import json
from collections.abc import Callable
from typing import Any

from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_clouds import add_clouds, add_job_elsewhere
from tests.browser.pretend_master import Served
from tests.browser.pretend_queue import job_id, queued
from tests.browser.pretend_rental import job_of
from tests.browser.test_console_states import signed_in
from tests.browser.width import DESK, PHONE, wider_than_window

Pretend = Callable[..., Served]


async def test_a_backend_is_added_checked_and_a_machine_bought_and_ended_by_mouse(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/clouds")
    await expect(page.get_by_text("No backends")).to_be_visible()
    await page.get_by_role("button", name="Add a backend").click()
    await dialog.get_by_label("Name", exact=True).fill("aws")
    await dialog.get_by_label("Region", exact=True).fill("eu-central-1")
    await dialog.get_by_label("Aws secret access key").fill("top-secret")
    await expect(dialog.get_by_role("button", name="Add the backend")).to_be_disabled()
    await dialog.get_by_label("Per day (USD)").fill("40")
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    for shown in ("HTTP call", "windrow command"):
        assert "top-secret" not in await dialog.get_by_label(shown, exact=True).inner_text()
    async with page.expect_request(lambda one: one.method == "POST") as sent:
        await dialog.get_by_role("button", name="Add the backend").click()
    asked = json.loads((await sent.value).post_data or "null")
    assert asked["secrets"] == {"aws_secret_access_key": "top-secret"}
    backend = page.get_by_role("row").filter(has_text="ec2, emulator only")
    await expect(backend).to_contain_text("Not checked")

    await page.get_by_role("button", name="Change aws").click()
    await page.get_by_role("menuitem", name="Check").click()
    await expect(dialog).to_contain_text("no machine outside could join it")
    await page.keyboard.press("Escape")
    await expect(backend).to_contain_text("Wrong: reachability")

    await page.get_by_role("button", name="Buy a machine").click()
    await dialog.get_by_label("GPU").fill("a10g")
    await dialog.get_by_label("Sold as").select_option("Spot")
    await expect(dialog.get_by_label("Offer")).to_contain_text("0.4212 USD/h · 1 × a10g · spot · eu-central-1a")
    await expect(dialog.get_by_test_id("most")).to_contain_text("about 3.37 USD")
    await dialog.get_by_role("button", name="Buy", exact=True).click()
    bought = page.get_by_role("row").filter(has_text="1 × a10g")
    await expect(bought).to_contain_text("Wanted")
    await bought.get_by_role("button", name="End").click()
    await dialog.get_by_role("button", name="End the purchase").click()
    await expect(bought).to_contain_text("Ending")
    await expect(bought.get_by_role("button", name="End")).to_be_disabled()


async def test_what_is_owed_is_shown_against_caps_and_what_ended_beside_it(page: Page, pretend: Pretend) -> None:
    served = pretend()
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    await expect(page.get_by_test_id("owed")).to_have_text(
        "2.52USD per hour, now36.48USD today (UTC)212.09USD in all4machines are paid for"
    )
    aws = page.get_by_role("row").filter(has_text="aws").first
    await expect(aws.get_by_role("meter", name="Today")).to_have_attribute("aria-valuenow", "91")
    await expect(aws).to_contain_text("36.48 of 40.00 USD")
    await expect(page.get_by_role("row").filter(has_text="Doubtful")).to_contain_text("0.00 USD")
    await page.get_by_role("tab", name="Ended").click()
    gone = page.get_by_role("row").filter(has_text="Gone")
    await expect(gone).to_contain_text("its time is over")
    await expect(gone).to_contain_text("1.68")
    await expect(gone.get_by_role("link", name="train")).to_be_visible()
    await expect(page.get_by_test_id("forecast")).to_have_text(
        "0.90times the forecast, in the mean1 of 1within 15 % of it"
    )
    await expect(page.get_by_role("row").filter(has_text="Refused")).to_contain_text("no capacity for g5.xlarge")


async def test_a_sweep_says_what_it_ended_and_a_refused_removal_why(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    change = page.get_by_role("button", name="Change aws")
    await change.click()
    await page.get_by_role("menuitem", name="Sweep").click()
    await dialog.get_by_role("button", name="Sweep", exact=True).click()
    await expect(dialog.get_by_role("status")).to_contain_text("1 ended, 1 left alone.")
    await page.keyboard.press("Escape")
    await change.click()
    await page.get_by_role("menuitem", name="Remove").click()
    await dialog.get_by_label("Type aws to confirm").fill("aws")
    await dialog.get_by_role("button", name="Remove the backend").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("windrow backend stop-all aws")


async def test_credentials_are_renewed_and_nowhere_shown(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    await page.get_by_role("button", name="Change aws").click()
    await page.get_by_role("menuitem", name="Renew credentials").click()
    await expect(dialog.get_by_role("button", name="Use these credentials")).to_be_disabled()
    await dialog.get_by_label("Aws secret access key").fill("top-secret")
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    for shown in ("HTTP call", "windrow command"):
        assert "top-secret" not in await dialog.get_by_label(shown, exact=True).inner_text()
    async with page.expect_request(lambda one: one.method == "PUT") as sent:
        await dialog.get_by_role("button", name="Use these credentials").click()
    asked = await sent.value
    assert asked.url.endswith("/backends/aws/secrets")
    assert json.loads(asked.post_data or "null") == {"secrets": {"aws_secret_access_key": "top-secret"}}
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_text("aws uses these credentials from now on")).to_be_visible()


async def test_a_private_key_keeps_its_lines(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/clouds")
    await page.get_by_role("button", name="Add a backend").click()
    await dialog.get_by_label("Kind").select_option("ssh")
    await dialog.get_by_label("Name", exact=True).fill("box")
    for label, value in (("Address", "192.0.2.7"), ("Host key", "ssh-ed25519 AAAA"), ("Price per hour", "0.85")):
        await dialog.get_by_label(label, exact=True).fill(value)
    await dialog.get_by_label("Private key").fill("-----BEGIN-----\nx\n-----END-----")
    await dialog.get_by_label("In all (EUR)").fill("100")
    async with page.expect_request(lambda one: one.method == "POST") as sent:
        await dialog.get_by_role("button", name="Add the backend").click()
    asked = json.loads((await sent.value).post_data or "null")
    assert asked["secrets"] == {"private_key": "-----BEGIN-----\nx\n-----END-----"}


async def test_an_auditor_reads_and_changes_nothing(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.roles = ("auditor",)
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    await expect(page.get_by_text("36.48 of 40.00 USD")).to_be_visible()
    for name in ("Add a backend", "Buy a machine", "Change aws", "End 1"):
        await expect(page.get_by_role("button", name=name)).to_have_count(0)


async def test_the_page_with_all_that_it_can_show_breaks_no_rule_of_wcag_and_fits_a_phone(
    page: Page, pretend: Pretend
) -> None:
    served, found, axe = pretend(), list[str](), axe_source()
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    for tab, said in (("now", "lab-box"), ("ended", "its time is over")):
        await page.goto(f"{served.url}/clouds?tab={tab}")
        await expect(page.get_by_text(said).first).to_be_visible()
        found += await violations(page, axe)
        await page.set_viewport_size(PHONE)
        if wide := await wider_than_window(page):
            found.append(f"{tab} is wider than a phone: {wide}")
        await page.set_viewport_size(DESK)
    assert found == []


async def test_an_operator_says_who_may_buy_for_how_much_and_takes_it_back(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    add_clouds(served.world)
    await signed_in(page, served, "/clouds")
    await page.get_by_role("button", name="Change aws").click()
    await page.get_by_role("menuitem", name="Who may buy").click()
    first, amber = dialog.get_by_test_id("buyer").first, dialog.get_by_test_id("buyer").nth(1)
    await expect(first).to_contain_text("44.10 of 50.00 USD today")
    await expect(first.get_by_role("meter", name="Today")).to_have_attribute("aria-valuenow", "88")
    await expect(amber).to_contain_text("0.00 of 25.00 USD in all")

    await first.get_by_role("button", name="Change the caps of first account").click()
    await dialog.get_by_label("Per day (USD)").fill("60")
    await dialog.get_by_label("In all (USD)").fill("")
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    said = dialog.get_by_label("windrow command", exact=True)
    await expect(said).to_have_text("windrow backend allow aws account_1 --per-day 60")
    await dialog.get_by_role("button", name="Change its caps").click()
    await expect(dialog.get_by_test_id("buyer").filter(has_text="first account")).to_contain_text("of 60.00 USD today")
    await dialog.get_by_role("button", name="Disallow amber").click()
    await expect(dialog.get_by_test_id("buyer")).to_have_count(1)


async def test_a_project_that_may_buy_asks_for_it_with_a_job_and_others_are_told_who_can_allow_it(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served, "/jobs/new")
    await expect(page.get_by_text("windrow backend allow NAME PROJECT")).to_be_visible()
    await expect(page.get_by_label("Where", exact=True)).to_have_count(0)
    add_clouds(served.world)
    await page.goto(f"{served.url}/jobs/new")
    await page.get_by_label("Command", exact=True).fill("python train.py")
    await page.get_by_label("Where", exact=True).select_option("aws")
    await page.get_by_label("Choose by").select_option("The lowest price")
    await page.get_by_label("Spot first").check()
    await expect(page.get_by_text("at most 50.00 USD a day, 200.00 USD in all")).to_be_visible()
    await page.get_by_label("Region", exact=True).fill("eu-1")
    await page.get_by_role("button", name="Submit job").click()
    await expect(page.get_by_role("alert")).to_contain_text("not possible together with a region")
    await page.get_by_label("Region", exact=True).fill("")
    async with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/jobs")) as sent:
        await page.get_by_role("button", name="Submit job").click()
    asked = json.loads((await sent.value).post_data or "null")
    assert (asked["backend"], asked["spot"], asked["optimize"]) == ("aws", True, "cost")


async def test_a_recommended_machine_of_a_backend_fills_the_form_by_one_click(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    add_clouds(served.world)
    await signed_in(page, served, "/route")
    place = page.get_by_role("region", name="Places").get_by_role("listitem").filter(has_text="aws/on-demand")
    await expect(place).to_contain_text("a machine is bought for it, at aws")
    await place.get_by_role("button", name="Run a job here").click()
    await expect(page.get_by_label("Where", exact=True)).to_have_value("aws")
    await page.get_by_label("Where", exact=True).select_option("")
    await page.get_by_role("button", name="Use aws/on-demand").click()
    await expect(page.get_by_label("Where", exact=True)).to_have_value("aws")
    await page.goto(f"{served.url}/clusters/new?backend=aws&spot=true")
    await expect(page.get_by_label("Where", exact=True)).to_have_value("aws")
    await expect(page.get_by_label("Wait for a place (hours)")).to_have_value("1")


async def test_a_job_that_ran_elsewhere_shows_each_try_and_the_place_and_cost_of_each_attempt(
    page: Page, pretend: Pretend
) -> None:
    served, axe = pretend(), axe_source()
    add_clouds(served.world)
    job_id = add_job_elsewhere(served.world)
    await signed_in(page, served, "/jobs")
    await expect(page.get_by_role("row").filter(has_text="train")).to_contain_text("aws eu-central-1c")
    await page.goto(f"{served.url}/jobs/{job_id}")
    tries = page.get_by_role("region", name="Places").locator("tbody tr")
    await expect(tries.first).to_contain_text("no capacity for g5.xlarge in eu-central-1a")
    await expect(tries.nth(1)).to_contain_text("spot g5.xlarge")
    attempts = page.get_by_role("region", name="Attempts")
    await expect(attempts).to_contain_text("aws eu-central-1b, spot g5.xlarge (0.4212 USD an hour)")
    await expect(attempts).to_contain_text("2 min 50 s")
    await page.set_viewport_size(PHONE)
    assert not await wider_than_window(page)
    assert [one for one in await violations(page, axe) if "Loading" not in one] == []


async def test_a_job_that_waits_for_a_bought_machine_names_its_backend_and_no_host_here(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    bought = "a machine is being bought at aws eu-central-1b"
    why = (
        "A machine is being bought at aws eu-central-1b (g5.xlarge, spot, 0.42 USD an hour): asked 42 s ago, it boots."
    )
    job = job_id(21)
    more: Any = {"elsewhere": bought, "summary": f"1st in the queue: {bought}", "why": why, "estimate": None}
    served.world.queued.append(queued(job, "train", 1, **more))
    served.world.jobs.append(job_of(job, {"name": "train", "argv": ["x"], "backend": "aws"}) | {"tries": []})
    await signed_in(page, served, f"/jobs/{job}")
    waits = page.get_by_role("region", name="Why it waits")
    await expect(waits.get_by_role("heading")).to_have_text(f"1st in the queue: {bought}")
    await expect(waits).to_contain_text("asked 42 s ago, it boots.")
    await expect(waits).to_contain_text("A host of this market that has room for it first starts it")
    await page.goto(f"{served.url}/queue")
    await expect(page.get_by_role("row").filter(has_text="train")).to_contain_text("being bought at aws")


async def test_a_job_that_runs_is_put_back_into_the_queue_once_that_is_confirmed(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    add_clouds(served.world)
    await signed_in(page, served, f"/jobs/{add_job_elsewhere(served.world)}")
    await page.get_by_role("button", name="Requeue").click()
    await expect(dialog).to_contain_text("goes on from its newest checkpoint")
    await dialog.get_by_role("button", name="Requeue the job").click()
    await expect(page.get_by_text("train is back in the queue")).to_be_visible()
    await expect(page.get_by_role("button", name="Requeue")).to_have_count(0)
