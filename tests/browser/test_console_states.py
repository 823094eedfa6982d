"""The console alone, against a pretend Master: empty, failing, cut off, hostile names, the address, the keyboard."""

import asyncio
import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.pretend_master import Served
from tests.browser.pretend_world import add_host

Pretend = Callable[..., Served]


async def signed_in(page: Page, served: Served, path: str = "/fleet") -> None:
    """Sign in as the printed address does, at a screen."""
    await page.goto(served.sign_in_at(path))
    await expect(page.get_by_role("navigation", name="Screens")).to_be_attached()


async def new(page: Page, what: str) -> None:
    """Press New, and choose the form of what it makes."""
    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_role("menuitem", name=what).click()


async def test_the_token_in_the_printed_address_signs_in_and_leaves_the_address_at_once(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await page.goto(served.sign_in_url)
    await expect(page.get_by_text("workbench")).to_be_visible()
    assert page.url == f"{served.url}/fleet"
    assert await page.evaluate("document.cookie") == ""


async def test_a_wrong_token_is_refused_in_the_words_of_the_api_with_the_request_id(
    page: Page, pretend: Pretend
) -> None:
    await page.goto(pretend().url)
    await page.get_by_role("button", name="Use a token instead").click()
    await page.get_by_label("Token", exact=True).fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("This token is not known, or it has expired.")
    await expect(problem).to_contain_text("req_pretend_0001")


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/", "windrow token add --join"),
        ("/fleet", "windrow token add --join"),
        ("/clusters", "windrow run -- python"),
        ("/receipts", "windrow run -- python"),
        ("/queue", "windrow job submit --gpu 1"),
        ("/clouds", "windrow backend add aws"),
        ("/offers", "windrow offer ls"),
        ("/shop", "windrow gpus"),
        ("/events", "windrow event ls"),
        ("/tokens", "windrow token add --join"),
    ],
)
async def test_an_empty_list_holds_the_next_command(page: Page, pretend: Pretend, path: str, command: str) -> None:
    await signed_in(page, pretend(real_host=False), path)
    await expect(page.get_by_test_id("empty").get_by_label("next command", exact=True)).to_contain_text(command)


async def test_a_host_without_a_gpu_has_a_row_and_a_page_without_what_is_absent(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.unsupported = {"host_disk_read_bytes_total", "host_disk_write_bytes_total"}
    await signed_in(page, served)
    cells = page.get_by_role("row", name=re.compile("workbench")).get_by_role("cell")
    await expect(cells.nth(7), "temperature").to_have_text("–")
    await expect(cells.nth(8), "power").to_have_text("–")
    await page.get_by_text("workbench").click()
    await expect(page.get_by_role("heading", name="workbench")).to_be_visible()
    await expect(page.get_by_text("No GPU was found: this host offers its processors.")).to_be_visible()
    await page.get_by_role("tab", name="Charts").click()
    await expect(page.get_by_role("img", name=re.compile(r"^CPU\. CPU: now \d+%"))).to_be_visible()
    await expect(page.get_by_text("Not reported by this hardware, or not yet: Disk.")).to_be_visible()
    await page.get_by_role("tab", name="Hardware").click()
    await expect(page.locator("dt", has_text="CPUs").first).to_be_visible()
    await expect(page.locator("dt", has_text="GPU driver")).to_have_count(0)


async def test_a_page_that_waits_has_bones_and_its_error_the_words_of_the_api_and_can_be_tried_again(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    served.world.problems["/offers"] = {
        "status": 500,
        "code": "internal",
        "title": "Ours",
        "detail": "The prices could not be read.",
    }
    answer = asyncio.Event()

    async def held(route: Route) -> None:
        await answer.wait()
        await route.fallback()

    await page.route("**/api/v1/offers*", held)
    await signed_in(page, served, "/offers")
    await expect(page.get_by_label("Loading")).to_be_visible()
    answer.set()
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("The prices could not be read.")
    await expect(problem).to_contain_text("internal · request req_pretend_0001")
    served.world.problems.clear()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("cell", name="cpu/A", exact=True)).to_be_visible()


async def test_names_full_of_markup_and_control_characters_stay_harmless_text(page: Page, pretend: Pretend) -> None:
    served = pretend()
    name = "<img src=x onerror=document.title='owned'>\u202e\x07"
    add_host(served.world, "host_019a0000-0000-7000-8000-0000000000ff", name, cards=1, simulated=True)
    await signed_in(page, served, "/hosts/host_019a0000-0000-7000-8000-0000000000ff")
    await expect(page.get_by_role("heading", level=1)).to_have_text("<img src=x onerror=document.title='owned'>��")
    await expect(page).to_have_title("Host · Windrow")


async def test_what_is_simulated_is_marked_wherever_it_stands(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served)
    await expect(page.get_by_role("row", name=re.compile("sim-000")).first.get_by_text("simulated")).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("workbench")).get_by_text("simulated")).to_have_count(0)
    await expect(page.get_by_test_id("totals")).to_contain_text("1 simulated")
    await page.get_by_role("row", name=re.compile("sim-000")).first.click()
    await expect(page.get_by_role("banner").get_by_text("test money")).to_be_visible()
    await expect(page.get_by_role("heading", level=1).locator("xpath=..").get_by_text("simulated")).to_be_visible()


