"""The registry of compute resources over HTTP: records as its document prints them, and one answer for each odd
input."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.master_api.conftest import Api
from windrow_master.api.model_studio_routes import BODY_MAX
from windrow_master.hybrid import registry

PATH = "/api/model-studio/compute-resources"
PAGE = Path(__file__).parents[3] / "docs" / "resources.md"
KEYS = [
    *("id", "resource_id", "resource_type", "provider", "location", "region", "capabilities", "supported_frameworks"),
    *("status", "max_parallel_jobs", "network_bandwidth_gbps", "cost_per_hour_usd", "auth_method", "latency_ms"),
    *("created_at", "updated_at"),
]
RIGHT = {
    "resource_id": "lab-a100-01",
    "resource_type": "on-premise",
    "location": "Building A",
    "capabilities": {"gpu": True, "gpu_count": 8, "gpu_type": "NVIDIA A100", "memory_gb": 1024},
    "supported_frameworks": ["pytorch"],
    "max_parallel_jobs": 4,
}


def _rows() -> list[tuple[str, str, str, int, str]]:
    """The table of odd input: what, method, change, status, the field that is named."""
    _, _, table = PAGE.read_text().partition("## Odd input")
    found = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and cells[2].rstrip(" |").isdecimal():
            method = re.match(r"`(\w+)`", cells[0])
            assert method is not None, line
            found.append((cells[0], method[1], cells[1].strip("`"), int(cells[2]), cells[3].strip("`| ")))
    return found


ROWS = _rows()


async def register(client: httpx2.AsyncClient, **changes: Any) -> httpx2.Response:
    return await client.post(PATH, json={**RIGHT, **changes})


async def test_a_record_has_its_sixteen_fields_in_their_order(api: Api) -> None:
    made = await register(api.client)
    assert made.status_code == 201, made.text
    body = made.json()
    assert list(body) == KEYS
    assert {name: body[name] for name in RIGHT} == RIGHT
    assert (body["id"], body["status"], body["cost_per_hour_usd"], body["updated_at"]) == (1, "available", 0.0, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", body["created_at"])
    assert (await api.client.get(f"{PATH}/lab-a100-01")).json() == body
    assert (await api.client.get(PATH)).json() == [body]


async def test_whole_numbers_come_back_as_floats(api: Api) -> None:
    made = await register(api.client, network_bandwidth_gbps=10, cost_per_hour_usd=3)
    assert '"network_bandwidth_gbps":10.0,"cost_per_hour_usd":3.0,' in made.text
    assert '"memory_gb":1024}' in made.text, "capabilities stay as they were written"


async def test_a_cloud_has_no_cost_until_somebody_says_one(api: Api) -> None:
    made = await register(api.client, resource_type="cloud", provider="AWS")
    assert made.json()["cost_per_hour_usd"] is None
    changed = await api.client.put(f"{PATH}/lab-a100-01", json={"cost_per_hour_usd": 32.77})
    assert changed.json()["cost_per_hour_usd"] == 32.77
    cleared = await api.client.put(f"{PATH}/lab-a100-01", json={"cost_per_hour_usd": None})
    assert cleared.json()["cost_per_hour_usd"] is None


async def test_a_change_merges_fields_and_replaces_capabilities(api: Api) -> None:
    before = (await register(api.client)).json()
    api.clock.advance(5_000_000_000)
    after = (await api.client.put(f"{PATH}/lab-a100-01", json={"status": "maintenance"})).json()
    assert after == before | {"status": "maintenance", "updated_at": after["updated_at"]}
    assert after["updated_at"] > before["created_at"]
    last = (await api.client.put(f"{PATH}/lab-a100-01", json={"capabilities": {"gpu": False}, "status": None})).json()
    assert (last["capabilities"], last["status"]) == ({"gpu": False}, "available")


@pytest.mark.parametrize("change", [{}, {"status": "available"}, {"max_parallel_jobs": 4, "region": None}])
async def test_what_changes_nothing_is_no_change(api: Api, change: dict[str, Any]) -> None:
    before = (await register(api.client)).json()
    assert (await api.client.put(f"{PATH}/lab-a100-01", json=change)).json() == before


async def test_a_record_as_it_was_read_can_be_sent_back(api: Api) -> None:
    before = (await register(api.client)).json()
    answer = await api.client.put(f"{PATH}/lab-a100-01", json=before)
    assert (answer.status_code, answer.json()) == (200, before)


async def test_each_odd_input_has_its_one_answer(api: Api) -> None:
    differing = {}
    for what, method, change, status, field in ROWS:
        is_there = method == "PUT" or change == "twice"
        before = [(await register(api.client)).json()] if is_there else []
        answer = await _odd(api, method, change)
        said = answer.json()
        named = {said.get("subject"), *(one.get("field") for one in said.get("reasons", ()))}
        is_named = not field or field in named or field in said["detail"].split(":")[0]
        is_unchanged = status < 400 or (await api.client.get(PATH)).json() == before
        if (answer.status_code, is_named, is_unchanged) != (status, True, True):
            differing[what] = (answer.text, is_named, is_unchanged)
        await api.client.delete(f"{PATH}/{RIGHT['resource_id']}")

    assert differing == {}


async def _odd(api: Api, method: str, change: str) -> httpx2.Response:
    if method == "PUT":
        return await _sent(api, "PUT", f"{PATH}/lab-a100-01", change)
    if change == "twice":
        return await register(api.client)
    body = {**RIGHT, **json.loads(change)}
    return await _sent(api, "POST", PATH, json.dumps({name: value for name, value in body.items() if value != "-"}))


async def _sent(api: Api, method: str, path: str, body: str) -> httpx2.Response:
    return await api.client.request(method, path, content=body, headers={"Content-Type": "application/json"})


async def test_the_table_has_both_kinds_of_request() -> None:
    assert {row[1] for row in ROWS} == {"POST", "PUT"}
    assert len(ROWS) > 35


async def test_of_fifty_at_once_one_is_registered(api: Api) -> None:
    answers = await asyncio.gather(*(register(api.client) for _ in range(50)))
    assert sorted(one.status_code for one in answers) == [201, *[400] * 49]
    assert answers[-1].json()["code"] == "already_registered"
    assert len((await api.client.get(PATH)).json()) == 1


async def test_an_identical_or_unavailable_one_is_a_duplicate_too(api: Api) -> None:
    await register(api.client, status="unavailable")
    assert (await register(api.client, status="unavailable")).status_code == 400


async def test_numbers_are_given_once(api: Api) -> None:
    for name in "ab":
        await register(api.client, resource_id=name)
    assert (await api.client.delete(f"{PATH}/b")).status_code == 204
    assert (await register(api.client, resource_id="c")).json()["id"] == 3
    assert [one["resource_id"] for one in (await api.client.get(PATH)).json()] == ["a", "c"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_resource_that_is_not_there(api: Api, method: str) -> None:
    answer = await api.client.request(method, f"{PATH}/none", json={} if method == "PUT" else None)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_a_slash_at_the_end_is_another_address(api: Api, method: str) -> None:
    answer = await api.client.request(method, f"{PATH}/", json=RIGHT)
    assert answer.status_code == 404, answer.text


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", "abc"),
        ("?status_filter=available", "ac"),
        ("?resource_type=cloud", "bc"),
        ("?provider=aws", "b"),
        ("?provider=AWS&resource_type=cloud&status_filter=maintenance", "b"),
        ("?provider=AWS&resource_type=edge", ""),
        ("?status_filter=&resource_type=&provider=", "abc"),
        ("?provider=oracle", ""),
    ],
)
async def test_filters_are_joined(api: Api, asked: str, expected: str) -> None:
    await register(api.client, resource_id="a")
    await register(api.client, resource_id="b", resource_type="cloud", provider="AWS", status="maintenance")
    await register(api.client, resource_id="c", resource_type="cloud", provider="GCP")
    found = (await api.client.get(f"{PATH}{asked}")).json()
    assert "".join(one["resource_id"] for one in found) == expected


@pytest.mark.parametrize("asked", ["status_filter=asleep", "resource_type=quantum", "status=available"])
async def test_an_unknown_filter_is_refused(api: Api, asked: str) -> None:
    answer = await api.client.get(f"{PATH}?{asked}")
    assert answer.status_code == 422
    assert asked.split("=")[0] in answer.json()["detail"]


async def test_a_body_beyond_the_limit(api: Api) -> None:
    much = {"location": "x" * BODY_MAX}
    assert (await register(api.client, **much)).status_code == 413
    await register(api.client)
    assert (await api.client.put(f"{PATH}/lab-a100-01", json=much)).status_code == 413


async def test_the_registry_is_full(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RESOURCES_MAX", 2)
    answers = [await register(api.client, resource_id=name) for name in "abc"]
    assert [one.status_code for one in answers] == [201, 201, 429]


async def test_nobody_is_answered_without_a_token(api: Api) -> None:
    assert (await api.stranger.get(PATH)).status_code == 401
    assert (await register(api.stranger)).status_code == 401


async def test_a_change_is_in_the_audit_log_with_its_event(api: Api) -> None:
    await register(api.client)
    await api.client.put(f"{PATH}/lab-a100-01", json={"status": "busy"})
    await api.client.delete(f"{PATH}/lab-a100-01")
    entries = (await api.client.get("/api/v1/audit?action=resource.")).json()["items"]
    assert [one["action"] for one in entries] == ["resource.remove", "resource.change", "resource.register"]
    events = (await api.client.get("/api/v1/events?subject=resource/lab-a100-01")).json()["items"]
    assert [one["kind"] for one in events] == ["resource.removed", "resource.changed", "resource.registered"]
