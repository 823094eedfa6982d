"""New, in three steps: Jupyter in four clicks from the home page, and a job with a folder in four clicks."""

import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.pretend_rental import job_of
from tests.browser.test_console_states import new, signed_in
from tests.waiting import poll_async

Pretend = Callable[..., Served]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of which two files and the ignore file are sent."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    for name, text in {
        "train.py": "print(6 * 7)\n",
        "src/net.py": "",
        ".gitignore": "*.log\n",
        "old.log": "",
        ".env": "TOKEN=1\n",
        ".git/HEAD": "ref: refs/heads/main\n",
    }.items():
        (root / name).write_text(text)
    return root


async def choose(page: Page, folder: Path) -> None:
    """Choose a folder in the browser's own window, and wait until it was looked through."""
    async with page.expect_file_chooser() as opened:
        await page.get_by_role("button", name="Choose a folder").click()
    await (await opened.value).set_files(folder)
    await expect(page.get_by_role("region", name="Files", exact=True)).to_contain_text("project: 3 files")


@pytest.mark.proves("console: a machine with Jupyter is four clicks from the home page, with limits that end it")
async def test_jupyter_is_four_clicks_away_and_files_can_be_sent_to_it(
    page: Page, pretend: Pretend, project: Path
) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served, "/")
    await new(page, "PyTorch with Jupyter")
    await expect(page.get_by_role("radio", name="PyTorch with Jupyter")).to_be_checked()
    await expect(page.get_by_role("radio", name="No GPU")).to_be_checked()
    await expect(page.get_by_test_id("plan")).to_contain_text("Fits")
    await page.get_by_role("button", name="Start machine").click()
    await page.get_by_role("button", name="Open Jupyter").click()
    asked = next(iter(served.world.clusters.values()))["request"]
    assert (asked["max_duration_seconds"], asked["idle_seconds"]) == (8 * 3600, 1800)
    assert asked["notebook"] and asked["image"].startswith("quay.io/jupyter/pytorch-notebook")
    await page.get_by_role("tab", name="Files").click()
    await choose(page, project)
    await page.get_by_role("button", name="Upload project").click()
    await expect(page.get_by_role("region", name="Files")).to_contain_text("3 files are there now.")
    (sent,) = served.world.job_folders.values()
    with tarfile.open(fileobj=io.BytesIO(sent)) as archive:
        assert "train.py" in archive.getnames()


async def test_the_steps_go_by_keyboard_and_all_options_keep_what_was_filled_in(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(neighbours=1), "/new")
    await page.get_by_role("radio", name="PyTorch with Jupyter").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("radio", name="vLLM service")).to_be_checked()
    await expect(page.get_by_role("radio", name="vLLM service")).to_be_focused()
    await expect(page.get_by_role("radio", name="No GPU")).to_have_count(0)
    await expect(page.get_by_role("main")).to_contain_text("No real GPU is offered now, so that nothing is chosen.")
    await expect(page.get_by_role("button", name="Start machine")).to_be_disabled()
    await page.get_by_role("radiogroup", name="Hardware").get_by_role("radio").first.click()
    await expect(page.get_by_role("region", name="Quote").get_by_text("simulated", exact=True)).to_be_visible()
    await page.get_by_role("textbox", name="Model").fill("a/model")
    await page.get_by_label("Ends after (hours)").fill("2")
    await page.get_by_role("button", name="All options").click()
    await expect(page).to_have_url(re.compile("/clusters/new$"))
    await expect(page.get_by_role("radio", name="Service")).to_be_checked()
    await expect(page.get_by_role("textbox", name="Command")).to_have_value(re.compile("--model a/model"))
    await expect(page.get_by_label("Maximum run time (hours)")).to_have_value("2")
    await expect(page.get_by_label("Rehearse on simulated hosts")).to_be_checked()


@pytest.mark.proves("console: a folder is sent with a job in four clicks; secrets and what git ignores stay")
async def test_a_folder_is_sent_with_a_job(page: Page, pretend: Pretend, project: Path) -> None:
    served = pretend()
    await signed_in(page, served, "/")
    await new(page, "Job")
    await choose(page, project)
    files = page.get_by_role("region", name="Files")
    await expect(files).to_contain_text("Left out, as they look like secrets: .env")
    await expect(files).to_contain_text("Left out by .gitignore and .windrowignore: old.log")
    await expect(page.get_by_role("textbox", name="Command")).to_have_value("python train.py")
    await page.get_by_role("button", name="Submit job").click()
    await expect(page).to_have_url(re.compile(r"/jobs/job_"))
    await poll_async(lambda: served.world.job_folders, what="the folder was sent")
    with tarfile.open(fileobj=io.BytesIO(next(iter(served.world.job_folders.values())))) as sent:
        assert sorted(sent.getnames()) == [".gitignore", "src/net.py", "train.py"]
    assert served.world.jobs[0]["request"]["await_files"] is True


