"""Volumes in the console: made by the form, had by a cluster and a job, saved, and deleted once nobody has them."""

import re

from playwright.async_api import Page, expect

from tests.browser.pretend_volumes import add_volume
from tests.browser.test_console_calls import Forms, forms, sent
from tests.browser.test_console_states import signed_in

__all__ = ["forms"]


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
    await page.get_by_role("button", name="Create cluster").click()
    await expect(page.get_by_text("Not NAME:/path or NAME:/path:ro: data").first).to_be_visible()
    assert not world.clusters
    await field.fill("data:/data\nmodels:/models:ro")
    await expect(page.get_by_role("group", name="Your volumes")).to_have_count(0)
    await forms.same(main, page.get_by_role("button", name="Create cluster").click, "POST", "/clusters")
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
    await page.get_by_role("button", name="Create cluster").click()
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
