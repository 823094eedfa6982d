"""A cluster is shared on its page and withdrawn there; who received it finds it in a list and enters it."""

from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.axe import axe_source, violations
from tests.browser.pretend_master import Served
from tests.browser.pretend_members import share
from tests.browser.test_console_access import rented
from tests.browser.test_console_states import signed_in

Pretend = Callable[..., Served]


async def test_a_cluster_is_shared_on_its_page_and_withdrawn(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    await rented(page, served)
    panel = page.get_by_role("region", name="Shared with")
    await expect(panel).to_contain_text("Nobody outside this project reaches this machine.")

    await panel.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Share", exact=True)).to_be_disabled()
    await dialog.get_by_label("Name or id").fill("nobody")
    await dialog.get_by_role("button", name="Share", exact=True).click()
    await expect(dialog.get_by_label("Name or id")).to_be_focused()
    await expect(dialog.get_by_text("There is no such member")).to_be_visible()
    await dialog.get_by_label("Name or id").fill("Ada Lovelace")
    await dialog.get_by_label("Level").select_option("manage")
    await dialog.get_by_label("Lasts").select_option("86400")
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    await expect(dialog).to_contain_text("windrow share add --with 'Ada Lovelace' --level manage --for 24h")
    assert await violations(page, axe_source()) == []
    await dialog.get_by_role("button", name="Share", exact=True).click()

    await expect(panel).to_contain_text("Ada Lovelace")
    await expect(panel).to_contain_text("Manage, until")
    await panel.get_by_role("button", name="Withdraw the share with Ada Lovelace").click()
    await expect(panel).to_contain_text("Nobody outside this project")
    assert served.world.shares == []


async def test_who_received_a_cluster_enters_it_as_far_as_the_level_goes(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served)
    await page.goto(f"{served.url}/shared")
    await expect(page.get_by_test_id("empty")).to_contain_text("Nothing is shared with you")
    cluster_id = (await rented(page, served)).rpartition("/")[2]
    served.world.clusters[cluster_id]["account_id"] = "account_9"
    served.world.received.append(share("share_1", cluster_id, "Ada", "see", project="lab"))

    await page.goto(f"{served.url}/shared")
    await expect(page.get_by_role("row").nth(1)).to_contain_text("lab")
    await page.get_by_role("link", name="trainer").click()
    await expect(page.get_by_text("The log is private")).to_be_visible()
    await expect(page.get_by_role("region", name="Shared with")).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)

    served.world.received[0]["level"] = "use"
    await page.reload()
    await expect(page.get_by_role("tab", name="Run a command inside")).to_be_visible()
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
