"""A registered resource and the host that runs its work: bound, freed, and shown as its host stands."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.unit.master_api.conftest import Api
from windrow_master.fleet.model import Host, LinkState
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.states import AdminState
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId

REGISTRY = "/api/model-studio/compute-resources"
HOSTS = (HostId("host_1"), HostId("host_2"))


@pytest.fixture
async def bare(api: Api) -> AsyncIterator[Api]:
    """A market of two hosts and one resource, which is bound to nothing."""
    owner = api.services.identity.first_account().id

    def make(uow: UnitOfWork) -> None:
        for host in HOSTS:
            api.services.fleet.enrol(uow, host, f"box-{host[-1]}", owner, False, "account/x")

    await api.services.store.write(make, name="test")
    for host in HOSTS:
        await changed(api, host, lambda one: replace(one, admin_state=AdminState.ACTIVE, link_state=LinkState.ONLINE))
    record = {"resource_id": "lab", "resource_type": "on-premise", "capabilities": {"gpu": True, "gpu_count": 1}}
    assert (await api.client.post(REGISTRY, json=record)).status_code == 201
    yield api


async def changed(api: Api, host_id: HostId, change: Callable[[Host], Host]) -> None:
    def write(uow: UnitOfWork) -> None:
        host = uow[HostRepository].get(host_id)
        assert host is not None
        assert uow[HostRepository].save(replace(change(host), version=host.version + 1))

    await api.services.store.write(write, name="test")


async def bind(api: Api, host: str, resource: str = "lab") -> Any:
    return await api.client.put(f"/api/v1/resources/{resource}/binding", json={"host": host})


async def shown(api: Api) -> tuple[str, str | None]:
    """Its status in the registry, and the backend that the router chooses."""
    route = (await api.client.post("/api/v1/route", json={"compute_preference": "on-premise"})).json()
    return (await api.client.get(f"{REGISTRY}/lab")).json()["status"], route["chosen"]


async def test_an_unbound_resource_is_listed_and_never_chosen(bare: Api) -> None:
    found = (await bare.client.get("/api/v1/resources/lab")).json()
    assert (found["host"], found["status"], found["running"]) == (None, "available", 0)
    assert found["reason"] == "not connected: no host is bound to this resource"
    assert (found["price_per_hour"], found["price_source"]) == ("0.00", "its registration")
    assert await shown(bare) == ("available", None)


async def test_what_stands_behind_all_of_them_comes_in_pages(bare: Api) -> None:
    await bare.client.post(REGISTRY, json={"resource_id": "edge", "resource_type": "edge", "capabilities": {}})
    await bind(bare, "host_1")
    first = (await bare.client.get("/api/v1/resources", params={"limit": 1})).json()
    (lab,) = first["items"]
    assert (lab["resource_id"], lab["host"], lab["host_name"]) == ("lab", "host_1", "box-1")
    rest = (await bare.client.get("/api/v1/resources", params={"cursor": first["next_cursor"]})).json()
    assert ([one["resource_id"] for one in rest["items"]], rest["next_cursor"]) == (["edge"], None)


async def test_a_dedicated_host_is_its_owners_alone(bare: Api) -> None:
    body = {"host": "host_1", "dedicated": True}
    answer = await bare.client.put("/api/v1/resources/lab/binding", json=body)
    assert answer.json()["dedicated"] is True
    assert (await bind(bare, "host_1")).json()["dedicated"] is False


async def test_a_bound_resource_is_chosen_and_shown_as_its_host_stands(bare: Api) -> None:
    answer = await bind(bare, "host_1")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["host_name"], answer.json()["reason"]) == ("box-1", None)
    assert await shown(bare) == ("available", "resource/lab")
    for change, status in (
        ({"link_state": LinkState.LOST}, "unavailable"),
        ({"link_state": LinkState.ONLINE, "admin_state": AdminState.DRAINING}, "maintenance"),
        ({"admin_state": AdminState.QUARANTINED}, "maintenance"),
        ({"admin_state": AdminState.RETIRED}, "unavailable"),
    ):
        await changed(bare, HOSTS[0], partial(replace, **change))
        assert await shown(bare) == (status, None)


async def test_what_people_declare_counts_where_it_is_sterner(bare: Api) -> None:
    await bind(bare, "host_1")
    await bare.client.put(f"{REGISTRY}/lab", json={"status": "maintenance"})
    found = (await bare.client.get("/api/v1/resources/lab")).json()
    assert (found["declared_status"], found["status"]) == ("maintenance", "maintenance")
    assert await shown(bare) == ("maintenance", None)
    assert (await bare.client.get(REGISTRY, params={"status_filter": "maintenance"})).json()[0]["resource_id"] == "lab"


async def test_the_router_names_the_host_of_its_choice(bare: Api) -> None:
    await bind(bare, "host_1")
    route = (await bare.client.post("/api/v1/route", json={"compute_preference": "on-premise"})).json()
    (one,) = route["recommendations"]
    assert (one["host"], one["usable"], one["availability"]["status"]) == ("host_1", True, "available")


async def test_a_resource_has_one_host_and_a_host_one_resource(bare: Api) -> None:
    assert (await bind(bare, "host_1")).json()["host"] == "host_1"
    assert (await bind(bare, "host_1")).status_code == 200
    assert (await bind(bare, "host_2")).json()["host"] == "host_2"
    record = {"resource_id": "other", "resource_type": "edge", "capabilities": {}}
    await bare.client.post(REGISTRY, json=record)
    refused = await bind(bare, "host_2", "other")
    assert refused.status_code == 409
    assert "The host box-2 is bound to lab. Free it first: windrow resource unbind lab" in refused.text
    assert (await bare.client.delete("/api/v1/resources/lab/binding")).json()["host"] is None
    assert (await bare.client.delete("/api/v1/resources/lab/binding")).status_code == 200
    assert (await bind(bare, "host_2", "other")).status_code == 200


async def test_a_removed_resource_frees_its_host(bare: Api) -> None:
    await bind(bare, "host_1")
    assert (await bare.client.delete(f"{REGISTRY}/lab")).status_code == 204
    record = {"resource_id": "new", "resource_type": "edge", "capabilities": {}}
    await bare.client.post(REGISTRY, json=record)
    assert (await bind(bare, "host_1", "new")).status_code == 200


@pytest.mark.parametrize(("resource", "host"), [("lab", "host_9"), ("none", "host_1")])
async def test_what_there_is_not_cannot_be_bound(bare: Api, resource: str, host: str) -> None:
    assert (await bind(bare, host, resource)).status_code == 404
    assert (await bare.client.get("/api/v1/resources/none")).status_code == 404


async def test_a_binding_is_in_the_audit_log(bare: Api) -> None:
    await bind(bare, "host_1")
    await bare.client.delete("/api/v1/resources/lab/binding")
    rows = (await bare.client.get("/api/v1/audit")).json()["items"]
    assert {"resource.bind", "resource.unbind"} <= {row["action"] for row in rows}


async def test_a_machine_of_another_account_is_no_free_place(bare: Api) -> None:
    await bare.client.put("/api/v1/resources/lab/binding", json={"host": "host_1", "dedicated": True})
    made = await bare.client.post("/api/v1/accounts", json={"name": "other", "roles": ["renter"]})
    secret = made.json()["link"].partition("#sign-in=")[2]
    opened = (await bare.stranger.post("/api/v1/sign-in", json={"secret": secret})).json()
    other = {"Authorization": f"Bearer {opened['token']['token']}"}
    asked = {"compute_preference": "on-premise"}
    route = (await bare.stranger.post("/api/v1/route", json=asked, headers=other)).json()
    assert route["chosen"] is None
    told = {one["backend"]: one["reason"] for one in route["refused"]}
    assert told["resource/lab"].startswith("Its host belongs to another account")
