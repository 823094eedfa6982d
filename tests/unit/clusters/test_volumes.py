"""Volumes over HTTP, who writes them, and what is due for those that a workload has."""

from dataclasses import replace
from typing import Any, cast

import pytest

from tests.unit.clusters import made
from tests.unit.clusters.test_stopping import m as m
from tests.unit.clusters.test_stopping import stopped
from tests.unit.clusters.world import OWNER
from tests.unit.master_api.described import assert_described
from windrow_master.api.volume_routes import VolumeOut, VolumesOut
from windrow_master.clusters.model import ClusterPhase, Use, Volume, WorkPhase
from windrow_master.clusters.volumes import rules
from windrow_master.clusters.volumes.course.service import VolumeCourse
from windrow_master.clusters.volumes.rules import Due, due, is_over
from windrow_proto.errors import InvalidInput
from windrow_proto.volumes import Mount, check_mounts, parse_mount, variable


async def test_a_volume_is_made_listed_and_deleted(site):
    made_now = await site.client.post("/api/v1/volumes", json={"name": "data", "max_bytes": 1000})
    assert made_now.status_code == 201
    assert_described(made_now, VolumeOut, 201)
    listed = await site.client.get("/api/v1/volumes")
    assert_described(listed, VolumesOut)
    assert listed.json()["items"] == [made_now.json()]
    assert (made_now.json()["version"], made_now.json()["max_bytes"]) == (0, 1000)
    again = await site.client.post("/api/v1/volumes", json={"name": "data"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert (await site.client.delete("/api/v1/volumes/data")).status_code == 204
    assert (await site.client.get("/api/v1/volumes/data")).status_code == 404


@pytest.mark.parametrize("body", [{"name": "Data"}, {"name": "a" * 41}, {"name": "x", "max_bytes": 0}, {}])
async def test_what_is_no_volume_is_not_made(site, body):
    assert (await site.client.post("/api/v1/volumes", json=body)).status_code in (400, 422)
    assert (await site.get("/volumes"))["items"] == []


async def test_a_template_keeps_the_volumes_it_was_asked_with(site):
    asked = {"volumes": ["data:/data", "set:/workspace/set:ro"]}
    kept = await site.client.put("/api/v1/templates/mine", json=asked)
    assert kept.json()["request"]["volumes"] == asked["volumes"]


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("data:/data", Mount("data", "/data")),
        ("data:/data/:rw", Mount("data", "/data")),
        ("a-b:/mnt/x.y:ro", Mount("a-b", "/mnt/x.y", True)),
    ],
)
def test_a_mount_is_read(text, mount):
    assert parse_mount(text) == mount
    assert parse_mount(mount.text) == mount


@pytest.mark.parametrize(
    "text", ["data", "data:", ":/data", "data:/data:x", "data:data", "data:/", "data:/../x", "data:/a/.b",
             "data:/etc/x", "data:/workspace", "data:/workspace/ckpt/x", "data:/a b", "-:/x", "data:/" + "a" * 200]
)  # fmt: skip
def test_what_is_no_mount_is_refused(text):
    with pytest.raises(InvalidInput):
        parse_mount(text)


def test_mounts_of_one_workload_are_apart():
    check_mounts([Mount("a", "/data"), Mount("b", "/data2")])
    for two in [Mount("a", "/other")], [Mount("b", "/data")], [Mount("b", "/data/x")]:
        with pytest.raises(InvalidInput):
            check_mounts([Mount("a", "/data"), *two])
    with pytest.raises(InvalidInput):
        check_mounts([Mount(f"v{n}", f"/v{n}") for n in range(9)])
    assert variable("a-b") == "WINDROW_VOLUME_A_B"


def test_only_one_host_writes():
    request = replace(made.cluster(ClusterPhase.RUNNING).request, hosts=2, volumes=(Mount("a", "/data"),))
    with pytest.raises(InvalidInput, match="read-only"):
        rules.check(request)
    rules.check(replace(request, volumes=(Mount("a", "/data", True),)))
    with pytest.raises(InvalidInput, match="simulated"):
        rules.check(replace(request, hosts=1, simulated=True))


@pytest.mark.parametrize(
    ("phase", "writes", "due_ns", "what"),
    [
        (WorkPhase.PREPARING, True, 0, None),
        (WorkPhase.WAITING_VOLUMES, True, None, Due.PLACE),
        (WorkPhase.WAITING_VOLUMES, False, None, Due.PLACE),
        (WorkPhase.RUNNING, True, 11, None),
        (WorkPhase.RUNNING, True, 10, Due.SAVE),
        (WorkPhase.RUNNING, False, 10, None),
        (WorkPhase.EXITED, True, 10, Due.SAVE),
        (WorkPhase.STOPPING, True, None, Due.LAST),
        (WorkPhase.STOPPING, False, None, None),
        (WorkPhase.GONE, True, 10, None),
    ],
)
def test_what_is_due(phase, writes, due_ns, what):
    workload = made.workload(phase)
    assert due(workload, writes, writes, due_ns, 10) is what
    assert due(replace(workload, is_released=True), writes, writes, due_ns, 10) is None
    assert due(replace(workload, lost_since_ns=1), writes, writes, due_ns, 10) is None


def test_a_host_that_keeps_folders_for_nothing_is_told_so():
    assert due(made.workload(WorkPhase.STOPPING), False, True, None, 10) is Due.LAST
    assert due(made.workload(WorkPhase.RUNNING), False, True, 0, 10) is None


@pytest.mark.parametrize(
    ("phase", "workload", "over"),
    [
        (ClusterPhase.RUNNING, made.workload(WorkPhase.GONE), False),
        (ClusterPhase.DELETING, made.workload(WorkPhase.STOPPING), False),
        (ClusterPhase.FAILED, made.workload(WorkPhase.STOPPING), False),
        (ClusterPhase.DEGRADED, replace(made.workload(WorkPhase.RUNNING), lost_since_ns=1), False),
        (ClusterPhase.DELETING, replace(made.workload(WorkPhase.RUNNING), lost_since_ns=1), True),
        (ClusterPhase.FAILED, replace(made.workload(WorkPhase.FAILED), is_released=True), True),
        (ClusterPhase.DELETED, made.workload(WorkPhase.GONE), True),
    ],
)
def test_when_a_cluster_has_its_volumes_no_more(phase, workload, over):
    assert is_over(made.cluster(phase), [workload]) is over


async def test_who_had_a_volume_is_forgotten_once_it_is_over(m):
    halted = await stopped(m)
    runs, _ = await m.running(argv=())
    uses = [Use("volume_1", halted, True), Use("volume_1", runs, False)]

    def write(uow):
        uow.volumes.add(Volume("volume_1", OWNER, "data", 1000, 0))
        for use in uses:
            uow.volumes.use(use)

    m.write(write)
    await VolumeCourse(m.store, m.clock, m.clusters, cast("Any", None)).tick()
    assert m.read(lambda uow: uow.volumes.uses()) == uses[1:]
