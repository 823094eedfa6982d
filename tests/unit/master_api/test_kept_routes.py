"""A route that is kept, the job that follows it, and what that job took and cost beside what was forecast."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.unit.master_api.conftest import Api
from windrow_proto.units import MILLISECOND

REGISTRY = "/api/model-studio/compute-resources"
SCRIPT = "import torch\nmodel = torch.nn.Linear(1, 1).cuda()\n"
JOB = {"argv": ["python", "train.py"]}


@pytest.fixture
async def market(api: Api) -> AsyncIterator[Api]:
    record = {"resource_id": "lab", "resource_type": "on-premise", "capabilities": {"gpu": True, "gpu_count": 1}}
    assert (await api.client.post(REGISTRY, json=record)).status_code == 201
    yield api


async def kept(api: Api, **asked: Any) -> Any:
    requirements = {"duration_hours_estimated": 2.0, "interruptible": True}
    body = {"code": SCRIPT, "requirements": requirements, "keep": True, **asked}
    answer = await api.client.post("/api/v1/route", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_route_is_kept_where_that_is_asked_for_and_shown_as_it_was_answered(market: Api) -> None:
    assert (await kept(market, keep=False))["route_id"] is None
    answer = await kept(market)
    shown = (await market.client.get(f"/api/v1/routes/{answer['route_id']}")).json()
    assert shown.pop("route") == {**answer, "analysis": None}
    (one,) = (await market.client.get("/api/v1/routes")).json()["items"]
    assert (one["route_id"], one["hours"], one["job_id"], one["held"]) == (answer["route_id"], 2.0, None, None)
    assert shown == one


async def test_a_job_follows_a_route_and_is_told_beside_it(market: Api) -> None:
    first = (await kept(market))["route_id"]
    market.clock.advance(MILLISECOND)
    second = (await kept(market))["route_id"]
    made = await market.client.post("/api/v1/jobs", json={**JOB, "route_id": first})
    assert made.status_code == 201, made.text
    (job,) = made.json()["jobs"]
    assert job["request"]["route_id"] == first
    latest, older = (await market.client.get("/api/v1/routes")).json()["items"]
    assert (latest["route_id"], latest["job_id"]) == (second, None)
    told = (older["route_id"], older["job_id"], older["job_state"], older["cost"], older["held"])
    assert told == (first, job["id"], "Queued", "0.00", None)
    found = (await market.client.get("/api/v1/jobs", params={"route_id": first})).json()["items"]
    assert [one["id"] for one in found] == [job["id"]]


async def test_a_job_may_follow_no_route_that_is_not_kept_or_anothers(market: Api) -> None:
    route_id = (await kept(market))["route_id"]
    made = await market.client.post("/api/v1/accounts", json={"name": "other", "roles": ["renter"]})
    assert made.status_code == 201, made.text
    secret = made.json()["link"].partition("#sign-in=")[2]
    opened = (await market.stranger.post("/api/v1/sign-in", json={"secret": secret})).json()
    other = {"Authorization": f"Bearer {opened['token']['token']}"}
    assert (await market.stranger.get(f"/api/v1/routes/{route_id}", headers=other)).status_code == 404
    refused = await market.stranger.post("/api/v1/jobs", json={**JOB, "route_id": route_id}, headers=other)
    assert refused.status_code == 404
    assert "There is no such route" in refused.text
    assert (await market.client.post("/api/v1/jobs", json={**JOB, "route_id": "route_none"})).status_code == 404


async def test_the_oldest_routes_of_an_account_go_first(market: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow_master.hybrid.service.KEPT_MAX", 2)
    ids = []
    for _ in range(4):
        market.clock.advance(MILLISECOND)
        ids.append((await kept(market))["route_id"])
    items = (await market.client.get("/api/v1/routes")).json()["items"]
    assert [one["route_id"] for one in items] == ids[:1:-1]
    followed = await market.client.post("/api/v1/jobs", json={**JOB, "route_id": ids[2]})
    assert followed.status_code == 201
    market.clock.advance(MILLISECOND)
    last = (await kept(market))["route_id"]
    items = (await market.client.get("/api/v1/routes")).json()["items"]
    assert [one["route_id"] for one in items] == [last, ids[2]], "one that a job followed stays longer"
    ids[3] = last
    page = (await market.client.get("/api/v1/routes", params={"limit": 1})).json()
    assert [one["route_id"] for one in page["items"]] == ids[3:]


async def test_a_job_is_bound_to_the_host_that_is_named(market: Api) -> None:
    made = await market.client.post("/api/v1/jobs", json={**JOB, "host_id": "host_none"})
    (job,) = made.json()["jobs"]
    assert job["request"]["host_id"] == "host_none"


async def test_the_first_job_that_follows_a_route_stays_beside_it_with_the_place_that_it_took(market: Api) -> None:
    route_id = (await kept(market))["route_id"]
    ids = []
    for more in ({"host_id": "host_none"}, {}):
        made = await market.client.post("/api/v1/jobs", json={**JOB, "route_id": route_id, "array_size": 2, **more})
        ids.append(made.json()["jobs"][0]["id"])
    (one,) = (await market.client.get("/api/v1/routes")).json()["items"]
    assert (one["job_id"], one["backend"], one["cost_estimate"]) == (ids[0], None, None)


async def test_only_who_rents_keeps_a_route(market: Api) -> None:
    made = await market.client.post("/api/v1/accounts", json={"name": "auditor", "roles": ["auditor"]})
    secret = made.json()["link"].partition("#sign-in=")[2]
    opened = (await market.stranger.post("/api/v1/sign-in", json={"secret": secret})).json()
    headers = {"Authorization": f"Bearer {opened['token']['token']}"}
    for keep, status in ((False, 200), (True, 403)):
        body = {"code": SCRIPT, "keep": keep}
        assert (await market.stranger.post("/api/v1/route", json=body, headers=headers)).status_code == status
