"""The cloud in memory goes wrong as it was ordered to, and knows what is true."""

from dataclasses import replace

import pytest

from tests.master_support import ManualClock
from tests.support.memory_backend import Fault, MemoryCloud, Planned, Terms
from windrow_master.hybrid.backends.port import Doubtful, MachineState, Order, PurchaseId, Refused, RefusedFor
from windrow_proto.units import HOUR, SECOND


class Bench:
    def __init__(self, terms: Terms | None = None, faults: Planned | None = None) -> None:
        self.clock = ManualClock()
        self.faults = faults or Planned()
        self.cloud = MemoryCloud(self.clock.wall_ns, self.faults, terms)
        offer = next(iter(self.cloud.book.values()))
        self.order = Order(
            purchase_id=PurchaseId("p"),
            market_id="m",
            epoch=1,
            offer=offer,
            user_data="",
            dearest_per_hour=offer.price_per_hour,
            ends_at_ns=self.clock.wall_ns() + HOUR,
        )


def test_a_late_creation_comes_after_the_doubt_and_only_once_for_a_purchase() -> None:
    bench = Bench()
    bench.faults.then("provision", Fault.LATE, Fault.LATE)
    for _ in range(2):
        with pytest.raises(Doubtful):
            bench.cloud.provision(bench.order)
    assert bench.cloud.living() == []

    bench.clock.advance(31 * SECOND)

    assert len(bench.cloud.living()) == 1
    assert bench.cloud.describe("m") == [], "the list lags"
    bench.clock.advance(60 * SECOND)
    assert len(bench.cloud.describe("m")) == 1


def test_without_a_token_asking_twice_makes_two_machines() -> None:
    bench = Bench(Terms(has_purchase_token=False))
    bench.faults.then("provision", Fault.LATE)
    with pytest.raises(Doubtful):
        bench.cloud.provision(bench.order)

    bench.cloud.provision(bench.order)
    bench.clock.advance(31 * SECOND)

    assert len(bench.cloud.living()) == 2


def test_an_end_that_is_ignored_leaves_the_machine_paid_for() -> None:
    bench = Bench()
    machine = bench.cloud.provision(bench.order)
    bench.faults.then("terminate", Fault.IGNORED)

    bench.cloud.terminate(machine.machine_id)
    bench.clock.advance(60 * SECOND)

    (one,) = bench.cloud.living()
    assert bench.cloud.paid_s(one) == 60
    bench.cloud.terminate(machine.machine_id)
    bench.clock.advance(60 * SECOND)
    assert (bench.cloud.living(), bench.cloud.paid_s(one)) == ([], 80), "60 s, and 20 s of ending"


@pytest.mark.parametrize(
    ("power_off", "living"),
    [(MachineState.TERMINATED, 0), (MachineState.STOPPED, 1)],
    ids=["ends", "is still paid for"],
)
def test_a_machine_at_its_end_switches_itself_off(power_off: MachineState, living: int) -> None:
    bench = Bench(Terms(power_off=power_off))
    bench.cloud.provision(bench.order)

    bench.clock.advance(HOUR + 61 * SECOND)

    assert len(bench.cloud.living()) == living
    assert [one.state for one in bench.cloud.describe("m")] == [power_off]


def test_what_is_terminated_is_shown_for_an_hour_and_its_volume_until_it_is_removed() -> None:
    bench = Bench(faults=Planned(is_stale=False, volumes_stay=True))
    machine = bench.cloud.provision(bench.order)
    bench.cloud.reclaim(machine.machine_id)
    assert [one.state for one in bench.cloud.describe("m")] == [MachineState.TERMINATED]

    bench.clock.advance(HOUR)

    assert bench.cloud.describe("m") == []
    (volume,) = bench.cloud.leftovers("m")
    assert bench.cloud.leftovers("another") == []
    bench.cloud.remove(volume)
    assert (bench.cloud.leftovers("m"), bench.cloud.volumes()) == ([], [])


def test_capacity_and_quota_come_back_when_machines_end() -> None:
    offer, other = list(MemoryCloud(lambda: 0).book)[:2]
    bench = Bench(Terms(capacity={offer: 1}, machines_max=2))
    machine = bench.cloud.provision(bench.order)
    another = replace(bench.order, purchase_id=PurchaseId("q"))
    with pytest.raises(Refused) as no:
        bench.cloud.provision(another)
    assert no.value.reason is RefusedFor.CAPACITY
    bench.cloud.add_foreign({}, other)
    elsewhere = replace(another, offer=bench.cloud.book[other])
    with pytest.raises(Refused) as no:
        bench.cloud.provision(elsewhere)
    assert no.value.reason is RefusedFor.QUOTA

    bench.cloud.reclaim(machine.machine_id)

    assert bench.cloud.provision(another).purchase_id == "q"
