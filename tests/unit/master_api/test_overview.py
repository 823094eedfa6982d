"""The overview: each host and GPU counts once, revenue is what the ledger says, nobody is told more than is theirs."""

from dataclasses import replace

from windrow_master.api.overview import DAYS, Earnings, glance
from windrow_master.billing.gpu_time import Hosts
from windrow_master.fleet.availability import Availability
from windrow_master.fleet.model import AdminState, Host, LinkState, Slot, SlotState
from windrow_master.fleet.view import Entry
from windrow_master.identity.model import Role
from windrow_master.market.model import FEES, MINT, Transfer, TransferKind, account_of
from windrow_master.market.offers import PriceBook
from windrow_master.market.repository import LedgerRepository
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId, SlotId, TransferId
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import DAY, MICROCENTS_PER_UNIT, Microcents

HOST = HostId("host_1")
OWNER = AccountId("account_1")


def host(**changes):
    made = Host(HOST, "box", OWNER, False, 0, admin_state=AdminState.ACTIVE, link_state=LinkState.ONLINE, tier="h100/A")
    return replace(made, **{"inventory": cards(0, 1), **changes})


def cards(*numbers):
    return Inventory(gpus=tuple(GpuFacts(GpuUuid(f"GPU-{n}"), n, "nvidia", "H100") for n in numbers))


def slot(number, **changes):
    uuid = GpuUuid(f"GPU-{number}")
    return replace(Slot(SlotId(f"{HOST}/gpu/{number}"), HOST, "gpu", uuid, card=uuid, tier="h100/A"), **changes)


def entry(of, *slots):
    return Entry(of, tuple(slots), 1)


def test_a_host_is_in_one_group():
    def group(of, *slots):
        return next(state for state, count in glance([entry(of, *slots)], PriceBook(())).hosts.counts.items() if count)

    assert group(host(), slot(0), slot(1, state=SlotState.RUNNING)) is Availability.RENTED
    assert group(host(), slot(0), slot(1, unavailable="busy")) is Availability.IDLE
    assert group(host(), slot(0, state=SlotState.FAULTED), slot(1, state=SlotState.RUNNING)) is Availability.FAULTY
    assert group(host(admin_state=AdminState.QUARANTINED), slot(0)) is Availability.FAULTY
    assert group(host(link_state=LinkState.SUSPECT), slot(0)) is Availability.OFFLINE
    assert group(host(admin_state=AdminState.DRAINING), slot(0)) is Availability.PAUSED
    assert group(host()) is Availability.PAUSED


def test_the_groups_sum_up_to_all_hosts_and_gpus_that_are_not_retired_and_simulated_ones_earn_nothing():
    toy = host(simulated=True, inventory=cards(2))
    sums = glance(
        [
            entry(host(), slot(0), slot(1, state=SlotState.RUNNING)),
            entry(toy, slot(2, state=SlotState.RUNNING)),
            entry(host(admin_state=AdminState.RETIRED), slot(3)),
        ],
        PriceBook(()),
    )
    assert sum(sums.hosts.counts.values()) == 2
    assert sum(sums.gpus.counts.values()) == 3
    assert (sums.simulated_hosts, sums.simulated_gpus) == (1, 1)
    assert sums.rented_per_hour == sums.idle_per_hour > 0
    assert set(sums.tiers) == {(False, "h100/A"), (True, "h100/A")}


def test_a_host_is_counted_in_each_tier_in_which_it_has_a_gpu_or_processors():
    processors = Slot(SlotId(f"{HOST}/cpu/0"), HOST, "cpu", None, tier="cpu/B")
    found = glance(
        [
            entry(host(tier="h100/B"), slot(0), slot(1, tier="h100/B"), processors),
            entry(host(inventory=None)),
        ],
        PriceBook(()),
    ).tiers
    counted = {
        tier: (sum(one.hosts.counts.values()), sum(one.gpus.counts.values())) for (_, tier), one in found.items()
    }
    assert counted == {"h100/A": (2, 1), "h100/B": (1, 1), "cpu/B": (1, 0)}


