"""Volumes in the console: made by the form, had by a cluster and a job, saved, and deleted once nobody has them."""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_volumes import add_volume
from tests.browser.test_console_calls import Forms, sent
from tests.browser.test_console_calls import forms as forms
from tests.browser.test_console_states import signed_in
from tests.support.rental import Renter
from tests.support.stack import Stack, wait_for


async def _delete_asked(page: Page, name: str) -> None:
    await page.get_by_role("button", name=f"Delete the volume {name}").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill(name)


async def test_a_volume_is_made_by_the_form_seen_and_deleted_as_the_shown_calls_would(forms: Forms) -> None:
    page, dialog = forms.page, forms.page.get_by_role("dialog")
    await signed_in(page, forms.served, "/volumes")
    empty = page.get_by_role("region", name="Volumes")
    await expect(empty).to_contain_text("windrow volume create data --max-size 20GB")
    await expect(empty).to_contain_text("--volume data:/data")
    await page.get_by_role("button", name="New volume").click()
    await dialog.get_by_label("Name").fill("My Data")
    await dialog.get_by_label("At most").fill("much")
    await dialog.get_by_role("button", name="Make volume").click()
    await expect(dialog).to_contain_text("lower-case letters")
    await expect(dialog).to_contain_text("A size such as 20GB")
    assert not forms.served.world.volumes, "what is no name is not sent"
    await dialog.get_by_label("Name").fill("data")
    await dialog.get_by_label("At most").fill("1.5 GiB")
    await forms.same(dialog, dialog.get_by_role("button", name="Make volume").click, "POST", "/volumes")
    await expect(dialog).to_have_count(0)
    row = page.get_by_role("row", name=re.compile("data"))
    await expect(row).to_contain_text("1.50 GiB")
    await expect(row).to_contain_text("never")
    await expect(row).to_contain_text("nobody")
    await _delete_asked(page, "data")
    await forms.same(dialog, dialog.get_by_role("button", name="Delete volume").click, "DELETE", "/volumes/data")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_test_id("empty")).to_be_visible()
    assert not forms.served.world.volumes


async def test_a_cluster_has_volumes_which_are_saved_now_and_not_deleted_under_it(forms: Forms) -> None:
    page, main, world = forms.page, forms.page.get_by_role("main"), forms.served.world
    add_volume(world, "data")
    add_volume(world, "models")["problem"] = "a file was written to while it was read"
    await signed_in(page, forms.served, "/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("python train.py")
    await page.get_by_role("textbox", name="Name").fill("trainer")
    await page.get_by_role("button", name="Add the volume data").click()
    field = page.get_by_role("textbox", name="Volumes")
    await expect(field).to_have_value("data:/data")
    await field.fill("data")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_text("Not NAME:/path or NAME:/path:ro: data").first).to_be_visible()
    assert not world.clusters
    await field.fill("data:/data\nmodels:/models:ro")
    await expect(page.get_by_role("group", name="Your volumes")).to_have_count(0)
    await forms.same(main, page.get_by_role("button", name="Create machine").click, "POST", "/clusters")
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    beside = page.get_by_test_id("volumes")
    await expect(beside).to_contain_text("models at /models, read-only")
    await expect(beside).to_contain_text("a file was written to while it was read")
    save = beside.get_by_role("button", name="Save now")
    await forms.same(beside, save.click, "POST", "/clusters/[^/]+/volumes/save")
    await expect(beside.get_by_role("status")).to_have_text("data: version 1, 40 MiB")
    await page.keyboard.type("gd")
    row = page.get_by_role("row", name=re.compile("^data"))
    await expect(row).to_contain_text("40 MiB")
    await expect(row).to_contain_text("trainer writes")
    await expect(page.get_by_role("row", name=re.compile("^models"))).to_contain_text("trainer reads")
    await _delete_asked(page, "data")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete volume").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The volume data is in use by trainer (cluster_")
    assert "data" in world.volumes


async def test_what_is_only_read_has_nothing_to_save_and_a_job_names_its_volumes(forms: Forms) -> None:
    page, served = forms.page, forms.served
    add_volume(served.world, "data")
    await signed_in(page, served, "/clusters/new")
    await page.get_by_role("textbox", name="Volumes").fill("data:/data:ro")
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await expect(page.get_by_test_id("volumes")).to_contain_text("data at /data, read-only")
    await expect(page.get_by_role("button", name="Save now")).to_have_count(0)
    await page.goto(f"{served.url}/jobs/new")
    await page.get_by_role("textbox", name="Command").fill("python train.py")
    await page.get_by_role("button", name="Add the volume data").click()
    await page.get_by_role("button", name="Show API and CLI call").click()
    line = page.get_by_label("windrow command", exact=True)
    await expect(line).to_have_text("windrow job submit --no-files --volume data:/data -- python train.py")
    async with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/api/v1/jobs")) as waited:
        await page.get_by_role("button", name="Submit job").click()
    assert sent(await waited.value).body["volumes"] == ["data:/data"]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.proves("console: a volume is made, written by a cluster, saved and deleted by mouse")
async def test_a_volume_of_this_host_is_made_saved_and_deleted_by_mouse(page: Page, market: Stack) -> None:
    renter, dialog = Renter(market), page.get_by_role("dialog")
    url = market.cli["url"]
    await page.goto(f"{url}/fleet#token={market.cli['token']}")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("Online")
    await page.goto(f"{url}/volumes")
    await page.get_by_role("button", name="New volume").click()
    await dialog.get_by_label("Name").fill("by-mouse")
    await dialog.get_by_label("At most").fill("10MB")
    await dialog.get_by_role("button", name="Make volume").click()
    await expect(dialog).to_have_count(0)
    await page.goto(f"{url}/clusters/new")
    program = 'echo one > "$WINDROW_VOLUME_BY_MOUSE/file"; echo written; sleep 300'
    await page.get_by_role("textbox", name="Command").fill(f"sh -c '{program}'")
    await page.get_by_role("button", name="Add the volume by-mouse").click()
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text("written")
    cluster_id = page.url.rsplit("/", 1)[1]
    beside = page.get_by_test_id("volumes")
    await expect(beside).to_contain_text("Nothing is saved yet.")
    await beside.get_by_role("button", name="Save now").click()
    await expect(beside.get_by_role("status")).to_have_text("by-mouse: version 1, 4 B")
    await expect(beside).to_contain_text("Version 1, 4 B")
    await page.goto(f"{url}/volumes")
    await expect(page.get_by_role("row", name=re.compile("by-mouse"))).to_contain_text("writes")
    await _delete_asked(page, "by-mouse")
    await dialog.get_by_role("button", name="Delete volume").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(f"({cluster_id}). End that first.")
    await asyncio.to_thread(renter.delete, cluster_id)
    await dialog.get_by_role("button", name="Delete volume").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_test_id("empty")).to_be_visible()
    await asyncio.to_thread(wait_for, lambda: renter.ask("GET", "/volumes")["items"] == [])
