"""The page of the registry: a resource is registered, set to maintenance and removed by mouse on a real market."""

import pytest
from playwright.async_api import Page, expect

from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.proves("console: a resource is registered, changed and removed by mouse")
async def test_a_resource_is_registered_changed_and_removed_by_mouse(page: Page, market: Stack) -> None:
    url, dialog = market.cli["url"], page.get_by_role("dialog")
    await page.goto(f"{url}/fleet#token={market.cli['token']}")
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()
    await page.get_by_role("link", name="Resources").click()
    await expect(page.get_by_text("No resources")).to_be_visible()

    await page.get_by_role("button", name="Register a resource").click()
    await dialog.get_by_label("Type").select_option("cloud")
    await dialog.get_by_role("button", name="Register").click()
    await expect(dialog).to_contain_text("A cloud has a provider, such as AWS")
    await dialog.get_by_label("Resource ID").press_sequentially("aws-us-east-1-p4d")
    await dialog.get_by_label("Provider").press_sequentially("AWS")
    await dialog.get_by_label("Region").press_sequentially("us-east-1")
    await dialog.get_by_label("GPUs").fill("8")
    await dialog.get_by_label("GPU model").fill("NVIDIA A100")
    await dialog.get_by_label("USD per hour").fill("32.77")
    await dialog.get_by_role("button", name="Register").click()
    await expect(dialog).to_have_count(0)

    row = page.get_by_role("row").nth(1)
    for text in ("aws-us-east-1-p4d", "cloud", "8 × NVIDIA A100", "AWS, us-east-1", "32.77"):
        await expect(row).to_contain_text(text)
    with market.client() as api:
        assert api.resource("aws-us-east-1-p4d")["capabilities"] == {
            "gpu": True,
            "gpu_count": 8,
            "gpu_type": "NVIDIA A100",
        }

    await page.get_by_role("button", name="Register a resource").click()
    await dialog.get_by_label("Resource ID").fill("aws-us-east-1-p4d")
    await dialog.get_by_role("button", name="Register").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("A resource aws-us-east-1-p4d already exists.")
    await page.keyboard.press("Escape")

    await row.get_by_role("button", name="Status of aws-us-east-1-p4d").click()
    await dialog.get_by_label("Status").select_option("maintenance")
    await dialog.get_by_role("button", name="Set status").click()
    await expect(row).to_contain_text("Maintenance")

    with market.client() as api:
        (host,) = (one["name"] for one in api.items("/hosts") if one["link_state"] == "online")
    await row.get_by_role("button", name="Host of aws-us-east-1-p4d").click()
    await dialog.get_by_label("Host", exact=True).select_option(label=host)
    await dialog.get_by_label("Dedicated").check()
    await dialog.get_by_role("button", name="Set host").click()
    await expect(row).to_contain_text(f"{host} (dedicated)")
    await row.get_by_role("button", name="Host of aws-us-east-1-p4d").click()
    await dialog.get_by_label("Host", exact=True).select_option(label="none")
    await dialog.get_by_role("button", name="Set host").click()
    await expect(row).not_to_contain_text(host)

    await row.get_by_role("button", name="Remove aws-us-east-1-p4d").click()
    await dialog.get_by_role("textbox").fill("aws-us-east-1-p4d")
    await dialog.get_by_role("button", name="Remove resource").click()
    await expect(page.get_by_text("No resources")).to_be_visible()
