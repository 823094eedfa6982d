"""The queue over HTTP: the order, the line that says why, and that nobody reads the names of others."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.clusters.conftest import site as site
from tests.unit.master_api.described import assert_described
from tests.unit.queue.waiting import ToldFeed, asks, waits
from windrow_master.api import job_routes, queue_routes
from windrow_master.identity.model import Account, Role
from windrow_master.identity.repository import AccountRepository
from windrow_master.identity.tokens import issue_token
from windrow_master.queue.model import PriorityClass, When
from windrow_master.queue.ports import Run
from windrow_proto.ids import AccountId, HostId, mint
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

THEIRS = AccountId(mint("account", 1, bytes(10)))


@dataclass
class Busy:
    """A market with one host of eight cards, all held by another project for an hour; two entries wait."""

    site: Any
    own: str
    host: str
    runs: str
    token: str
    ids: list[str]

    async def get(self, path: str, *, theirs: bool = False, status: int = 200) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if theirs else {}
        answer = await self.site.client.get(f"/api/v1{path}", headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()


def an_id(kind: str, number: int) -> str:
    return mint(kind, number * SECOND, bytes(10))


@pytest.fixture
async def busy(site) -> Busy:
    """The site's own account is the operator; the other project is a renter."""
    services = site.rooms.services
    own = (await site.client.get("/api/v1/me")).json()["account"]["id"]

    def join(uow):
        uow[AccountRepository].add(Account(THEIRS, "rivals", frozenset({Role.RENTER}), uow.now_wall_ns))
        _, token = issue_token(uow, THEIRS, "test", frozenset({Role.RENTER}), DAY, "test")
        return token

    token = site.write(join)
    host, now_ns = an_id("host", 1), site.clock.wall_ns()
    site.write(lambda uow: site.rooms.fleet.enrol(uow, HostId(host), "gpu-7", own, False, "test"))
    await site.rooms.fleet.refresh()
    runs = asks(an_id("job", 2), own, now_ns, 8, name="secret-run", limit_ns=HOUR)
    held = {host: [Run(runs, tuple(range(8)), now_ns)]}
    services.queue._feed = ToldFeed([host], held)
    ids = [an_id("job", number) for number in range(3, 7)]
    await waits(
        services.queue,
        asks(ids[0], own, now_ns, 8, name="secret-head", limit_ns=HOUR),
        asks(ids[1], THEIRS, now_ns + 1, 2, name="mine", limit_ns=HOUR),
        asks(ids[2], THEIRS, now_ns + 2, 1, name="held", held_by=f"account/{own}"),
        asks(ids[3], THEIRS, now_ns + 3, 1, name="later", after=((ids[1], When.OK),)),
    )
    return Busy(site, own, host, runs.entry_id, token, ids)


async def test_the_queue_has_the_shape_that_is_described_in_the_order_of_starts(busy: Busy) -> None:
    answer = await busy.site.client.get("/api/v1/queue")
    assert_described(answer, queue_routes.QueueOut)
    told = answer.json()
    assert [(one["name"], one["place"], one["state"]) for one in told["items"]] == [
        ("mine", 1, "ready"),
        ("secret-head", 2, "ready"),
        ("held", None, "held"),
        ("later", None, "dependency"),
    ], "what holds nothing comes before a project that holds all"
    assert (told["waiting"], told["running"], told["estimates_scored"]) == (4, 1, 0)
    first = told["items"][0]
    assert (first["kind"], first["project"], first["account_id"]) == ("job", "rivals", THEIRS)
    assert (first["asks"], first["priority_class"], first["held_by"]) == ("2 GPUs, 1 CPU", "normal", None)
    assert first["factors"]["is_above"] == [True] and first["factors"]["points"] == first["factors"]["age"]
    start = first["estimate"]
    assert start["low_at"] < start["start_at"] < start["high_at"]
    assert first["summary"] == f"1st in the queue, starts {start['words']}"


async def test_a_renter_sees_the_own_entries_and_no_name_of_others(busy: Busy) -> None:
    answer = await busy.get("/queue", theirs=True)
    assert [one["name"] for one in answer["items"]] == ["mine", "held", "later"]
    assert (answer["waiting"], answer["running"]) == (3, 0)
    mine, held, _ = answer["items"]
    assert held["why"] == "Held by another project until it is released."
    assert held["held_by"] == "another project"
    assert "secret" not in str(answer) and busy.own not in str(answer)
    assert mine["place"] == 1, "in the whole queue"


async def test_what_is_reserved_for_others_reads_other_work_and_for_an_operator_its_name(busy: Busy) -> None:
    queue, now_ns = busy.site.rooms.services.queue, busy.site.clock.wall_ns()
    (first,) = (await busy.site.client.post("/api/v1/jobs", json={"argv": ["x"], "name": "secret-job"})).json()["jobs"]
    half = asks(busy.runs, busy.own, now_ns, 4, limit_ns=HOUR)
    queue._feed = ToldFeed([busy.host], {busy.host: [Run(half, tuple(range(4)), now_ns)]})
    small = asks(an_id("job", 20), THEIRS, now_ns + 9, 1, name="small")
    await waits(queue, asks(first["id"], busy.own, now_ns, 8, priority_class=PriorityClass.URGENT), small)

    async def lines(*, theirs: bool) -> dict[str, str]:
        return {one["name"]: one["why"] for one in (await busy.get("/queue", theirs=theirs))["items"]}

    told = await lines(theirs=True)
    free = "the hosts that have 1 GPU free are reserved for {} from about 09:00 UTC."
    assert told["small"].endswith(free.format("other work"))
    assert told["mine"] == "2nd in the queue: it has a reservation on gpu-7 from about 09:00 UTC."
    assert (await lines(theirs=False))["small"].endswith(free.format("secret-job"))


async def test_one_of_an_array_is_named_with_its_index(busy: Busy) -> None:
    queue, now_ns = busy.site.rooms.services.queue, busy.site.clock.wall_ns()
    await waits(queue, asks(an_id("job", 30), busy.own, now_ns, 8, name="sweep", array="group", index=3))
    assert "sweep[3]" in [one["name"] for one in (await busy.get("/queue"))["items"]]


async def test_a_job_that_waits_shows_its_place_and_its_etag_changes_with_it(busy: Busy) -> None:
    queue, client = busy.site.rooms.services.queue, busy.site.client
    (job,) = (await client.post("/api/v1/jobs", json={"argv": ["x"], "name": "train", "cpus": 64})).json()["jobs"]
    path = f"/api/v1/jobs/{job['id']}"
    before = await client.get(path)
    assert before.json()["queue"] is None
    busy.site.clock.advance(MINUTE)
    await waits(queue, asks(job["id"], busy.own, busy.site.clock.wall_ns(), 8, name="train"))
    after = await client.get(path, headers={"If-None-Match": before.headers["etag"]})
    assert_described(after, job_routes.JobOut)
    assert after.json()["queue"]["summary"].startswith("3rd in the queue, starts ")
    busy.site.clock.advance(SECOND)
    assert (await client.get(path, headers={"If-None-Match": after.headers["etag"]})).status_code == 304


async def test_pages_follow_each_other_without_a_gap(busy: Busy) -> None:
    whole = [one["id"] for one in (await busy.get("/queue"))["items"]]
    found, cursor = [], ""
    while cursor is not None:
        part = await busy.get(f"/queue?limit=1{f'&cursor={cursor}' if cursor else ''}")
        found += [one["id"] for one in part["items"]]
        cursor = part["next_cursor"]
    assert found == whole
    await busy.get("/queue?cursor=bm9uZQ", status=422)
