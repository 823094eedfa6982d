"""The fleet's and telemetry's routes: what they show, what they let be decided, and what they refuse."""

import json
from dataclasses import replace

import pytest

from tests.support.personas import DRIVER, uuid
from windrow_master.fleet.bandwidth_repository import BandwidthRepository
from windrow_master.fleet.bandwidth_schedule import MEASURE_DAY_BYTES
from windrow_master.fleet.model import LinkState, MeasuredRound
from windrow_master.fleet.presence import Route
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.verification_repository import VerificationRepository
from windrow_proto.ids import AccountId, BootId, HostId
from windrow_proto.messages import Heartbeat, Record
from windrow_proto.model import FrameClass, GpuFacts, Inventory, Kind
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import DAY, SECOND, time_text

HOST = HostId("host_1")
BOOT = BootId(b"b" * 16)
GPU_1 = uuid(1)


@pytest.fixture
async def fleet(api):
    """One real host with a GPU, one simulated one without."""
    services = api.services
    owner = services.identity.first_account().id
    gpus = (GpuFacts(GPU_1, 0, "nvidia", "X1"),)
    inventory = Inventory(hostname="box", cpu_model="Some CPU", cpu_count=4, gpus=gpus, driver_version=DRIVER)
    inventory = replace(inventory, conditions=("process.no_sandbox",), more={"container_own_users": 0})

    def make(uow):
        services.fleet.enrol(uow, HOST, "box", owner, False, "account/x")
        services.fleet.enrol(uow, HostId("host_2"), "toy", AccountId("account_other"), True, "account/x")
        services.fleet.hosts.inventory(uow, HOST, inventory)
        services.fleet.hosts.inventory(uow, HostId("host_2"), Inventory(hostname="toy"))

    await services.store.write(make, name="test")
    await services.fleet.refresh()
    return services.fleet


async def send(api, sequence, values):
    body = encode_batch([Sample(api.clock.wall_ns(), values)])
    one = Record(BOOT, sequence, Kind.TELEMETRY, body)
    await api.services.telemetry.append(HOST, [(one, FrameClass.LIVE)])


def read(message):
    """The data of a message, from what goes over the wire."""
    return json.loads(message.encode().decode().split("data: ", 1)[1])


async def ok(response):
    assert response.status_code < 300, response.text
    return response.json()


async def test_hosts_are_listed_with_gpus_slots_and_reasons(api, fleet):
    listed = await ok(await api.client.get("/api/v1/hosts"))
    box, toy = listed["items"]
    assert (box["id"], box["simulated"], toy["simulated"]) == (HOST, False, True)
    assert box["headline"] == "enrolled"
    assert box["admin_state"] == "active"
    assert {slot["kind"] for slot in box["slots"]} == {"cpu", "gpu"}
    assert box["gpus"][0]["tier"] == "unlisted/C"
    assert "not in the model table" in box["gpus"][0]["tier_reasons"][0]
    assert box["bandwidth"] is None
    assert (box["container_users"], toy["container_users"]) == ("host", None)
    assert [one["code"] for one in box["conditions"]] == ["process.no_sandbox"]
    assert box["live"] is None
    assert box["price_per_hour"] is not None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?simulated=true", ["host_2"]),
        ("?q=x1", ["host_1"]),
        ("?q=TOY", ["host_2"]),
        ("?state=active", ["host_1", "host_2"]),
        ("?state=lost", []),
        ("?limit=1", ["host_1"]),
        ("?gpus=true", ["host_1"]),
        ("?gpus=false", ["host_2"]),
    ],
)
async def test_hosts_are_filtered(api, fleet, query, found):
    listed = await ok(await api.client.get(f"/api/v1/hosts{query}"))
    assert [item["id"] for item in listed["items"]] == found


async def test_a_state_that_no_host_can_be_in_is_refused_with_those_there_are(api, fleet):
    answer = await api.client.get("/api/v1/hosts?state=bogus")
    assert answer.status_code == 422
    assert "degraded" in answer.json()["detail"] and "online" in answer.json()["detail"]


