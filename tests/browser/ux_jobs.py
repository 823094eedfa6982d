"""The jobs of a first-time user, each as a hand does it from the home page, with what it may take."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.busy_market import BusyMarket
from tests.browser.hand import Hand
from tests.support.people import limited
from tests.support.rental import Renter

WINDOW: Final = ViewportSize(width=1440, height=900)
WAIT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a job may take; None: it is only counted."""

    clicks: int | None = None
    fields: int | None = None
    seconds: float | None = None

    def holds(self, clicks: int, fields: int, seconds: float) -> bool:
        """Return whether what was taken is within it."""
        pairs = ((clicks, self.clicks), (fields, self.fields), (seconds, self.seconds))
        return all(most is None or took <= most for took, most in pairs)

    def __str__(self) -> str:
        parts = ((self.clicks, "clicks"), (self.fields, "fields"), (self.seconds, "s"))
        return ", ".join(f"{most} {unit}" for most, unit in parts if most is not None) or "-"


@dataclass(slots=True)
class Scene:
    """A market with its people, and what a job needs before it begins. folder: for files and pictures."""

    browser: Browser
    market: BusyMarket
    folder: Path
    _made: list[str] = field(default_factory=list)

    @property
    def renter(self) -> Renter:
        """The owner of this machine, which is rented for real."""
        return Renter(self.market.stack)

    @asynccontextmanager
    async def hand(self, who: str) -> AsyncIterator[Hand]:
        """A hand of one of the market's people, on the home page, which rests."""
        person = getattr(self.market, who)
        context = await self.browser.new_context(locale="en-GB", viewport=WINDOW, ignore_https_errors=True)
        context.set_default_timeout(WAIT_MS)
        page = await context.new_page()
        await page.goto(f"{person.url}/#token={person.token}")
        await at_rest(page)
        yield Hand(page)
        await context.close()

    async def machine(self, **more: Any) -> str:
        """A real machine of the owner, that runs: its name."""
        name = fresh("bench")
        made = await asyncio.to_thread(self.renter.create, "sleep", "3600", name=name, **more)
        assert made["phase"] == "Running", made
        return name

    def clear(self) -> None:
        """Delete what runs for real: this machine has room for one."""
        for cluster in self.renter.all("/clusters"):
            if not cluster["request"]["simulated"] and cluster["phase"] not in ("Deleted", "Finished", "Failed"):
                self.renter.delete(cluster["id"])


def fresh(name: str) -> str:
    """This name with an end that no other has."""
    return f"{name}-{secrets.token_hex(2)}"


async def at_rest(page: Page) -> None:
    """Wait until a page shows what it has."""
    await expect(page.get_by_role("main")).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


# --- rent ------------------------------------------------------------------------------------------------------------


async def find_an_offer(hand: Hand, scene: Scene) -> None:
    await hand.go("GPUs & prices")
    await hand.choose("GPU", "H100")
    await hand.sees(hand.page.get_by_role("link", name=re.compile("^Rent H100")))


async def rent_a_machine(hand: Hand, scene: Scene) -> None:
    await hand.click("New")
    await hand.click("Machine", "menuitem")
    await hand.click(re.compile("^SSH machine"), "radio")
    await hand.click(re.compile("^H100"), "radio")
    await hand.click("Start machine")
    await hand.sees(hand.page.get_by_role("list", name="Steps"), "Running")
    await hand.sees(hand.page.get_by_role("button", name="Delete"))


async def log_in_by_ssh(hand: Hand, scene: Scene) -> None:
    key = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    name = await scene.machine(ssh_keys=[key])
    await hand.go("Machines")
    await hand.click(name, "link")
    await hand.sees(hand.page.get_by_label("command to log in", exact=True), f"windrow cluster ssh {name}")


async def open_jupyter(hand: Hand, scene: Scene) -> None:
    page = hand.page
    await hand.click("New")
    await hand.click("PyTorch with Jupyter", "menuitem")
    await hand.sees(page.get_by_test_id("plan"), "Fits")
    await hand.click("Start machine")
    async with page.context.expect_page() as opened:
        await hand.click("Open Jupyter")
    notebook = await opened.value
    # Of the notebook, and of JupyterLab.
    await hand.sees(notebook.get_by_role("button", name="New").or_(notebook.get_by_role("menuitem", name="File")))


