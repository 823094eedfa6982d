"""Users: they sign in by password and code, accept invitations, set passwords by link, change projects and themselves;
an organisation's members are invited, changed and removed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.chromium import NoBrowser
from tests.browser.pretend_master import Served
from tests.browser.pretend_members import (
    INVITATION,
    PASSWORD,
    PASSWORD_LINK,
    RECOVERY_CODE,
    invitation,
    member,
    project,
)
from tests.browser.test_console_states import signed_in
from tests.browser.width import wider_than_window
from tests.services import all_required
from tests.support.stack import Stack

Pretend = Callable[..., Served]
ADA = "ada@example.org"


def with_members(served: Served) -> Served:
    """A second project, a second member and an open invitation."""
    lab = project("account_7", "lab", "admin", "renter")
    served.world.projects.append(lab)
    served.world.members.append(member("user_7", "Bob Builder", None, [project("account_7", "lab", "renter")]))
    served.world.invitations.append(invitation("invitation_7", ADA, "org_admin", [lab]))
    return served


@asynccontextmanager
async def somebody_else(page: Page) -> AsyncIterator[Page]:
    """A page in a browser of somebody else's."""
    assert page.context.browser is not None
    context = await page.context.browser.new_context(locale="en-GB", ignore_https_errors=True)
    yield await context.new_page()
    await context.close()


async def by_password(page: Page, url: str, password: str) -> None:
    """Fill in the sign-in page and send it."""
    await page.goto(url)
    await page.get_by_label("Mail address").fill(ADA)
    await page.get_by_label("Password", exact=True).fill(password)
    await page.get_by_role("button", name="Sign in").click()


async def accept(page: Page, name: str) -> None:
    """Become a user by the invitation that is shown."""
    await page.get_by_label("Your name").fill(name)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Accept and sign in").click()


async def test_a_user_signs_in_by_password_and_by_a_code_where_one_is_needed(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.profile["has_second_factor"] = True
    await by_password(page, served.url, "wrong")
    await expect(page.get_by_role("alert")).to_contain_text("The address or the password is wrong.")
    await expect(page.get_by_label("Code")).to_have_count(0)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Code")).to_be_focused()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.keyboard.type("000000")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("The code is wrong")
    await page.get_by_label("Code").fill(RECOVERY_CODE)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    assert PASSWORD not in str(await page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])"))


async def test_an_invitation_leaves_the_address_and_makes_a_user_once(page: Page, pretend: Pretend) -> None:
    served = with_members(pretend())
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    await page.goto(f"{served.url}/#invitation={INVITATION}")
    await expect(page.locator("dl")).to_contain_text("lab: Project admin, Renter")
    assert "invitation" not in page.url and not [url for url in asked if INVITATION in url]
    address = page.get_by_label("Mail address")
    await expect(address).to_have_value(ADA)
    await expect(address).not_to_be_editable()
    await page.get_by_label("Password", exact=True).fill("short")
    await expect(page.get_by_text("At least 12 characters", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Accept and sign in")).to_be_disabled()
    await accept(page, "Ada")
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    async with somebody_else(page) as late:
        await late.goto(f"{served.url}/#invitation={INVITATION}")
        await expect(late.get_by_role("alert")).to_contain_text("This invitation was accepted already.")
        await expect(late.get_by_label("Your name")).to_have_count(0)


async def test_who_is_signed_in_accepts_an_invitation_as_that_user(page: Page, pretend: Pretend) -> None:
    served = with_members(pretend())
    await page.goto(f"{served.url}/#invitation={INVITATION}")
    await page.get_by_role("button", name="I have a user: sign in first").click()
    await page.get_by_label("Mail address").fill(ADA)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name="Accept as another account").click()
    await expect(page.get_by_text("You are a member of home.")).to_be_visible()
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    assert served.world.invitations == []


async def test_a_link_sets_a_new_password_and_leads_to_the_sign_in_page(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await page.goto(f"{served.url}/#password={PASSWORD_LINK}")
    await expect(page.get_by_role("heading", name="New password")).to_be_visible()
    assert "password" not in page.url
    await page.get_by_label("New password").fill(PASSWORD)
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.get_by_role("status")).to_have_text("Your password is changed. Sign in.")
    await page.get_by_label("Mail address").fill(ADA)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="another account")).to_be_visible()
    await page.goto(f"{served.url}/offers")
    await page.goto(f"{served.url}/#password=wp_used")
    await page.get_by_label("New password").fill(PASSWORD)
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.get_by_role("alert")).to_contain_text("This link was used, has expired or was replaced.")


