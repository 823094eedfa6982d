"""Why here, why not there, why not yet: each sentence is compared with the record, the rows or the queue."""

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.unit.clusters.conftest import site as site
from tests.unit.master_api.described import assert_described
from tests.unit.queue.test_routes import Busy, an_id
from tests.unit.queue.test_routes import busy as busy
from tests.unit.queue.waiting import asks, waits
from windrow_master.api import explain_routes
from windrow_master.clusters.decision_repository import DecisionRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.hybrid.search.model import Search, Try, TryState
from windrow_master.hybrid.search.repository import SearchRepository
from windrow_master.jobs.model import NO_CLUSTER, Attempt, AttemptPlace, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.placement.model import Weights
from windrow_master.placement.plan import weigh
from windrow_master.queue.estimate import clock_text
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Inventory
from windrow_proto.units import GIB, HOUR, MINUTE, Microcents, time_text

PRICE = Microcents(10**8)
LARGE, OLD = HostId("host_b"), HostId("host_c")


@pytest.fixture
async def market(site) -> Any:
    """Beside the site's own host one that scores the same, and one that takes no new work."""

    owner = site.rooms.services.identity.first_account().id

    def join(uow):
        for host_id, name in ((LARGE, "large"), (OLD, "old")):
            inventory = Inventory(hostname=name, cpu_count=64, memory_bytes=64 * GIB, runtimes=("process",))
            site.rooms.fleet.enrol(uow, host_id, name, owner, False, "test")
            site.rooms.fleet.hosts.inventory(uow, host_id, inventory)
            site.rooms.fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)
        site.rooms.fleet.hosts.decide(uow, OLD, AdminEvent.DRAIN, "account/1", "test")

    site.write(join)
    await site.rooms.fleet.refresh()
    return site


async def placed(site: Any) -> str:
    answer = await site.client.post("/api/v1/clusters", json={"argv": ["sleep", "9"], "cpus": 2, "name": "demo"})
    return str(answer.json()["cluster"]["id"])


async def explained(site: Any, entry_id: str, **params: str) -> Any:
    answer = await site.client.get(f"/api/v1/explain/{entry_id}", params=params)
    assert_described(answer, explain_routes.ExplainOut)
    return answer.json()


async def test_why_here_is_said_in_the_numbers_of_the_record(market) -> None:
    cluster_id = await placed(market)
    told = await explained(market, cluster_id)
    _, record = market.rooms.store.read_now(lambda uow: uow[DecisionRepository].latest(cluster_id))
    by_name = {one.host_name: one for one in record.verdicts}
    first, *others = told["here"]
    said = re.match(r"(\S+) scores (\d+), the most of 2 hosts that fit: ", first)
    assert said is not None
    name, score = said.groups()
    terms = {term: (int(value), int(by)) for term, value, by in re.findall(r"(\w+) (\d+) x (\d+)", first)}
    winner = by_name[name]
    assert record.chosen.host_name == name == told["decision"]["chosen"]["host_name"]
    assert {term: value for term, (value, _) in terms.items()} == winner.terms
    assert {term: by for term, (_, by) in terms.items()} == {
        one.name: getattr(record.weights, one.name) for one in fields(Weights)
    }
    assert int(score) == winner.score == sum(value * by for value, by in terms.values())
    loser = next(one for one in record.verdicts if one.score is not None and one.host_name != name)
    assert others == [
        f"{loser.host_name} scores {loser.score}, the same: equal hosts take turns.",
        f"1 host: {by_name['old'].reason}.",
    ]
    assert told["decided_at"] is not None and told["not_yet"] == told["changes"] == []


async def test_why_not_there_is_from_the_record_and_else_from_a_look_at_the_host(market) -> None:
    cluster_id = await placed(market)
    _, record = market.rooms.store.read_now(lambda uow: uow[DecisionRepository].latest(cluster_id))
    told = await explained(market, cluster_id, host="old")
    reason = next(one.reason for one in record.verdicts if one.host_name == "old")
    assert (told["not_there"], told["is_recorded"]) == (f"old did not fit: {reason}.", True)
    assert (await explained(market, cluster_id, host=record.chosen.host_id))["not_there"] == "It runs there."

    late, owner = HostId("host_d"), market.rooms.services.identity.first_account().id

    def join(uow):
        inventory = Inventory(hostname="late", cpu_count=1, memory_bytes=GIB, runtimes=("process",))
        market.rooms.fleet.enrol(uow, late, "late", owner, False, "test")
        market.rooms.fleet.hosts.inventory(uow, late, inventory)
        market.rooms.fleet.hosts.link(uow, late, LinkEvent.HEARD, uow.now_wall_ns)

    market.write(join)
    await market.rooms.fleet.refresh()
    told = await explained(market, cluster_id, host="late")
    assert not told["is_recorded"]
    assert told["not_there"].startswith("late does not fit now: ") and "1" in told["not_there"]
    assert (await market.client.get(f"/api/v1/explain/{cluster_id}?host=nobody")).status_code == 404


