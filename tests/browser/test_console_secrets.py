"""Secrets in the console: set by the form, offered in the forms of work, deleted; no value is shown or stored."""

import re

from playwright.async_api import expect

from tests.browser.pretend_secrets import add_secret
from tests.browser.test_console_calls import Forms, sent
from tests.browser.test_console_calls import forms as forms
from tests.browser.test_console_states import signed_in

CANARY = "hf_Canary9Sings7In5No3Storage1"
STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}]) + document.documentElement.innerHTML"


async def test_a_secret_is_set_replaced_and_deleted_and_its_value_stays_nowhere(forms: Forms) -> None:
    page, dialog = forms.page, forms.page.get_by_role("dialog")
    await signed_in(page, forms.served, "/secrets")
    await expect(page.get_by_role("region", name="Secrets")).to_contain_text("windrow secret set HF_TOKEN")
    await page.get_by_role("button", name="New secret").click()
    await dialog.get_by_label("Name").fill("hf-token")
    await dialog.get_by_role("button", name="Set secret").click()
    await expect(dialog).to_contain_text("Capital letters")
    await expect(dialog).to_contain_text("A value")
    await dialog.get_by_label("Name").fill("HF_TOKEN")
    await dialog.get_by_label("Value").fill(CANARY)
    await dialog.get_by_role("button", name="Show API and CLI call").click()
    call = await dialog.get_by_label("HTTP call", exact=True).inner_text()
    line = await dialog.get_by_label("windrow command", exact=True).inner_text()
    assert "YOUR_VALUE" in call and CANARY not in call + line and line == "windrow secret set HF_TOKEN"
    async with page.expect_request(lambda one: one.method == "PUT") as waited:
        await dialog.get_by_role("button", name="Set secret").click()
    asked = sent(await waited.value)
    assert (asked.path, asked.body) == ("/secrets/HF_TOKEN", {"value": CANARY, "kind": "text"})
    await expect(dialog).to_have_count(0)
    row = page.get_by_role("row", name=re.compile("HF_TOKEN"))
    await expect(row).to_contain_text("never")
    assert CANARY not in str(await page.evaluate(STORED))
    forms.served.world.asked.clear()

    await row.get_by_role("button", name="Replace the secret HF_TOKEN").click()
    await expect(dialog.get_by_label("Name")).to_be_disabled()
    await expect(dialog.get_by_label("Value")).to_have_value("")
    await dialog.get_by_role("button", name="Cancel").click()
    await row.get_by_role("button", name="Delete the secret HF_TOKEN").click()
    await dialog.get_by_role("textbox").fill("HF_TOKEN")
    forms.served.world.asked.clear()
    await forms.same(dialog, dialog.get_by_role("button", name="Delete secret").click, "DELETE", "/secrets/HF_TOKEN")
    await expect(page.get_by_test_id("empty")).to_be_visible()


async def test_a_job_names_secrets_by_a_click_and_the_page_shows_who_uses_them(forms: Forms) -> None:
    page, main, world = forms.page, forms.page.get_by_role("main"), forms.served.world
    add_secret(world, "HF_TOKEN")
    add_secret(world, "GHCR", "registry_login")
    await signed_in(page, forms.served, "/clusters/new")
    await page.get_by_role("textbox", name="Command").fill("python train.py")
    await page.get_by_role("textbox", name="Name").fill("trainer")
    await expect(page.get_by_role("group", name="Your secrets").get_by_role("button")).to_have_count(1)
    await page.get_by_role("button", name="Add the secret HF_TOKEN").click()
    field = page.get_by_role("textbox", name="Secrets")
    await expect(field).to_have_value("HF_TOKEN")
    await field.fill("HF_TOKEN=TOKEN")
    world.asked.clear()
    await forms.same(main, page.get_by_role("button", name="Create machine").click, "POST", "/clusters")
    await page.goto(f"{forms.served.url}/secrets")
    await expect(page.get_by_role("row", name=re.compile("HF_TOKEN"))).to_contain_text("trainer")
