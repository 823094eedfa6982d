"""Volumes over HTTP, who writes them, and what is due for those that a workload has."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.support.objects import MemoryStore
from tests.unit.clusters import made
from tests.unit.clusters.test_stopping import m as m
from tests.unit.clusters.test_stopping import stopped
from tests.unit.clusters.world import OWNER
from tests.unit.master_api.described import assert_described
from tests.waiting import poll_async
from windrow_master.api.answers import Page
from windrow_master.api.volume_routes import VolumeOut
from windrow_master.clusters.model import ClusterPhase, Use, Volume, WorkPhase
from windrow_master.clusters.request import check_volumes
from windrow_master.storage import checkpoints, volumes
from windrow_master.storage.model import LIST_MAX, ObjectKey, Part
from windrow_master.storage.transfer import Outcome
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.storage.volume_rules import Due, due, is_over, why_not_saved
from windrow_master.storage.volume_sync import VolumeController
from windrow_proto.errors import InvalidInput, Unavailable
from windrow_proto.model import WorkloadPhase
from windrow_proto.volumes import VOLUMES, Mount, check_mounts, parse_mount, variable


async def test_a_volume_is_made_listed_and_deleted(site):
    made_now = await site.client.post("/api/v1/volumes", json={"name": "data", "max_bytes": 1000})
    assert made_now.status_code == 201
    assert_described(made_now, VolumeOut, 201)
    listed = await site.client.get("/api/v1/volumes")
    assert_described(listed, Page[VolumeOut])
    assert listed.json()["items"] == [made_now.json()]
    assert (made_now.json()["version"], made_now.json()["max_bytes"]) == (0, 1000)
    again = await site.client.post("/api/v1/volumes", json={"name": "data"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert (await site.client.delete("/api/v1/volumes/data")).status_code == 204
    assert (await site.client.get("/api/v1/volumes/data")).status_code == 404


@pytest.fixture
def objects(site):
    made_now = MemoryStore(now_ns=site.clock.wall_ns())
    site.rooms.services.artefacts.objects = made_now
    return made_now


async def volume(site, name="data"):
    return (await site.client.post("/api/v1/volumes", json={"name": name})).json()["id"]


async def saved(objects, owner, step, attempt="a", whole=True):
    """A version as saves leave it: two parts, and its manifest if they came to their end."""
    keys = [checkpoints.part_key(owner, step, attempt, number) for number in (0, 1)]
    parts = [Part(f"f{number}", 0, 1, key, 1, "0" * 64) for number, key in enumerate(keys)]
    for key in keys:
        objects._keep(key, b"x")
    if whole:
        await checkpoints.commit(objects, checkpoints.manifest_of(owner, step, attempt, 1, "key", parts))


async def swept(site, objects):
    """How many objects a sweep takes away after a day; before, it takes none."""
    site.clock.advance(checkpoints.GARBAGE_AGE_NS - 1)
    assert await site.rooms.services.retention.sweep() == 0
    site.clock.advance(1)
    objects.now_ns = site.clock.wall_ns()  # for what is stored next
    return await site.rooms.services.retention.sweep()


async def test_what_a_death_in_the_middle_of_deleting_left_goes_after_a_day(site, objects):
    other = await volume(site, "other")
    await saved(objects, other, 1)
    await saved(objects, "job_1", 1)
    kept = dict(objects.held)
    for cut in range(8):
        gone = await volume(site)
        await saved(objects, gone, 1)
        await saved(objects, gone, 2)
        objects.cut_after = cut  # of a list and six deletes
        assert (await site.client.delete("/api/v1/volumes/data")).status_code == 204
        objects.cut_after = None
        assert (objects.held == kept) is (cut == 7)
        assert await swept(site, objects) == max(0, 7 - max(1, cut))
        assert objects.held == kept


async def test_who_deletes_a_large_one_need_not_wait_for_its_last_object(site, objects, monkeypatch):
    await saved(objects, await volume(site), 1)
    kept = dict(objects.held)
    monkeypatch.setattr(volumes, "DROP_S", 0.01)
    monkeypatch.setattr(objects, "delete", lambda key: asyncio.Event().wait())
    assert (await site.client.delete("/api/v1/volumes/data")).status_code == 204
    assert objects.held == kept
    monkeypatch.undo()
    assert await swept(site, objects) == 3


async def test_parts_of_a_save_that_came_to_nothing_go_after_a_day_and_versions_stay(site, objects):
    here = await volume(site)
    await saved(objects, here, 1)
    await saved(objects, here, 2)
    kept = dict(objects.held)
    await saved(objects, here, 2, "loser", whole=False)
    await saved(objects, here, 3, "cut", whole=False)
    under_way = dict(objects.held)

    assert await site.rooms.services.retention.sweep() == 0
    assert objects.held == under_way
    assert await swept(site, objects) == 4
    assert objects.held == kept


async def test_a_sweep_sees_every_volume_however_many_objects_each_has(site, objects):
    here = [await volume(site, name) for name in "ab"]
    left = ["volume_" + end for end in ("1", "1-2", "12", "2")]
    more = LIST_MAX // 2 + 1
    for owner in (*left, *here, "cluster_1", "volumes_1"):
        objects.now_ns = site.clock.wall_ns() - (checkpoints.GARBAGE_AGE_NS if owner in left else 0)
        for number in range(more):
            objects._keep(checkpoints.part_key(owner, 1, "a", number), b"x")

    assert sorted([one async for one in checkpoints.owners(objects, "volume")]) == sorted([*here, *left])
    assert await site.rooms.services.retention.sweep() == len(left) * more
    assert {key.split("/")[1] for key in objects.held} == {*here, "cluster_1", "volumes_1"}


async def test_a_sweep_that_the_store_refuses_in_the_middle_goes_on_with_the_next_volume(site, objects, monkeypatch):
    for owner in ("volume_1", "volume_2"):
        await saved(objects, owner, 1)
    delete = objects.delete

    async def refuses(key: ObjectKey) -> None:
        if "volume_1" in key:
            raise Unavailable("not now")
        await delete(key)

    monkeypatch.setattr(objects, "delete", refuses)
    assert await swept(site, objects) == 3
    assert {key.split("/")[1] for key in objects.held} == {"volume_1"}


async def test_a_master_sweeps_as_soon_as_it_runs(site, objects):
    await saved(objects, "volume_1", 1)
    site.clock.advance(checkpoints.GARBAGE_AGE_NS)
    found = {work.__qualname__: work for work in site.rooms.watching()}
    sweeping = found.pop("RetentionService.run")
    for work in found.values():
        work.close()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sweeping)
        await poll_async(lambda: not objects.held)
        task.cancel()


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
        check_volumes(request)
    check_volumes(replace(request, volumes=(Mount("a", "/data", True),)))
    with pytest.raises(InvalidInput, match="simulated"):
        check_volumes(replace(request, hosts=1, simulated=True))


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


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (WorkPhase.WAITING_FILES, "demo has not started its program yet"),
        (WorkPhase.RUNNING, ""),
        (WorkPhase.EXITED, ""),
        (WorkPhase.STOPPING, "demo is ending"),
        (WorkPhase.GONE, "demo has ended"),
    ],
)
def test_who_saves_too_early_or_too_late_reads_why_in_plain_words(phase, said):
    told = why_not_saved(made.cluster(ClusterPhase.RUNNING), phase)
    assert told.startswith(said) and phase.value not in told


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
        uow[VolumeRepository].add(Volume("volume_1", OWNER, "data", 1000, 0))
        for use in uses:
            uow[VolumeRepository].use(use)

    m.write(write)
    await VolumeController(m.store, m.clock, m.clusters, cast("Any", None)).tick()
    assert m.read(lambda uow: uow[VolumeRepository].uses()) == uses[1:]


class Mover:
    """Puts volumes in place and saves them at once, and counts how often."""

    def __init__(self):
        self.restored = self.saved = self.settled = 0

    async def restore(self, *_):
        self.restored += 1
        return Outcome(1, (), "seen")

    async def save_volume(self, *_):
        self.saved += 1

    async def settle(self, *_):
        self.settled += 1


async def test_what_is_done_is_not_done_again_while_its_host_has_not_said_so(m):
    """A busy host says late that the work runs, or is gone: the work has written more by then, or has no folder."""
    m.join(more={VOLUMES: 1})
    m.write(lambda uow: uow[VolumeRepository].add(Volume("volume_1", OWNER, "data", 1000, 0)))
    view = await m.create(argv=(), volumes=(Mount("data", "/data"),))
    cluster_id, mover = view.cluster.cluster_id, Mover()
    controller = VolumeController(m.store, m.clock, m.clusters, cast("Any", mover))
    async with asyncio.TaskGroup() as group:
        controller._group = group
        for phase, done in ((WorkloadPhase.WAITING_VOLUMES, (1, 0, 1)), (WorkloadPhase.STOPPING, (1, 1, 2))):
            m.report(m.spec(), phase, running_ns=1)
            for _ in range(3):
                controller._queue.add(cluster_id)
                await controller.tick()
                await poll_async(lambda: not any(lock.locked() for lock in controller._locks.values()))
            assert (mover.restored, mover.saved, mover.settled) == done, phase
