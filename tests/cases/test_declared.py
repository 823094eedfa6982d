"""Labels, ports, fields and texts that the market declares are the ones that it has."""

from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from typer.main import get_command

from tests.support.ports import own_ports
from tests.unit.clusters.test_service import m as m
from tests.unit.clusters.world import HOST, OPERATOR, Market
from tests.unit.master_api.conftest import Api
from tests.unit.master_api.conftest import api as api
from tests.unit.master_api.test_fleet_routes import GPU_1
from tests.unit.master_api.test_fleet_routes import HOST as LISTED
from tests.unit.master_api.test_fleet_routes import fleet as fleet
from windrow.cli import hosts
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.fields import JOB
from windrow_master.api.app import description
from windrow_master.api.cluster_routes import cluster_json
from windrow_master.app.wiring_history import is_simulated
from windrow_master.fleet.model import LinkState
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.states import LinkEvent
from windrow_master.market.unrented import Slot, reasons
from windrow_master.onboarding.model import Phase, Progress
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.remote.wire import labels_of
from windrow_master.telemetry.settings import read_settings
from windrow_proto.data_directory import CliFile
from windrow_proto.ids import HostId
from windrow_proto.units import SECOND, Microcents
from windrow_up import masters
from windrow_up.market import Market as UpMarket
from windrow_up.market import UpConfig
from windrow_up.masters import MasterLines

pytestmark = pytest.mark.quick


# --- clusters on hosts that do not answer -----------------------------------------------------------------------------


@pytest.mark.case("M-13")
async def test_a_cluster_on_a_host_that_does_not_answer_says_so_and_what_is_charged(m: Market) -> None:
    m.join()
    cluster_id, _ = await m.running()
    seen = []
    for event in (LinkEvent.SILENT, LinkEvent.HEARD):
        m.link(event)
        seen.append(cluster_json(await m.clusters.get(OPERATOR, cluster_id)))

    silent, heard = seen
    assert (silent["phase"], heard["phase"], heard["problem"]) == ("Running", "Running", None)
    assert silent["problem"].startswith(f"Not heard from: {HOST} since ")
    assert silent["problem"].endswith("at most 60 s of this silence are charged.")


@pytest.mark.case("M-13")
async def test_of_a_silence_a_minute_is_charged_when_the_host_is_back(m: Market) -> None:
    m.join()
    cluster_id, spec = await m.running()
    m.receipt(spec, 2, 100)
    before = (await m.clusters.get(OPERATOR, cluster_id)).cost
    m.link(LinkEvent.SILENT)
    m.clock.advance(300 * SECOND)
    m.link(LinkEvent.HEARD)
    m.receipt(spec, 3, 400)
    view = await m.clusters.get(OPERATOR, cluster_id)

    assert view.cluster.price_per_hour is not None
    charged_s = (view.cost - before) * 3600 / view.cluster.price_per_hour
    assert 60 <= charged_s <= 62.1, "a minute, and two seconds by which clocks may differ"


# --- hosts and prices -------------------------------------------------------------------------------------------------


@pytest.mark.case("M-21")
async def test_an_activation_says_what_of_the_host_stays_faulty_and_what_to_do(api: Api, fleet: FleetService) -> None:
    def break_card(uow: UnitOfWork) -> None:
        row = uow[HostRepository].get(LISTED)
        assert row is not None and row.inventory is not None
        lost = replace(row.inventory, conditions=(f"gpu.lost:{GPU_1}",))
        uow[HostRepository].save(replace(row, link_state=LinkState.ONLINE, version=row.version + 1))
        api.services.fleet.hosts.inventory(uow, LISTED, lost)

    await api.services.store.write(break_card, name="test")
    await fleet.refresh()
    answer = (await api.client.post(f"/api/v1/hosts/{LISTED}/activate", json={})).json()

    assert answer["headline"] == "degraded"
    assert answer["headline_reason"].startswith("1 of 1 GPU faulty.")
    assert answer["headline_remedy"]


@pytest.mark.case("M-21")
def test_the_command_that_activates_a_host_prints_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = {"id": "host_1", "name": "box", "admin_state": "active", "headline": "degraded"}
    host |= {"headline_reason": "1 of 8 GPUs faulty", "headline_remedy": "Reboot the host."}

    def answer(request: httpx2.Request) -> httpx2.Response:
        items = {"items": [host], "next_cursor": None}
        return httpx2.Response(200, json=host if request.method == "POST" else items)

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(hosts, "client", lambda context: told)
    get_command(app)(["host", "activate", "box"], standalone_mode=False)

    said = " ".join(capsys.readouterr().err.split())
    assert said == "box: activate done. It is degraded: 1 of 8 GPUs faulty. Reboot the host."


