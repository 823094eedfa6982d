"""The price book over HTTP: its pages, its questions, and who may ask."""

from typing import Any

import pytest

from tests.unit.master_api.conftest import Api
from windrow_master.prices.shipped import shipped

PATH = "/api/v1/prices"


async def test_the_book_comes_in_pages_the_cheapest_first(api: Api) -> None:
    found: list[dict[str, Any]] = []
    cursor = None
    while cursor is not None or not found:
        page = (await api.client.get(PATH, params={"limit": 1_000} | ({"cursor": cursor} if cursor else {}))).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert [one["id"] for one in found] == [one.key for one in shipped().offers]


async def test_a_price_says_where_it_is_from_and_whether_it_is_believed(api: Api) -> None:
    page = (await api.client.get(PATH, params={"query": "runpod sxm h200"})).json()
    (price,) = page["items"]
    assert price["price_per_gpu_hour"] == "3.59" and price["currency"] == "USD"
    assert price["as_of"] == "2026-08-23" and price["expires"] == "2027-02-19"
    assert price["state"] in ("current", "expired") and (price["reason"] is None) == (price["state"] == "current")
    assert (price["granularity_seconds"], price["minimum_seconds"]) == (1, 1)


async def test_a_comparison_has_each_provider_and_kind_once(api: Api) -> None:
    items = (await api.client.get(PATH, params={"query": "a100", "compare": True})).json()["items"]
    places = [(one["gpu"], one["provider"], one["kind"]) for one in items]
    assert len(places) == len(set(places)) > 10
    assert [gpu for gpu, *_ in places] == sorted((gpu for gpu, *_ in places), key=[g for g, *_ in places].index)


@pytest.mark.parametrize("question", [{"kind": "gift"}, {"query": "x" * 201}, {"compare": "perhaps"}, {"limit": 0}])
async def test_a_wrong_question_is_refused(api: Api, question: dict[str, str]) -> None:
    assert (await api.client.get(PATH, params=question)).status_code == 422
