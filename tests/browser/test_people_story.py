"""Two people on one market, in two browsers and two shells, everything as it is shipped: a long run only.

The owner invites by mail and by link. The invited takes a password and a second factor, has the command line by one
line on a clean Debian, joins a host that the owner rents by container, opens a shell in a cluster that the owner
shares, and is removed.
"""

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from email import message_from_bytes, policy
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from playwright.async_api import Browser, Page, expect

from tests.integration.test_people import PASSWORD, Person
from tests.services import need
from tests.support import clean_debian
from tests.support.namespaces import Namespace
from tests.support.rental import Renter
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces
from tests.support.stack import Stack, stack, wait_for
from tests.support.tiny_registry import tiny_registry
from windrow_master.identity import second_factor

pytestmark = [pytest.mark.long, pytest.mark.docker, pytest.mark.timeout(1800)]

ADA = "ada.lovelace@example.org"
LINE_S = 300
LOCAL = "$HOME/.local/bin/windrow"
STEP_S = second_factor.STEP_S


@dataclass
class Mailbox:
    """What a mail server of the test took: the links in it."""

    links: list[str] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        body = message_from_bytes(envelope.content, policy=policy.default).get_body(("plain",))
        assert body is not None
        self.links += re.findall(r"https?://\S+", body.get_content())
        return "250 OK"


@dataclass(frozen=True, slots=True)
class Scene:
    """The market, its mail server, the owner's shell, and a clean machine that comes by the bridge."""

    market: Stack
    mailbox: Mailbox
    owner: Person
    laptop: SecondHost

    @property
    def url(self) -> str:
        """As other machines and browsers reach it."""
        return str(self.market.cli["https_url"])

    def on_laptop(self, *words: str, fails: bool = False) -> str:
        """What `windrow ...` prints there; of one that fails, what it says."""
        done = self.laptop.run(f"{LOCAL} {' '.join(words)}", LINE_S)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    need_namespaces()
    clean_debian.need_debian()
    for service in ("docker", "busybox"):
        need(service)
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mailbox, root = Mailbox(), clean_debian.make(tmp_path / "root", "curl", "python3")
    mail = {"WINDROW_SMTP_URL": f"smtp://127.0.0.1:{port}?from=market@example.org&starttls=off"}
    with ExitStack() as cleanup:
        server = Controller(mailbox, hostname="127.0.0.1", port=port)
        server.start()
        cleanup.callback(server.stop)
        name, address = cleanup.enter_context(bridge())
        market = cleanup.enter_context(stack("--listen", "0.0.0.0", "--public", address, environment=mail))
        Renter(market).online()
        home = tmp_path / "owner"
        home.mkdir()
        owner = Person(home, {"WINDROW_URL": market.cli["url"], "WINDROW_TOKEN": market.cli["token"]})
        laptop = cleanup.enter_context(clean_host(name, address, root, has_systemd=False))
        yield Scene(market, mailbox, owner, laptop)


@asynccontextmanager
async def somebody(browser: Browser) -> AsyncIterator[Page]:
    """A browser of somebody's own."""
    context = await browser.new_context(locale="en-GB", ignore_https_errors=True)
    context.set_default_timeout(60_000)
    yield await context.new_page()
    await context.close()


@pytest.mark.proves(
    "the story of two people: mail, second factor, command line, a host that earns, a share", by="make long"
)
async def test_two_people_from_the_invitation_to_the_removal(scene: Scene, browser: Browser, tmp_path: Path) -> None:
    async with somebody(browser) as owner, somebody(browser) as ada:
        by_mail, by_link = await _invites(scene, owner)
        secret = await _accepts(ada, by_mail)
        await _signs_in_with_a_code(scene, ada, secret)
        await _has_the_command_line(scene, ada, by_link)
        await asyncio.to_thread(_earns, scene, tmp_path)
        await asyncio.to_thread(_enters_what_is_shared, scene)
        await _is_removed(scene, owner, ada)


