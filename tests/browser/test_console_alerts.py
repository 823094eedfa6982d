"""Alerts in the console: the bell, what is done with an alert, rules with their preview, channels, and the homes."""

import re
from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.pretend_alerts import HOST, add_alert, add_delivery
from tests.browser.pretend_master import Served
from tests.browser.pretend_records import trouble
from tests.browser.test_console_states import signed_in
from tests.waiting import poll_async

Pretend = Callable[..., Served]


async def test_the_bell_rings_by_itself_and_is_quiet_once_all_is_read(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served)
    await page.get_by_role("button", name="Messages", exact=True).click()
    messages = page.get_by_role("dialog", name="Messages")
    await expect(messages).to_contain_text("No messages")
    add_alert(served.world, "host.lost", "sim-000")
    await expect(page.get_by_role("button", name="Messages: 1 unread")).to_be_visible()
    line = messages.get_by_role("listitem")
    await expect(line).to_contain_text("Host lost: sim-000")
    await expect(line).to_contain_text("Look whether the host has power and network")
    await messages.get_by_role("button", name="Mark all read").click()
    await expect(page.get_by_role("button", name="Messages", exact=True)).to_be_visible()
    await messages.get_by_role("link", name="Host lost: sim-000").click()
    await expect(page.get_by_role("heading", name="Host lost: sim-000", level=1)).to_be_visible()
    await expect(messages).to_have_count(0)