async def test_where_mail_is_sent_invitations_and_links_to_new_passwords_go_by_mail(
    page: Page, pretend: Pretend
) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await page.goto(served.url)
    await page.get_by_role("button", name="Forgot the password").click()
    await page.get_by_label("Mail address").fill(ADA)
    await page.get_by_role("button", name="Send the link").click()
    await expect(page.get_by_role("alert")).to_contain_text("This market sends no mail.")
    served.world.sends_mail = True
    await page.get_by_role("button", name="Send the link").click()
    await expect(page.get_by_role("status")).to_contain_text("If there is a user with this address, a mail")
    await page.get_by_role("button", name="Back to the sign-in").click()
    await expect(page.get_by_label("Password", exact=True)).to_be_visible()

    await signed_in(page, served, "/members")
    await page.get_by_role("button", name="Invite").click()
    await dialog.get_by_label("Mail address").fill(ADA)
    await dialog.get_by_role("button", name="Invite").click()
    await expect(dialog).to_contain_text(f"A mail with the link goes to {ADA}.")
    await dialog.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("row", name=ADA)).to_be_visible()


async def test_a_user_changes_the_project_by_keyboard(page: Page, pretend: Pretend) -> None:
    served = with_members(pretend())
    await signed_in(page, served, "/members")
    menu = page.get_by_role("button", name="first account", exact=True)
    await menu.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitemradio", name="first account")).to_be_checked()
    await page.get_by_role("menuitemradio", name="lab").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="first account lab")).to_be_visible()
    assert served.world.project == {"id": "account_7", "name": "lab"}


async def test_members_are_invited_changed_and_removed(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/members")
    await expect(page.get_by_role("region", name="Members").get_by_test_id("empty")).to_contain_text(
        "Only you are here"
    )
    await page.get_by_role("button", name="New project").click()
    await dialog.get_by_label("Name").fill("lab")
    await dialog.get_by_role("button", name="Add the project").click()
    await expect(page.get_by_role("region", name="Projects").get_by_role("row", name="lab")).to_be_visible()

    await page.get_by_role("button", name="Invite").click()
    await dialog.get_by_role("group", name="Project lab").get_by_label("Viewer").check()
    await dialog.get_by_role("button", name="Invite").click()
    link = dialog.get_by_label("invitation link", exact=True)
    await expect(link).to_have_text(f"https://market.example:8443/#invitation={INVITATION}")
    await dialog.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name="Anybody with the link")
    await expect(row).to_contain_text("Memberlab: Viewer")  # and nothing in the inviter's own project
    assert INVITATION not in await page.content()
    await page.get_by_role("button", name="New link: Anybody with the link").click()
    await expect(link).to_be_visible()
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Withdraw the invitation: Anybody with the link").click()
    await expect(page.get_by_role("region", name="Invitations").get_by_test_id("empty")).to_be_visible()

    served.world.members.append(member("user_7", "Bob Builder", None, [project("account_11", "lab", "renter")]))
    await page.reload()
    await page.get_by_role("button", name="Change roles: Bob Builder").click()
    change = dialog.get_by_role("button", name="Change roles")
    await expect(change).to_be_disabled()
    await dialog.get_by_label("Role in the organisation").select_option("Billing")
    await dialog.get_by_role("group", name="Project lab").get_by_label("Renter").uncheck()
    await change.click()
    await expect(page.get_by_role("row", name="Bob Builder")).to_contain_text("Billing")
    await page.get_by_role("button", name="Password link: Bob Builder").click()
    await dialog.get_by_role("button", name="Make the link").click()
    await expect(dialog.get_by_label("password link", exact=True)).to_contain_text(f"#password={PASSWORD_LINK}")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Remove: Bob Builder").click()
    await dialog.get_by_label("Type Bob Builder to confirm").fill("Bob Builder")
    await dialog.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("row", name="Bob Builder")).to_have_count(0)


