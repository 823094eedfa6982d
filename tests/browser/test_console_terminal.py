"""The web terminal on a cluster's page: opened by one click, typed and pasted into, resized, ended, reconnected."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_master import Served
from tests.browser.running import is_dropped
from tests.browser.test_console_access import rented
from tests.browser.test_console_states import signed_in
from tests.waiting import poll_async

Pretend = Callable[..., Served]
PASTE = "x" * 100_000


async def _size_was_told(served: Served) -> None:
    await poll_async(lambda: served.world.terminal_said, what="the size was told")


@pytest.mark.proves("a terminal of a running machine is one click away, for keyboard, screen reader and both schemes")
async def test_a_terminal_is_one_click_away_and_reconnects(page: Page, pretend: Pretend) -> None:
    served, faults = pretend(), list[str]()
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: None if is_dropped(error) else faults.append(str(error)))
    await signed_in(page, served)
    await rented(page, served)
    inside, world = page.get_by_role("main"), served.world
    state, screen = inside.get_by_test_id("terminal-state"), inside.get_by_test_id("terminal")

    await page.get_by_role("region", name="Connect").get_by_role("button", name="Open terminal").click()
    await expect(state).to_have_text("Connected")
    await expect(screen).to_contain_text("pretended shell")
    told = await screen.get_by_text("pretended", exact=True).evaluate("(one) => getComputedStyle(one).color")
    assert told == "rgb(10, 120, 30)", "a colour of a program's own, which is a style of its element"
    await _size_was_told(served)
    assert world.terminal_said[0]["columns"] > 40
    await page.keyboard.type("ls -la\t")
    await expect(screen).to_contain_text("ls -la")
    await page.keyboard.press("Control+c")
    await poll_async(lambda: world.terminal_typed == b"ls -la\t\x03", what="all keys came, Ctrl+C and Tab among them")

    await page.evaluate(
        """(text) => {
        const data = new DataTransfer();
        data.setData("text/plain", text);
        document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
    }""",
        PASTE,
    )
    await poll_async(lambda: world.terminal_typed.endswith(PASTE.encode()), what="the paste came whole")
    await page.set_viewport_size({"width": 390, "height": 800})
    await poll_async(lambda: world.terminal_said[-1].get("columns", 99) < 60, what="it is told the narrow size")
    await expect(page.locator(".xterm-screen")).to_have_css("width", re.compile(r"^[1-3]\d\d"))
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    await inside.get_by_role("tab", name="Events").click()
    await inside.get_by_role("tab", name="Terminal").click()
    await expect(state).to_have_text("Connected")

    await inside.get_by_label("Screen reader").check()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        assert await violations(page, axe_source()) == []
    await screen.get_by_role("textbox").focus()
    await page.keyboard.press("Shift+F6")
    await expect(screen).to_be_focused()
    await screen.get_by_role("textbox").focus()
    await page.keyboard.press("Control+d")
    await expect(state).to_have_text("The shell has ended. Exit code 3.")
    await inside.get_by_role("button", name="Reconnect").click()
    await expect(state).to_have_text("Connected")
    assert faults == []


async def test_what_is_in_the_way_of_a_terminal_is_said_and_tried_again(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.terminal_refusal = "This machine's host runs an older agent, which has no terminals."
    await signed_in(page, served)
    cluster_id = (await rented(page, served)).rpartition("/")[2]
    inside = page.get_by_role("main")
    await inside.get_by_role("tab", name="Terminal").click()
    await expect(inside.get_by_role("alert")).to_contain_text("older agent")
    served.world.terminal_refusal = ""
    await inside.get_by_role("button", name="Reconnect").click()
    await expect(inside.get_by_test_id("terminal-state")).to_have_text("Connected")
    served.stop()
    await expect(inside.get_by_test_id("terminal-state")).to_have_text("The connection was lost.")
    served.start()

    served.world.clusters[cluster_id]["workloads"][0]["runtime"] = "simulated"
    await page.goto(f"{served.url}/clusters/{cluster_id}")
    await expect(page.get_by_role("region", name="Connect")).to_contain_text("hosts have no terminal")
    await expect(page.get_by_role("tab", name="Terminal")).to_have_count(0)


async def test_a_machine_that_failed_says_what_to_do_next_and_asks_for_no_log(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    cluster_id = (await rented(page, served)).rpartition("/")[2]
    failed = served.world.clusters[cluster_id]
    failed |= {"phase": "failed", "reason": "dial tcp: lookup images.example", "version": failed["version"] + 1}
    failed["request"]["image"] = "docker.io/a/b:1"
    failed["workloads"][0]["phase"] = "gone"
    asked: list[str] = []
    await page.goto("about:blank")
    page.on("request", lambda one: asked.append(one.url))
    await page.goto(f"{served.url}/clusters/{cluster_id}")
    await expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text("No log is kept")
    further = page.get_by_role("group", name="What to do next")
    await expect(further).to_contain_text("could not get the image docker.io/a/b:1")
    assert not [url for url in asked if "/logs" in url]
    await further.get_by_role("link", name="Start again").click()
    await expect(page.get_by_label("Container image")).to_have_value("docker.io/a/b:1")


async def test_jupyter_is_one_click_away_and_every_other_way_is_a_line_to_copy(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    cluster_id = (await rented(page, served)).rpartition("/")[2]
    served.world.clusters[cluster_id]["request"] |= {
        "ssh_keys": ["ssh-ed25519 AAAA"],
        "notebook": True,
        "ports": [9000],
    }
    await page.reload()
    panel = page.get_by_role("region", name="Connect")
    await expect(panel.get_by_label("command to log in", exact=True)).to_have_text("windrow cluster ssh mine")
    await expect(panel.get_by_label("commands for VS Code", exact=True)).to_contain_text(
        "code --remote ssh-remote+mine"
    )
    await expect(panel.get_by_label("command for port 9000", exact=True)).to_contain_text("forward mine 9000")
    async with page.expect_popup() as opened:
        await panel.get_by_role("button", name="Open Jupyter").click()
    await expect(await opened.value).to_have_url(re.compile("token=0123456789abcdef"))
    await expect(panel.get_by_role("link", name="Jupyter in a new window")).to_be_visible()
    assert await violations(page, axe_source()) == []
