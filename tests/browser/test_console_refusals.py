"""Refusals with reasons: shown in plain words beside the form, in a console that goes on; also on the shipped stack."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.pretend_master import Served
from tests.browser.running import is_dropped
from tests.browser.test_console_states import signed_in
from tests.support.stack import Stack

Pretend = Callable[..., Served]


async def enter(page: Page, market: Stack) -> list[str]:
    """Sign in to the shipped console; the list fills with what its pages throw but for parts that Chromium dropped."""
    thrown: list[str] = []
    page.on("pageerror", lambda error: None if is_dropped(error) else thrown.append(str(error)))
    await page.goto(f"{market.cli['url']}/fleet#token={market.cli['token']}")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Online")
    return thrown


@pytest.mark.slow
@pytest.mark.proves("console: a job is typed letter by letter and submitted, on the shipped stack")
async def test_a_new_job_is_typed_letter_by_letter_and_submitted(page: Page, market: Stack) -> None:
    thrown = await enter(page, market)
    await page.goto(f"{market.cli['url']}/jobs/new")
    await page.get_by_role("textbox", name="Command").press_sequentially("sh -c 'echo typed'", delay=60)
    await expect(page.get_by_text("Fits now")).to_be_visible()
    await page.get_by_role("button", name="Submit job").click()
    await expect(page).to_have_url(re.compile(r"/jobs/job_"))
    await expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text("typed")
    assert thrown == []


@pytest.mark.slow
@pytest.mark.proves("console: what cannot fit is refused with the reasons and with what would, on the shipped stack")
async def test_a_cluster_that_cannot_fit_says_why_and_what_would(page: Page, market: Stack) -> None:
    thrown = await enter(page, market)
    await page.goto(f"{market.cli['url']}/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("echo")
    await page.get_by_role("textbox", name="CPUs").fill("1000")
    plan = page.get_by_test_id("plan")
    await expect(plan).to_contain_text("No host fits")
    await expect(plan).to_contain_text(re.compile(r"too few CPUs \(\d+ in all, you ask for 1000\)"))
    refused = plan.get_by_test_id("refusal")  # three lines: what, why, what would fit
    await expect(refused.locator("p, li")).to_have_count(3)
    await page.get_by_role("button", name="Create machine").click()
    refusal = page.get_by_role("region", name="Error").get_by_role("alert")
    await expect(refusal).to_have_text("Nothing was created: no host fits. The quote says why.")
    await expect(page.get_by_text("you ask for 1000")).to_have_count(1)  # not said twice
    await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    await page.get_by_role("button", name=re.compile(r"Change the request: Fits on .+ instead of 1000")).click()
    await expect(plan.get_by_text("Fits", exact=True)).to_be_visible()
    await expect(page.get_by_role("textbox", name="CPUs")).not_to_have_value("1000")
    assert thrown == []


@pytest.mark.slow
async def test_a_field_that_the_market_refuses_is_named_beside_the_form(page: Page, market: Stack) -> None:
    thrown = await enter(page, market)
    await page.goto(f"{market.cli['url']}/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("echo")
    await page.get_by_label("Container image").fill("x" * 300)
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()  # the preview moves the form once
    await page.get_by_role("button", name="Create machine").click()
    refusal = page.get_by_role("region", name="Error").get_by_role("alert")
    await expect(refusal).to_contain_text("invalid_input")
    await expect(refusal.get_by_role("listitem").first).to_contain_text(re.compile(r"image"))
    await expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    assert thrown == []


async def test_the_same_reason_of_many_hosts_is_said_once(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=6)
    await signed_in(page, served, "/clusters/new")
    await page.get_by_text("GPUs", exact=True).click()
    await page.get_by_role("textbox", name="GPUs", exact=True).fill("64")
    reasons = page.get_by_test_id("plan").get_by_role("listitem")
    await expect(reasons).to_have_count(2)
    await expect(reasons.nth(0)).to_contain_text("workbench: no GPU")
    await expect(reasons.nth(1)).to_contain_text("6 hosts: too few GPUs (8 in all, you ask for 64 on one host)")
    await page.get_by_role("textbox", name="Command").fill("echo")
    await page.get_by_role("button", name="Create machine").click()
    refusal = page.get_by_role("region", name="Error").get_by_role("alert")
    await expect(refusal).to_have_text("Nothing was created: no host fits. The quote says why.")
    await expect(page.get_by_text("6 hosts: too few GPUs")).to_have_count(1)
    await page.get_by_role("button", name=re.compile("Change the request: .* with 8 GPUs instead of 64")).click()
    await expect(page.get_by_role("textbox", name="GPUs", exact=True)).to_have_value("8")


async def test_a_job_that_no_host_can_ever_run_is_not_said_to_wait(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served, "/jobs/new")
    await page.get_by_role("textbox", name="Command").fill("echo")
    await page.get_by_role("textbox", name="GPUs", exact=True).fill("64")
    await expect(page.get_by_text("Cannot run as it is")).to_be_visible()


@pytest.mark.parametrize(
    "reasons",
    [
        [{"host_id": "host_1", "host_name": "vm", "reason": "it is off"}],
        [{"code": "busy", "text": "2 hosts: no free GPU", "reason": "no free GPU", "count": 2}],
        [{"field": "argv", "reason": "too short"}],
        ["plain words"],
        [{"nested": {"a": [1]}}, None, 7, ["x"]],
    ],
    ids=["hosts", "groups", "fields", "texts", "anything"],
)
async def test_reasons_of_any_shape_leave_the_page_standing(
    page: Page, pretend: Pretend, reasons: list[object]
) -> None:
    served = pretend()
    told = {"status": 409, "code": "no_capacity", "title": "Conflict", "detail": "Refused.", "reasons": reasons}
    served.world.problems["/offers"] = told
    await signed_in(page, served, "/offers")
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("Refused.")
    await expect(problem.get_by_role("listitem")).to_have_count(len(reasons))


async def test_a_page_that_throws_says_so_and_leaves_the_way_to_the_others(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)

    async def broken(route: Route) -> None:
        await route.fulfill(json={"items": [{"tier": {}}], "next_cursor": None})

    await page.route("**/api/v1/offers*", broken)
    await page.get_by_role("link", name="Pricing").click()
    await expect(page.get_by_role("heading", name="This page failed")).to_be_visible()
    screens = page.get_by_role("navigation", name="Screens")
    await expect(screens).to_be_visible()
    await screens.get_by_role("link", name="Fleet").click()
    await expect(page.get_by_text("workbench")).to_be_visible()
    await screens.get_by_role("link", name="Pricing").click()
    await expect(page.get_by_role("heading", name="This page failed")).to_be_visible()
    await page.unroute("**/api/v1/offers*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("cell", name="cpu/A", exact=True)).to_be_visible()