@pytest.mark.case("M-24")
def test_one_rental_is_one() -> None:
    price = Microcents(100)
    slot = Slot("h100/C", "", price, (price,), free=1, rentals=1)

    assert "1 rental of H100 · grade C began" in reasons(slot)[1]
    assert "2 rentals of H100 · grade C began" in reasons(replace(slot, rentals=2))[1]


# --- metrics ----------------------------------------------------------------------------------------------------------


@pytest.mark.case("M-18")
def test_series_of_simulated_hosts_are_marked_in_a_metrics_store() -> None:
    place = (HostId("host_1"), "GPU-1")

    assert ("simulated", "yes") in labels_of(place, 101, is_simulated=True)
    assert dict(labels_of(place, 101, is_simulated=False)).keys() == {"__name__", "gpu", "host"}
    assert list(labels_of(place, 101, is_simulated=True)) == sorted(labels_of(place, 101, is_simulated=True))


@pytest.mark.case("M-18")
async def test_a_market_marks_what_it_writes_for_its_simulated_hosts(fleet: FleetService) -> None:
    assert [is_simulated(fleet, HostId(one)) for one in ("host_2", LISTED, "host_gone")] == [True, False, False]


@pytest.mark.case("M-33")
@pytest.mark.parametrize("url", ["http://h:8428", "http://h:8428/", "http://h:8428/api/v1", "http://h:8428/api/v1/"])
def test_a_metrics_store_is_asked_at_its_address_with_or_without_the_path_of_its_api(url: str) -> None:
    given = {"WINDROW_METRICS_WRITE_URL": "http://h:8428/api/v1/write", "WINDROW_METRICS_URL": url}
    store = read_settings(given.get).store()

    assert store is not None and store.read_url is not None
    assert store.read_url.prefix == ""
    assert store.write_url.prefix == "/api/v1/write"


# --- ports ------------------------------------------------------------------------------------------------------------


@pytest.mark.case("M-19")
def test_the_accesses_of_a_market_take_no_port_of_a_master_that_still_waits(tmp_path: Path) -> None:
    free, waiting = own_ports()[:2]
    kept = CliFile(tmp_path / "cli.json")
    kept.write({"masters": [dict.fromkeys(("http", "https", "trunk", "health"), waiting)], "ports": {"access": [free]}})
    market = UpMarket(UpConfig(tmp_path, "127.0.0.1", "", 0, once=False))

    second = market._access_port("access", 1, free)

    assert second not in (free, waiting)


@pytest.mark.case("M-19")
def test_a_master_that_comes_later_takes_no_port_of_an_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = own_ports()
    kept = CliFile(tmp_path / "cli.json")
    kept.write({"ports": {"access": [ports[0], ports[1]], "service": [ports[2]]}})
    monkeypatch.setattr(masters, "PORTS", dict.fromkeys(masters.PORTS, ports[0]))
    MasterLines(tmp_path, "127.0.0.1", "", (), 1, True, kept).of(0)

    (taken,) = kept.read()["masters"]
    assert not {ports[0], ports[1], ports[2]} & set(taken.values())


# --- the description of the API, and what waits -----------------------------------------------------------------------


@pytest.mark.case("M-20")
async def test_the_description_the_command_and_the_market_have_the_same_bounds_of_a_priority(api: Api) -> None:
    schema = description()["components"]["schemas"]["JobBody"]["properties"]["priority"]
    (field,) = [one for one in JOB if one.name == "priority"]
    answers = {}
    for priority in (-101, -100, 100, 101):
        body = {"argv": ["true"], "priority": priority}
        answers[priority] = (await api.client.post("/api/v1/jobs/plan", json=body)).status_code

    assert (schema["minimum"], schema["maximum"]) == (field.least, field.most) == (-100, 100)
    assert answers == {-101: 422, -100: 200, 100: 200, 101: 422}


@pytest.mark.case("M-20")
def test_what_is_said_of_packages_that_are_not_ready_does_not_contradict_itself() -> None:
    said = Progress(Phase.ABSENT).sentence()

    assert "not prepared yet" in said and "they are now" not in said
    assert "prepares them now" in said
