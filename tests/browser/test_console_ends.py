"""The ends of users and projects: leaving, deletion, restoring and transfers, each with what may refuse it."""

from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_ends import market_user, offer
from tests.browser.pretend_master import SECRET, Served
from tests.browser.pretend_members import PASSWORD, member, project
from tests.browser.pretend_people import person
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window

Pretend = Callable[..., Served]
RUNS = "Machines run, are stopped or end: trainer. Delete them: windrow cluster delete NAME"


def with_bob(served: Served, role: str = "org_admin") -> Served:
    """Bob, a member of this role with an account of his own, and a second project."""
    served.world.members.append(member("user_7", "bob", role, []))
    served.world.users.append(market_user("user_7", "bob", role))
    served.world.people.append(person("account_7", "bob", ["renter"], "12.00"))
    served.world.projects.append(project("account_8", "lab", "admin"))
    return served


async def test_who_leaves_types_the_organisation_and_the_last_owner_stays(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    await signed_in(page, served, "/members")
    await page.get_by_role("button", name="Leave: first account").click()
    leave = dialog.get_by_role("button", name="Leave")
    await expect(leave).to_be_disabled()
    await dialog.get_by_label("Type home to confirm").fill("home")
    await leave.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("keeps at least one owner. Make somebody else an owner")
    served.world.members[1]["role"] = "org_owner"
    await leave.click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.get_by_text("You have left home")).to_be_visible()