async def test_other_weights_are_computed_from_the_terms_of_the_record(market) -> None:
    await market.client.put("/api/v1/offers/cpu/C", json={"price_per_hour": "0.50"})
    cluster_id = await placed(market)
    _, record = market.rooms.store.read_now(lambda uow: uow[DecisionRepository].latest(cluster_id))
    told = await explained(market, cluster_id, weights="cost=8,home=0")
    weights = Weights(cost=8, packing=3, trust=2, home=0, grade=1)
    own = next(one for one in record.verdicts if one.host_id == record.chosen.host_id)
    assert told["otherwise"].endswith(f"{weigh(own.terms, weights)}.")
    for wrong in ("cost", "cost=-1", "luck=3", "cost=2000", "=", ""):
        answer = await market.client.get(f"/api/v1/explain/{cluster_id}", params={"weights": wrong})
        assert answer.status_code == 422, wrong


async def test_why_not_yet_names_what_holds_the_hosts_and_what_would_change_it(busy: Busy) -> None:
    site, services = busy.site, busy.site.rooms.services
    asked = {"argv": ["x"], "name": "train", "cpus": 64}
    (job,) = (await site.client.post("/api/v1/jobs", json=asked)).json()["jobs"]
    site.clock.advance(MINUTE)
    await waits(services.queue, asks(job["id"], busy.own, site.clock.wall_ns(), 8, name="train"))
    told = await explained(site, job["id"])
    queued, refusal = told["queue"], told["refusal"]
    (holder,) = services.queue.holders(job["id"])
    assert holder.host_id == busy.host and busy.runs in holder.by
    assert told["not_yet"] == [
        queued["why"],
        f"gpu-7 would do: it is held by other work, until about {clock_text(holder.free_ns, site.clock.wall_ns())}.",
        f"It is expected to start at {queued['estimate']['words']}.",
    ]
    assert told["changes"] == [f"{way['text']}." for way in refusal["ways"]] != []
    assert told["here"] == [] and told["decision"] is None
    on = await explained(site, job["id"], host="host_a")
    assert on["not_there"].startswith("a does not fit now: ") and not on["is_recorded"]


async def test_a_job_that_no_host_can_ever_run_is_told_so_once(market) -> None:
    services = market.rooms.services
    (job,) = (await market.client.post("/api/v1/jobs", json={"argv": ["x"], "cpus": 1000})).json()["jobs"]
    await services.jobs.controller.tick()
    await services.queue.tick()
    await services.jobs.controller.tick()
    await services.queue.tick()

    said = (await explained(market, job["id"]))["not_yet"]

    assert [one for one in said if one.startswith("No host of this market has 1000 CPUs, free or not")] == said[:1]


def place(**more: Any) -> AttemptPlace:
    return AttemptPlace(
        backend="aws",
        machine="g5.xlarge",
        region="eu",
        zone="eu-a",
        price_per_hour=Microcents(10**8),
        currency="USD",
        **more,
    )


async def test_a_job_for_which_a_machine_is_bought_waits_for_that_and_for_no_host_here(busy: Busy) -> None:
    site, services = busy.site, busy.site.rooms.services
    (job,) = (await site.client.post("/api/v1/jobs", json={"argv": ["x"], "name": "train", "cpus": 64})).json()["jobs"]
    await waits(services.queue, asks(job["id"], busy.own, site.clock.wall_ns(), 8, name="train"))
    now_ns = site.clock.wall_ns()
    tried = Try(
        number=1, place=place(purchase_id="p"), offer_id="o", state=TryState.BOOTING, at_ns=now_ns, since_ns=now_ns
    )
    search = Search(entry_id=job["id"], account_id=AccountId(busy.own), tries=(tried,), tried=1)
    site.write(lambda uow: uow[SearchRepository].save(search))
    await services.searches.begin()
    told = await explained(site, job["id"])
    queued = told["queue"]
    assert queued["summary"] == "3rd in the queue: a machine is being bought at aws eu-a"
    assert (queued["elsewhere"], queued["estimate"]) == ("a machine is being bought at aws eu-a", None)
    assert told["not_yet"][0] == queued["why"] == tried.words(now_ns)
    assert told["not_yet"][-1].startswith("It is expected to start there at about ")
    assert told["changes"][0].startswith("Its machine has until ")
    looked = (await site.client.get(f"/api/v1/jobs/{job['id']}/findings")).json()
    assert looked["words"] == f"No attempt of this job has begun yet. {tried.words(now_ns)}"


