"""The menu and the home page of each product, in a real browser over the pretend Master."""

import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.pretend_master import ACCOUNT, Served
from tests.browser.pretend_records import trouble
from tests.browser.pretend_world import Json, state_of
from tests.browser.test_console_states import new, signed_in
from tests.browser.width import wider_than_window

Pretend = Callable[..., Served]
LIMIT: Json = {
    "id": ACCOUNT["id"],
    "kind": "project",
    "name": ACCOUNT["name"],
    "project_id": ACCOUNT["id"],
    "leases": 1,
    **dict.fromkeys(("max_hourly_cost", "max_total_cost", "max_leases", "updated_at", "updated_by")),
    "max_monthly_cost": "120",
    "hourly_cost": "10",
    "monthly_cost": "1.81",
    "total_cost": "9",
    "held": "0.087655",
    "month": "2026-11",
}


@pytest.mark.proves("console: each role has the menu and home of its product, and a switch only where it has several")
@pytest.mark.parametrize(
    ("role", "has", "lacks"),
    [
        ("renter", ("GPUs & prices", "Machines", "Volumes"), ("Fleet", "Relays", "Audit")),
        ("provider", ("Fleet", "Pricing"), ("Machines", "Jobs", "Relays")),
        ("operator", ("Fleet", "Relays", "Audit", "People"), ("Volumes", "Secrets")),
    ],
)
async def test_a_role_has_the_menu_of_its_product_and_asks_for_nothing_else(
    page: Page, pretend: Pretend, role: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    served = pretend(neighbours=2)
    served.world.roles = (role,)
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url.partition("/api/v1")[2].partition("?")[0]))
    await signed_in(page, served, "/")
    await expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    menu = page.get_by_role("navigation", name="Screens")
    for name in has:
        await expect(menu.get_by_role("link", name=name, exact=True)).to_be_visible()
    for name in lacks:
        await expect(menu.get_by_role("link", name=name, exact=True)).to_have_count(0)
    await expect(menu.get_by_role("group", name="Product")).to_have_count(0)
    own = {"renter": "/usage", "provider": "/overview/hosts", "operator": "/overview/history"}
    closed, asks = {
        "renter": ("/people", {"/accounts", "/users"}),
        "provider": ("/new", {"/clusters/plan", "/templates", "/volumes"}),
        "operator": ("/volumes", {"/volumes"}),
    }[role]
    await page.goto(f"{served.url}{closed}")
    await expect(page.get_by_text("This page is for others")).to_be_visible()
    assert not asks & set(asked)
    assert own[role] in asked
    assert not {one for other, one in own.items() if other != role} & set(asked)


async def test_an_operator_sees_what_needs_attention_with_the_way_to_it_and_gpus_by_state(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=2)
    for row, state in zip(served.world.gpu_rows.values(), ("rented", "faulty"), strict=False):
        row |= state_of(state)
    served.world.troubles = [trouble()]
    await signed_in(page, served, "/")
    needs = page.get_by_role("region", name="Needs attention")
    await expect(needs.get_by_role("link", name="sim-000 · GPU 5")).to_have_attribute("href", "/gpus/GPU-1")
    await expect(needs).to_contain_text("Reset the GPU.")
    await expect(needs.get_by_role("link", name="How to fix: 1 GPU faulty")).to_be_visible()
    name = re.compile(r"^GPUs by state\. Now: 1 rented, 14 idle, 1 faulty\. Most: 16$")
    await expect(page.get_by_role("img", name=name)).to_be_visible()
    await expect(page.get_by_role("img", name=re.compile(r"north: .*idle"))).to_be_visible()
    await page.get_by_test_id("uses-gpu").get_by_role("link", name="1").last.click()
    await expect(page).to_have_url(re.compile(r"/fleet\?kind=gpu&state=faulty"))


async def test_a_renter_sees_balance_and_month_and_the_switch_keeps_its_product(page: Page, pretend: Pretend) -> None:
    served = pretend()
    served.world.limits[LIMIT["id"]] = LIMIT
    await signed_in(page, served, "/")
    product = page.get_by_role("group", name="Product")
    await product.get_by_role("button", name="Rent").click()
    balance = page.get_by_role("region", name="Balance")
    await expect(balance).to_contain_text("10.00 CRD/h")
    await expect(balance).to_contain_text("10 huntil it is used up")
    await expect(page.get_by_test_id("spent-month")).to_contain_text(re.compile(r"\d CRD"))
    await expect(page.get_by_text("Nothing runs now")).to_be_visible()
    await page.reload()
    await expect(product.get_by_role("button", name="Rent")).to_have_attribute("aria-pressed", "true")
    await new(page, "Invitation")
    await expect(page.get_by_role("dialog")).to_be_visible()


async def test_a_provider_sees_why_not_rented_and_a_phone_has_its_bar(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    served.world.roles = ("provider",)
    await page.set_viewport_size({"width": 390, "height": 800})
    await signed_in(page, served, "/")
    await expect(page.get_by_role("region", name="Why not rented")).to_contain_text("9 % above the median")
    await expect(page.get_by_role("link", name="Set price of h100/A")).to_have_attribute("href", "/offers")
    bar = page.get_by_role("navigation", name="Main pages")
    await expect(bar.get_by_role("link", name="Fleet")).to_be_visible()
    assert await wider_than_window(page) is None
    await bar.get_by_role("button", name="More").click()
    await page.get_by_role("navigation", name="Screens").get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_role("combobox")).to_be_focused()
