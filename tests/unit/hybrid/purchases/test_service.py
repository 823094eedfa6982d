"""What the Master buys is written down before it is asked for, seen, ended, paid for in a book, and never forgotten."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.memory_backend import Fault, MemoryCloud, Planned, Terms
from tests.unit.hybrid.purchases.world import (
    ACCOUNT,
    MARKET,
    OFFER,
    OPERATOR,
    PLENTY,
    RULES,
    SECRET,
    World,
    person,
    run,
    world,
)
from tests.waiting import poll_async
from windrow_master.clusters.messages import HostLimit, HostLimits
from windrow_master.fleet.messages import HostLeaving, InstanceOf
from windrow_master.hybrid.backends.port import (
    TAG_EPOCH,
    TAG_MARKET,
    TAG_PURCHASE,
    Machine,
    MachineState,
    Order,
    RefusedFor,
    Wanted,
)
from windrow_master.hybrid.purchases.backends import find_backend
from windrow_master.hybrid.purchases.controller import SWEEP_EVERY_NS
from windrow_master.hybrid.purchases.model import Purchase
from windrow_master.hybrid.purchases.repository import PurchaseRepository
from windrow_master.hybrid.purchases.states import State
from windrow_master.identity.accounts import find_account
from windrow_master.identity.model import Role
from windrow_master.identity.repository import AccountRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Unavailable,
    WindrowError,
)
from windrow_proto.ids import HostId
from windrow_proto.units import HOUR, MINUTE, parse_money


@pytest.fixture
def market(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def connected(market: World) -> World:
    market.connect()
    return market


def faults(market: World) -> Planned:
    assert isinstance(market.cloud.faults, Planned)
    return market.cloud.faults


# --- buying ---


def test_a_purchase_is_written_down_with_its_tags_before_its_provider_is_asked(connected: World) -> None:
    seen, provision = list[tuple[State, int | None]](), connected.cloud.provision

    def look(order: Order) -> object:
        row = connected.store.read_now(lambda uow: uow[PurchaseRepository].get(order.purchase_id))
        assert row is not None
        seen.append((row.state, row.asked_at_ns))
        assert order.tags == {TAG_MARKET: MARKET, TAG_PURCHASE: row.purchase_id, TAG_EPOCH: str(connected.store.epoch)}
        return provision(order)

    connected.cloud.provision = look  # type: ignore[method-assign,assignment]
    bought = connected.buy()
    connected.turn()
    assert seen == [(State.ASKING, connected.clock.wall_ns())]
    assert connected.state(bought) is State.BOOTING


def test_a_machine_joins_serves_ends_and_stands_in_the_book(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    connected.hosts.busy.add(host)
    connected.turns(MINUTE)
    assert connected.state(bought) is State.SERVING
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "no longer wanted"))
    connected.turns(5 * MINUTE)
    assert connected.state(bought) is State.GONE
    assert not connected.cloud.living()
    assert ("drain", host) in connected.hosts.asked
    assert ("lose", host) in connected.hosts.asked
    (cost,) = run(connected.purchases.costs(bought.purchase_id))
    (machine,) = connected.cloud.all()
    assert (cost.cost, cost.billed_s) == (connected.cloud.cost(machine), connected.cloud.paid_s(machine))
    assert cost.paid == parse_money("0.25")
    (owed,) = run(connected.purchases.owed())
    assert (owed.per_hour, owed.living, owed.in_all, owed.today) == (0, 0, cost.cost, cost.cost)
    kinds = [kind for kind, _ in connected.events() if kind.startswith("purchase.")]
    assert kinds == [f"purchase.{one}" for one in ("wanted", "booting", "joined", "draining", "ending", "gone")]


def test_how_long_a_machine_took_to_join_is_known_for_the_next_one(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    connected.turns(2 * MINUTE)
    connected.join(bought)
    connected.turn()
    assert connected.buy().purchase_id != bought.purchase_id, "one that has not joined says nothing"
    ((kind, took_ns),) = run(connected.purchases.starts())
    assert kind == "memory/on-demand"
    assert took_ns >= 2 * MINUTE


def test_its_host_works_for_its_account_alone_as_long_as_it_lives(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    limits = connected.store.read_now(lambda uow: connected.purchases.limits(uow, HostLimits()))
    assert limits == {host: HostLimit(only_for=ACCOUNT)}
    assert connected.store.read_now(lambda uow: connected.purchases.limits(uow, HostLimits([HostId("host_2")]))) == {}
    connected.cloud.reclaim(connected.now(bought).machine_id)
    connected.turns(3 * MINUTE)
    assert connected.store.read_now(lambda uow: connected.purchases.limits(uow, HostLimits())) == {}


def test_two_at_once_do_not_pass_a_cap_together(market: World) -> None:
    market.connect(replace(PLENTY, per_hour=parse_money("2")))
    market.buy()
    with pytest.raises(QuotaExceeded, match="per_hour"):
        market.buy()
    market.turn()
    assert len(market.cloud.all()) == 1


def test_a_price_that_rose_by_more_than_a_tenth_is_refused_by_the_order_itself(connected: World) -> None:
    bought = connected.buy()
    known = connected.cloud.book[OFFER]
    connected.cloud.book[OFFER] = replace(known, price_per_hour=parse_money("1.20"))
    connected.turn()
    found = connected.now(bought)
    assert (found.state, found.refused_for) == (State.REFUSED, RefusedFor.PRICE)
    assert not connected.cloud.all()


def test_a_lost_answer_is_doubted_until_the_list_shows_the_machine(connected: World) -> None:
    faults(connected).then("provision", Fault.LOST)
    faults(connected).is_stale = True
    bought = connected.buy()
    connected.turn()
    assert connected.state(bought) is State.DOUBTFUL
    connected.turns(2 * MINUTE)
    found = connected.now(bought)
    assert (found.state, found.machine_id) == (State.BOOTING, connected.cloud.all()[0].machine_id)
    assert connected.cloud.calls.count("provision") == 1


def test_a_call_that_never_arrived_ends_as_never_made_and_gives_its_money_back(connected: World) -> None:
    faults(connected).then("provision", Fault.UNDONE)
    bought = connected.buy()
    connected.turns(RULES.doubt_ns - MINUTE)
    assert connected.state(bought) is State.DOUBTFUL
    assert run(connected.purchases.owed())[0].reserved == bought.reserved
    connected.turns(3 * MINUTE)
    assert connected.state(bought) is State.NEVER_MADE
    assert run(connected.purchases.owed())[0].reserved == 0
    assert connected.cloud.calls.count("provision") == 1


def test_nothing_is_bought_before_this_master_has_seen_what_there_is(connected: World) -> None:
    faults(connected).then("leftovers", Fault.LOST, Fault.LOST)
    bought = connected.buy()
    connected.turn()
    connected.turn()
    assert connected.state(bought) is State.WANTED
    connected.turn()
    assert connected.state(bought) is State.BOOTING


def test_a_master_whose_term_is_over_asks_nobody(connected: World) -> None:
    bought = connected.buy()
    connected.store.write_now(
        lambda uow: uow.terms.begin(uow.now_wall_ns, "1", "", "", None), name="another Master begins"
    )
    connected.turn()
    assert "provision" not in connected.cloud.calls
    assert connected.state(bought) is State.WANTED


@pytest.mark.parametrize(("hours", "field"), [(0, "hours"), (-1, "hours"), (10_000, "hours"), (float("nan"), "hours")])
def test_hours_that_make_no_sense_are_refused(connected: World, hours: float, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        connected.buy(hours)
    assert run(connected.purchases.list()) == []


def test_an_offer_that_is_gone_a_project_that_is_not_and_whoever_is_no_operator_buy_nothing(connected: World) -> None:
    with pytest.raises(NotFound, match="offers"):
        connected.buy(offer_id="nothing/anywhere")
    with pytest.raises(NotFound, match="project"):
        run(connected.purchases.buy(OPERATOR, "cloud", OFFER, account_id="account_nobody", hours=1))
    with pytest.raises(Forbidden):
        run(connected.purchases.buy(person(Role.RENTER), "cloud", OFFER, account_id=ACCOUNT, hours=1))
    connected.cloud.book[OFFER] = replace(connected.cloud.book[OFFER], price_per_hour=parse_money("-1.00"))
    with pytest.raises(InvalidInput, match="below 0"):
        connected.buy()
    assert run(connected.purchases.list()) == []


# --- looking and ending ---


def test_a_machine_that_its_provider_took_back_is_lost_at_the_next_look(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    connected.hosts.busy.add(host)
    connected.turns(2 * MINUTE)
    connected.cloud.reclaim(connected.now(bought).machine_id)
    connected.turn()
    assert connected.state(bought) is State.ENDING
    assert ("lose", host) in connected.hosts.asked


def test_a_host_that_says_it_will_be_taken_back_drains(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    connected.hosts.busy.add(host)
    connected.turn()
    fact = HostLeaving(host, connected.clock.wall_ns() + 2 * MINUTE, "spot")
    connected.store.write_now(lambda uow: connected.purchases.leaving(uow, fact), name="leaving")
    assert connected.now(bought).reason == "its provider takes it back (spot)"
    assert [kind for kind, _ in connected.events()].count("purchase.draining") == 1
    connected.hosts.busy.clear()
    connected.turn()
    assert connected.state(bought) is State.ENDING


def test_a_host_that_may_be_taken_back_goes_on_with_its_work(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    connected.hosts.busy.add(host)
    connected.turns(MINUTE)
    fact = HostLeaving(host, None, "rebalance")
    connected.store.write_now(lambda uow: connected.purchases.leaving(uow, fact), name="leaving")
    connected.turns(5 * MINUTE)
    assert connected.state(bought) is State.SERVING


def test_one_that_never_joins_is_ended_with_its_console_and_no_secret_in_it(connected: World) -> None:
    bought = connected.buy()
    connected.turns(RULES.boot_ns + 3 * MINUTE)
    found = connected.now(bought)
    assert found.reason == "its agent did not join in time"
    assert found.console == f"{found.machine_id} [redacted].\n"
    connected.turns(3 * MINUTE)
    assert connected.state(bought) is State.GONE


def test_a_host_that_joins_after_its_purchase_was_ended_is_quarantined(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    host = connected.join(bought)
    assert ("quarantine", host) in connected.hosts.asked
    assert connected.now(bought).host_id is None


def test_a_second_host_for_the_same_purchase_is_quarantined_and_the_first_stays(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    first = connected.join(bought)
    second = connected.join(bought, "host_2")
    again = connected.join(bought)
    assert connected.now(bought).host_id == first == again
    assert [one for one in connected.hosts.asked if one[0] == "quarantine"] == [("quarantine", second)]


def test_a_host_has_to_be_on_the_machine_that_was_bought(connected: World) -> None:
    faults(connected).then("provision", Fault.LOST)
    bought = connected.buy()
    connected.turn()
    host = connected.join(bought)
    assert connected.store.read_now(lambda uow: connected.purchases.instance_of(uow, InstanceOf(host))) == ""
    connected.turn()
    machine_id = connected.cloud.all()[0].machine_id
    assert connected.store.read_now(lambda uow: connected.purchases.instance_of(uow, InstanceOf(host))) == machine_id
    assert ("check_instance", host) in connected.hosts.asked


def test_an_end_that_the_provider_forgets_is_asked_for_again(connected: World) -> None:
    faults(connected).then("terminate", Fault.IGNORED, Fault.UNDONE, Fault.LIMIT)
    bought = connected.buy()
    connected.turn()
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turns(5 * MINUTE)
    assert connected.state(bought) is State.GONE
    assert connected.cloud.calls.count("terminate") >= 4


def test_one_that_is_ended_before_it_was_asked_for_is_never_bought(connected: World) -> None:
    bought = connected.buy()
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turn()
    assert connected.state(bought) is State.NEVER_MADE
    assert "provision" not in connected.cloud.calls


@pytest.mark.parametrize("what", ["disallowed", "deleted"])
def test_a_project_that_may_not_buy_any_more_is_bought_nothing_though_it_was_wanted(
    connected: World, what: str
) -> None:
    run(connected.backends.allow(OPERATOR, "cloud", ACCOUNT, per_day=parse_money("50")))

    def want(uow: UnitOfWork) -> Purchase:
        row = find_backend(uow, "cloud")
        return connected.purchases.buy_for(
            uow, offer=offer, for_id="job_1", account_id=ACCOUNT, backend=row, duration_ns=HOUR, expected_ns=None
        )

    def delete(uow: UnitOfWork) -> None:
        known = find_account(uow, ACCOUNT)
        assert known is not None
        uow[AccountRepository].save(replace(known, deleted_at_ns=uow.now_wall_ns))

    offer = run(connected.backends.offers("cloud", Wanted(offer_id=OFFER)))[0]
    bought = connected.store.write_now(want, name="want")
    if what == "deleted":
        connected.store.write_now(delete, name="delete")
    else:
        run(connected.backends.disallow(OPERATOR, "cloud", ACCOUNT))
    connected.turn()
    now = connected.now(bought)
    assert now.state is State.NEVER_MADE
    assert "project" in now.reason
    assert "provision" not in connected.cloud.calls


def test_all_of_a_backend_are_ended_and_no_more_bought(connected: World) -> None:
    bought = [connected.buy(), connected.buy()]
    connected.turn()
    bought.append(connected.buy())
    run(connected.purchases.stop_all(OPERATOR, "cloud"))
    with pytest.raises(QuotaExceeded, match="machines"):
        connected.buy()
    connected.turns(5 * MINUTE)
    assert [connected.state(one) for one in bought] == [State.GONE, State.GONE, State.NEVER_MADE]
    assert not connected.cloud.living()


def test_a_provider_that_does_not_answer_holds_up_no_other_and_is_asked_once_at_a_time(connected: World) -> None:
    connected.connect_also("slow")
    bought, purchases, queue = connected.buy(), connected.purchases, connected.backends.queue
    slow = connected.backends.opened(run(connected.backends.get("slow")))
    asked, answers = list[int](), asyncio.Event()

    async def describe(market_id: str) -> Sequence[Machine]:
        asked.append(1)
        await answers.wait()
        return []

    slow.describe = describe  # type: ignore[method-assign]

    async def is_bought() -> bool:
        return (await purchases.get(bought.purchase_id)).state is State.BOOTING

    def is_looked_at_again(looks: int) -> bool:
        connected.clock.advance(MINUTE)
        return connected.cloud.calls.count("describe") > looks

    async def live() -> None:
        async with asyncio.TaskGroup() as group:
            loop = group.create_task(purchases.controller.run())
            await poll_async(is_bought)
            looks = connected.cloud.calls.count("describe")
            queue.add("slow")
            await poll_async(lambda: is_looked_at_again(looks), 20)
            assert len(asked) == 1
            answers.set()
            await poll_async(lambda: len(asked) > 1, 20, "its sweep")
            loop.cancel()

    run(live())


@pytest.mark.parametrize("skew_min", [-90, -10, 10, 90])
def test_a_provider_whose_clock_is_wrong_gives_one_machine_that_ends_and_is_paid_for_once(
    connected: World, skew_min: int
) -> None:
    cloud, true_clock = connected.cloud, connected.clock.wall_ns
    cloud._now = lambda: true_clock() + skew_min * MINUTE
    bought = connected.buy()
    connected.turn()
    connected.hosts.busy.add(connected.join(bought))
    connected.turns(20 * MINUTE)
    assert connected.state(bought) is State.SERVING
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turns(10 * MINUTE)
    assert connected.state(bought) is State.GONE
    (cost,), (machine,) = run(connected.purchases.costs(bought.purchase_id)), cloud.all()
    assert not cloud.living()
    assert (cost.cost, cost.billed_s) == (cloud.cost(machine), cloud.paid_s(machine))


def test_a_name_that_was_a_backends_before_buys_nothing_before_it_was_looked_at(connected: World) -> None:
    connected.turn()
    run(connected.backends.remove(OPERATOR, "cloud"))
    connected.connect()
    faults(connected).then("describe", Fault.LOST, Fault.LOST)
    bought = connected.buy()
    connected.turn()
    assert connected.state(bought) is State.WANTED


@pytest.mark.parametrize("has_purchase_token", [True, False])
def test_what_was_asked_for_after_the_backup_of_the_database_is_not_bought_again(
    tmp_path: Path, has_purchase_token: bool
) -> None:
    with world(tmp_path, Terms(has_purchase_token=has_purchase_token)) as market:
        market.connect()
        bought = market.buy()
        market.turns(5 * MINUTE)
        (machine,) = market.cloud.all()
        market.store.write_now(lambda uow: uow[PurchaseRepository].save(bought), name="the backup")
        market.backends.swept_ns.clear()
        market.turns(2 * MINUTE)
        assert (market.state(bought), market.now(bought).machine_id) == (State.BOOTING, machine.machine_id)
        assert market.cloud.all() == [machine]
        market.turns(3 * HOUR)
        assert (market.state(bought), market.cloud.living()) == (State.GONE, [])


# --- the sweep ---


def test_a_sweep_ends_what_has_our_tag_and_no_purchase_and_touches_nothing_else(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    ours = connected.cloud.add_foreign({TAG_MARKET: MARKET, TAG_PURCHASE: "purchase_of_yesterday", TAG_EPOCH: "7"})
    copy = connected.cloud.add_foreign({TAG_MARKET: MARKET, TAG_PURCHASE: bought.purchase_id})
    foreign = [
        connected.cloud.add_foreign({TAG_MARKET: "other", TAG_PURCHASE: bought.purchase_id}),
        connected.cloud.add_foreign({TAG_PURCHASE: bought.purchase_id}),
        connected.cloud.add_foreign({}),
    ]
    connected.turn(SWEEP_EVERY_NS)
    assert ours.end_asked_at_ns is not None
    assert copy.end_asked_at_ns is not None
    assert [one.end_asked_at_ns for one in foreign] == [None] * 3
    assert connected.state(bought) is State.BOOTING
    told = [text for kind, text in connected.events() if kind == "backend.swept"]
    assert len(told) == 2
    assert any("term 7" in text and ours.machine_id in text for text in told)


def test_a_sweep_of_one_backend_leaves_what_another_bought_at_the_same_account(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    connected.connect_also("again")
    result = run(connected.purchases.sweep(OPERATOR, "again"))
    assert ([one.purchase_id for one in result.left_alone], result.ended) == ([bought.purchase_id], ())
    connected.turns(SWEEP_EVERY_NS)
    assert connected.state(bought) is State.BOOTING
    assert len(connected.cloud.living()) == 1


def test_a_sweep_removes_what_a_machine_left_behind_as_soon_as_it_is_gone(connected: World) -> None:
    faults(connected).volumes_stay = True
    bought = connected.buy()
    connected.turn()
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turns(3 * MINUTE)
    assert connected.state(bought) is State.GONE
    assert not connected.cloud.volumes()


def test_a_sweep_of_a_market_that_is_no_more_ends_all_that_it_had(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    lost = connected.cloud.add_foreign({TAG_MARKET: "of-last-year", TAG_PURCHASE: "purchase_1"})
    result = run(connected.purchases.sweep(OPERATOR, "cloud", "of-last-year"))
    assert [one.machine_id for one in result.ended] == [lost.machine_id]
    own = run(connected.purchases.sweep(OPERATOR, "cloud"))
    assert ([one.purchase_id for one in own.left_alone], own.ended) == ([bought.purchase_id], ())
    faults(connected).then("describe", Fault.AUTH)
    with pytest.raises(Conflict, match="auth"):
        run(connected.purchases.sweep(OPERATOR, "cloud"))
    with pytest.raises(Forbidden):
        run(connected.purchases.sweep(person(Role.RENTER), "cloud"))


def test_a_machine_that_was_made_far_too_late_is_found_ended_and_paid_for(tmp_path: Path) -> None:
    with world(tmp_path, Terms(late_ns=30 * MINUTE)) as market:
        market.connect()
        faults(market).then("provision", Fault.LATE)
        bought = market.buy()
        market.turns(20 * MINUTE)
        assert market.state(bought) is State.NEVER_MADE
        market.turns(20 * MINUTE)
        assert market.state(bought) is State.GONE
        assert not market.cloud.living()
        (cost,) = run(market.purchases.costs(bought.purchase_id))
        assert cost.cost == market.cloud.cost(market.cloud.all()[0])


def test_a_stopped_machine_is_ended_since_its_disk_is_paid_for(tmp_path: Path) -> None:
    with world(tmp_path, Terms(power_off=MachineState.STOPPED)) as market:
        market.connect()
        bought = market.buy()
        market.turn()
        market.cloud.power_off(market.now(bought).machine_id)
        market.turns(4 * MINUTE)
        assert market.state(bought) is State.GONE
        assert not market.cloud.living()


# --- backends ---


def test_credentials_that_expired_are_replaced_while_machines_run(connected: World, tmp_path: Path) -> None:
    bought = connected.buy()
    connected.turn()
    faults(connected).then("describe", Fault.AUTH, Fault.AUTH, Fault.AUTH)
    faults(connected).then("terminate", Fault.AUTH)
    connected.turn(SWEEP_EVERY_NS)
    assert connected.state(bought) is State.BOOTING, "what nobody can see is not believed gone"
    with pytest.raises(Conflict, match="auth"):
        run(connected.backends.renew(OPERATOR, "cloud", {"key": "wrong"}, MARKET))
    run(connected.backends.renew(OPERATOR, "cloud", {"key": SECRET + "-2"}, MARKET))
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turns(5 * MINUTE)
    assert connected.secrets[-1] == {"key": SECRET + "-2"}
    assert connected.state(bought) is State.GONE
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_credentials_of_another_account_do_not_take_the_place_of_those_with_machines(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    (machine,), truth = connected.cloud.all(), connected.cloud
    connected.cloud = MemoryCloud(connected.clock.wall_ns, faults(connected), Terms())
    with pytest.raises(Conflict, match="another account"):
        run(connected.backends.renew(OPERATOR, "cloud", {"key": "of another"}, MARKET))
    connected.turns(5 * MINUTE)
    assert connected.state(bought) is State.BOOTING
    assert truth.living() == [machine]


def test_credentials_are_sealed_and_open_for_the_adapter_alone(connected: World, tmp_path: Path) -> None:
    connected.turn()
    assert connected.secrets == [{"key": SECRET}]
    (row,) = run(connected.backends.list())
    assert row.has_secrets
    assert SECRET not in repr(row)
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET not in str(connected.events())


def test_a_backend_with_machines_is_not_forgotten(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    with pytest.raises(Conflict, match="stop-all"):
        run(connected.backends.remove(OPERATOR, "cloud"))
    run(connected.purchases.end(OPERATOR, bought.purchase_id, "by hand"))
    connected.turns(5 * MINUTE)
    run(connected.backends.remove(OPERATOR, "cloud"))
    assert run(connected.backends.list()) == []
    connected.turn()
    assert connected.now(bought).state is State.GONE


@pytest.mark.parametrize("name", ["", "Cloud", "a" * 64, "../x", "a b"])
def test_a_name_that_could_be_anything_else_is_refused(market: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        run(market.backends.add(OPERATOR, name, "memory", {}, {}, PLENTY))


def test_a_backend_without_a_cap_on_money_of_another_kind_or_of_the_same_name_is_refused(connected: World) -> None:
    for caps, kind, name in ((replace(PLENTY, per_hour=None, in_all=None), "memory", "two"), (PLENTY, "moon", "two")):
        with pytest.raises(InvalidInput):
            run(connected.backends.add(OPERATOR, name, kind, {}, {}, caps))
    with pytest.raises(Conflict, match="already"):
        connected.connect()
    assert len(run(connected.backends.list())) == 1


def test_a_check_is_kept_and_says_that_no_machine_could_reach_this_master(connected: World) -> None:
    found = run(connected.backends.check(OPERATOR, "cloud"))
    assert [(one.what, one.is_good) for one in found] == [("credentials", True), ("reachability", False)]
    kept = run(connected.backends.get("cloud"))
    assert (tuple(kept.findings), kept.checked_at_ns) == (tuple(found), connected.clock.wall_ns())


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.AUTH, Conflict), (Fault.CAPACITY, NoCapacity), (Fault.LOST, Unavailable)]
)
def test_what_a_provider_refuses_is_told_to_who_asked(
    connected: World, fault: Fault, error: type[WindrowError]
) -> None:
    faults(connected).then("offers", fault)
    with pytest.raises(error, match="cloud"):
        run(connected.backends.offers("cloud", Wanted()))


def test_caps_that_are_lowered_refuse_new_machines_and_end_none(connected: World) -> None:
    bought = connected.buy()
    connected.turn()
    run(connected.backends.set_caps(OPERATOR, "cloud", replace(PLENTY, machines=1), margin_percent=20))
    with pytest.raises(QuotaExceeded):
        connected.buy()
    connected.turns(MINUTE)
    assert connected.state(bought) is State.BOOTING
    assert run(connected.backends.get("cloud")).margin_percent == 20
    with pytest.raises(Conflict, match="USD"):
        run(connected.backends.set_caps(OPERATOR, "cloud", replace(PLENTY, currency="EUR")))


def test_purchases_are_listed_by_account_state_and_backend_the_latest_first(connected: World) -> None:
    bought = [connected.buy(), connected.buy()]
    connected.turn()
    run(connected.purchases.end(OPERATOR, bought[0].purchase_id, "by hand"))
    connected.turns(HOUR // 10)
    listed = run(connected.purchases.list(ACCOUNT))
    assert [one.purchase_id for one in listed] == [one.purchase_id for one in reversed(bought)]
    assert [one.state for one in run(connected.purchases.list(states=(State.GONE,), backend="cloud"))] == [State.GONE]
    assert [one.state for one in run(connected.purchases.list(before=bought[1].purchase_id))] == [State.GONE]
    assert run(connected.purchases.list(backend="other")) == []
    totals = run(connected.purchases.totals([one.purchase_id for one in bought]))
    assert list(totals) == [bought[0].purchase_id]
