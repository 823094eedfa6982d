"""Where a program should run, in the console: ranked while one types, with the way to the best place that is usable."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pasted import paste_and_run
from tests.browser.pretend_master import Served
from tests.browser.test_console_states import signed_in
from tests.support.stack import Stack

Pretend = Callable[..., Served]

pytestmark = pytest.mark.slow


@pytest.mark.proves("console: where a program should run is ranked while it is typed")
async def test_places_are_ranked_while_a_program_is_typed_and_the_best_leads_to_a_cluster(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served, "/route")
    places = page.get_by_role("region", name="Places").get_by_role("listitem")
    await expect(places.first).to_contain_text("resource/lab")

    await page.get_by_label("Program").fill("import torch\nbatch_size = 12\n")
    await page.get_by_label("Run time, hours").fill("3")

    await expect(page.get_by_role("region", name="What the program says")).to_contain_text("pytorch line 1, high")
    await expect(places.first).to_contain_text("No cost")
    await expect(places.first).to_contain_text("Recommended")
    runpod = places.filter(has_text="runpod/on-demand")
    await expect(runpod).to_contain_text("0.68 USD (0.58 to 0.84)")
    await expect(runpod).to_contain_text("not connected")
    await expect(runpod.get_by_role("link")).to_have_count(0)
    await page.get_by_role("button", name="places that cannot do it").click()
    await expect(page.get_by_text("The price is of 2025-03-02").first).to_be_visible()
    await places.first.get_by_role("link", name="New machine here").click()
    await expect(page).to_have_url(re.compile(r"/clusters/new\?.*host=host_0"))


@pytest.mark.proves("console: a program that was pasted runs on the registered machine that was chosen for it")
async def test_a_pasted_program_runs_where_it_was_recommended(page: Page, market: Stack) -> None:
    with market.client() as api:
        record = {"resource_id": "lab", "resource_type": "on-premise", "capabilities": {"cpu_cores": 8}}
        api.add_resource(record)
        api.bind_resource("lab", next(one["id"] for one in api.items("/hosts") if not one["simulated"]))
    with market.client() as api:
        await paste_and_run(page, market.cli, "lab", lambda: str(api.resource("lab")["status"]))
        api.remove_resource("lab")


async def test_a_field_that_is_no_number_says_so_and_a_program_that_is_no_python_too(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served, "/route")
    await page.get_by_label("Run time, hours").fill("soon")
    await expect(page.get_by_text("Hours, such as 3 or 0.5")).to_be_visible()
    await page.get_by_label("Run time, hours").fill("2")
    await page.get_by_label("Program").fill("def train(:")
    await expect(page.get_by_text("from your requirements only")).to_be_visible()
    await page.get_by_label("GPU model").fill("quantum")
    await expect(page.get_by_text("There is no GPU 'quantum'")).to_be_visible()


async def test_a_new_job_shows_the_best_places_and_compares_them_all(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served, "/jobs/new")
    await page.get_by_label("Program").fill("import torch\n")
    await page.get_by_label("GPUs", exact=True).fill("1")
    places = page.get_by_role("region", name="Where to run")
    await expect(places).to_contain_text("recommended")
    await places.get_by_role("button", name="Use resource/lab").click()
    await expect(page.get_by_label("Host", exact=True)).to_have_value(re.compile("host_0"))
    await places.get_by_role("link", name="Compare all").click()
    await page.get_by_role("dialog").get_by_role("button", name="Leave the page").click()
    await expect(page.get_by_label("Program", exact=True)).to_have_value("import torch\n")
    await expect(page.get_by_role("region", name="Places").get_by_role("listitem").first).to_contain_text("lab")