async def test_an_outage_is_said_and_the_page_goes_on_by_itself_when_the_master_is_back(
    page: Page, pretend: Pretend
) -> None:
    served = pretend()
    await signed_in(page, served)
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    served.stop()
    banner = page.get_by_text("The Master does not answer")
    await expect(banner).to_be_visible()
    await expect(page.get_by_text("workbench")).to_be_visible()
    served.start()
    await expect(banner).to_be_hidden()
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()


async def test_filter_and_order_live_in_the_address_and_survive_loading_it_again(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(neighbours=4))
    await expect(page.get_by_role("row", name=re.compile("sim-000")).first).to_be_visible()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Filter", exact=True)).to_be_focused()
    await page.keyboard.type("sim temp>=0")
    await page.get_by_role("button", name="Region").first.click()
    await page.get_by_role("menuitemcheckbox", name=re.compile("north")).click()
    await page.keyboard.press("Escape")
    await page.get_by_role("columnheader", name="Temp").get_by_role("button").click()
    await expect(page.get_by_test_id("shown")).to_have_text("16 of 33 shown")
    await expect(page).to_have_url(re.compile(r"/fleet\?q=sim\+temp%3E%3D0&region=north&sort=-temperature$"))
    await page.reload()
    await expect(page.get_by_test_id("shown")).to_have_text("16 of 33 shown")
    await expect(page.get_by_role("columnheader", name="Temp")).to_have_attribute("aria-sort", "descending")
    await expect(page.get_by_label("Filter", exact=True)).to_have_value("sim temp>=0")


async def test_a_gpu_is_reached_and_left_with_the_keyboard_alone(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(neighbours=1))
    neighbour = page.get_by_role("row", name=re.compile("sim-000")).first
    await expect(neighbour).to_be_visible()
    await page.get_by_role("row", name=re.compile("workbench")).focus()
    await page.keyboard.press("ArrowDown")
    await expect(neighbour).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="GPU 0")).to_be_visible()
    await page.keyboard.type("gc")
    await expect(page.get_by_role("heading", name="Machines")).to_be_visible()


async def test_a_request_that_nobody_can_take_says_why_for_each_host(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/clusters/new")
    await expect(page.get_by_test_id("plan")).to_contain_text("Fits")
    await page.get_by_text("GPUs", exact=True).click()
    await expect(page.get_by_test_id("plan")).to_contain_text("No host fits")
    await expect(page.get_by_test_id("plan")).to_contain_text("workbench: no GPU")


async def test_a_cluster_is_created_watched_and_deleted_by_mouse_and_leaves_a_receipt(
    page: Page, pretend: Pretend
) -> None:
    await signed_in(page, pretend(), "/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("python -c 'print(6 * 7)'")
    await page.get_by_role("textbox", name="Name").fill("answer")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await expect(page.get_by_test_id("steps")).to_contain_text("Placed")
    await expect(page.get_by_test_id("log")).to_contain_text("red words <b>markup</b>")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_label("Type answer to confirm")).to_have_count(0)  # it ran for seconds
    await page.get_by_role("button", name="Delete machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Deleted")
    await page.get_by_text(re.compile(r"^Receipt: ")).click()
    await expect(page.get_by_text("Test money: it buys nothing outside this installation")).to_be_visible()
    await expect(page.get_by_test_id("amount")).to_contain_text("CRD")
    await expect(page.get_by_role("cell", name="deleted by its renter")).to_be_visible()


async def test_a_join_token_gives_one_line_and_the_page_sees_the_host_arrive(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served, "/join")
    await page.get_by_role("button", name="Create command").click()
    line = page.get_by_label("join command", exact=True)
    await expect(line).to_contain_text("wj_")
    place = page.get_by_label("Backup address for relays")
    await place.fill("https://maps.example.org; reboot")
    await expect(page.get_by_text("This is neither dns:DOMAIN nor https://HOST")).to_be_visible()
    await expect(line).not_to_contain_text("reboot")
    await place.fill("dns:access.example.org")
    await expect(line).to_contain_text("--access dns:access.example.org")
    await expect(page.get_by_text("Waiting for a new host")).to_be_visible()
    add_host(served.world, "host_019a0000-0000-7000-8000-0000000000aa", "newcomer", cards=0, simulated=False)
    await expect(page.get_by_test_id("arrived")).to_contain_text("newcomer")