async def test_a_project_is_deleted_once_nothing_runs_and_is_restored(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    served.world.in_use["account_8"] = (RUNS,)
    await signed_in(page, served, "/members")
    projects, deleted = (page.get_by_role("region", name=name, exact=True) for name in ("Projects", "Deleted projects"))
    await expect(projects.get_by_role("button", name="Delete: first account")).to_have_count(0)
    await expect(projects).to_contain_text("To delete or transfer the project that you act in")
    await page.get_by_role("button", name="Delete: lab").click()
    act = dialog.get_by_role("button", name="Delete the project")
    await dialog.get_by_label("Type lab to confirm").fill("la")
    await expect(act).to_be_disabled()
    await page.keyboard.type("b")
    await act.click()
    await expect(dialog.get_by_role("alert")).to_contain_text(f"lab: {RUNS}")
    served.world.in_use.clear()
    await act.click()
    await expect(deleted.get_by_role("row", name="lab")).to_be_visible()
    await expect(projects.get_by_role("row", name="lab")).to_have_count(0)
    await page.get_by_role("button", name="Restore: lab").click()
    await expect(projects.get_by_role("row", name="lab")).to_be_visible()
    await expect(deleted).to_have_count(0)


async def test_a_project_is_offered_and_withdrawn_and_another_accepted(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    await signed_in(page, served, "/members")
    await page.get_by_role("button", name="Transfer: lab").click()
    await dialog.get_by_label("Organisation").fill("nobody")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("There is no such organisation.")
    await dialog.get_by_label("Organisation").fill("acme")
    await page.keyboard.press("Enter")
    offers = page.get_by_role("region", name="Offered projects")
    await expect(offers.get_by_role("row", name="lab")).to_contain_text("homeacme")
    await page.get_by_role("button", name="Withdraw: lab").click()
    await expect(offers).to_have_count(0)

    served.world.offers += [offer(f"account_{name}", name, is_mine=False) for name in ("farm", "other")]
    await page.reload()
    await page.get_by_role("button", name="Accept: farm").click()
    await expect(dialog).to_contain_text("The project comes from acme with its money")
    await dialog.get_by_role("button", name="Accept the project").click()
    await expect(
        page.get_by_role("region", name="Projects", exact=True).get_by_role("row", name="farm")
    ).to_be_visible()
    await page.get_by_role("button", name="Refuse: other").click()
    await expect(page.get_by_text("The offer of other is refused")).to_be_visible()
    assert served.world.offers == []


async def test_a_user_deletes_the_own_user_with_name_and_password(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    await signed_in(page, served, "/settings")
    await expect(page.get_by_role("region", name="Command line")).to_contain_text("install-cli.sh")
    served.world.command_line = None
    await page.reload()
    await page.get_by_role("button", name="Delete your user").click()
    await expect(page.get_by_text("Command line")).to_have_count(0)
    act = dialog.get_by_role("button", name="Delete your user")
    await dialog.get_by_label("Present password").fill("wrong")
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Type first account to confirm").fill("first account")
    await act.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The password is wrong.")
    await dialog.get_by_label("Present password").fill(PASSWORD)
    await act.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("keeps at least one owner")
    served.world.members[1]["role"] = "org_owner"
    await act.click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert SECRET not in str(await page.evaluate("JSON.stringify({...sessionStorage})"))


async def test_an_operator_disables_a_user_makes_an_owner_and_deletes(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    await signed_in(page, served, "/people")
    users = page.get_by_role("region", name="Users")
    row = users.get_by_role("row", name="bob")
    await page.get_by_role("button", name="Suspend: bob").click()
    await dialog.get_by_label("Type bob to confirm").fill("bob")
    await dialog.get_by_role("button", name="Suspend", exact=True).click()
    await expect(row.get_by_role("cell", name="yes", exact=True)).to_be_visible()
    await users.get_by_label("Filter users").fill("bob")
    await expect(users.get_by_test_id("shown")).to_have_text("1 of 2 shown")

    await page.get_by_role("button", name="Make owner: bob").click()
    await dialog.get_by_label("Reason").fill("the owners are gone")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("bob is disabled. Make somebody else an owner.")
    served.world.users[1]["is_disabled"] = False
    await page.keyboard.press("Enter")
    await expect(row).to_contain_text("home (Owner)")
    await expect(page.get_by_role("button", name="Make owner: bob")).to_have_count(0)

    await expect(page.get_by_role("button", name="Delete user: first account")).to_have_count(0)
    await page.get_by_role("button", name="Delete user: bob").click()
    act = dialog.get_by_role("button", name="Delete user")
    await dialog.get_by_label("Type bob to confirm").fill("bob")
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Reason").fill("asked for it")
    await act.click()
    await expect(row).to_have_count(0)


async def test_an_operator_settles_an_account_and_transfers_it(page: Page, pretend: Pretend) -> None:
    served, dialog = with_bob(pretend()), page.get_by_role("dialog")
    served.world.in_use["account_7"] = (RUNS,)
    await signed_in(page, served, "/people")
    await page.get_by_role("button", name="Settle: bob").click()
    await expect(dialog).to_contain_text("bob has 12.00 CRD left.")
    await expect(dialog.get_by_label("Move to the project")).to_be_focused()
    await dialog.get_by_label("Reason").fill("left")
    await dialog.get_by_role("button", name="Write it off").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(f"bob: {RUNS}")
    served.world.in_use.clear()
    await dialog.get_by_label("Move to the project").fill("lab")
    await dialog.get_by_role("button", name="Move the money").click()
    await expect(page.get_by_role("button", name="Settle: bob")).to_have_count(0)
    await page.get_by_role("button", name="Transfer: bob").click()
    await dialog.get_by_label("Organisation").fill("acme")
    act = dialog.get_by_role("button", name="Transfer")
    await expect(act).to_be_disabled()
    await dialog.get_by_label("Reason").fill("sold")
    await act.click()
    await expect(page.get_by_text("bob belongs to acme now")).to_be_visible()


async def test_the_dialogs_break_no_rule_and_give_the_focus_back(page: Page, pretend: Pretend) -> None:
    served, axe = with_bob(pretend()), axe_source()
    served.world.offers.append(offer("account_farm", "farm", is_mine=False))
    await page.set_viewport_size({"width": 390, "height": 900})
    await signed_in(page, served)
    for path, name in (("members", "Accept: farm"), ("people", "Settle: bob"), ("people", "Make owner: bob")):
        await page.goto(f"{served.url}/{path}")
        await page.get_by_role("button", name=name).press("Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations(page, axe) == [], name
        assert await wider_than_window(page) is None, name
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name=name)).to_be_focused()
