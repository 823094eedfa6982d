"""Eight cards of the fake NVIDIA library through the shipped agent, Access and Master, seen in a real browser."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from bench._cards import COUNT, cards, why_none
from tests.support.rental import Renter
from tests.support.stack import stack
from windrow_proto.gpu_fields import GPU_FIELDS

ABSENT = "–"
PASSED_ON = ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")
SAID = ("brand", "ecc_enabled", "gpu_temperature_celsius", "gpu_power_watts", "gpu_utilization_ratio")
"""The values that the fake library always says: where this is a dash, the page has lost it."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(why_none()), reason=f"eight pretend H100: {why_none() or 'there is a compiler'}")
@pytest.mark.proves("console: every field of eight H100, by nvidia-ml-py over the fake library, is a value or a dash")
@pytest.mark.long
async def test_every_row_of_the_table_of_eight_cards_is_on_their_pages(page: Page) -> None:
    with cards() as fake, stack(environment={name: fake.environment[name] for name in PASSED_ON}) as market:
        host = await asyncio.to_thread(Renter(market).online)
        uuids = [gpu["uuid"] for gpu in host["gpus"]]
        assert len(uuids) == COUNT
        url = market.cli["url"]
        await page.goto(f"{url}/fleet#token={market.cli['token']}")
        await expect(page.get_by_role("row").nth(1)).to_contain_text("Online")
        for uuid in uuids:
            await page.goto(f"{url}/gpus/{uuid}?tab=details")
            for name in SAID:
                await expect(page.locator(f"[data-field={name}]")).not_to_have_text(ABSENT)
            shown = await page.locator("[data-field]").evaluate_all(
                "all => all.map(one => [one.dataset.field, one.textContent])"
            )
            assert sorted(name for name, _ in shown) == sorted(one.name for one in GPU_FIELDS)
            assert [name for name, text in shown if not text.strip()] == []
            await page.get_by_role("tab", name="Health").click()
            await expect(page.get_by_role("region", name="Verification")).to_contain_text("Verified")