async def test_an_alert_is_silenced_undone_acknowledged_and_commented(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    alert = add_alert(served.world, "host.lost", "sim-000")
    add_alert(served.world, "relay.down", "north", "access_north")
    await signed_in(page, served, "/alerts")
    await page.get_by_role("button", name="Severity").first.click()
    await page.get_by_role("menuitemcheckbox", name="Can wait").click()
    await expect(page).to_have_url(re.compile(r"severity=ticket"))
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Silence: Host lost: sim-000").click()
    await page.get_by_role("menuitem", name="For 8 hours").click()
    row = page.get_by_role("row", name=re.compile("sim-000"))
    await expect(row).to_contain_text("Silenced")
    await page.get_by_role("button", name="Undo").click()
    await expect(row).to_contain_text("Firing")
    await page.get_by_role("button", name="Silence: Host lost: sim-000").click()
    await page.get_by_role("menuitem", name="For 8 hours").click()
    await page.get_by_role("link", name="Host lost: sim-000").click()
    state = page.get_by_role("region", name="State", exact=True)
    await expect(state).to_contain_text(re.compile("It is not told until in 8 h. Silenced by first account"))
    await page.get_by_role("button", name="End the silence: Host lost: sim-000").click()
    await page.get_by_role("button", name="Acknowledge: Host lost: sim-000").click()
    await expect(page.get_by_test_id("state")).to_have_text("Acknowledged")
    await page.get_by_role("button", name="Assign to me").click()
    await expect(page.get_by_role("region", name="State", exact=True)).to_contain_text("first account")
    await page.get_by_role("textbox", name="Comment").fill("the fan is replaced")
    await page.get_by_role("button", name="Add comment").click()
    await expect(page.get_by_test_id("history")).to_contain_text("the fan is replaced")
    await expect(
        page.get_by_role("region", name="Affected", exact=True).get_by_role("link", name="sim-000")
    ).to_be_visible()
    assert [note["kind"] for note in alert["notes"]][1:] == [
        *("silenced", "unsilenced", "silenced", "unsilenced", "acknowledged", "assigned", "comment"),
    ]


async def test_a_rule_shows_what_it_would_have_told_before_it_is_saved(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served, "/alerts?tab=rules")
    await expect(
        page.get_by_role("region", name="Built in").get_by_role("row", name=re.compile("Relay down"))
    ).to_have_count(1)
    await page.get_by_role("button", name="Add a rule").click()
    dialog = page.get_by_role("dialog")
    preview = dialog.get_by_role("region", name="Preview of the last 7 days")
    await expect(preview).to_contain_text("fired 2 times")
    await dialog.get_by_label("Number").fill("95")
    await expect(preview).to_contain_text("fired never")
    await dialog.get_by_label("Name").fill("hot")
    await dialog.get_by_label("Only where").fill("zone=a")
    await expect(dialog.get_by_text("There is no label 'zone' here.")).to_be_visible()
    await dialog.get_by_label("Only where").fill("tier=h100/A")
    await dialog.get_by_role("button", name="Save the rule").click()
    row = page.get_by_role("region", name="Your rules", exact=True).get_by_role("row", name=re.compile("hot"))
    await expect(row).to_contain_text("gpu_temperature_celsius > 95 for 5 min where tier=h100/A")
    await row.get_by_role("button", name="Remove: hot").click()
    await dialog.get_by_role("button", name="Remove the rule").click()
    await expect(page.get_by_text("No rules of your own")).to_be_visible()


async def test_a_webhook_is_added_tested_paused_and_a_message_sent_again(page: Page, pretend: Pretend) -> None:
    served = pretend()
    await signed_in(page, served, "/alerts?tab=channels")
    await page.get_by_role("button", name="Add a channel").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("Webhook", exact=True).click()
    await dialog.get_by_label("URL").fill("https://example.org/hook")
    await dialog.get_by_label("Name").fill("hook")
    await dialog.get_by_role("button", name="Save the channel").click()
    await expect(dialog).to_contain_text("whsec_pretend")
    await dialog.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Test: hook").click()
    await expect(page.get_by_text("hook took the test message. Answer: 200 OK")).to_be_visible()
    add_delivery(served.world, served.world.channels[0], state="given_up", last_answer="500 Server Error")
    await page.get_by_role("button", name="More: hook").click()
    await page.get_by_role("menuitem", name="Pause").click()
    await expect(page.get_by_role("region", name="Channels", exact=True)).to_contain_text("Paused")
    sent = page.get_by_role("region", name="Deliveries", exact=True).get_by_role(
        "row", name=re.compile("500 Server Error")
    )
    await sent.get_by_role("button", name="Send again").click()
    await expect(sent).to_contain_text("Waiting")
    await page.goto(f"{served.url}/settings")
    mail = page.get_by_role("radiogroup", name="Alerts by mail")
    await mail.get_by_text("All").click()
    await expect(mail.get_by_role("radio", name="All")).to_be_checked()
    await poll_async(lambda: served.world.alert_mail == "all", what="the level is saved")


async def test_each_home_begins_with_its_open_alerts_and_says_nothing_twice(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=1)
    served.world.troubles += [trouble(kind="offline", title="1 host not answering"), trouble()]
    add_alert(served.world, "relay.down", "north", "access_north", state="silenced")
    add_alert(served.world, "host.lost", "sim-000")
    add_alert(served.world, "job.failed", "train", "job_1")
    await signed_in(page, served, "/")
    needs = page.get_by_role("region", name="Needs attention")
    await expect(needs.get_by_role("listitem")).to_have_count(3)
    await expect(needs).not_to_contain_text("not answering")
    await expect(needs.get_by_role("link", name="All alerts (1 silenced)")).to_be_visible()
    await expect(page.get_by_role("region").first).to_have_attribute("aria-label", "Needs attention")
    for product, said, other in (("Rent", "Job failed", "Host lost"), ("Provide", "Host lost", "Job failed")):
        await page.get_by_role("button", name=product, exact=True).click()
        await expect(needs).to_contain_text(said)
        await expect(needs).not_to_contain_text(other)
    await needs.get_by_role("link", name="Open the alert: Host lost: sim-000").click()
    await expect(page).to_have_url(f"{served.url}/alerts/alert_2")
    await page.get_by_role("link", name="sim-000", exact=True).first.click()
    await expect(page).to_have_url(f"{served.url}/hosts/{HOST}")
    await page.get_by_role("link", name="Alert: Host lost: sim-000").click()
    await expect(page).to_have_url(f"{served.url}/alerts/alert_2")


async def test_maintenance_is_planned_around_leases_and_stands_on_the_page_of_its_host(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=1)
    await signed_in(page, served, "/alerts?tab=silences")
    await page.get_by_role("button", name="Plan maintenance").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Hosts").fill("nothere")
    await expect(dialog.get_by_text("No host that you may decide about is named nothere.")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Begin now")).to_be_disabled()
    await dialog.get_by_label("Hosts").fill(f"{HOST}, ")
    await expect(dialog).to_contain_text("Nothing runs there any more, by its duration, from")
    await dialog.get_by_label("From").fill("2030-01-01T10:00")
    await dialog.get_by_label("Reason").fill("new fans")
    await dialog.get_by_role("button", name="Plan it").click()
    row = page.get_by_role("region", name="Maintenance", exact=True).get_by_role("row", name=re.compile("new fans"))
    await expect(row).to_contain_text("Planned")
    await page.goto(f"{served.url}/hosts/{HOST}")
    await expect(page.get_by_text(re.compile("Maintenance from .* until .*: new fans"))).to_be_visible()
    await page.goto(f"{served.url}/alerts?tab=silences")
    await row.get_by_role("button", name="End the maintenance of").click()
    await expect(page.get_by_text("No maintenance is planned")).to_be_visible()
    assert served.world.windows == []
