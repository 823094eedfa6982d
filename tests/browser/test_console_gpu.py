"""The page of one GPU: all of the table with a dash for what was not said, its health over time, faults, evidence."""

import re
from collections.abc import Callable

from playwright.async_api import Page, expect

from tests.browser.pretend_master import Served
from tests.browser.pretend_records import trouble
from tests.browser.pretend_world import at, challenged, state_of, unverified
from tests.browser.test_console_states import signed_in
from windrow_proto.gpu_fields import GPU_FIELDS

Pretend = Callable[..., Served]


def first_card(served: Served) -> tuple[str, str]:
    """A host with GPUs and its first card."""
    host = next(host for host in served.world.hosts.values() if host["gpus"])
    return host["id"], host["gpus"][0]["uuid"]


async def test_a_gpu_has_a_page_with_every_field_where_absent_is_a_dash(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    host_id, uuid = first_card(served)
    world = served.world
    world.event("gpu.xid", [host_id, uuid], "XID 79, the host's", {"xid": "79", "blame": "host", "process": "python"})
    world.event("condition.raised", [host_id, uuid], "It was throttled.", {"code": f"gpu.throttled:{uuid}"})
    world.event("condition.cleared", [host_id, uuid], "That is over.", {"code": f"gpu.throttled:{uuid}"})
    await signed_in(page, served, f"/hosts/{host_id}?tab=gpus")
    await page.get_by_role("link", name=re.compile("^(H100|A100)")).first.click()
    await expect(page).to_have_url(f"{served.url}/gpus/{uuid}")
    await page.get_by_role("tab", name="Details").click()

    await expect(page.locator("[data-field]")).to_have_count(len(GPU_FIELDS))
    shown = await page.locator("[data-field]").evaluate_all(
        "all => all.map(one => [one.dataset.field, one.textContent])"
    )
    values = dict(shown)
    assert set(values) == {one.name for one in GPU_FIELDS}
    await expect(page.locator("[data-field=vbios]"), "what is absent waits behind one line").not_to_be_visible()
    assert (values["brand"], values["ecc_enabled"], values["remapped_corrected"]) == ("NVIDIA", "no", "0")
    assert (values["bar1_bytes"], values["vbios"], values["gpu_fan_ratio"]) == ("128 GiB", "–", "–")
    assert values["remapped_uncorrected"] == "–"

    await page.get_by_role("tab", name="Health").click()
    health = page.get_by_role("region", name="Table of conditions").get_by_role("row")
    await expect(health.nth(1)).to_contain_text("now")
    await expect(health.filter(has_text="throttled")).to_contain_text("It was throttled.")
    xid = page.get_by_role("region", name="Table of XIDs").get_by_role("row").nth(1)
    await expect(xid).to_contain_text("79")
    await expect(xid).to_contain_text("the host")
    evidence = page.get_by_role("region", name="Verification")
    await expect(evidence).to_contain_text("it says 80 GiB and 24 were seen")
    await expect(evidence).to_contain_text(re.compile("GPU memory speed2.9 TB/s, .* before: 2.8 TB/s"))
    await expect(evidence).to_contain_text(re.compile("Matrix speed21 Top/s, .* before: 20 Top/s"))
    await page.get_by_role("tab", name="Charts").click()
    await expect(page.get_by_role("img", name="GPU use")).to_be_visible()


async def test_a_browser_that_names_no_language_shows_the_charts_all_the_same(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    odd = "Object.defineProperty(Navigator.prototype, 'language', {get: () => 'en-US@posix', configurable: true})"
    await page.add_init_script(odd)
    await signed_in(page, served, f"/hosts/{first_card(served)[0]}?tab=charts")
    await expect(page.get_by_role("img", name="GPU use")).to_be_visible()
    await expect(page.get_by_text("This page failed")).to_have_count(0)


async def test_what_a_challenge_came_to_is_shown_of_the_card_and_of_its_host(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    host_id, uuid = first_card(served)
    served.world.hosts[host_id]["simulated"] = False
    await signed_in(page, served, f"/gpus/{uuid}?tab=health")
    shown = page.get_by_role("region", name="Verification")
    await expect(shown.get_by_label("next command", exact=True)).to_have_text("windrow host verify sim-000")

    card = challenged(uuid, "failed", "An opened entry is not the product's.")
    earlier = card | {"verification_id": "verification_1", "outcome": "passed", "detail": "64 openings true."}
    known = unverified(host_id) | {"state": "failed", "words": "0 of 8 GPUs passed.", "due_at": at(-120), "tries": 1}
    served.world.verifications[host_id] = known | {"gpus": [card], "past": [card, earlier]}
    await page.reload()
    for words in (
        "An opened entry",
        "2.41 s of at most 120.00 s",
        "observed: no card",
        "8,192",
        "72 GiB of 80 GiB",
        "64 openings true.",
    ):
        await expect(shown).to_contain_text(words)
    await expect(shown).to_contain_text("64 openings true.")
    await expect(shown).to_contain_text(re.compile("in [12] min"))

    await page.goto(f"{served.url}/hosts/{host_id}?tab=gpus")
    rows = page.get_by_role("region", name="Table of challenges").get_by_role("row")
    await expect(rows).to_have_count(9)
    await expect(rows.nth(1)).to_contain_text("An opened entry")
    await expect(rows.nth(2)).to_contain_text("Not challenged yet.")


async def test_a_host_says_how_far_one_can_rely_on_it_and_why_nobody_rents_it(page: Page, pretend: Pretend) -> None:
    served = pretend(neighbours=2)
    host_id, _ = first_card(served)
    await signed_in(page, served, f"/hosts/{host_id}")
    await expect(page.get_by_role("region", name="Reliability")).to_contain_text("0.987")
    why = page.get_by_role("region", name="Why is it not rented?")
    await expect(why).to_contain_text("GPU 0, GPU 1, GPU 2, GPU 3, GPU 4, GPU 5, GPU 6, GPU 7, CPUs")
    await expect(why.get_by_text("Nobody rented in its tier")).to_have_count(1)


async def test_a_faulty_gpu_is_a_click_from_home_with_its_remedy_and_a_drain_that_can_be_undone(
    page: Page, pretend: Pretend
) -> None:
    served = pretend(neighbours=2)
    host_id, uuid = first_card(served)
    host = served.world.hosts[host_id]
    host["gpus"][0] |= state_of("faulty")
    host["slots"][1]["cluster_id"] = "cluster_019a0000-0000-7000-8000-000000000001"
    affected = trouble()["affected"][0] | {"host_id": host_id, "gpu_id": uuid}
    served.world.troubles = [trouble(affected=[affected])]
    await signed_in(page, served, "/")
    await page.get_by_role("link", name="How to fix: 1 GPU faulty").click()

    found = page.get_by_role("region", name="Too hot", exact=True)
    await expect(found).to_contain_text("This GPU is about to slow itself down.")
    await expect(found).to_contain_text("Look at its cooling: fans, dust, and the air that comes in.")
    await expect(found.get_by_role("link", name="cluster")).to_be_visible()
    await expect(found.get_by_role("button", name="Verify now")).to_be_visible()
    await found.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Reason")).to_have_value("Too hot")
    await dialog.get_by_role("button", name="Drain").click()
    await expect(page.get_by_text("Drain: accepted for sim-000")).to_be_visible()
    await expect(found.get_by_role("button", name="Activate")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await expect(found.get_by_role("button", name="Drain")).to_be_visible()
    assert host["admin_state"] == "active"

    await page.goto(f"{served.url}/hosts/{host_id}")
    await page.get_by_role("region", name="GPU 0: Faulty").get_by_role("link", name="Open GPU 0").click()
    await expect(page).to_have_url(f"{served.url}/gpus/{uuid}")