async def open_a_terminal(hand: Hand, scene: Scene) -> None:
    for name in ("Machines", await scene.machine()):  # one is at a running machine
        await hand.page.get_by_role("link", name=name, exact=True).first.click()
    await expect(hand.page.get_by_role("button", name="Open terminal")).to_be_visible()
    await hand.click("Open terminal")
    screen = hand.page.get_by_role("main").get_by_role("textbox", name="Terminal input")
    await hand.sees(screen)
    await screen.press_sequentially("echo $((6*7))\n")
    await hand.sees(hand.page.get_by_role("main").get_by_text("42", exact=True))


async def submit_a_folder(hand: Hand, scene: Scene) -> None:
    project = scene.folder / "project"
    project.mkdir(exist_ok=True)
    (project / "train.py").write_text("print('answer', 6 * 7)\n")
    await hand.click("New")
    await hand.click("Job", "menuitem")
    async with hand.page.expect_file_chooser() as opened:
        await hand.click("Choose a folder")
    await hand.give(await opened.value, project)
    await hand.sees(hand.page.get_by_role("status"), "project: 1 file")
    await hand.sees(hand.page.get_by_text("Fits now"))
    await hand.click("Submit job")
    await hand.sees(hand.page.get_by_role("log"), "answer 42")


async def read_a_log(hand: Hand, scene: Scene) -> None:
    await hand.go("Jobs")
    await hand.click("nightly-eval", "link")
    await hand.sees(hand.page.get_by_role("log"), "accuracy 0.914")


async def see_charts(hand: Hand, scene: Scene) -> None:
    await hand.go("Machines")
    await hand.click("train-llama", "link")
    await hand.click("Charts", "tab")
    await hand.sees(hand.page.get_by_role("img", name=re.compile("^GPU")))


async def read_a_receipt(hand: Hand, scene: Scene) -> None:
    await hand.go("Receipts")
    await hand.click_on(hand.page.get_by_role("main").get_by_role("link", name=re.compile("^broken-run")).first)
    await hand.sees(hand.page.get_by_role("heading", name=re.compile("^Receipt: ")))


async def see_spend(hand: Hand, scene: Scene) -> None:
    await hand.go("Usage & billing")
    await hand.sees(hand.page.get_by_role("region", name="Money now"), "so far")


async def export_a_report(hand: Hand, scene: Scene) -> None:
    await hand.go("Usage & billing")
    await hand.sees(hand.page.get_by_role("region", name="By machine"))
    async with hand.page.expect_download() as saved:
        await hand.click("Save the days as CSV")
    assert len(Path(await (await saved.value).path()).read_text().splitlines()) > 10


async def understand_a_refusal(hand: Hand, scene: Scene) -> None:
    await hand.go("Jobs")
    await hand.click("eval-b200", "link")
    await hand.sees(hand.page.get_by_test_id("refusal"), "B200")


# --- provide and operate ---------------------------------------------------------------------------------------------


async def add_a_host(hand: Hand, scene: Scene) -> None:
    await hand.click("New")
    await hand.click("Host", "menuitem")
    await hand.click("Create command")
    await hand.sees(hand.page.get_by_label("join command", exact=True), "curl")


async def set_a_price(hand: Hand, scene: Scene) -> None:
    dialog = hand.page.get_by_role("dialog")
    await hand.go("Pricing")
    await hand.click(re.compile(r"change the price of h100\b"))
    await hand.fill_on(dialog.get_by_label(re.compile(r"^Price per hour of h100\b")), "2.2")
    await hand.click("Set", within=dialog)
    await hand.sees(hand.page.get_by_role("button", name=re.compile(r"^2\.20.h: change the price of h100\b")))


async def see_earnings(hand: Hand, scene: Scene) -> None:
    await hand.go("Earnings")
    await hand.sees(hand.page.get_by_role("region", name="Earnings now"), "earned in")


