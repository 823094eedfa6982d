"""Where hosts are, over HTTP: a refusal names the nearest region with its milliseconds, and owners say the rest."""

import pytest

from tests.support.wired import Relays
from tests.unit.clusters.test_routes import HOST
from windrow_master.clusters.model import Use
from windrow_master.fleet.presence import Route
from windrow_master.spec import NEAR_MS
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_proto.ids import BootId
from windrow_proto.messages import Heartbeat
from windrow_proto.units import MILLISECOND, SECOND

BOOT = BootId(b"b" * 16)


@pytest.fixture
async def far(site, monkeypatch):
    """The market's only host is in eu-2, and measured 41.5 ms to the relay of eu-1."""
    relays, fleet = Relays(), site.rooms.fleet
    relays.by_region = {"access_1": "eu-1", "access_2": "eu-2"}
    monkeypatch.setattr(fleet, "relays", relays)
    fleet.presence.opened(HOST, Route("access_2", "eu-2", "", BOOT))
    rtts = (("access_1", 41_500_000), ("access_2", MILLISECOND))
    fleet.presence.heard(HOST, Heartbeat(site.clock.wall_ns(), 1, "", b"", rtts=rtts))
    site.clock.advance(SECOND)
    await fleet.tick()
    return site


async def plan(site, **asked):
    return (await site.client.post("/api/v1/clusters/plan", json={"argv": ["true"], **asked})).json()


async def test_a_refusal_names_the_nearest_region_with_its_milliseconds(far) -> None:
    answer = await far.client.post("/api/v1/clusters", json={"argv": ["true"], "near": "eu-1"})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (409, "no_capacity")
    assert told["detail"].endswith("The nearest elsewhere is eu-2, 42 ms from eu-1.")
    assert told["reasons"][0]["code"] == "near"
    (way,) = told["ways"]
    assert (way["changes"], way["text"][:54]) == (
        {"near": "eu-1:42"},
        f"Fits on a within 42 ms of eu-1 instead of {NEAR_MS} ms, for 0",
    )
    assert (await plan(far, **way["changes"]))["fits"]
    assert (await plan(far, near="eu-2:0"))["fits"] and (await plan(far, region="eu-2"))["fits"]
    unknown = await plan(far, near="mars")
    assert "its distance from mars is not measured" in str(unknown)


async def test_an_owner_says_country_and_labels_and_requests_ask_for_them(far) -> None:
    asked = {"country": "DE", "labels": ["disk=nvme"], "provider_id": "default"}
    assert not (await plan(far, **asked))["fits"]
    route = f"/api/v1/hosts/{HOST}/place"
    said = await far.client.put(route, json={"country": "DE", "labels": ["quiet", "disk=nvme"]})
    assert (said.status_code, said.json()["country"], said.json()["labels"]) == (200, "DE", ["disk=nvme", "quiet"])
    assert (await plan(far, **asked))["fits"]
    for wrong in ({"country": "de"}, {"labels": ["a b"]}, {"labels": ["disk=a", "disk=b"]}, {"labels": [""]}):
        assert (await far.client.put(route, json=wrong)).status_code == 422
    assert not (await plan(far, provider_id="nobody"))["fits"]
    job = await far.client.post("/api/v1/jobs", json={"argv": ["true"], **asked})
    shown = (await far.client.get(f"/api/v1/jobs/{job.json()['jobs'][0]['id']}")).json()["request"]
    assert {name: shown[name] for name in asked} == asked


async def test_what_no_host_can_have_is_not_valid_and_the_field_is_named(site) -> None:
    absurd = {
        "near": "eu-1:2000",
        "country": "Germany",
        "region": "",
        "labels": ["disk=a", "disk=b"],
        "min_bandwidth_mbps": 0,
        "min_reliability_percent": 101,
        "verified": "perhaps",
    }
    for path in ("/clusters", "/clusters/plan", "/jobs"):
        for field, value in absurd.items():
            answer = await site.client.post(f"/api/v1{path}", json={"argv": ["true"], field: value})
            assert (answer.status_code, field in answer.text) == (422, True), (path, field)


async def test_near_a_volume_is_near_the_machine_that_has_it(far) -> None:
    volume_id = (await far.client.post("/api/v1/volumes", json={"name": "data"})).json()["id"]
    unused = await far.client.post("/api/v1/jobs", json={"argv": ["true"], "near": "data"})
    assert (unused.status_code, unused.json()["subject"]) == (409, "near")
    made = (await far.client.post("/api/v1/clusters", json={"argv": ["true"]})).json()["cluster"]["id"]
    far.write(lambda uow: uow[VolumeRepository].use(Use(volume_id, made, writes=True)))

    async def near(said: str) -> str:
        job = await far.client.post("/api/v1/jobs", json={"argv": ["true"], "near": said})
        assert job.status_code == 201, job.text
        return str(job.json()["jobs"][0]["request"]["near"])

    assert [await near(one) for one in ("data", "data:7", "eu-1", "mars")] == ["eu-2", "eu-2:7", "eu-1", "mars"]
