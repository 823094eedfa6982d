"""The line of curl and the line of `windrow` that a form shows do the same as the form: each line is run, what arrives
is compared with what the form sends, and both are read by the Master's own models."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.async_api import Locator, Page, Request, expect
from pydantic import BaseModel
from typer.main import get_command

from tests.browser.pretend_clouds import add_clouds
from tests.browser.pretend_ends import market_user, offer
from tests.browser.pretend_master import TOKEN, Served
from tests.browser.pretend_members import member, project
from tests.browser.pretend_people import person
from tests.browser.pretend_world import Asked
from tests.browser.test_console_states import signed_in
from tests.services import all_required
from windrow.cli.main import app
from windrow.errors import ApiProblem
from windrow_master.api.backend_routes import BackendBody, CapsChangeBody, SweepBody
from windrow_master.api.bodies import Reason
from windrow_master.api.cluster_routes import ClusterBody, ExtendBody, ResizeBody
from windrow_master.api.identity_routes import JoinTokenBody, TokenBody
from windrow_master.api.lifecycle_routes import OfferBody, OrganisationBody, ReasonBody, SettleBody
from windrow_master.api.limit_routes import LimitsBody
from windrow_master.api.market_routes import PriceBody
from windrow_master.api.people_routes import InvitationBody, MemberBody, ProjectBody
from windrow_master.api.purchase_routes import PurchaseBody
from windrow_master.api.service_account_routes import RotateBody, ServiceBody
from windrow_master.api.volume_routes import VolumeBody
from windrow_master.api.workload_routes import ExecBody

Pretend = Callable[..., Served]
HOST = "host_019a0000-0000-7000-8000-000000000001"
COMMAND = "command_019a0000-1111-7000-8000-000000000000"
NASTY = """it's "100%" of $HOME `id` \\ *"""
CURL_S = 20
CURL_REFUSED = 22
"""How curl -f ends where the answer is an error: the line was understood and the request arrived."""
BODIES: tuple[tuple[str, type[BaseModel]], ...] = (
    (r"/clusters", ClusterBody),
    (r"/clusters/[^/]+/exec", ExecBody),
    (r"/clusters/[^/]+/resize", ResizeBody),
    (r"/hosts/[^/]+/drain", Reason),
    (r"/accesses/[^/]+/(drain|resume)", Reason),
    (r"/tokens", TokenBody),
    (r"/join-tokens", JoinTokenBody),
    (r"/volumes", VolumeBody),
    (r"/offers/.+", PriceBody),
    (r"/invitations", InvitationBody),
    (r"/members/[^/]+", MemberBody),
    (r"/projects", ProjectBody),
    (r"/service-accounts", ServiceBody),
    (r"/service-accounts/[^/]+/rotate", RotateBody),
    (r"/.+/limits", LimitsBody),
    (r"/projects/[^/]+/transfer", OfferBody),
    (r"/users/[^/]+/delete", ReasonBody),
    (r"/(users/[^/]+/make-owner|accounts/[^/]+/transfer)", OrganisationBody),
    (r"/accounts/[^/]+/settle", SettleBody),
    (r"/backends", BackendBody),
    (r"/backends/[^/]+/caps", CapsChangeBody),
    (r"/backends/[^/]+/sweep", SweepBody),
    (r"/purchases", PurchaseBody),
    (r"/purchases/[^/]+/end", Reason),
)
PAGING = {"limit", "cursor"}


def meant(asked: Asked) -> Asked:
    """The same with what was not said filled in as the Master would; how long its pages are means nothing."""
    model = next((model for pattern, model in BODIES if re.fullmatch(pattern, asked.path)), None)
    if asked.method == "DELETE":
        model = None
    body = (asked.body or None) if model is None else model.model_validate(asked.body)
    return replace(asked, body=body, query={k: v for k, v in asked.query.items() if k not in PAGING})