def test_of_processors_the_part_that_work_has_earns_and_the_rest_is_idle_however_many_slots_there_are():
    def share(number, cpus=0):
        state = SlotState.RUNNING if cpus else SlotState.FREE
        holder = ClusterId("cluster_a") if cpus else None
        return Slot(SlotId(f"{HOST}/cpu/{number}"), HOST, "cpu", None, state, tier="cpu/B", cpus=cpus, holder=holder)

    whole = glance([entry(host(inventory=Inventory(cpu_count=16)), share(0))], PriceBook(())).idle_per_hour
    shares = [share(0, 3), share(1), share(2, 1), share(3)]
    sums = glance([entry(host(inventory=Inventory(cpu_count=16)), *shares)], PriceBook(()))
    assert (sums.rented_per_hour, sums.idle_per_hour) == (whole * 4 // 16, whole * 12 // 16)


def test_the_shares_of_a_hosts_processors_are_one_row_and_each_is_a_part_of_its_time():
    shares = [Slot(SlotId(f"{HOST}/cpu/{number}"), HOST, "cpu", None) for number in range(3)]
    by_card = Hosts("gpu", [entry(host(inventory=Inventory(cpu_count=16)), *shares)])
    assert by_card.counted_ids == {shares[0].slot_id}
    assert by_card.key_of(f"{HOST} {shares[2].slot_id}") == shares[0].slot_id
    assert by_card.part(f"{HOST} {shares[2].slot_id}") == (1, 16)
    beside = Hosts("gpu", [entry(host(), slot(0), *shares)])
    assert beside.part(f"{HOST} {shares[2].slot_id}")[0] == 0, "beside GPUs they are in the amounts alone"
    assert beside.part(f"{HOST} {slot(0).slot_id}") == (1000, 1000)


def test_the_earnings_of_an_owner_are_those_of_its_own_hosts():
    stranger = entry(host(owner_account=AccountId("account_2")), slot(0), slot(1, state=SlotState.RUNNING))
    mine = entry(host(), slot(0), slot(1))
    whole, own = glance([stranger, mine], PriceBook(())), glance([stranger, mine], PriceBook(()), OWNER)
    assert (own.rented_per_hour, own.hosts) == (0, whole.hosts)
    assert 3 * own.idle_per_hour == 2 * whole.idle_per_hour > 0


def test_earnings_are_folded_once_however_they_are_cut_and_days_that_passed_are_let_go():
    whole, cut = Earnings(), Earnings()
    now_ns = 100 * DAY + 5
    whole.fold(3, [("acct:a", 100, 7), ("platform:fees", 100, 1), ("acct:a", 95, 5)], now_ns)
    cut.fold(1, [("acct:a", 95, 5)], now_ns)
    cut.fold(3, [("acct:a", 100, 7), ("platform:fees", 100, 1)], now_ns)
    assert whole.days(None, now_ns) == cut.days(None, now_ns)
    assert [amount for _, amount in whole.days("acct:a", now_ns)][-7:] == [0, 5, 0, 0, 0, 0, 7]
    cut.fold(4, [], now_ns + DAYS * DAY)
    assert cut.by_day == {}


def pay(api, number, amount, kind=TransferKind.CHARGE, to=None, age_ns=0):
    owner = api.services.identity.first_account().id
    credit = to or account_of(owner)
    now_ns = api.clock.wall_ns() - age_ns
    transfer = Transfer(TransferId(f"transfer_{number}"), MINT, credit, Microcents(amount), kind, None, now_ns, "")
    return api.services.store.write(lambda uow: uow[LedgerRepository].post(transfer), name="test")


async def asked(api):
    response = await api.client.get("/api/v1/overview")
    assert response.status_code == 200, response.text
    return response.json()


async def test_revenue_is_what_the_ledger_paid_by_day_and_each_payment_counts_once_however_often_one_looks(api):
    before = await asked(api)
    assert before["revenue"]["today"] == before["revenue"]["last_7_days"]
    assert float(before["revenue"]["today"]) == 0, "credits that were minted are not revenue"
    await pay(api, 1, 2 * MICROCENTS_PER_UNIT)
    await pay(api, 2, 1 * MICROCENTS_PER_UNIT, TransferKind.FEE, FEES)
    await pay(api, 3, 4 * MICROCENTS_PER_UNIT, age_ns=3 * DAY)
    await pay(api, 4, 8 * MICROCENTS_PER_UNIT, age_ns=40 * DAY)
    first, again = await asked(api), await asked(api)
    assert first["revenue"] == again["revenue"]
    assert float(first["revenue"]["today"]) == 3
    assert float(first["revenue"]["last_7_days"]) == 7
    assert len(first["revenue"]["days"]) == DAYS
    assert first["revenue"]["scope"] == "all"


async def test_a_provider_sees_its_own_revenue_and_no_events(api):
    await pay(api, 1, 2 * MICROCENTS_PER_UNIT)
    await pay(api, 2, 1 * MICROCENTS_PER_UNIT, TransferKind.FEE, FEES)
    made = await api.client.post(
        "/api/v1/tokens", json={"name": "p", "roles": [Role.PROVIDER.value], "expires_in_s": 3600}
    )
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    told = (await api.stranger.get("/api/v1/overview", headers=bearer)).json()
    assert told["revenue"]["scope"] == "own"
    assert float(told["revenue"]["today"]) == 2
    assert told["events"] == []


async def test_a_renter_without_hosts_is_told_of_no_revenue(api):
    made = await api.client.post(
        "/api/v1/tokens", json={"name": "r", "roles": [Role.RENTER.value], "expires_in_s": 3600}
    )
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    told = (await api.stranger.get("/api/v1/overview", headers=bearer)).json()
    assert told["revenue"] is None
    assert {float(rate) for rate in told["per_hour"].values()} == {0}


async def test_nobody_is_told_without_signing_in(api):
    assert (await api.stranger.get("/api/v1/overview")).status_code == 401