async def test_a_job_that_runs_as_a_run_says_so(busy: Busy) -> None:
    site = busy.site
    (job,) = (await site.client.post("/api/v1/jobs", json={"argv": ["x"], "name": "train"})).json()["jobs"]
    there = place(is_service=True, run_id="r")
    run = Attempt(cluster_id=NO_CLUSTER, began_at_ns=site.clock.wall_ns(), place=there)

    def start(uow: Any) -> None:
        known = uow[JobRepository].get(job["id"])
        uow[JobRepository].save(replace(known, state=JobState.RUNNING, attempts=(run,)))
        tried = Try(number=1, place=there, offer_id="o", state=TryState.USED, at_ns=0, since_ns=0)
        uow[SearchRepository].save(Search(entry_id=job["id"], account_id=known.account_id, tries=(tried,), tried=1))

    site.write(start)
    told = await explained(site, job["id"])
    assert told["here"] == [f"It runs as a run at {run.where}, since this market had no room for it."]
    assert told["decided_at"] is not None
    assert (told["not_yet"], told["changes"]) == ([], [])
    looked = (await site.client.get(f"/api/v1/jobs/{job['id']}/findings")).json()
    assert looked["words"].startswith(f"It is a run at {run.where}.")


async def test_who_does_not_own_it_is_told_that_there_is_none(busy: Busy) -> None:
    (job,) = (await busy.site.client.post("/api/v1/jobs", json={"argv": ["x"]})).json()["jobs"]
    assert (await busy.get(f"/explain/{job['id']}"))["name"]
    await busy.get(f"/explain/{job['id']}", theirs=True, status=404)
    await busy.get(f"/explain/{an_id('cluster', 1)}", status=404)
    await busy.get("/explain/no_capacity", status=404)


async def test_each_start_has_a_record_of_its_own_and_the_last_one_is_told(market) -> None:
    cluster_id = await placed(market)
    at_ns, record = market.rooms.store.read_now(lambda uow: uow[DecisionRepository].latest(cluster_id))
    again = replace(record, unkept={"no free GPU": 7})
    market.write(lambda uow: uow[DecisionRepository].add(cluster_id, at_ns + HOUR, again))
    told = await explained(market, cluster_id)
    assert told["here"][-2:] == ["7 hosts: no free GPU.", "1 host: takes no new work (it is draining)."]
    assert told["decided_at"] == time_text(at_ns + HOUR)


async def test_a_machine_that_waits_shows_its_place_and_what_holds_the_host_that_would_do(site) -> None:
    asked = {"argv": ["sleep", "9"], "cpus": 4, "max_duration_seconds": 3600}
    await site.client.post("/api/v1/clusters", json=asked | {"name": "first"})
    made = await site.client.post("/api/v1/clusters", json=asked | {"name": "second", "wait_seconds": 7200})
    cluster = made.json()["cluster"]
    assert cluster["phase"] == "Queued"
    await site.rooms.services.queue.tick()
    shown = (await site.client.get(f"/api/v1/clusters/{cluster['id']}")).json()["queue"]
    assert (shown["kind"], shown["name"], shown["place"]) == ("machine", "second", 1)
    assert shown["summary"].startswith("1st in the queue, starts ")
    told = await explained(site, cluster["id"])
    line = next(one for one in told["not_yet"] if "would do" in one)
    assert line.startswith("host_a would do: it is held by first, until about ")
    assert told["queue"]["why"] == shown["why"] and told["here"] == []


async def test_what_no_host_of_the_market_has_is_told_beside_its_place_in_the_queue(site) -> None:
    (job,) = (await site.client.post("/api/v1/jobs", json={"argv": ["x"], "gpus": 9})).json()["jobs"]
    own = site.rooms.services.identity.first_account().id
    await waits(site.rooms.services.queue, asks(job["id"], own, site.clock.wall_ns(), 8, name="x"))
    told = await explained(site, job["id"])
    assert not told["refusal"]["is_possible"], told["refusal"]
    assert told["not_yet"][:2] == [told["queue"]["why"], told["refusal"]["detail"]]
