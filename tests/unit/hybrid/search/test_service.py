"""Jobs that find no room here have a machine bought, one place after another, and run there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.memory_backend import Fault, Planned
from tests.unit.clusters.world import OPERATOR, OTHER, OWNER, STRANGER, principal
from tests.unit.hybrid.search.world import World, world
from windrow_master.clusters.model import ClusterPhase
from windrow_master.hybrid.purchases.states import State
from windrow_master.hybrid.search.model import TryState
from windrow_master.identity.model import BUYER_ACCOUNT
from windrow_master.jobs.model import JobRequest, JobState
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit
from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.repository import QuotaRepository
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import GIB, HOUR, SECOND, Microcents, parse_money

DEAR = parse_money("9")


async def test_a_job_that_fits_nowhere_has_a_machine_bought_and_runs_there(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        (bought,) = await w.bought()
        assert (bought.for_id, bought.account_id, bought.state) == (job.job_id, job.account_id, State.BOOTING)
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "booting")]
        assert (await w.get(job)).reason.startswith("a machine is being bought at cloud eu-central-1a, m7i.xlarge")
        w.join(bought)
        await w.turn(6)
        now = await w.get(job)
        assert now.state is JobState.STARTING
        place = now.attempts[-1].place
        assert place is not None and place.purchase_id == bought.purchase_id
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "used")]
        text = "cloud eu-central-1a, m7i.xlarge (0.2016 USD an hour)"
        assert w.told("job.backend_changed") == [f"{now.name} is now at {text}: there was no room here"]


async def test_a_zone_without_capacity_is_followed_by_the_next_one(tmp_path: Path) -> None:
    planned = Planned(is_stale=False)
    planned.then("provision", Fault.CAPACITY)
    async with world(tmp_path, planned=planned) as w:
        job = await w.submit(backend="any", spot=True)
        await w.turn(4)
        assert await w.tries(job) == [("eu-central-1a", "spot", "failed"), ("eu-central-1b", "spot", "booting")]
        (said,) = w.told("job.try_failed")
        assert "capacity" in said
        assert "eu-central-1a, spot m7i.xlarge (0.0805 USD an hour)" in said


async def test_an_interrupted_job_goes_on_where_nobody_takes_it_back_and_uses_no_retry(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud", spot=True)
        first = await w.running_at(job)
        assert (await w.get(job)).state is JobState.RUNNING
        w.market.write(lambda uow: w.leave(uow, first, w.clock.wall_ns() + 120 * SECOND, "spot"))
        await w.turn(16)
        await w.running_at(job)
        now = await w.get(job)
        assert (now.state, now.request.retries, len(now.attempts)) == (JobState.RUNNING, 0, 2)
        assert await w.tries(job) == [("eu-central-1a", "spot", "used"), ("eu-central-1a", "on-demand", "used")]
        first_place, second_place = (one.place for one in now.attempts)
        assert first_place is not None
        assert second_place is not None
        assert (first_place.is_spot, second_place.is_spot) == (True, False)
        moved = w.told("job.backend_changed")[-1]
        assert moved.endswith("now at cloud eu-central-1a, m7i.xlarge (0.2016 USD an hour): its host will be gone")


async def test_the_cost_of_a_machine_is_forecast_by_what_is_known_of_its_job(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        for limit_ns in (None, 2 * HOUR):
            await w.submit(backend="cloud", max_duration_ns=limit_ns)
        await w.turn(4)
        unknown, known = await w.bought()
        assert unknown.forecast is None
        assert known.forecast is not None
        assert known.forecast == known.offer.price_per_hour * (2 * 3_600 + 600) // 3_600 < known.reserved


async def test_where_no_place_is_had_it_waits_and_all_are_tried_anew_after_a_pause(tmp_path: Path) -> None:
    planned = Planned(is_stale=False)
    planned.then("provision", Fault.CAPACITY, Fault.QUOTA)
    async with world(tmp_path, planned=planned) as w:
        job = await w.submit(backend="cloud")
        await w.turn(6)
        assert [state for *_, state in await w.tries(job)] == ["failed", "failed"]
        assert len(w.told("job.no_place_elsewhere")) == 1
        assert (await w.get(job)).reason.startswith(
            "there is no room here, and no place elsewhere: at cloud eu-central-1a, ca"
        )
        await w.turn(20)
        assert [state for *_, state in await w.tries(job)] == ["failed", "failed", "booting"]


async def test_a_project_that_is_not_allowed_is_refused_at_submission_with_the_way_out(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        for backend in ("cloud", "any", "nowhere"):
            with pytest.raises(Forbidden, match="windrow backend allow") as refused:
                await w.submit(backend=backend, who=principal(STRANGER))
            assert refused.value.subject == "backend"
        await w.backends.disallow(OPERATOR, "cloud", OWNER)
        with pytest.raises(Forbidden):
            await w.submit(backend="cloud")
        assert await w.jobs.list(OPERATOR, None, 10) == []


async def test_what_a_project_may_spend_holds_and_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.backends.allow(OPERATOR, "cloud", OWNER, in_all=parse_money("1.50"))
        first, second = await w.submit(backend="cloud"), await w.submit(backend="cloud")
        await w.turn(4)
        assert len(await w.bought()) == 1
        assert [state for *_, state in await w.tries(first)] == ["booting"]
        ((*_, state),) = await w.tries(second)
        assert state == "failed"
        assert "This project may spend 1.50 USD at cloud (in_all)" in w.told("job.try_failed")[0]


async def test_a_place_in_another_currency_than_its_caps_is_a_try_in_vain_and_the_search_goes_on(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        await w.backends.disallow(OPERATOR, "cloud", OWNER)
        w.caps = replace(w.caps, currency="EUR")
        await w.connect("service")
        job = await w.submit(backend="service")
        await w.turn(4)
        assert await w.bought() == []
        assert {state for *_, state in await w.tries(job)} == {"failed"}
        assert "The offer is in USD and the caps of service in EUR." in w.told("job.try_failed")[0]
        assert len(w.told("job.no_place_elsewhere")) == 1


def _quota(w: World) -> None:
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.CLUSTERS, limit=2)
    w.market.write(lambda uow: uow[QuotaRepository].save(quota))


def _leases(w: World) -> None:
    limit = SpendingLimit(OWNER, OWNER, "p", Limits(max_leases=2), Microcents(0), "", Microcents(0), 0, "test")
    w.market.write(lambda uow: uow[LimitRepository].save(limit))


def _money(w: World) -> None:
    w.market.market.balance = lambda *_given: parse_money("0.04")  # type: ignore[method-assign]  # 0.0126 for each


@pytest.mark.parametrize(("bound", "most"), [(_quota, 2), (_leases, 2), (_money, 3)])
async def test_no_machine_is_bought_for_work_that_could_not_begin_there(
    tmp_path: Path, bound: Callable[[World], None], most: int
) -> None:
    async with world(tmp_path) as w:
        bound(w)
        await w.jobs.submit(principal(), JobRequest(argv=("true",), array_size=8, backend="cloud"))
        for _ in range(40):
            await w.turn()
            for one in await w.bought():
                if bound is not _money and one.state is State.BOOTING and one.host_id is None:
                    w.join(one)
        assert {one.reason for one in await w.bought()} <= {"", "its agent did not join in time"}
        assert len(w.cloud.living()) <= most
        assert bound is _money or len(await w.bought()) == most
        assert w.told("job.try_failed")


async def test_a_job_that_is_cancelled_before_its_machine_joins_ends_the_purchase(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        await w.jobs.cancel(principal(), job.job_id)
        await w.turn(12)
        (bought,) = await w.bought()
        assert (bought.state, bought.reason) == (State.GONE, "its work is over")
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "dropped")]
        assert not w.cloud.living()


async def test_a_job_that_starts_here_meanwhile_ends_the_purchase(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        w.market.join(OTHER)
        await w.turn(12)
        assert (await w.get(job)).attempts[-1].place is None
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "dropped")]
        assert not w.cloud.living()
        assert w.told("job.backend_changed") == []


async def test_a_machine_is_kept_for_the_job_that_caused_it_and_takes_its_projects_work_afterwards(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        await w.jobs.hold(principal(), job.job_id)
        other = await w.submit()
        host_id = w.join((await w.bought())[-1])
        await w.turn(4)
        assert (await w.get(other)).state is JobState.QUEUED
        await w.jobs.release(principal(), job.job_id)
        await w.turn(6)
        assert (await w.get(job)).state is JobState.STARTING
        spec = w.run_on(host_id)
        await w.turn()
        w.market.report(spec, WorkloadPhase.EXITED, host_id, exit_code=0)
        await w.turn(8)
        assert (await w.get(job)).state is JobState.SUCCEEDED
        assert (await w.get(other)).state is JobState.STARTING
        assert len(await w.bought()) == 1


async def test_a_search_goes_on_after_a_restart_of_the_master(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        w.start_again()
        await w.searches.begin()
        await w.turn()
        w.join((await w.bought())[-1])
        await w.turn(6)
        assert (await w.get(job)).state is JobState.STARTING
        assert len(await w.bought()) == 1


async def test_a_machine_on_which_its_job_cannot_start_is_ended_and_not_bought_again(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud", memory_bytes=14 * GIB)
        await w.turn(2)
        w.market.join(HostId("small"), owner=BUYER_ACCOUNT, memory=8 * GIB)
        w.joined((await w.bought())[-1], HostId("small"))
        await w.turn(26)
        first, second = await w.tries(job)
        assert first == ("eu-central-1a", "on-demand", "failed")
        assert second[0] == "eu-central-1b"


async def test_optimised_for_cost_a_dearer_place_here_is_left_for_a_cheaper_machine(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        w.market.join(OTHER)
        for grade in "ABC":
            w.market.write(lambda uow, grade=grade: w.market.market.ask_own(uow, OWNER, f"cpu/{grade}", DEAR))
        cheap = await w.submit(backend="cloud", optimize="cost")
        await w.turn(3)
        assert [state for *_, state in await w.tries(cheap)] == ["booting"]
        soon = await w.submit(backend="cloud")
        await w.turn(2)
        assert (await w.get(soon)).state is JobState.STARTING
        assert (await w.get(soon)).attempts[-1].place is None


async def test_what_a_bought_machine_cannot_have_for_sure_goes_with_no_backend(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        for field, value in (("region", "eu"), ("labels", ("ssd",)), ("simulated", True), ("min_bandwidth_mbps", 9)):
            with pytest.raises(InvalidInput, match=field):
                await w.submit(backend="cloud", **{field: value})
        with pytest.raises(InvalidInput, match="left out without backend"):
            await w.submit(spot=True)


async def test_a_machine_that_waits_is_bought_too_and_started_on_its_own_host(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        view = await w.market.create(backend="cloud", wait_ns=HOUR)
        assert view.cluster.phase is ClusterPhase.QUEUED
        await w.turn(3)
        (bought,) = await w.bought()
        assert bought.for_id == view.cluster.cluster_id
        w.join(bought)
        await w.turn(6)
        after = await w.market.cluster(view.cluster.cluster_id)
        assert after.phase is ClusterPhase.CREATING
        (one,) = await w.searches.tries(after.cluster_id) or ()
        assert one.state is TryState.USED


async def test_a_budget_that_pays_for_no_place_anywhere_is_said_and_one_that_pays_elsewhere_buys(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        w.market.join(OTHER)
        for grade in "ABC":
            w.market.write(lambda uow, grade=grade: w.market.market.ask_own(uow, OWNER, f"cpu/{grade}", DEAR))
        poor = await w.submit(backend="cloud", budget=parse_money("0.10"), max_duration_ns=HOUR)
        rich = await w.submit(backend="cloud", budget=parse_money("0.14"), max_duration_ns=HOUR // 2)
        await w.turn(4)
        assert [state for *_, state in await w.tries(rich)] == ["booting"]
        assert await w.tries(poor) == []
        said = "cloud: the cheapest that fits costs 0.2016 USD an hour, which its budget, highest price or deadline"
        assert (await w.get(poor)).reason.endswith(f"{said} does not allow for")
        assert len(w.told("job.no_place_elsewhere")) == 1
        await w.turn(30)
        assert len(w.told("job.no_place_elsewhere")) == 1


async def test_jobs_that_are_alike_are_bought_for_at_once_and_those_that_wait_for_others_are_not(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        asked = JobRequest(argv=("true",), array_size=4, array_at_once=3, backend="cloud")
        await w.jobs.submit(principal(), asked)
        await w.turn(3)
        bought = await w.bought()
        assert len({one.for_id for one in bought}) == len(bought) == 3


async def test_no_machine_is_bought_for_a_project_that_could_not_pay_for_its_first_minutes(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        w.market.write(lambda uow: w.market.market.settle(uow, OWNER, None, "a test", "test"))
        job = await w.submit(backend="cloud")
        await w.turn(4)
        assert await w.bought() == []
        (tried,) = await w.searches.tries(job.job_id) or ()
        assert tried.state is TryState.FAILED and "the account has 0.00" in tried.said


async def test_a_backend_that_does_not_exist_is_named_with_those_that_a_project_may_use(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        with pytest.raises(InvalidInput, match=r"There is no backend clowd\. This project may use cloud\."):
            await w.submit(backend="clowd")
        await w.backends.add(OPERATOR, "other", "memory", {}, {}, w.caps)
        with pytest.raises(Forbidden, match=r"may not buy at other.*windrow backend allow other PROJECT"):
            await w.submit(backend="other")


async def test_the_price_of_a_place_is_what_its_renter_pays_with_the_operators_margin(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.backends.set_caps(OPERATOR, "cloud", w.caps, 50)
        job = await w.submit(backend="cloud")
        await w.turn(2)
        (tried,) = await w.searches.tries(job.job_id) or ()
        assert tried.place.price_per_hour == parse_money("0.3024")


async def test_a_machine_of_a_backend_that_does_not_exist_is_refused_also_where_there_is_room_here(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as w:
        w.market.join()
        with pytest.raises(InvalidInput, match="There is no backend clowd"):
            await w.market.create(backend="clowd", wait_ns=HOUR)