async def test_a_folder_goes_on_to_the_form_with_all_options(page: Page, pretend: Pretend, project: Path) -> None:
    served = pretend()
    await signed_in(page, served, "/new?what=job")
    await choose(page, project)
    await page.get_by_role("button", name="All options").click()
    await expect(page).to_have_url(re.compile("/jobs/new$"))
    await expect(page.get_by_role("region", name="Files")).to_contain_text("project: 3 files")
    await expect(page.get_by_role("textbox", name="Maximum run time (minutes)")).to_have_value("480")
    await page.get_by_label("Priority").fill("5")
    await page.get_by_role("button", name="Show API and CLI call").click()
    line = page.get_by_label("windrow command", exact=True)
    await expect(line).to_contain_text("windrow job submit --folder project")
    await page.get_by_role("button", name="Submit job").click()
    await expect(page).to_have_url(re.compile(r"/jobs/job_"))
    assert served.world.jobs[0]["request"]["priority"] == 5


async def test_a_file_that_changed_is_named_its_job_is_cancelled_and_choosing_again_helps(
    page: Page, pretend: Pretend, project: Path
) -> None:
    served = pretend()
    await signed_in(page, served, "/new?what=job")
    await choose(page, project)
    (project / "train.py").write_text("print('it is longer by now')\n")
    await page.get_by_role("button", name="Submit job").click()
    said = page.get_by_role("alert")
    await expect(said).to_have_text("train.py has changed since it was chosen. Choose the folder or the files again.")
    await poll_async(lambda: served.world.jobs[0]["state"] == "Cancelled", what="its job does not wait for ever")
    await choose(page, project)
    await page.get_by_role("button", name="Submit job").click()
    await expect(page).to_have_url(re.compile(r"/jobs/job_"))
    assert [one["state"] for one in served.world.jobs] == ["Queued", "Cancelled"]


async def test_a_filled_form_asks_before_it_is_left(page: Page, pretend: Pretend) -> None:
    await signed_in(page, pretend(), "/clusters")
    await new(page, "Job")
    await page.get_by_role("textbox", name="Command").fill("python train.py")
    await page.evaluate("history.back()")
    await expect(page.get_by_role("dialog")).to_contain_text("Leave this form?")
    await page.evaluate("history.forward()")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.evaluate("history.back()")
    await page.get_by_role("dialog").get_by_role("button", name="Stay here").click()
    await expect(page).to_have_url(re.compile("/new"))
    machines = page.get_by_role("navigation").get_by_role("link", name="Machines", exact=True)
    await machines.click()
    await page.get_by_role("dialog").get_by_role("button", name="Stay here").click()
    await expect(page.get_by_role("textbox", name="Command")).to_have_value("python train.py")
    await machines.click()
    await page.get_by_role("dialog").get_by_role("button", name="Leave the page").click()
    await expect(page).to_have_url(re.compile("/clusters$"))


async def test_a_job_that_waits_for_its_folder_takes_it_on_its_page(
    page: Page, pretend: Pretend, project: Path
) -> None:
    served = pretend()
    job = job_of("job_019a0000-3333-7000-8000-000000000001", {"argv": ["true"], "await_files": True})
    served.world.jobs = [job | {"state": "Submitted", "reason": "waits for its folder"}]
    await signed_in(page, served, f"/jobs/{job['id']}")
    await choose(page, project)
    await page.get_by_role("button", name="Send project").click()
    await expect(page.get_by_role("region", name="Its folder is missing")).to_have_count(0)
    assert job["id"] in served.world.job_folders


async def test_a_card_that_nobody_offers_starts_nothing_and_a_machine_without_a_key_says_so(
    page: Page, pretend: Pretend
) -> None:
    await signed_in(page, pretend(), "/new?what=ssh&tier=b200")
    await expect(page.get_by_role("radio", name="B200")).to_be_checked()
    await expect(page.get_by_role("alert")).to_have_text("B200 is no longer offered. Choose another.")
    await expect(page.get_by_role("button", name="Start machine")).to_be_disabled()
    await page.get_by_role("radio", name="No GPU").click()
    await page.get_by_role("button", name="Start machine").click()
    await expect(page.get_by_role("alert")).to_contain_text("A public key, or tick that no SSH is wanted")
    await page.get_by_label("No SSH: only the terminal in the browser").check()
    await page.get_by_role("button", name="Start machine").click()
    await expect(page.get_by_role("region", name="Connect")).to_contain_text("Started without an SSH key")
