"""A box on a host whose firewall lets nothing in: its renter logs in by SSH and works in Jupyter, in a real browser."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.chromium import Chromium
from tests.browser.running import started
from tests.services import need
from tests.support.box_image import box_image, need_box
from tests.support.bridged_docker import docker, own_docker
from tests.support.namespaces import Namespace, need_networks, switched
from tests.support.regions import RegionalMarket, regional_market
from tests.support.stack import WINDROW, wait_for
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(400)]

CLOSED = """
iifname != "cable" accept
ct state established,related accept
counter drop
"""
"""Drops packets that come to the host by its cable and do not answer to what the host began."""
WAIT_S = 120


@dataclass(frozen=True, slots=True)
class Site:
    """A market, and its one host behind its firewall with a container daemon of its own."""

    market: RegionalMarket
    host: Namespace
    docker_url: str
    image: str
    keys: Path

    def windrow(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """The command line of the renter."""
        done: subprocess.CompletedProcess[str] = self.market.renter.windrow(*words)
        return done

    def ssh(self, key: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """`windrow cluster ssh` with this key and no other."""
        only = ("-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i", str(self.keys / key))
        return self.windrow("cluster", "ssh", "lab", "--", *only, *command)

    @contextmanager
    def forwarded(self) -> Iterator[dict[str, Any]]:
        """`windrow cluster forward lab 8888`, and what it says."""
        found = self.market.renter.stack.cli
        own = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
        command = [WINDROW, "cluster", "forward", "lab", "8888", "--json"]
        with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield json.loads(process.stdout.readline())
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(PATIENCE_S)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    need("docker")
    need_box()
    need_networks()
    keys = tmp_path / ".ssh"
    keys.mkdir(mode=0o700)
    for name in ("id_ed25519", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True, timeout=60)
    monkeypatch.setenv("HOME", str(tmp_path))
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(3, "10.95.0"))
        names = ("master", "eu", "host")
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        url = cleanup.enter_context(own_docker(networks["host"]))
        image = cleanup.enter_context(box_image(tmp_path, {"DOCKER_HOST": url}))
        networks["host"].forbid(incoming=CLOSED)
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses))
        market.add_accesses("eu")
        market.add_host("host", "--runtimes", "docker", DOCKER_HOST=url)
        market.renter.online()
        yield Site(market, networks["host"], url, image, keys)


@pytest.mark.proves("SSH and Jupyter, in a real browser, reach a box on a host whose firewall drops all that comes in")
async def test_its_renter_logs_in_and_runs_a_cell_and_nobody_else_does(site: Site, chromium: Chromium) -> None:
    created = site.windrow("cluster", "create", "--name", "lab", "--image", site.image, "--json")
    assert created.returncode == 0, created.stderr
    cluster = json.loads(created.stdout)
    assert cluster["phase"] == "Running"

    mine = wait_for(
        lambda: (d := site.ssh("id_ed25519", "id -un; pwd; echo by ssh >made")).returncode == 0 and d, WAIT_S
    )
    strangers = site.ssh("stranger", "id -un")

    assert mine.stdout.splitlines() == ["box", "/workspace"]
    assert strangers.returncode != 0 and "Permission denied" in strangers.stderr
    with site.forwarded() as told:
        assert "?token=" in told["url"]
        await _work(chromium, told["url"])
    assert site.ssh("id_ed25519", "cat made").stdout == "by ssh\n42\n"

    for port in (22, 2222, 8888):
        with pytest.raises(TimeoutError), site.market.at_master():
            socket.create_connection((site.market.addresses["host"], port), 0.5)
    assert site.host.hits() >= 3
    deleted = site.windrow("cluster", "delete", "lab", "--yes")
    assert deleted.returncode == 0, deleted.stderr
    ours = ("ps", "-aq", "--filter", "label=windrow.host")
    poll(lambda: docker(site.docker_url, *ours) == "", what="the container is gone")
    assert docker(site.docker_url, "volume", "ls", "-q") == ""


async def _work(chromium: Chromium, url: str) -> None:
    """Open a new notebook in a browser that runs where this thread does, and run a cell in it."""
    async with started(chromium) as browser:
        context = await browser.new_context(locale="en-GB")
        context.set_default_timeout(PATIENCE_S * 1000)
        address, _, token = url.partition("?token=")
        stranger = await context.new_page()
        await stranger.goto(f"{address}tree")
        await expect(stranger.locator("#password_input")).to_be_visible()
        page = await context.new_page()
        assert token
        await page.goto(url)
        await page.get_by_role("button", name="New").click()
        async with context.expect_page() as opened:
            await page.locator("#new-menu").get_by_text("Python 3").click()
        notebook = await opened.value
        await notebook.locator(".CodeMirror").first.click()
        await notebook.keyboard.type("f = open('made', 'a'); f.write('42\\n'); f.close(); print(6 * 7)")
        await notebook.keyboard.press("Shift+Enter")
        await expect(notebook.locator(".output_text").first).to_contain_text("42")
