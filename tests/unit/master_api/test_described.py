"""Promises of the API's description: every described answer is what is answered, field by field, and the console reads
the same types."""

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from tests.architecture import api_types, request_fields
from tests.unit.clusters.made import NOW, cluster, workload
from tests.unit.master_api.conftest import Api
from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_fleet_routes import GPU_1, HOST, fleet, send  # noqa: F401  # the fixture
from windrow_master.api import (
    answers,
    audit_routes,
    bandwidth_routes,
    cluster_routes,
    facts_routes,
    fleet_routes,
    fleet_shapes,
    gpu_shapes,
    health,
    identity_routes,
    market_routes,
    overview_routes,
    standing_routes,
    telemetry_routes,
    verification_routes,
)
from windrow_master.api.app import description
from windrow_master.api.cluster_routes import cluster_json
from windrow_master.clusters.model import ClusterPhase, Step
from windrow_master.clusters.views import ClusterView
from windrow_master.fleet.presence import Route
from windrow_master.link.wire import Trunk
from windrow_proto.ids import BootId
from windrow_proto.messages import Heartbeat
from windrow_proto.units import MINUTE, Microcents, time_text
from windrow_proto.v1 import services_pb2

BOOT = BootId(b"b" * 16)


@pytest.fixture
async def lived(api: Api, fleet: Any) -> Api:  # noqa: F811
    """A Master with a host that has a GPU and a sample, a cluster that waits, a command, tokens and a session."""
    fleet.presence.opened(HOST, Route("access_1", "local-a", "10.0.0.1", BOOT))
    fleet.presence.heard(HOST, Heartbeat(api.clock.wall_ns(), 1, "", b""))
    await send(api, 1, {("", 101): 250, (GPU_1, 1): 50, (GPU_1, 4): None})
    await api.client.post(f"/api/v1/hosts/{HOST}/measure")
    await api.client.post("/api/v1/join-tokens", json={})
    await api.stranger.post("/api/v1/session", json={"token": api.token})
    no_link: Any = None
    trunk = Trunk(no_link, services_pb2.TrunkHello(region="local"), "127.0.0.1:7443", api.clock.wall_ns())
    api.services.health.accesses = lambda: [Trunk.summary("access_1", [trunk])]
    return api


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/hosts", answers.Page[fleet_shapes.HostOut]),
        (f"/hosts/{HOST}", fleet_shapes.HostOut),
        ("/gpus", fleet_shapes.GpusOut),
        (f"/gpus/{GPU_1}", gpu_shapes.GpuPageOut),
        ("/events", answers.Page[answers.EventOut]),
        ("/commands", answers.Page[fleet_shapes.CommandOut]),
        (f"/hosts/{HOST}/verification", verification_routes.VerificationOut),
        (f"/hosts/{HOST}/standing", standing_routes.StandingOut),
        (f"/hosts/{HOST}/bandwidth", bandwidth_routes.BandwidthRoundsOut),
        (f"/hosts/{HOST}/facts", facts_routes.HostFactsOut),
        ("/operations", answers.Page[answers.OperationOut]),
        ("/audit", answers.Page[audit_routes.AuditOut]),
        ("/sessions", answers.Page[identity_routes.SessionOut]),
        ("/tokens", answers.Page[identity_routes.TokenOut]),
        ("/join-tokens", answers.Page[identity_routes.JoinTokenOut]),
        ("/audit/verify", audit_routes.AuditVerdictOut),
        ("/me", identity_routes.MeOut),
        ("/regions", identity_routes.SignedOut),
        ("/overview", overview_routes.OverviewOut),
        ("/ledger/balances", answers.Page[market_routes.BalanceOut]),
        ("/operators/health", health.HealthOut),
        ("/metrics/catalog", answers.Page[telemetry_routes.MetricOut]),
    ],
)
async def test_an_answer_is_what_its_description_says(lived: Api, path: str, model: type[BaseModel]) -> None:
    answer = await lived.client.get(f"/api/v1{path}")

    assert_described(answer, model)


