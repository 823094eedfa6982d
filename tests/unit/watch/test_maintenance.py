"""Maintenance windows over HTTP: declared ahead, told to those concerned, kept by placement, hosts and alerts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.two_renters import Renter, TwoRenters, two_renters
from tests.unit.master_api.described import assert_described
from windrow_master.api.answers import Page
from windrow_master.api.maintenance_routes import MaintenanceOut, MaintenancePlanOut
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.identity.model import Role
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.maintenance import DECLARED_MAX
from windrow_master.watch.tables import maintenance_windows
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.model import Inventory, ObservedWorkload, WorkloadPhase
from windrow_proto.units import DAY, GIB, HOUR, MINUTE, SECOND, time_text

JSON = dict[str, Any]
PATH = "/maintenance-windows"


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[TwoRenters]:
    async with two_renters(tmp_path) as found:
        await found.services.alerts.turn()
        owner = AccountId((await found.operator.get("/me")).json()["account"]["id"])
        for number in range(3):
            await join(found, f"gpu-{number}", owner)
        yield found


async def join(two: TwoRenters, name: str, owner: AccountId) -> None:
    """A simulated host of this account."""
    fleet = two.services.fleet

    def change(uow: UnitOfWork) -> None:
        host_id = HostId(f"host_{name}")
        fleet.enrol(uow, host_id, name, owner, True, "test")
        inventory = Inventory(hostname=name, cpu_count=8, memory_bytes=16 * GIB, runtimes=("simulated",))
        fleet.hosts.inventory(uow, host_id, inventory)
        fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)

    await two.services.store.write(change, name="test")
    await fleet.refresh()
    two.clock.advance(2 * MINUTE)


def at(two: TwoRenters, from_now_ns: int) -> str:
    return time_text(two.clock.wall_ns() + from_now_ns)


def body(two: TwoRenters, *hosts: str, start_ns: int = DAY, span_ns: int = HOUR, **more: Any) -> JSON:
    times = {"starts_at": at(two, start_ns), "ends_at": at(two, start_ns + span_ns)}
    return {"hosts": list(hosts), "reason": "new fans"} | times | more


async def declared(two: TwoRenters, *hosts: str, **times: int) -> JSON:
    made = await two.operator.post(PATH, json=body(two, *hosts, **times))
    assert_described(made, MaintenanceOut, 201)
    found: JSON = made.json()
    return found


async def turn(two: TwoRenters, advance_ns: int = 0) -> None:
    two.clock.advance(advance_ns)
    await two.services.maintenance.turn()
    await two.services.fleet.refresh()
    await two.services.alerts.turn()


async def hear(two: TwoRenters, *names: str, events: tuple[LinkEvent, ...] = (LinkEvent.HEARD,)) -> None:
    hosts = two.services.fleet.hosts

    def change(uow: UnitOfWork) -> None:
        for name in names:
            for event in events:
                hosts.link(uow, HostId(f"host_{name}"), event, uow.now_wall_ns)

    await two.services.store.write(change, name="test")
    await turn(two)


async def fall_silent(two: TwoRenters, *names: str) -> None:
    await hear(two, *names, events=(LinkEvent.SILENT, LinkEvent.SILENT_LONG))


async def told(two: TwoRenters, renter: Renter | None = None) -> list[str]:
    client = two.operator if renter is None else renter.client
    found = (await client.get("/inbox")).json()["items"]
    return [f"{one['kind']} {one['title']}" for one in reversed(found)]


async def rented(two: TwoRenters, host: str, **asked: Any) -> Any:
    wanted = {"argv": ["true"], "simulated": True, "cpus": 1, "host_id": f"host_{host}"} | asked
    return await two.noisy.client.post("/clusters", json=wanted)


async def states(two: TwoRenters) -> list[str]:
    items = (await two.operator.get("/hosts")).json()["items"]
    return [one["admin_state"] for one in sorted(items, key=lambda one: str(one["name"]))]


async def test_inside_a_window_nothing_is_told_and_what_still_holds_is_told_after_it(two: TwoRenters) -> None:
    await declared(two, "gpu-0", "gpu-1")
    await turn(two, DAY)
    assert await states(two) == ["draining", "draining", "active"]
    before = len(await told(two))
    await fall_silent(two, "gpu-0", "gpu-1", "gpu-2")
    assert (await told(two))[before:] == ["firing Host lost: gpu-2"]
    await hear(two, "gpu-1")
    await turn(two, 30 * MINUTE)
    assert len(await told(two)) == before + 1
    await turn(two, 31 * MINUTE)
    assert await states(two) == ["active", "active", "active"]
    assert (await told(two))[before + 1 :] == [
        "resolved Maintenance: gpu-0, gpu-1",
        "firing Host lost: gpu-0",
    ]
    assert (await two.operator.get(PATH)).json()["items"] == []


async def test_an_alert_that_was_told_before_is_silent_in_the_window_and_goes_on_after_it(two: TwoRenters) -> None:
    await fall_silent(two, "gpu-0")
    await declared(two, "gpu-0", start_ns=MINUTE)
    await turn(two, MINUTE)

    async def alert() -> JSON:
        found: JSON = (await two.operator.get("/alerts?rule=host.lost")).json()["items"][0]
        return found

    assert (await alert())["state"] == "silenced"
    await turn(two, 2 * HOUR)
    assert (await alert())["state"] == "firing"
    assert (await told(two)).count("firing Host lost: gpu-0") == 1


async def test_many_hosts_in_a_window_are_one_alert_after_it(two: TwoRenters) -> None:
    owner = AccountId((await two.operator.get("/me")).json()["account"]["id"])
    names = [f"rack-{number}" for number in range(12)]
    for name in names:
        await join(two, name, owner)
    await declared(two, *names, start_ns=MINUTE)
    await turn(two, MINUTE)
    await fall_silent(two, *names)
    assert not [one for one in await told(two) if "Host lost" in one]
    await turn(two, 2 * HOUR)
    assert [one for one in await told(two) if "Host lost" in one] == ["firing Host lost: many hosts"]


async def test_renters_and_owners_are_told_when_it_is_declared_moved_and_removed(two: TwoRenters) -> None:
    assert (await rented(two, "gpu-0", max_duration_seconds=7 * 86_400)).status_code == 202
    window = await declared(two, "gpu-0", "gpu-1")
    await turn(two)
    moved = await two.operator.put(f"{PATH}/{window['id']}", json={"ends_at": at(two, DAY + 3 * HOUR)})
    assert_described(moved, MaintenanceOut)
    await turn(two)
    assert (await two.operator.delete(f"{PATH}/{window['id']}")).status_code == 204
    await turn(two)
    name = "Maintenance: gpu-0, gpu-1"
    for renter in (two.noisy, None):
        assert await told(two, renter) == [f"firing {name}", f"firing {name}", f"resolved {name}"]
    last, second, first = (await two.noisy.client.get("/inbox")).json()["items"]
    assert window["starts_at"] in first["text"] and window["ends_at"] in first["text"] and "new fans" in first["text"]
    assert moved.json()["ends_at"] in second["text"] and last["text"] == "It does not take place."
    assert len({one["id"] for one in (first, second, last)}) == 3
    assert await told(two, two.quiet) == []


async def test_a_window_that_runs_is_moved_without_a_gap_and_ended_early(two: TwoRenters) -> None:
    window = await declared(two, "gpu-0", start_ns=MINUTE)
    await turn(two, MINUTE)
    await fall_silent(two, "gpu-0")
    path = f"{PATH}/{window['id']}"
    assert (await two.operator.put(path, json={"ends_at": at(two, 5 * HOUR)})).json()["state"] == "running"
    await turn(two, 2 * HOUR)
    assert (await states(two))[0] == "draining"
    assert not [one for one in await told(two) if "Host lost" in one]
    await two.operator.delete(path)
    await turn(two, SECOND)
    assert (await states(two))[0] == "active"
    assert sorted((await told(two))[-2:]) == ["firing Host lost: gpu-0", "resolved Maintenance: gpu-0"]
    assert (await two.operator.delete(path)).status_code == 409


@pytest.mark.parametrize("event", [AdminEvent.MAINTAIN, AdminEvent.QUARANTINE])
async def test_a_host_about_which_somebody_decided_meanwhile_stays_as_it_is(two: TwoRenters, event: AdminEvent) -> None:
    await declared(two, "gpu-0", start_ns=MINUTE)
    await turn(two, MINUTE)
    await two.services.fleet.decide(HostId("host_gpu-0"), event, "test", "a person's")
    before = await states(two)
    await turn(two, 2 * HOUR)
    assert await states(two) == before


async def test_a_master_that_was_away_for_the_whole_window_drains_nothing(two: TwoRenters) -> None:
    await declared(two, "gpu-0")
    await turn(two, 2 * DAY)
    assert (await states(two))[0] == "active"


async def test_before_it_only_work_that_ends_by_then_is_placed(two: TwoRenters) -> None:
    await declared(two, "gpu-0", start_ns=2 * HOUR)
    for asked in ({}, {"max_duration_seconds": 3 * 3600}):
        refused = await rented(two, "gpu-0", **asked)
        assert "goes into maintenance before this ends" in refused.text, refused.text
    assert (await rented(two, "gpu-0", max_duration_seconds=3600)).status_code == 202
    assert (await rented(two, "gpu-1")).status_code == 202


async def test_a_window_that_cannot_be_read_keeps_nobody_from_renting(two: TwoRenters) -> None:
    window = await declared(two, "gpu-0", start_ns=2 * HOUR)
    await declared(two, "gpu-1", start_ns=2 * HOUR)

    def spoil(uow: UnitOfWork) -> None:
        table = maintenance_windows
        uow.connection.execute(table.update().where(table.c.window_id == window["id"]).values(hosts=7))

    two.services.store.write_now(spoil, name="test")
    assert (await rented(two, "gpu-2")).status_code == 202
    assert "goes into maintenance" in (await rented(two, "gpu-1")).text


async def test_a_lease_is_not_extended_into_a_window(two: TwoRenters) -> None:
    made = (await rented(two, "gpu-0", max_duration_seconds=3600)).json()
    cluster_id = ClusterId(made["operation"]["subject"])

    def runs(uow: UnitOfWork) -> None:
        (one,) = uow[WorkloadRepository].of_cluster(cluster_id)
        seen = ObservedWorkload(one.workload_id, WorkloadPhase.RUNNING, one.slots, None, runtime="simulated")
        two.opened.clusters.lifecycle.on_workload(uow, one.host_id, seen)

    two.services.store.write_now(runs, name="test")
    await declared(two, "gpu-0", start_ns=4 * HOUR)
    for hours, status in ((2, 200), (10, 409)):
        answer = await two.noisy.client.post(
            f"/clusters/{cluster_id}/extend", json={"max_duration_seconds": hours * 3600}
        )
        assert answer.status_code == status, answer.text
    assert "Maintenance of a host" in answer.text


async def test_renters_are_not_told_of_changes_without_a_pause(two: TwoRenters) -> None:
    window = await declared(two, "gpu-0")
    changes = [
        await two.operator.put(f"{PATH}/{window['id']}", json={"ends_at": at(two, DAY + hours * HOUR)})
        for hours in (2, 3)
    ]
    assert [one.status_code for one in changes] == [200, 429]
    two.clock.advance(MINUTE)
    later = await two.operator.put(f"{PATH}/{window['id']}", json={"ends_at": at(two, DAY + 3 * HOUR)})
    assert later.status_code == 200
    asked = [
        await two.operator.post(PATH, json=body(two, "gpu-1", start_ns=(3 + number) * HOUR, span_ns=HOUR))
        for number in range(DECLARED_MAX + 1)
    ]
    assert [one.status_code for one in asked] == [201] * DECLARED_MAX + [429]


async def test_an_own_rule_of_an_event_tells_of_each_host_by_its_name(two: TwoRenters) -> None:
    rule = {"name": "gone", "event": "host.suspect", "duration_s": 60}
    assert (await two.operator.post("/alert-rules", json=rule)).status_code == 201
    before = len(await told(two))
    await hear(two, "gpu-0", "gpu-1", events=(LinkEvent.SILENT,))
    assert sorted((await told(two))[before:]) == ["firing gone: gpu-0", "firing gone: gpu-1"]
    two.clock.advance(20 * MINUTE)
    await hear(two, "gpu-0", events=(LinkEvent.HEARD, LinkEvent.SILENT))
    assert (await told(two))[before + 2 :] == ["firing gone: gpu-0"], "again after a while"
    narrow = await two.operator.post("/alert-rules", json=rule | {"scope": {"host": "gpu-2"}})
    assert narrow.json()["scope"] == {"host": "host_gpu-2"}


async def test_a_plan_says_when_nothing_runs_any_more(two: TwoRenters) -> None:
    async def plan(*hosts: str) -> JSON:
        answer = await two.operator.post(f"{PATH}/plan", json={"hosts": hosts})
        assert_described(answer, MaintenancePlanOut)
        found: JSON = answer.json()
        return found

    assert (await plan("gpu-0"))["earliest_start"] == at(two, 0)
    await rented(two, "gpu-0", max_duration_seconds=3600)
    await rented(two, "gpu-1", max_duration_seconds=7200)
    wanted = {"hosts": 3, "leases": 2, "open_ended": 0, "earliest_start": at(two, 2 * HOUR)}
    assert await plan("gpu-0", "gpu-1", "gpu-2") == wanted
    await rented(two, "gpu-2")
    assert await plan("gpu-0", "gpu-1", "gpu-2") == wanted | {"leases": 3, "open_ended": 1, "earliest_start": None}


async def test_what_means_nothing_is_refused_with_its_reason(two: TwoRenters) -> None:
    window = await declared(two, "gpu-0")
    for changed, status, said in (
        ({"hosts": ["gpu-0"]}, 409, f"gpu-0 is in a maintenance window from {window['starts_at']}"),
        ({"ends_at": at(two, DAY)}, 422, "ends after it starts"),
        ({"starts_at": at(two, -HOUR)}, 422, "This time is over"),
        ({"starts_at": at(two, -2 * HOUR), "ends_at": at(two, -HOUR)}, 422, "This time is over"),
        ({"ends_at": at(two, 32 * DAY)}, 422, "at most 30 days"),
        ({"starts_at": at(two, 91 * DAY), "ends_at": at(two, 92 * DAY)}, 422, "at most 90 days ahead"),
        ({"starts_at": "tomorrow"}, 422, "not a time"),
        ({"hosts": ["<b>gpu</b>"]}, 404, "No host that you may decide about is named '<b>gpu</b>'"),
        ({"hosts": []}, 422, "Name hosts"),
        ({"hosts": [], "scope": {"region": "nowhere"}}, 422, "has these labels"),
        ({"hosts": [], "scope": {"flavour": "x"}}, 422, "no label 'flavour'"),
    ):
        refused = await two.operator.post(PATH, json=body(two, "gpu-1") | changed)
        assert (refused.status_code, said in refused.text) == (status, True), refused.text
    assert len((await two.operator.get(PATH)).json()["items"]) == 1
    beside = body(two, "gpu-0", start_ns=DAY + HOUR)
    assert (await two.operator.post(PATH, json=beside)).status_code == 201, "one begins as the other ends"


async def test_labels_choose_hosts(two: TwoRenters) -> None:
    tier = (await two.operator.get("/hosts")).json()["items"][0]["tier"]
    made = await two.operator.post(PATH, json=body(two, scope={"tier": tier}))
    assert sorted(made.json()["names"]) == ["gpu-0", "gpu-1", "gpu-2"]


async def test_a_provider_decides_about_its_own_hosts_and_everybody_sees_the_times(two: TwoRenters) -> None:
    mine = await two.account("mine", Role.PROVIDER)
    await join(two, "own", mine.account_id)
    others = await declared(two, "own")
    refused = await mine.client.post(PATH, json=body(two, "gpu-0"))
    assert (refused.status_code, (await mine.client.delete(f"{PATH}/{others['id']}")).status_code) == (404, 404)
    assert (await two.quiet.client.post(PATH, json=body(two, "gpu-0"))).status_code == 403
    own = await mine.client.post(PATH, json=body(two, "own", start_ns=2 * DAY))
    assert (own.status_code, own.json()["owner"]) == (201, mine.account_id)
    seen = await two.quiet.client.get(f"{PATH}?host=host_own")
    assert_described(seen, Page[MaintenanceOut])
    assert [(one["owner"], one["reason"]) for one in seen.json()["items"]] == [(None, "new fans")] * 2
    assert (await mine.client.put(f"{PATH}/{own.json()['id']}", json={"ends_at": at(two, 3 * DAY)})).status_code == 200
    assert (await two.operator.delete(f"{PATH}/{own.json()['id']}")).status_code == 204
    await mine.client.aclose()