async def test_pages_of_hosts_follow_each_other(api, fleet):
    first = await ok(await api.client.get("/api/v1/hosts?limit=1"))
    second = await ok(await api.client.get(f"/api/v1/hosts?limit=1&cursor={first['next_cursor']}"))
    assert (first["items"][0]["id"], second["items"][0]["id"], second["next_cursor"]) == ("host_1", "host_2", None)


async def test_live_figures_are_in_the_metrics_units(api, fleet):
    await send(api, 1, {("", 101): 250, (GPU_1, 1): 50, (GPU_1, 4): None})
    box = await ok(await api.client.get(f"/api/v1/hosts/{HOST}"))
    assert box["live"]["cpu_ratio"] == 0.25
    assert box["live"]["load1"] is None
    assert box["gpus"][0]["live"]["utilization_ratio"] == 0.5
    assert box["gpus"][0]["live"]["temperature_celsius"] is None
    rows = await ok(await api.client.get("/api/v1/gpus"))
    assert [(row["uuid"], row["utilization_ratio"]) for row in rows["items"]] == [(GPU_1, 0.5)]


async def test_gpus_are_shaped_once_and_answered_by_version(api, fleet):
    first = await api.client.get("/api/v1/gpus")
    again = await api.client.get("/api/v1/gpus", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    api.clock.advance(10**9)
    await send(api, 1, {(GPU_1, 1): 50})
    changed = await api.client.get("/api/v1/gpus", headers={"If-None-Match": first.headers["etag"]})
    assert changed.json()["version"] > first.json()["version"]


async def test_an_owner_chooses_the_image_that_runs_where_a_request_names_none_and_takes_it_back(api, fleet):
    route = f"/api/v1/hosts/{HOST}/default-image"
    assert (await ok(await api.client.get(f"/api/v1/hosts/{HOST}")))["default_image"] is None
    chosen = await ok(await api.client.put(route, json={"image": "debian:13"}))
    assert chosen["default_image"] == "debian:13"
    assert (await ok(await api.client.get(f"/api/v1/hosts/{HOST}")))["default_image"] == "debian:13"
    for wrong in ("", "-v", "sha256:" + "1f" * 32, "1f" * 32, "a b", "x" * 300):
        assert (await api.client.put(route, json={"image": wrong})).status_code == 422
    assert (await ok(await api.client.put(route, json={"image": None})))["default_image"] is None
    events = (await ok(await api.client.get(f"/api/v1/events?subject={HOST}")))["items"]
    told = [one["text"] for one in events if one["kind"] == "host.default_image"]
    assert len(told) == 2 and "debian:13" in told[1] and told[0].endswith("has no default image")


async def test_an_operator_drains_activates_and_retires_a_host(api, fleet):
    drained = await ok(await api.client.post(f"/api/v1/hosts/{HOST}/drain", json={"reason": "new fan"}))
    assert (drained["admin_state"], drained["headline"]) == ("draining", "draining")
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/activate", json={}))
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/maintenance", json={}))
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/quarantine", json={}))
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/activate", json={}))
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/retire", json={}))
    refused = await api.client.post(f"/api/v1/hosts/{HOST}/activate", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    listed = await ok(await api.client.get("/api/v1/hosts"))
    assert [item["id"] for item in listed["items"]] == ["host_2"]


async def test_what_there_is_not_is_not_found(api, fleet):
    for path in ("hosts/nope", "hosts/nope/history?metric=host_cpu_ratio", "commands/nope"):
        answer = await api.client.get(f"/api/v1/{path}")
        assert answer.status_code == 404, path


async def test_a_host_that_is_away_cannot_be_measured(api, fleet):
    answer = await api.client.post(f"/api/v1/hosts/{HOST}/measure")
    assert (answer.status_code, answer.json()["code"]) == (503, "host_unreachable")


async def test_measuring_is_an_operation_that_names_its_command(api, fleet):
    fleet.presence.opened(HOST, Route("access_1", "local-a", "", BOOT))
    fleet.presence.heard(HOST, Heartbeat(api.clock.wall_ns(), 1, "", b""))
    answer = await api.client.post(f"/api/v1/hosts/{HOST}/measure")
    assert answer.status_code == 202
    command_id = answer.json()["operation"]["subject"]
    shown = await ok(await api.client.get(f"/api/v1/commands/{command_id}"))
    assert (shown["kind"], shown["state"], shown["host_id"]) == ("measure_bandwidth", "queued", HOST)
    listed = await ok(await api.client.get(f"/api/v1/commands?host={HOST}"))
    assert [item["id"] for item in listed["items"]] == [command_id]


async def test_history_is_points_with_nulls(api, fleet):
    await send(api, 1, {("", 101): 250, (GPU_1, 4): 61})
    await api.services.telemetry.view.catch_up()
    at_s = api.clock.wall_ns() // 10**9
    span = f"from={time_text((at_s - 1) * 10**9)}&to={time_text((at_s + 2) * 10**9)}&step_s=1"
    path = f"/api/v1/hosts/{HOST}/history?metric=host_cpu_ratio&metric=gpu_temperature_celsius&{span}"
    body = await ok(await api.client.get(path))
    cpu, gpu = body["series"]
    assert [value for _, value in cpu["points"]] == [None, 0.25, None]
    assert (gpu["gpu"], gpu["unit"], [v for _, v in gpu["points"]]) == (GPU_1, "Cel", [None, 61, None])
    assert cpu["points"][1][0] == at_s * 1000
    api.services.telemetry.view.close()


@pytest.mark.parametrize("query", ["metric=nope", "metric=host_cpu_ratio&from=yesterday", "metric=host_load1&step_s=0"])
async def test_a_bad_question_to_history_is_refused_with_a_sentence(api, fleet, query):
    answer = await api.client.get(f"/api/v1/hosts/{HOST}/history?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_the_catalog_names_every_metric_with_its_unit(api):
    items = (await ok(await api.client.get("/api/v1/metrics/catalog")))["items"]
    assert {"name": "gpu_power_watts", "unit": "W"}.items() <= next(
        i for i in items if i["name"] == "gpu_power_watts"
    ).items()


async def test_the_feed_streams_what_changed_and_only_that(api, fleet):
    from windrow_master.api.fleet_feed import feed_of

    stream = feed_of(api.services).stream(None, None)
    rows = await anext(stream)
    hosts = await anext(stream)
    assert (rows.event, hosts.event) == ("rows", "hosts")
    assert len(read(hosts)["hosts"]) == 2
    api.clock.advance(10**9)
    await send(api, 1, {(GPU_1, 1): 50})
    rows = await anext(stream)
    hosts = await anext(stream)
    assert [row["utilization_ratio"] for row in read(rows)["rows"]] == [0.5]
    assert [host["id"] for host in read(hosts)["hosts"]] == [HOST]
    await stream.aclose()


@pytest.mark.parametrize("path", ["hosts", "gpus"])
async def test_a_list_that_the_caller_has_is_not_sent_again_until_something_changed(api, fleet, path):
    first = await api.client.get(f"/api/v1/{path}")
    again = await api.client.get(f"/api/v1/{path}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    api.clock.advance(10**9)
    await send(api, 1, {(GPU_1, 1): 50})
    changed = await api.client.get(f"/api/v1/{path}", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.headers["content-length"]) == (200, str(len(changed.content)))


async def test_a_page_without_hosts_is_a_page(api, fleet):
    assert await ok(await api.client.get("/api/v1/hosts?q=nobody")) == {"items": [], "next_cursor": None}


async def test_a_host_in_a_list_is_the_host_of_its_own_page(api, fleet):
    from windrow_proto.messages import Heartbeat as Beat

    for step in range(3):  # never seen, a sample, a heartbeat
        if step == 1:
            await send(api, 1, {("", 101): 250, (GPU_1, 1): 33, (GPU_1, 4): None})
        if step == 2:
            fleet.presence.heard(HOST, Beat(api.clock.wall_ns(), 1, "", b""))
        listed = await ok(await api.client.get("/api/v1/hosts"))
        alone = [await ok(await api.client.get(f"/api/v1/hosts/{host['id']}")) for host in listed["items"]]
        assert listed["items"] == alone


async def test_listeners_in_step_share_what_was_written_once(api, fleet):
    from windrow_master.api.fleet_feed import feed_of

    one, other = (feed_of(api.services).stream(None, None) for _ in range(2))
    first, second = await anext(one), await anext(other)
    assert first is second
    assert first.encode() is second.encode()
    await one.aclose()
    await other.aclose()


async def test_a_stream_after_the_lists_version_tells_only_what_changed_since(api, fleet):
    from windrow_master.api.fleet_feed import feed_of

    version = (await ok(await api.client.get("/api/v1/gpus")))["version"]
    stream = feed_of(api.services).stream(version, None)
    api.clock.advance(10**9)
    await send(api, 1, {(GPU_1, 1): 50})
    rows, hosts = await anext(stream), await anext(stream)
    assert [row["uuid"] for row in read(rows)["rows"]] == [GPU_1]
    assert [host["id"] for host in read(hosts)["hosts"]] == [HOST]
    await stream.aclose()


async def test_a_version_of_an_earlier_master_is_old_to_the_next(api, fleet):
    from windrow_master.api.fleet_feed import FleetFeed, feed_of

    version = (await ok(await api.client.get("/api/v1/gpus")))["version"]
    api.clock.advance(10**9)
    services = api.services
    restarted = FleetFeed(services.store, fleet, services.telemetry, services.market, api.clock)
    await restarted.refresh()
    assert feed_of(services) is not restarted
    assert len(read(restarted.news(version, None)[-1])["hosts"]) == 2


async def test_a_hosts_verification_is_shown_in_words_with_the_evidence(api, fleet):
    from windrow_master.fleet.model import Verification, VerifyOutcome
    from windrow_proto.ids import GpuUuid

    answer = await ok(await api.client.get(f"/api/v1/hosts/{HOST}/verification"))
    assert (answer["state"], answer["due_at"], answer["gpus"]) == ("unverified", None, [])
    assert "was challenged yet" in answer["words"]
    failed = Verification(
        *("verification_1", HOST, GpuUuid(GPU_1), 1, VerifyOutcome.FAILED, ("wrong_entry",), "It was wrong."),
        evidence={"places": [[0, 1, 2]], "nonce": "00ff", "bound_ns": 120 * SECOND, "calibrated": False},
    )
    earlier = Verification("verification_0", HOST, GpuUuid(GPU_1), 0, VerifyOutcome.PASSED, detail="It was right.")
    for one in (earlier, failed):
        api.services.store.write_now(lambda uow, one=one: uow[VerificationRepository].add(one), name="test")
    answer = await ok(await api.client.get(f"/api/v1/hosts/{HOST}/verification"))
    (shown,) = answer["gpus"]
    assert [one["detail"] for one in answer["past"]] == ["It was wrong.", "It was right."]
    assert (shown["bound_ms"], shown["calibrated"], shown["times"]) == (120_000, False, None)
    assert (shown["outcome"], shown["reasons"], shown["places"]) == ("failed", ["wrong_entry"], [[0, 1, 2]])
    assert (shown["span_ms"], shown["size"], shown["device"]) == (None, None, None)


async def test_a_host_that_is_away_cannot_be_verified_now(api, fleet):
    answer = await api.client.post(f"/api/v1/hosts/{HOST}/verify")
    assert answer.status_code == 503


async def test_how_a_host_stands_is_said_with_why_nobody_rents_it(api, fleet):
    answer = await ok(await api.client.get(f"/api/v1/hosts/{HOST}/standing"))
    assert answer["reliability"]["figure"] is None
    assert answer["reliability"]["words"].startswith("not known yet: it was there for 0 of 0 points")
    by_gpu = {one["gpu"]: one["reasons"] for one in answer["unrented"]}
    assert any("cannot be had" in reason for reason in by_gpu[GPU_1])
    assert any("Nobody rented" in reason for reason in by_gpu[GPU_1])
    assert any("is not verified: None of its" in reason for reason in by_gpu[GPU_1])
    assert not any("verified" in reason for reason in by_gpu[None])


async def test_a_hosts_rounds_of_bandwidth_are_shown_the_newest_first_as_far_as_asked_for(api, fleet):
    north = MeasuredRound(HOST, "first", "north", SECOND, 900, 500, {"access_1": (900, 500), "access_2": (900, 500)})

    def make(uow):
        uow[BandwidthRepository].put(north)
        uow[BandwidthRepository].put(replace(north, nonce="second", up_bps=5, relays={"access_1": (5, 500)}))

    await api.services.store.write(make, name="test")
    found = await ok(await api.client.get(f"/api/v1/hosts/{HOST}/bandwidth"))
    shown = {"region": "north", "at": time_text(SECOND), "down_bps": 500}
    assert found == {
        "host_id": HOST,
        "rounds": [shown | {"up_bps": 5, "relays": 1}, shown | {"up_bps": 900, "relays": 2}],
    }
    assert len((await ok(await api.client.get(f"/api/v1/hosts/{HOST}/bandwidth?limit=1")))["rounds"]) == 1
    assert (await api.client.get("/api/v1/hosts/host_of_nobody/bandwidth")).status_code == 404


async def test_a_host_that_was_measured_too_much_today_is_not_and_the_answer_says_when_it_can_be(api, fleet):
    fleet.presence.opened(HOST, Route("acc_1", "local-a", "127.0.0.1:1", BOOT))
    fleet.measures.cap_bytes = MEASURE_DAY_BYTES
    await ok(await api.client.post(f"/api/v1/hosts/{HOST}/measure"))
    refused = await api.client.post(f"/api/v1/hosts/{HOST}/measure")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert "it can be measured again from" in refused.json()["detail"]
    assert 0 < int(refused.headers["Retry-After"]) <= DAY // SECOND


@pytest.mark.case("M-11", "M-12")
async def test_a_gpu_has_one_state_in_every_list_and_a_host_with_a_dead_one_is_degraded(api, fleet):
    def change(uow):
        row = uow[HostRepository].get(HOST)
        lost = replace(row.inventory, conditions=(f"gpu.lost:{GPU_1}",))
        assert uow[HostRepository].save(replace(row, link_state=LinkState.ONLINE, version=row.version + 1))
        api.services.fleet.hosts.inventory(uow, HOST, lost)

    await api.services.store.write(change, name="test")
    await fleet.refresh()
    api.clock.advance(10**9)
    box = await ok(await api.client.get(f"/api/v1/hosts/{HOST}"))
    (listed,) = (await ok(await api.client.get("/api/v1/hosts?state=degraded")))["items"]
    (row,) = (await ok(await api.client.get("/api/v1/gpus")))["items"]
    page = await ok(await api.client.get(f"/api/v1/gpus/{GPU_1}"))
    health = (await ok(await api.client.get("/api/v1/operators/health")))["fleet"]
    overview = await ok(await api.client.get("/api/v1/overview"))
    assert {one["state"] for one in (*box["gpus"], *listed["gpus"], row, page)} == {"faulty"}
    assert overview["gpus"] == health["gpus"]
    assert (overview["gpus"]["faulty"], overview["gpus"]["total"]) == (1, 1)
    assert box["headline"] == "degraded"
    assert box["headline_reason"].startswith("1 of 1 GPU faulty. GPU 0: This GPU fell off its bus")
    assert box["headline_remedy"].startswith("Reboot the host.")
    assert [one["about"] for one in page["conditions"]] == ["GPU 0"]
    (troubled,) = [one for one in health["troubled"] if one["id"] == HOST]
    assert (troubled["headline"], troubled["remedy"]) == ("degraded", box["headline_remedy"])