def sent(request: Request) -> Asked:
    """Returns the request that the page sent."""
    url = urlsplit(request.url)
    body = json.loads(request.post_data or "null")
    return Asked(request.method, url.path.removeprefix("/api/v1"), dict(parse_qsl(url.query)), body)


def run_call(line: str) -> None:
    """The line of curl, in a shell, with the token where the line says."""
    environment = {**os.environ, "WINDROW_TOKEN": TOKEN}
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, timeout=CURL_S)
    assert done.returncode == CURL_REFUSED, f"{line}\n{done.stderr}"


def run_command(line: str) -> None:
    """The line of `windrow`, by the command itself; that the Master refuses is what ends it."""
    program, *words = shlex.split(line)
    assert program == "windrow"
    with pytest.raises(ApiProblem):
        get_command(app)(words, standalone_mode=False)


class Forms:
    """Forms of one page, each compared with what it shows."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served

    async def same(self, within: Locator, act: Callable[[], Awaitable[None]], method: str, path: str) -> None:
        """Run what the form shows, then send the form itself: all must have asked for the same."""
        await within.get_by_role("button", name="Show API and CLI call").click()
        call = await within.get_by_label("HTTP call", exact=True).inner_text()
        assert TOKEN not in call
        await asyncio.to_thread(run_call, call)
        line = await within.get_by_label("windrow command", exact=True).inner_text()
        await asyncio.to_thread(run_command, line)
        shown = [meant(self.served.world.asked.pop(0)) for _ in range(2)]
        assert not self.served.world.asked
        fits = re.compile(rf"/api/v1{path}(\?|$)")
        async with self.page.expect_request(lambda one: one.method == method and bool(fits.search(one.url))) as waited:
            await act()
        form = meant(sent(await waited.value))
        assert form.method == method
        assert shown == [form] * len(shown)


@pytest.fixture
def forms(page: Page, pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> Forms:
    """A pretend Master that `windrow` finds as well."""
    if shutil.which("curl") is None:
        (pytest.fail if all_required() else pytest.skip)("curl is not installed (on Debian: apt-get install curl)")
    served = pretend()
    monkeypatch.setenv("WINDROW_URL", served.url)
    monkeypatch.setenv("WINDROW_TOKEN", TOKEN)
    return Forms(page, served)


async def test_the_forms_of_a_cluster_show_the_calls_that_they_make(forms: Forms) -> None:
    page, main = forms.page, forms.page.get_by_role("main")
    await signed_in(page, forms.served, "/clusters/new")
    await page.get_by_text("Service", exact=True).click()
    await page.get_by_role("textbox", name="Command").fill("sh -c 'echo \"it'\\''s $HOME\"; sleep 9' -- ''")
    await page.get_by_role("textbox", name="Name").fill(NASTY)
    await page.get_by_role("textbox", name="Ports").fill("8080, 9090")
    await page.get_by_label("Memory from (GiB)").first.fill("1.5")
    await page.get_by_label("Tier").select_option("cpu/A")
    await page.get_by_label("Price per hour, at most").fill("0.50")
    await page.get_by_label("Maximum run time (hours)").fill("8")
    await page.get_by_label("Container image").fill("registry.example/a:1")
    await page.get_by_label("Runtime").select_option("docker")
    await page.get_by_label("Environment").fill(f"A={NASTY}\nB=")
    await forms.same(main, page.get_by_role("button", name="Create machine").click, "POST", "/clusters")
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await page.get_by_role("tab", name="Run a command inside").click()
    inside = page.get_by_role("region", name="Inside")
    await inside.get_by_placeholder("ls -la").fill("sh -c 'exit 3' --flag")
    await forms.same(inside, inside.get_by_role("button", name="Run", exact=True).click, "POST", "/clusters/[^/]+/exec")
    dialog = page.get_by_role("dialog")
    await page.get_by_role("button", name="Extend", exact=True).click()
    await dialog.get_by_label("Hours longer").fill("1.5")
    await expect(dialog.get_by_role("status")).to_contain_text("It will have cost at most 0.76")
    async with page.expect_request(lambda one: one.url.endswith("/extend")) as waited:
        await dialog.get_by_role("button", name="Extend", exact=True).click()
    assert ExtendBody.model_validate(sent(await waited.value).body).max_duration_seconds == 34_200
    await expect(dialog).to_have_count(0)
    for verb, phase in (("Stop", "Stopped"), ("Start", "Running")):
        await page.get_by_role("button", name=verb, exact=True).click()
        act = dialog.get_by_role("button", name=f"{verb} machine").click
        if verb == "Start":
            await expect(dialog.get_by_test_id("plan")).to_contain_text("Fits")
        await forms.same(dialog, act, "POST", f"/clusters/[^/]+/{verb.lower()}")
        await expect(page.get_by_test_id("phase")).to_have_text(phase)
    await page.get_by_role("button", name="Delete").click()
    await forms.same(dialog, dialog.get_by_role("button", name="Delete machine").click, "DELETE", "/clusters/[^/]+")


async def test_the_forms_of_hosts_prices_and_tokens_and_the_lists_show_the_calls_that_they_make(forms: Forms) -> None:
    page, main, dialog = forms.page, forms.page.get_by_role("main"), forms.page.get_by_role("dialog")
    await signed_in(page, forms.served, f"/hosts/{HOST}?tab=charts")
    measured = page.get_by_role("region", name="Bandwidth")
    await forms.same(measured, measured.get_by_role("button", name="Measure now").click, "POST", "/hosts/[^/]+/measure")
    await page.get_by_role("button", name="Actions").click()
    await page.get_by_role("menuitem", name="Drain").click()
    await dialog.get_by_label("Reason").fill(NASTY)
    await forms.same(dialog, dialog.get_by_role("button", name="Drain").click, "POST", "/hosts/[^/]+/drain")
    await expect(dialog).to_have_count(0)
    for verb in ("Drain", "Resume"):
        await page.goto(f"{forms.served.url}/regions")
        await page.get_by_role("button", name=f"{verb} relay north").click()
        await dialog.get_by_label("Reason").fill(NASTY)
        act = dialog.get_by_role("button", name=verb).click
        await forms.same(dialog, act, "POST", f"/accesses/access_north/{verb.lower()}")
        await expect(dialog).to_have_count(0)
    await page.keyboard.type("go")
    await page.get_by_role("button", name="change the price of cpu/A").click()
    await page.get_by_label("Price per hour of cpu/A").fill("0.125")
    await forms.same(dialog, dialog.get_by_role("button", name="Set", exact=True).click, "PUT", "/offers/cpu/A")
    await expect(dialog).to_have_count(0)
    await page.keyboard.type("gt")
    await page.get_by_role("button", name="New token").click()
    await dialog.get_by_label("Name").fill(f"--{NASTY}")
    await dialog.get_by_label("auditor").uncheck()
    await dialog.get_by_label("Valid for").select_option("7 days")
    await forms.same(dialog, dialog.get_by_role("button", name="Make token").click, "POST", "/tokens")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name=f"Revoke --{NASTY}").click()
    await dialog.get_by_role("textbox").fill(f"--{NASTY}")
    await forms.same(dialog, dialog.get_by_role("button", name="Revoke").click, "DELETE", "/tokens/token_2")
    await expect(dialog).to_have_count(0)
    await page.keyboard.type("gj")
    await forms.same(main, page.get_by_role("button", name="Create command").click, "POST", "/join-tokens")

    async def reload() -> None:
        await page.reload()

    await page.goto(f"{forms.served.url}/audit?actor=account/account_1&action=host.&since=2026-01-31&until=2026-02-01")
    await forms.same(main, reload, "GET", "/audit")
    await page.goto(f"{forms.served.url}/commands/{COMMAND}")
    await forms.same(main, reload, "GET", "/commands/[^/]+")


async def test_the_forms_of_members_show_the_calls_that_they_make(forms: Forms) -> None:
    page, dialog, world = forms.page, forms.page.get_by_role("dialog"), forms.served.world
    world.projects.append(project("account_7", "lab", "admin"))
    world.members.append(member("user_7", "bob", "org_billing", [project("account_7", "lab", "renter")]))
    await signed_in(page, forms.served, "/members")
    await page.get_by_role("button", name="Invite").click()
    await dialog.get_by_label("Mail address").fill("o'neil+a@example.org")
    await dialog.get_by_label("Role in the organisation").select_option("Auditor")
    await dialog.get_by_role("group", name="Project lab").get_by_label("Viewer").check()
    act = dialog.get_by_role("button", name="Invite", exact=True).click
    await forms.same(dialog, act, "POST", "/invitations")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Change roles: bob").click()
    await dialog.get_by_label("Role in the organisation").select_option("None: projects only")
    await dialog.get_by_role("group", name="Project lab").get_by_label("Renter").uncheck()
    await dialog.get_by_role("group", name="Project first account").get_by_label("Viewer").check()
    act = dialog.get_by_role("button", name="Change roles").click
    await forms.same(dialog, act, "PUT", "/members/user_7")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Password link: bob").click()
    act = dialog.get_by_role("button", name="Make the link").click
    await forms.same(dialog, act, "POST", "/members/user_7/password-link")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Remove: bob").click()
    await dialog.get_by_label("Type bob to confirm").fill("bob")
    await forms.same(dialog, dialog.get_by_role("button", name="Remove").click, "DELETE", "/members/user_7")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="New project").click()
    await dialog.get_by_label("Name").fill("lab2")
    await forms.same(dialog, dialog.get_by_role("button", name="Add the project").click, "POST", "/projects")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="New service account").click()
    await dialog.get_by_label("Name").fill("ci")
    await dialog.get_by_label("Renter").check()
    await forms.same(dialog, dialog.get_by_role("button", name="Add it").click, "POST", "/service-accounts")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="New token: ci").click()
    act = dialog.get_by_role("button", name="Make the token").click
    await forms.same(dialog, act, "POST", "/service-accounts/service_1/rotate")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Remove: ci").click()
    await dialog.get_by_label("Type ci to confirm").fill("ci")
    act = dialog.get_by_role("button", name="Remove").click
    await forms.same(dialog, act, "DELETE", "/service-accounts/service_1")


async def test_the_forms_of_limits_show_the_calls_that_they_make(forms: Forms) -> None:
    page, dialog = forms.page, forms.page.get_by_role("dialog")
    await signed_in(page, forms.served, "/members")
    for per_hour, verb, method in (("2.50", "Set", "PUT"), ("", "Remove", "DELETE")):
        await page.get_by_role("button", name="Limits: first account").click()
        await dialog.get_by_label("Per hour").fill(per_hour)
        act = dialog.get_by_role("button", name=f"{verb} the limits").click
        await forms.same(dialog, act, method, "/projects/account_1/limits")
        await expect(dialog).to_have_count(0)


async def test_the_forms_of_ends_show_the_calls_that_they_make(forms: Forms) -> None:
    page, dialog, world = forms.page, forms.page.get_by_role("dialog"), forms.served.world
    world.users.append(market_user("user_7", "bob", "org_admin"))
    world.people.append(person("account_7", "bob", ["renter"], "12.00"))
    world.projects.append(project("account_8", "lab", "admin"))
    world.offers.append(offer("account_9", "farm", is_mine=False))
    why, given = {"Reason": NASTY}, {"Organisation": "acme"}
    await signed_in(page, forms.served)
    for path, opens, fields, act, method, called in (
        ("/members", "Transfer: lab", given, "Offer the project", "POST", "/projects/[^/]+/transfer"),
        ("", "Accept: farm", {}, "Accept the project", "POST", "/projects/account_9/transfer/accept"),
        ("", "Delete: lab", {"Type lab to confirm": "lab"}, "Delete the project", "DELETE", "/projects/account_8"),
        ("/people", "Settle: bob", why, "Write it off", "POST", "/accounts/account_7/settle"),
        ("", "Transfer: bob", why | given, "Transfer", "POST", "/accounts/account_7/transfer"),
        ("", "Make owner: bob", why, "Make owner", "POST", "/users/user_7/make-owner"),
        ("", "Delete user: bob", why | {"Type bob to confirm": "bob"}, "Delete user", "POST", "/users/.*/delete"),
        ("/members", "Leave: first account", {"Type home to confirm": "home"}, "Leave", "DELETE", "/user/.*"),
    ):
        if path:
            await page.goto(forms.served.url + path)
        await page.get_by_role("button", name=opens).click()
        for label, text in fields.items():
            await dialog.get_by_label(label).fill(text)
        await forms.same(dialog, dialog.get_by_role("button", name=act).click, method, called)
        await expect(dialog).to_have_count(0)


async def test_the_forms_of_clouds_show_the_calls_that_they_make(forms: Forms) -> None:
    page, dialog = forms.page, forms.page.get_by_role("dialog")
    add_clouds(forms.served.world)
    await signed_in(page, forms.served, "/clouds")

    async def change(deed: str) -> None:
        await page.get_by_role("button", name="Change aws").click()
        await page.get_by_role("menuitem", name=deed).click()

    await page.get_by_role("button", name="Add a backend").click()
    await dialog.get_by_label("Name", exact=True).fill("frankfurt")
    await dialog.get_by_label("Region", exact=True).fill("eu-central-1")
    await dialog.get_by_label("Per day (USD)").fill("40")
    await dialog.get_by_label("vCPUs").fill("64")
    await forms.same(dialog, dialog.get_by_role("button", name="Add the backend").click, "POST", "/backends")
    await expect(dialog).to_have_count(0)
    await change("Set caps")
    await dialog.get_by_label("In all (USD)").fill("")
    await forms.same(dialog, dialog.get_by_role("button", name="Set the caps").click, "PUT", "/backends/aws/caps")
    await expect(dialog).to_have_count(0)
    await change("Sweep")
    await dialog.get_by_label("Another market of yours").fill("market-of-before")
    await forms.same(
        dialog, dialog.get_by_role("button", name="Sweep", exact=True).click, "POST", "/backends/aws/sweep"
    )
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Buy a machine").click()
    await dialog.get_by_label("Offer").select_option("g5.xlarge/eu-central-1a/spot")
    await dialog.get_by_label("Ended after").fill("1.5")
    await forms.same(dialog, dialog.get_by_role("button", name="Buy", exact=True).click, "POST", "/purchases")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="End 1").first.click()
    await dialog.get_by_label("Reason").fill(NASTY)
    await forms.same(
        dialog, dialog.get_by_role("button", name="End the purchase").click, "POST", "/purchases/[^/]+/end"
    )
    await expect(dialog).to_have_count(0)
    for deed, button, method, path in (
        ("Stop all", "Stop all", "POST", "/backends/spare/stop-all"),
        ("Remove", "Remove the backend", "DELETE", "/backends/spare"),
    ):
        await page.get_by_role("button", name="Change spare").click()
        await page.get_by_role("menuitem", name=deed).click()
        await dialog.get_by_label("Type spare to confirm").fill("spare")
        await forms.same(dialog, dialog.get_by_role("button", name=button).click, method, path)
        await expect(dialog).to_have_count(0)


async def test_what_a_form_says_is_kept_by_a_name_and_fills_it_again(forms: Forms) -> None:
    page = forms.page
    await signed_in(page, forms.served, "/clusters/new")
    await page.get_by_text("Ray", exact=True).click()
    await page.get_by_role("textbox", name="Hosts").fill("3")
    await page.get_by_role("textbox", name="Budget").fill("20")
    await page.get_by_label("Keep it as").fill("big-ray")
    await page.get_by_role("button", name="Keep", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("windrow cluster create --template big-ray")
    await page.reload()
    await page.get_by_label("Template", exact=True).select_option("big-ray")
    await expect(page.get_by_role("textbox", name="Hosts")).to_have_value("3")
    await expect(page.get_by_role("textbox", name="Budget")).to_have_value("20")
    await expect(page.get_by_role("radio", name="Ray")).to_be_checked()
    await page.get_by_role("button", name="Forget it").click()
    await expect(page.get_by_label("Template", exact=True)).to_have_count(0)


@pytest.mark.parametrize(("path", "button"), [("clusters", "Create machine"), ("jobs", "Submit job")])
async def test_a_registry_login_is_in_what_is_sent_alone(forms: Forms, path: str, button: str) -> None:
    page, secret = forms.page, "their-very-own-password"
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one))
    await signed_in(page, forms.served, f"/{path}/new")
    await page.get_by_role("textbox", name="Command").fill("true")
    await page.get_by_label("Container image").fill("registry.example/a:1")
    await page.get_by_label("Registry password").first.fill(secret)
    await page.get_by_role("button", name=button).click()
    await expect(page.get_by_text("A user name beside the password").first).to_be_visible()
    async with page.expect_request(lambda one: one.url.endswith(f"/api/v1/{path}/plan")):
        await page.get_by_label("Registry user").fill("a-renter")
    await page.get_by_role("button", name="Show API and CLI call").click()
    shown = [await page.get_by_label(name, exact=True).inner_text() for name in ("HTTP call", "windrow command")]
    if path == "clusters":
        await page.get_by_label("Keep it as").fill("private")
        await page.get_by_role("button", name="Keep", exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text("Kept")
    async with page.expect_request(lambda one: one.method == "POST" and one.url.endswith(f"/api/v1/{path}")) as waited:
        await page.get_by_role("button", name=button).click()

    assert sent(await waited.value).body["registry_login"] == {"username": "a-renter", "password": secret}
    assert '"password":"YOUR_PASSWORD"' in shown[0] and "--registry-login login.txt" in shown[1]
    assert secret not in "".join(shown)
    told = [one for one in asked if secret in f"{one.url}{one.post_data}"]
    assert [(one.method, sent(one).path) for one in told] == [("POST", f"/{path}")]
    if path == "clusters":
        await expect(page).to_have_url(re.compile(r"/clusters/cluster_"))
        await page.go_back()
        await expect(page.get_by_label("Registry password").first).to_have_value("")


async def test_hosts_are_added_to_a_private_image_with_its_login_and_taken_away_without(forms: Forms) -> None:
    page, dialog, secret = forms.page, forms.page.get_by_role("dialog"), "their-very-own-password"
    await signed_in(page, forms.served, "/clusters/new")
    await page.get_by_text("Ray", exact=True).click()
    await page.get_by_label("Container image").fill("registry.example/a:1")
    await page.get_by_label("Registry user").fill("a-renter")
    await page.get_by_label("Registry password").first.fill(secret)
    await page.get_by_role("button", name="Create machine").click()
    await expect(page.get_by_test_id("phase")).to_have_text("Running")
    await page.get_by_role("button", name="Resize").click()
    hosts, act = dialog.get_by_role("textbox", name="Hosts"), dialog.get_by_role("button", name="Resize")
    await hosts.fill("4")
    await expect(dialog).to_contain_text("give it again")
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Registry user").fill("a-renter")
    await dialog.get_by_label("Registry password").first.fill(secret)
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    shown = [await dialog.get_by_label(name, exact=True).inner_text() for name in ("HTTP call", "windrow command")]
    assert '"password":"YOUR_PASSWORD"' in shown[0] and "4 --registry-login login.txt" in shown[1]
    async with page.expect_request(lambda one: one.url.endswith("/resize")) as waited:
        await act.click()
    assert sent(await waited.value).body == {
        "hosts": 4,
        "registry_login": {"username": "a-renter", "password": secret},
    }
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Resize").click()
    await hosts.fill("2")
    await expect(dialog.get_by_label("Registry user")).to_have_count(0)
    await forms.same(dialog, act.click, "POST", "/clusters/[^/]+/resize")