async def mend_a_gpu(hand: Hand, scene: Scene) -> None:
    needs = hand.page.get_by_role("region", name="Needs attention")
    await hand.click(re.compile("provider-0000, GPU 2$"), "link", within=needs)
    await hand.sees(hand.page.get_by_text("What to do"))
    await hand.click(re.compile("provider-0000, GPU 2$"), "link", within=hand.page.get_by_role("main"))
    await hand.sees(hand.page.get_by_role("heading", name="What to do"))
    await hand.sees(hand.page.get_by_text("Reboot the host."))


async def drain_a_relay(hand: Hand, scene: Scene) -> None:
    dialog = hand.page.get_by_role("dialog")
    await hand.go("Relays")
    await hand.click(re.compile("^Drain "))
    await hand.fill("Reason", "new disk", within=dialog)
    await hand.click("Drain", within=dialog)
    await hand.sees(hand.page.get_by_text("all agents have left"))


async def invite_a_colleague(hand: Hand, scene: Scene) -> None:
    dialog = hand.page.get_by_role("dialog")
    await hand.click("New")
    await hand.click("Invitation", "menuitem")
    await hand.fill("Mail address", "grace@example.org", within=dialog)
    await hand.click("Invite", within=dialog)
    await hand.sees(dialog.get_by_label("invitation link", exact=True), "http")


async def revoke_a_token(hand: Hand, scene: Scene) -> None:
    name = fresh("old-laptop")
    await asyncio.to_thread(limited, scene.market.stack, name, "renter")
    dialog = hand.page.get_by_role("dialog")
    await hand.go("Tokens")
    await hand.click(f"Revoke {name}")
    await hand.fill(f"Type {name} to confirm", name, within=dialog)
    await hand.click("Revoke", within=dialog)
    await hand.sees_not(hand.page.get_by_role("button", name=f"Revoke {name}"))


async def set_a_monthly_limit(hand: Hand, scene: Scene) -> None:
    dialog = hand.page.get_by_role("dialog")
    await hand.go("Members")
    await hand.click(re.compile("^Limits"))
    await hand.fill("Per month", "20000", within=dialog)
    await hand.click("Set the limits", within=dialog)
    await hand.sees_not(dialog)


@dataclass(frozen=True, slots=True)
class Job:
    """who: of the market's people. before: how it went before this console was made, as it was measured then."""

    name: str
    who: str
    play: Callable[[Hand, Scene], Awaitable[None]]
    before: str
    limit: Limit = field(default_factory=Limit)


JOBS: Final = (
    Job("add a host", "provider", add_a_host, "2 clicks, 2 s"),
    Job("find an offer", "renter", find_an_offer, "1 click, tiers only"),
    Job("rent a machine", "renter", rent_a_machine, "4 clicks, 2 fields, 7 s"),
    Job("log in by SSH", "owner", log_in_by_ssh, "a line to copy"),
    Job("open Jupyter", "owner", open_jupyter, "2 lines to copy", Limit(clicks=4, seconds=10)),
    Job("open a terminal", "owner", open_a_terminal, "not possible", Limit(clicks=1)),
    Job("submit a job with a folder", "owner", submit_a_folder, "not possible", Limit(clicks=4, fields=2)),
    Job("read its log", "renter", read_a_log, "2 clicks"),
    Job("see its charts", "renter", see_charts, "not for machines"),
    Job("read a receipt", "renter", read_a_receipt, "2 clicks"),
    Job("see this month's spend", "renter", see_spend, "not possible", Limit(clicks=1)),
    Job("from a faulty GPU to its remedy", "operator", mend_a_gpu, "5 clicks, no remedy", Limit(clicks=2)),
    Job("drain a relay", "operator", drain_a_relay, "2 clicks, 1 field, 12 s"),
    Job("understand a refusal", "renter", understand_a_refusal, "crashed"),
    Job("revoke a token", "owner", revoke_a_token, "2 clicks, 1 field"),
    Job("invite a colleague", "owner", invite_a_colleague, "not possible", Limit(clicks=3)),
    Job("set a price", "provider", set_a_price, "2 clicks, 1 field, market-wide", Limit(clicks=3)),
    Job("see earnings", "provider", see_earnings, "one panel"),
    Job("export a report", "renter", export_a_report, "a list as it is"),
    Job("limit what a month may cost", "owner", set_a_monthly_limit, "not possible"),
)