@pytest.mark.parametrize(
    ("path", "asked", "status", "model"),
    [
        (f"/hosts/{HOST}/measure", {}, 202, fleet_routes.MeasuringOut),
        ("/tokens", {"name": "laptop"}, 201, identity_routes.TokenMadeOut),
        ("/join-tokens", {}, 201, identity_routes.JoinTokenMadeOut),
    ],
)
async def test_what_a_change_answers_is_what_its_description_says(
    lived: Api, path: str, asked: dict[str, Any], status: int, model: type[BaseModel]
) -> None:
    answer = await lived.client.post(f"/api/v1{path}", json=asked)

    assert_described(answer, model, status)


async def test_a_browsers_own_answers_are_what_their_descriptions_say(lived: Api) -> None:
    signed_in = await lived.stranger.post("/api/v1/session", json={"token": lived.token})
    assert_described(signed_in, identity_routes.SignedInOut)
    bearer = {"Authorization": f"Bearer {signed_in.json()['secret']}"}
    me = await lived.stranger.get("/api/v1/me", headers=bearer)
    assert me.json()["session"] is not None
    assert_described(me, identity_routes.MeOut)


async def test_history_is_what_its_description_says(lived: Api) -> None:
    await lived.services.telemetry.view.catch_up()
    now = lived.clock.wall_ns()
    span = f"from={time_text(now - MINUTE)}&to={time_text(now + MINUTE)}&step_s=5"

    of_host = await lived.client.get(f"/api/v1/hosts/{HOST}/history?metric=gpu_utilization_ratio&{span}")
    of_fleet = await lived.client.get(f"/api/v1/metrics/history?metric=gpu_utilization_ratio&{span}")

    for answer, model in ((of_host, telemetry_routes.HistoryOut), (of_fleet, telemetry_routes.FleetHistoryOut)):
        assert_described(answer, model)
        assert [value for _, value in answer.json()["series"][0]["points"] if value is not None]


async def test_the_fleets_stream_tells_hosts_as_described(lived: Api) -> None:
    from windrow_master.api.fleet_feed import feed_of

    stream = feed_of(lived.services).stream(None, None)
    rows, hosts = await anext(stream), await anext(stream)
    await stream.aclose()

    data = [json.loads(message.encode().decode().split("data: ", 1)[1]) for message in (rows, hosts)]
    assert [fleet_shapes.GpuRowOut.model_validate(row).uuid for row in data[0]["rows"]] == [GPU_1]
    assert len([fleet_shapes.HostSummaryOut.model_validate(host) for host in data[1]["hosts"]]) == 2


def test_a_cluster_is_written_as_described() -> None:
    running = replace(cluster(ClusterPhase.RUNNING), steps=(Step(at_ns=NOW, name="create", progress_permille=500),))
    view = ClusterView(running, (workload(),), Microcents(5))

    assert_described(httpx2.Response(200, json=cluster_json(view)), cluster_routes.ClusterOut)


def test_no_answer_is_left_undescribed() -> None:
    answers = {
        (method, path, code): content.get("schema", {})
        for path, methods in description()["paths"].items()
        for method, route in methods.items()
        for code, answer in route["responses"].items()
        for content in answer.get("content", {}).values()
    }
    assert len(answers) > 100
    assert [answer for answer, schema in answers.items() if not schema.keys() - {"title"}] == []


@pytest.mark.parametrize("path", ["/api/v1/ca", "/metrics", "/healthz", "/api/v1/regions"])
async def test_an_answer_is_of_the_kind_that_is_described(api: Api, path: str) -> None:
    content = description()["paths"][path]["get"]["responses"]["200"]["content"]

    answer = await api.client.get(path)

    assert answer.status_code == 200
    assert [answer.headers["content-type"]] == list(content)


def test_the_consoles_types_are_those_of_the_description() -> None:
    assert api_types.TYPES.read_text() == api_types.written(), "run: make openapi"


@pytest.mark.parametrize("path", request_fields.WRITTEN, ids=lambda path: path.name)
def test_what_follows_from_the_spec_of_requests_is_written(path) -> None:
    assert path.read_text() == request_fields.WRITTEN[path](), "run: make openapi"
