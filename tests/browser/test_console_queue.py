"""The queue in the console: its order, what is done with what waits, shares and quotas, and the reasons of a job."""

import json
from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_master import Served
from tests.browser.pretend_queue import add_queue, add_shares, job_id
from tests.browser.test_console_states import signed_in
from tests.browser.width import DESK, PHONE, wider_than_window

Pretend = Callable[..., Served]


async def test_the_queue_is_shown_in_its_order_and_what_waits_is_held_put_first_and_cancelled(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    add_queue(served.world)
    await signed_in(page, served, "/queue")
    rows = page.get_by_role("region", name="Table of entries of the queue").get_by_role("row")
    await expect(rows).to_have_count(7)
    await expect(page.get_by_text("of 212 expected starts held (aim: 80 %)")).to_be_visible()
    for number, said in enumerate(("hotfix-eval", "train-resnet", "sweep-learning", "notebook", "Held", "evaluate"), 1):
        await expect(rows.nth(number)).to_contain_text(said)
    await expect(rows.nth(1)).to_contain_text("Urgent, priority +10")
    await expect(rows.nth(2)).to_contain_text("± 6 min")
    await expect(rows.nth(2)).to_contain_text("No host has 8 GPUs free.")

    change = page.get_by_role("button", name="Change train-resnet")
    await change.press("Enter")
    await page.get_by_role("menuitem", name="Hold").press("Enter")
    await expect(rows.nth(2)).to_contain_text("Held")
    await page.get_by_role("button", name="Undo").click()
    await expect(rows.nth(2)).not_to_contain_text("Held")
    await change.click()
    await page.get_by_role("menuitem", name="Put first of its project").click()
    await expect(page.get_by_text("train-resnet comes before all others of its project and class")).to_be_visible()
    await change.click()
    await expect(page.get_by_role("menuitem", name="Put first")).to_have_count(0)
    await page.get_by_role("menuitem", name="Cancel").click()
    await expect(rows).to_have_count(6)
    await page.get_by_role("textbox", name="Filter").fill("nightly")
    await expect(rows).to_have_count(2)


async def test_who_only_looks_changes_nothing_in_the_queue(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.roles = ("viewer",)
    add_queue(served.world)
    add_shares(served.world)
    await signed_in(page, served, "/queue")
    await expect(page.get_by_role("link", name="train-resnet")).to_be_visible()
    await expect(page.get_by_role("button", name="Change")).to_have_count(0)
    await page.get_by_role("tab", name="Shares").click()
    await expect(page.get_by_role("img", name="21% in use, of 10% guaranteed and 30% at most")).to_be_visible()
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)


async def test_shares_and_quotas_are_set_removed_and_put_back(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    add_shares(served.world)
    await signed_in(page, served, "/queue?tab=shares")
    await page.get_by_role("button", name="Edit the share of project first account").press("Enter")
    await expect(dialog.get_by_label("Guaranteed (%)")).to_be_focused()
    await dialog.get_by_label("At most (%)").fill("")
    await dialog.get_by_label("Guaranteed (%)").fill("60")
    await page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("which the organisation acme has left. To give more")
    await dialog.get_by_label("Guaranteed (%)").fill("12.5")
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("row", name="first account")).to_contain_text("12.5%all")

    await page.get_by_role("tab", name="Quotas").click()
    await page.get_by_role("button", name="Set a quota").click()
    await dialog.get_by_label("Of", exact=True).fill("organisation acme")
    await dialog.get_by_label("What").select_option(label="Memory")
    await dialog.get_by_label("At most (GiB)").fill("64")
    async with page.expect_request(lambda one: one.method == "PUT") as sent:
        await page.keyboard.press("Enter")
    asked = json.loads((await sent.value).post_data or "null")
    assert asked == {"node": "organisation_1", "item": "memory", "limit": str(64 * 2**30)}
    await expect(page.get_by_role("row", name="Organisation acme")).to_contain_text("64 GiB")
    gpus = page.get_by_role("row", name="h100 GPUs")
    await expect(gpus.get_by_role("meter")).to_have_attribute("aria-valuenow", "75")
    await gpus.get_by_role("button", name="Remove").click()
    await expect(gpus).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(gpus).to_contain_text("16")


async def test_a_job_that_waits_says_why_and_is_submitted_with_the_change_that_starts_it(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=1)
    add_queue(served.world)
    await signed_in(page, served, f"/jobs/{job_id(2)}")
    why = page.get_by_role("region", name="Why it waits")
    await expect(why.get_by_role("heading")).to_contain_text("2nd in the queue, starts ")
    await expect(why).to_contain_text("gpu-7 would do: it is held by train-bert, until about 14:10 UTC.")
    await why.get_by_label("Why not on another host?").fill("sim-000")
    await page.keyboard.press("Enter")
    await expect(why.get_by_role("status")).to_contain_text("sim-000 has no H100. As it is now.")

    await why.get_by_role("button", name="Fits on gpu-7 with A100 instead of H100, for 1.25 per hour").click()
    async with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/jobs")) as sent:
        await page.get_by_role("button", name="Submit the changed job").click()
    asked = json.loads((await sent.value).post_data or "null")
    assert (asked["gpu_model"], asked["gpus"], asked["argv"]) == ("A100", 8, ["python", "train.py"])
    await expect(page.get_by_role("dialog")).to_have_count(0)
    before = next(one for one in served.world.jobs if one["id"] == job_id(2))
    assert before["state"] == "Cancelled"


async def test_the_pages_of_a_full_queue_break_no_rule_of_wcag_and_fit_a_phone(page: Page, pretend: Pretend) -> None:
    served, found, axe = pretend(), list[str](), axe_source()
    add_queue(served.world)
    add_shares(served.world)
    await signed_in(page, served, "/queue")
    for tab, said in (("waiting", "train-resnet"), ("shares", "acme"), ("quotas", "h100 GPUs")):
        await page.goto(f"{served.url}/queue?tab={tab}")
        await expect(page.get_by_text(said).first).to_be_visible()
        found += await violations(page, axe)
        await page.set_viewport_size(PHONE)
        if wide := await wider_than_window(page):
            found.append(f"{tab} is wider than a phone: {wide}")
        await page.set_viewport_size(DESK)
    assert found == []