async def _invites(scene: Scene, page: Page) -> tuple[str, str]:
    """The owner adds a project and invites into it: the links that came by mail and by the dialog."""
    dialog = page.get_by_role("dialog")
    await page.goto(f"{scene.market.cli['url']}/members#token={scene.market.cli['token']}")
    await page.get_by_role("button", name="New project").click()
    await dialog.get_by_label("Name").fill("lab")
    await dialog.get_by_role("button", name="Add the project").click()
    await expect(page.get_by_role("region", name="Projects").get_by_role("row", name="lab")).to_be_visible()
    for address in (ADA, ""):
        await page.get_by_role("button", name="Invite").click()
        await dialog.get_by_label("Mail address").fill(address)
        for role in ("Renter", "Provider"):
            await dialog.get_by_role("group", name="Project lab").get_by_label(role).check()
        await expect(dialog.get_by_role("group", name="Project default").get_by_label("Renter")).not_to_be_checked()
        await dialog.get_by_role("button", name="Invite").click()
        done = dialog.get_by_role("button", name="Done")
        await expect(done).to_be_visible()
        link = "" if address else await dialog.get_by_label("invitation link", exact=True).inner_text()
        await done.click()
    await expect(page.get_by_role("row", name=ADA)).to_be_visible()
    await asyncio.to_thread(wait_for, lambda: scene.mailbox.links)
    return scene.mailbox.links[0], link


async def _accepts(page: Page, link: str) -> bytes:
    """The invited takes a name and a password, and sets up a second factor: its secret."""
    dialog = page.get_by_role("dialog")
    await page.goto(link)
    await page.get_by_label("Your name").fill("Ada Lovelace")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Accept and sign in").click()
    await expect(page.get_by_role("button", name="Ada Lovelace")).to_be_visible()
    await page.goto("/".join([*link.split("/")[:3], "settings"]))
    await page.get_by_role("button", name="Set up second factor").click()
    await dialog.get_by_label("Present password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Show the QR code").click()
    text = (await dialog.get_by_label("secret", exact=True).inner_text()).replace(" ", "")
    secret = base64.b32decode(text + "=" * (-len(text) % 8))
    await dialog.get_by_label("Code", exact=True).fill(_code(secret))
    await dialog.get_by_role("button", name="Turn it on").click()
    await expect(dialog.get_by_label("recovery codes", exact=True)).to_be_visible()
    await dialog.get_by_role("button", name="Done").click()
    return secret


def _code(secret: bytes, steps: int = 0) -> str:
    """Of an authenticator app, so many steps of 30 s from now."""
    return HOTP(secret, second_factor.DIGITS, hashes.SHA1()).generate(int(time.time()) // STEP_S + steps).decode()


async def _signs_in_with_a_code(scene: Scene, page: Page, secret: bytes) -> None:
    await page.get_by_role("button", name="Ada Lovelace").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Mail address").fill(ADA.upper())
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Code").fill(_code(secret, 1))  # the one before was used
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Ada Lovelace")).to_be_visible()


async def _has_the_command_line(scene: Scene, page: Page, link: str) -> None:
    """One line on a clean machine; it is signed in by a code that is approved in the browser."""
    await asyncio.to_thread(wait_for, lambda: (scene.market.data_dir / "cli-wheels" / "files.txt").exists(), LINE_S)
    other = await page.context.new_page()
    await other.goto(link)
    shown = await other.get_by_label("line that installs windrow", exact=True).inner_text()
    await other.close()
    line = re.sub(r"WINDROW_LINK=\S+ ", "", shown)
    began_s = time.monotonic()
    done = await asyncio.to_thread(scene.laptop.run, line, LINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"windrow was installed in {time.monotonic() - began_s:.0f} s by one line")
    with scene.laptop.begun(f"{LOCAL} login {scene.url} 2>/srv/login") as login:
        said = await asyncio.to_thread(wait_for, lambda: _code_said(scene))
        await page.goto(f"{scene.url}/device?code={said}")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("lab", exact=True).first).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("status")).to_contain_text("is signed in")
        assert await asyncio.to_thread(login.wait, LINE_S) == 0
    me = json.loads(scene.on_laptop("whoami", "--json"))
    assert (me["user"]["name"], me["account"]["name"]) == ("Ada Lovelace", "lab")


def _code_said(scene: Scene) -> str:
    found = re.search(r"code=([A-Z]{4}-[A-Z]{4})", scene.laptop.run("cat /srv/login").stdout)
    return found[1] if found else ""


@contextmanager
def _host(scene: Scene, folder: Path, registry: str) -> Iterator[str]:
    """A host of the invited on this machine, joined with a token of her own: its name."""
    made = json.loads(scene.on_laptop("token", "add", "--join", "--json"))
    agent = [sys.executable, "-m", "windrow_agent"]
    own = ["--data-dir", str(folder)]
    joined = subprocess.run(
        [*agent, "join", scene.url, "--token-file", "-", "--name", "adas-host", *own],
        input=made["join_token"] + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=LINE_S,
    )
    assert joined.returncode == 0, joined.stderr
    with (folder / "log").open("wb") as log:
        command = [*agent, "run", *own, "--runtimes", "docker", "--registries", registry]
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield "adas-host"
    finally:
        running.terminate()
        running.wait(60)