async def test_a_user_changes_the_address_and_sets_up_a_second_factor(page: Page, pretend: Pretend) -> None:
    served, dialog = pretend(), page.get_by_role("dialog")
    await signed_in(page, served, "/settings")
    panel = page.get_by_role("region", name="Your account")
    await panel.get_by_role("button", name="Change name and address").click()
    await expect(dialog.get_by_label("Present password")).to_have_count(0)
    await dialog.get_by_label("Mail address").fill("ada@example.net")
    await dialog.get_by_label("Present password").fill("wrong")
    await dialog.get_by_role("button", name="Change", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The password is wrong.")
    await dialog.get_by_label("Present password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Change", exact=True).click()
    await expect(panel).to_contain_text("ada@example.net")

    await panel.get_by_role("button", name="Set up second factor").click()
    await dialog.get_by_label("Present password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Show the QR code").click()
    await expect(dialog.get_by_role("img", name="QR code with the secret")).to_be_visible()
    await expect(dialog.get_by_label("secret", exact=True)).to_contain_text("JBSW Y3DP")
    await dialog.get_by_role("textbox", name="Code").fill("123456")
    await dialog.get_by_role("button", name="Turn it on").click()
    await expect(dialog.get_by_label("recovery codes")).to_contain_text(RECOVERY_CODE)
    async with page.expect_download() as loaded:
        await dialog.get_by_role("button", name="Download").click()
    assert RECOVERY_CODE in Path(await (await loaded.value).path()).read_text()
    await dialog.get_by_role("button", name="Done").click()
    await expect(panel).to_contain_text("On, 10 recovery codes left")
    assert RECOVERY_CODE not in await page.content()
    await panel.get_by_role("button", name="Remove second factor").click()
    await dialog.get_by_label("Present password").fill(PASSWORD)
    await dialog.get_by_label("Code").fill(RECOVERY_CODE)
    await dialog.get_by_role("button", name="Remove").click()
    await expect(panel.get_by_role("button", name="Set up second factor")).to_be_visible()


async def _pages(page: Page, served: Served) -> AsyncIterator[str]:
    """Each page and dialog of users, opened; its name."""
    await page.goto(f"{served.url}/#password={PASSWORD_LINK}")
    await expect(page.get_by_role("heading", name="New password")).to_be_visible()
    yield "password link"
    await page.goto(f"{served.url}/offers#invitation={INVITATION}")
    await expect(page.get_by_label("Your name")).to_be_visible()
    yield "invitation"
    await signed_in(page, served, "/members")
    await expect(page.get_by_role("row", name="Bob Builder")).to_be_visible()
    yield "members"
    buttons = ("Invite", "New project", "Change roles: Bob Builder", "Password link: Bob Builder")
    for button in (*buttons, "Remove: Bob Builder", "New link: ada@example.org"):
        await page.get_by_role("button", name=button).click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        yield button
        await _closed(page)
    await page.goto(f"{served.url}/settings")
    for button in ("Change name and address", "Change password", "Set up second factor"):
        await page.get_by_role("button", name=button).click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        if button.startswith("Set up"):
            await page.get_by_role("dialog").get_by_label("Present password").fill(PASSWORD)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("img", name="QR code with the secret")).to_be_visible()
        yield button
        await _closed(page)
    await page.goto(f"{served.url}/offers#invitation={INVITATION}")
    await expect(page.get_by_role("button", name="Accept as first account")).to_be_visible()
    yield "invitation of who is signed in"


async def _closed(page: Page) -> None:
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.long)])
async def test_the_pages_and_dialogs_break_no_rule_and_do_not_scroll_sideways(
    page: Page, pretend: Pretend, width: int
) -> None:
    try:
        axe = axe_source()
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
    served = with_members(pretend())
    await page.set_viewport_size({"width": width, "height": 900})
    seen = 0
    async for name in _pages(page, served):
        assert await violations(page, axe) == [], name
        assert await wider_than_window(page) is None, name
        seen += 1
    assert seen > 10


@pytest.mark.slow
@pytest.mark.proves("console: a member is invited by mouse, accepts by password, works in the project and is removed")
async def test_a_member_is_invited_signs_in_and_is_removed_on_the_shipped_stack(page: Page, market: Stack) -> None:
    await page.goto(f"{market.cli['url']}/members#token={market.cli['token']}")
    link = await _invited(page, page.get_by_role("dialog"))
    async with somebody_else(page) as hers:
        await hers.goto(link)
        await expect(hers.get_by_text("default: Viewer")).to_be_visible()
        await accept(hers, "Ada Lovelace")
        await expect(hers.get_by_role("button", name="Ada Lovelace default")).to_be_visible()
        await hers.get_by_role("link", name="Machines", exact=True).click()
        await expect(hers.get_by_role("heading", name="Machines", level=1)).to_be_visible()
        await expect(hers.get_by_role("link", name="Members")).to_have_count(0)

        await page.reload()
        await page.get_by_role("button", name="Remove: Ada Lovelace").click()
        await page.get_by_label("Type Ada Lovelace to confirm").fill("Ada Lovelace")
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_role("row", name="Ada Lovelace")).to_have_count(0)

        await hers.get_by_role("link", name="GPUs & prices").click()
        await expect(hers.get_by_role("heading", name="Sign in")).to_be_visible()
        await hers.get_by_label("Mail address").fill(ADA)
        await hers.get_by_label("Password", exact=True).fill(PASSWORD)
        await hers.get_by_role("button", name="Sign in").click()
        await expect(hers.get_by_role("alert")).to_contain_text("You are a member of no such project.")


async def _invited(page: Page, dialog: Locator) -> str:
    """The link of an invitation for Ada as a viewer of the first project."""
    await page.get_by_role("button", name="Invite").click()
    await dialog.get_by_label("Mail address").fill(ADA)
    await dialog.get_by_label("Renter").uncheck()
    await dialog.get_by_label("Viewer").check()
    await dialog.get_by_role("button", name="Invite").click()
    link = await dialog.get_by_label("invitation link", exact=True).inner_text()
    await dialog.get_by_role("button", name="Done").click()
    return link
