"""The routes of the Accesses: what they show, what draining one writes down, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_fleet_routes import HOST, fleet, ok  # noqa: F401  # the fixture
from windrow_master.accesses.service import AccessService
from windrow_master.api import access_routes, answers
from windrow_master.fleet.presence import Route
from windrow_master.link.wire import Trunk
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Heartbeat
from windrow_proto.units import MILLISECOND
from windrow_proto.v1 import services_pb2

PATH = "/api/v1/accesses"
Attach = Callable[..., None]


@pytest.fixture
def attach(api: Api) -> Attach:
    """Let these Accesses be attached, each with its load in permille; nobody else is."""

    def attach(**loads: int) -> None:
        found = []
        for access_id, load in loads.items():
            hello = services_pb2.TrunkHello(
                access_id=access_id, region=f"r-{access_id}", address=f"{access_id}:7443", version="0.1.0"
            )
            no_link: Any = None
            trunk = Trunk(no_link, hello, "", api.clock.wall_ns())
            trunk.load = services_pb2.LoadReport(load_permille=load)
            found.append(Trunk.summary(access_id, [trunk]))
        api.services.health.accesses = lambda: found

    attach(a=10, b=20)
    return attach


async def answer(api: Api, method: str, path: str = "", status: int = 200, **body: str) -> Any:
    found = await api.client.request(method, PATH + path, json=body if method == "POST" else None)
    assert found.status_code == status, found.text
    return found.json()


async def states(api: Api) -> dict[str, str]:
    return {row["id"]: row["state"] for row in (await answer(api, "GET"))["items"]}


async def test_each_access_is_a_row_with_what_its_trunks_and_its_agents_say(api: Api, fleet: Any, attach: Any) -> None:  # noqa: F811
    for host_id, access_id, rtt_ms in ((HOST, "a", 4), (HostId("host_2"), "a", 9)):
        fleet.presence.opened(host_id, Route(access_id, "", "", BootId(b"b" * 16)))
        beat = Heartbeat(api.clock.wall_ns(), 1, "", b"", access_rtt_ns=rtt_ms * MILLISECOND)
        fleet.presence.heard(host_id, beat)

    listed = await api.client.get(PATH)

    assert_described(listed, answers.Page[access_routes.AccessOut])
    first, second = listed.json()["items"]
    assert (first["region"], first["address"], first["version"]) == ("r-a", "a:7443", "0.1.0")
    assert (first["state"], first["workers"], first["load_permille"], first["agents"]) == ("serving", 1, 10, 0)
    assert (first["rtt_ms"], second["rtt_ms"], first["drained_at"]) == (6.5, None, None)
    assert await answer(api, "GET", "/a") == first


async def test_the_map_is_told_where_each_host_that_is_not_retired_was_heard_last(api: Api, fleet: Any) -> None:  # noqa: F811
    fleet.presence.opened(HOST, Route("access_a", "", "", BootId(b"b" * 16)))
    fleet.presence.heard(HOST, Heartbeat(api.clock.wall_ns(), 1, "", b"", access_rtt_ns=4 * MILLISECOND))
    await fleet.tick()

    listed = await api.client.get(f"{PATH}/agents")

    assert_described(listed, answers.Page[access_routes.AgentOut])
    box, toy = listed.json()["items"]
    assert (box["id"], box["name"], box["access_id"], box["rtt_ms"]) == (HOST, "box", "access_a", 4)
    assert (box["link_state"], box["simulated"]) == ("online", False)
    assert (toy["access_id"], toy["rtt_ms"], toy["link_state"], toy["simulated"]) == (None, None, "unseen", True)
    first = (await api.client.get(f"{PATH}/agents?limit=1")).json()
    second = (await api.client.get(f"{PATH}/agents?limit=1&cursor={first['next_cursor']}")).json()
    assert [one["id"] for one in first["items"] + second["items"]] == [HOST, "host_2"]
    assert second["next_cursor"] is None
    await ok(await api.client.post("/api/v1/hosts/host_2/retire", json={}))
    assert [one["id"] for one in (await api.client.get(f"{PATH}/agents")).json()["items"]] == [HOST]


async def test_draining_is_written_down_told_once_and_holds_over_a_restart(api: Api, attach: Attach) -> None:
    told: list[str] = []
    api.services.accesses.on_change(told.append)

    row = await answer(api, "POST", "/a/drain", reason="new disk")
    again = await answer(api, "POST", "/a/drain", reason="twice")

    assert (row["state"], row["drain_reason"], row["drained_by"][:5]) == ("draining", "new disk", "user/")
    assert again == row
    assert told == ["a"]
    actions = [(one["action"], one["reason"]) for one in await _items(api, "/audit?subject=a")]
    assert actions == [("access.drain", "new disk")]
    events = [one["text"] for one in await _items(api, "/events?subject=a")]
    assert events == ["a is draining: its agents go to other relays: new disk"]
    started_again = AccessService(api.services.store)
    assert (started_again.is_drained("a"), started_again.is_drained("b")) == (True, False)


async def test_a_resumed_access_serves_again_and_the_same_again_changes_nothing(api: Api, attach: Attach) -> None:
    await answer(api, "POST", "/a/drain")
    for _ in range(2):
        row = await answer(api, "POST", "/a/resume", reason="done")
        assert (row["state"], row["drained_at"]) == ("serving", None)
    assert [one["kind"] for one in await _items(api, "/events?subject=a")] == ["access.resumed", "access.draining"]
    assert [one["action"] for one in await _items(api, "/audit?subject=a")] == ["access.resume", "access.drain"]
    started_again = AccessService(api.services.store)
    assert not started_again.is_drained("a")


@pytest.mark.parametrize("loads", [{"a": 10}, {"a": 10, "b": 1000}])
async def test_where_no_other_access_could_take_its_agents_it_is_not_drained(
    api: Api, attach: Attach, loads: dict[str, int]
) -> None:
    attach(**loads)
    refused = await answer(api, "POST", "/a/drain", 409)
    assert "No other relay could take its agents" in refused["detail"]
    assert (await states(api))["a"] == "serving"


async def test_the_last_one_that_serves_is_not_drained_until_another_serves_again(api: Api, attach: Attach) -> None:
    await answer(api, "POST", "/a/drain")
    await answer(api, "POST", "/b/drain", 409)
    await answer(api, "POST", "/a/resume")
    await answer(api, "POST", "/b/drain")
    assert await states(api) == {"a": "serving", "b": "draining"}


async def test_a_drained_access_that_is_gone_is_still_listed_and_can_be_resumed(api: Api, attach: Attach) -> None:
    await answer(api, "POST", "/a/drain")
    attach(b=20)
    row = await answer(api, "GET", "/a")
    assert (row["state"], row["region"], row["workers"]) == ("departed", "r-a", 0)
    assert row["drained_at"] is not None
    await answer(api, "POST", "/a/resume")
    assert await states(api) == {"b": "serving"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/x"), ("POST", "/x/drain"), ("POST", "/x/resume")])
async def test_an_unknown_id_is_refused_with_the_way_out(api: Api, attach: Attach, method: str, path: str) -> None:
    assert "windrow access ls" in (await answer(api, method, path, 404))["detail"]


async def _items(api: Api, path: str) -> list[Any]:
    found: list[Any] = (await api.client.get(f"/api/v1{path}")).json()["items"]
    return found