def _balance(scene: Scene) -> Decimal:
    found = json.loads(scene.on_laptop("ledger", "balances", "--json"))
    return Decimal(found[0]["amount"]) if found else Decimal(0)


def _earns(scene: Scene, folder: Path) -> None:
    """The owner rents the invited's host by container and pays: her balance grows by exactly that."""
    here = Namespace(os.open("/proc/self/ns/net", os.O_RDONLY))
    with tiny_registry(here) as registry:
        registry.hold(1, Path(str(shutil.which("busybox"))).read_bytes(), ("sh",))
        with _host(scene, folder / "agent", registry.address) as name:
            found = wait_for(lambda: (h := _listed(scene, name)) and h["link_state"] == "online" and h["tier"] and h)
            before = _balance(scene)
            renter = Renter(scene.market)
            cluster = renter.create(
                "sh", "-c", "echo inside; sleep 3600", host_id=found["id"], image=f"{registry.address}/work:1"
            )
            assert cluster["phase"] == "Running", json.dumps(cluster)
            wait_for(lambda: b"inside" in renter.log(cluster["id"]))
            time.sleep(3)  # of paid time
            receipt = renter.delete(cluster["id"])
            assert Decimal(receipt["amount"]) > 0
            wait_for(lambda: _balance(scene) - before == Decimal(receipt["amount"]))
            print(f"the owner paid {receipt['amount']} and the invited has as much more")


def _listed(scene: Scene, name: str) -> Any:
    return next((h for h in Renter(scene.market).all("/hosts") if h["name"].startswith(name)), None)


def _enters_what_is_shared(scene: Scene) -> None:
    """A shell of the invited in a cluster of the owner's, until the share is withdrawn."""
    renter = Renter(scene.market)
    cluster = renter.create("sh", "-c", "sleep 3600", runtime="process")
    assert "no such machine" in scene.on_laptop("cluster", "show", cluster["id"], fails=True)
    share = scene.owner.json("share", "add", cluster["id"], "--with", ADA, "--level", "use")
    assert scene.on_laptop("cluster", "exec", cluster["id"], "--", "echo", "inside") == "inside\n"
    command = f"{LOCAL} cluster exec {cluster['id']} -- sh -c 'echo up; sleep 3600' >/srv/shell"
    with scene.laptop.begun(command) as shell:
        wait_for(lambda: scene.laptop.run("cat /srv/shell").stdout == "up\n")
        scene.owner.windrow("share", "rm", share["id"])
        began_s = time.monotonic()
        assert shell.wait(60) != 0
        print(f"the shell ended {time.monotonic() - began_s:.1f} s after the share")
    scene.on_laptop("cluster", "exec", cluster["id"], "--", "true", fails=True)
    renter.delete(cluster["id"])


async def _is_removed(scene: Scene, owner: Page, ada: Page) -> None:
    """By the owner in the console: the invited's open stream and her next click end."""
    dialog = owner.get_by_role("dialog")
    renter = Renter(scene.market)
    cluster = renter.create("sh", "-c", "echo hers; sleep 3600", runtime="process")
    scene.owner.windrow("share", "add", cluster["id"], "--with", ADA, "--level", "use")
    with scene.laptop.begun(f"{LOCAL} cluster logs --follow {cluster['id']} >/srv/log") as stream:
        await asyncio.to_thread(wait_for, lambda: scene.laptop.run("cat /srv/log").stdout == "hers\n")
        await ada.goto(f"{scene.url}/clusters")
        await expect(ada.get_by_role("heading", name="Machines", level=1)).to_be_visible()
        assert stream.poll() is None
        await owner.get_by_role("button", name="Remove: Ada Lovelace").click()
        await dialog.get_by_label("Type Ada Lovelace to confirm").fill("Ada Lovelace")
        await dialog.get_by_role("button", name="Remove").click()
        await expect(owner.get_by_role("row", name="Ada Lovelace")).to_have_count(0)
        began_s = time.monotonic()
        assert await asyncio.to_thread(stream.wait, 60) != 0
        print(f"her stream ended {time.monotonic() - began_s:.1f} s after she was removed")
    await expect(ada.get_by_role("button", name="Sign in")).to_be_visible()
    assert "was revoked" in scene.on_laptop("whoami", fails=True)
    renter.delete(cluster["id"])
