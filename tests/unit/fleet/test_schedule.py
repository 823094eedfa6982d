"""Challenges of a host's cards: their times, their choice, and the effect of their verdicts on the host."""

from dataclasses import replace
from typing import Any

import pytest

from tests.master_support import START_NS
from tests.support.personas import card, uuid
from tests.support.personas import host as inventory_of
from windrow_master.fleet import verdicts
from windrow_master.fleet.conditions import unavailable_reason
from windrow_master.fleet.model import Condition, Host, Slot, Verification
from windrow_master.fleet.states import AdminState, SlotState, VerifyEvent, VerifyOutcome
from windrow_master.verification import schedule
from windrow_master.verification.schedule import BACK_OFF_MAX_NS, BACK_OFF_NS
from windrow_master.verification.times import Timing, Work
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId, SlotId
from windrow_proto.units import DAY, MINUTE

ONE, TWO = GpuUuid(uuid(1)), GpuUuid(uuid(2))
INVENTORY = inventory_of(card(0, uuid=ONE), card(1, uuid=TWO))
HOST = Host(
    HostId("host_1"), "box", AccountId("account_1"), False, 1, admin_state=AdminState.ACTIVE, inventory=INVENTORY
)


def slot(gpu: GpuUuid, **more) -> Slot:
    return Slot(SlotId(gpu), HOST.host_id, "gpu", gpu, **more)


def verdict(gpu: GpuUuid, outcome: VerifyOutcome = VerifyOutcome.PASSED, **more) -> Verification:
    at_ns = more.pop("at_ns", START_NS)
    driver = more.pop("driver", INVENTORY.driver_version)
    return Verification("verification_1", HOST.host_id, gpu, at_ns, outcome, driver=driver, **more)


BOTH = {ONE: verdict(ONE), TWO: verdict(TWO)}


def test_tries_back_off_by_doubling_up_to_six_hours() -> None:
    found = [schedule.back_off_ns(tries) for tries in (1, 2, 3, 9, 10, 10_000)]
    assert found == [
        *(BACK_OFF_NS, 2 * BACK_OFF_NS, 4 * BACK_OFF_NS),
        *(256 * BACK_OFF_NS, BACK_OFF_MAX_NS, BACK_OFF_MAX_NS),
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"simulated": True}, "simulated"),
        ({"inventory": None}, "has not said"),
        ({"inventory": inventory_of()}, "no GPU"),
        ({"admin_state": AdminState.QUARANTINED}, "quarantined"),
    ],
)
def test_what_cannot_be_verified_says_why_and_is_never_due(change: dict[str, Any], says: str) -> None:
    host = replace(HOST, **change)
    assert says in (schedule.hindrance(host) or "")
    assert not schedule.is_due(host, START_NS)


def test_a_host_that_was_never_challenged_is_due_and_then_by_its_time() -> None:
    assert schedule.is_due(HOST, START_NS)
    assert schedule.is_due(replace(HOST, verify_due_ns=START_NS), START_NS)
    assert not schedule.is_due(replace(HOST, verify_due_ns=START_NS + 1), START_NS)


def test_cards_that_are_held_or_out_of_order_are_left_alone_and_those_that_failed_are_not() -> None:
    held = slot(ONE, state=SlotState.RUNNING, holder=ClusterId("cluster_1"))
    failed = Condition(f"challenge.failed:{TWO}", "", 1)
    assert schedule.free_cards(replace(HOST, conditions=(failed,)), (held, slot(TWO))) == (TWO,)
    sick = Condition(f"gpu.hot:{TWO}", "", 1)
    assert schedule.free_cards(replace(HOST, conditions=(sick,)), (slot(ONE), slot(TWO))) == (ONE,)


@pytest.mark.parametrize("state", [SlotState.FREE, SlotState.FAULTED])
def test_a_card_that_somebody_still_holds_is_not_challenged_whatever_its_state(state: SlotState) -> None:
    held = slot(ONE, state=state, holder=ClusterId("cluster_1"))
    assert schedule.free_cards(HOST, (held, slot(TWO, state=state))) == (TWO,)


def test_a_card_wants_a_challenge_without_a_fresh_pass_by_this_driver() -> None:
    slots = (slot(ONE), slot(TWO))

    def wanting(*later: Verification, now_ns: int = START_NS) -> tuple[GpuUuid, ...]:
        return schedule.wanting(HOST, slots, BOTH | {one.gpu_uuid: one for one in later}, now_ns)

    assert wanting() == ()
    assert wanting(now_ns=START_NS + 7 * DAY) == (ONE, TWO)
    assert wanting(verdict(ONE, driver="older")) == (ONE,)
    assert wanting(verdict(TWO, VerifyOutcome.UNFINISHED)) == (TWO,)
    assert schedule.wanting(HOST, (slot(ONE, state=SlotState.FAULTED), slot(TWO)), BOTH, START_NS) == (ONE,)
    assert schedule.wanting(HOST, slots, {}, START_NS) == (ONE, TWO)


def test_a_host_is_verified_by_all_of_its_cards_and_failed_by_one() -> None:
    assert schedule.conclude(HOST, BOTH, ()) is VerifyEvent.PASS
    assert schedule.conclude(HOST, {ONE: BOTH[ONE]}, ()) is VerifyEvent.GIVE_UP
    unprovable = BOTH | {TWO: verdict(TWO, VerifyOutcome.UNPROVABLE)}
    assert schedule.conclude(HOST, unprovable, ()) is VerifyEvent.GIVE_UP
    assert schedule.conclude(HOST, unprovable, {TWO}) is VerifyEvent.FAIL
    assert schedule.conclude(HOST, BOTH, {GpuUuid("GPU-elsewhere")}) is VerifyEvent.PASS


@pytest.mark.parametrize(
    ("event", "outcomes", "after_ns"),
    [
        (VerifyEvent.PASS, {VerifyOutcome.PASSED}, 7 * DAY),
        (VerifyEvent.FAIL, {VerifyOutcome.FAILED}, 2 * BACK_OFF_NS),
        (VerifyEvent.GIVE_UP, {VerifyOutcome.UNFINISHED, VerifyOutcome.UNPROVABLE}, 2 * BACK_OFF_NS),
        (VerifyEvent.GIVE_UP, {VerifyOutcome.UNPROVABLE}, DAY),
        (VerifyEvent.GIVE_UP, {VerifyOutcome.PASSED}, 10 * MINUTE),
    ],
)
def test_the_next_time_follows_from_what_came(event: VerifyEvent, outcomes: set[VerifyOutcome], after_ns: int) -> None:
    assert schedule.next_due_ns(event, outcomes, 2, START_NS) == START_NS + after_ns


def test_only_a_class_whose_times_are_known_gets_the_long_work() -> None:
    long, short = Work(16_384, 16), Work(16_384, 2)
    known = Timing(1, 1, 1, True, "a test")
    table = {("a", long): known, ("a", short): known, ("b", short): known, ("c", long): Timing(1, 1, 1)}
    assert schedule.work_for({"a"}, table) == long
    assert schedule.work_for({"a", "b"}, table) == short
    assert [schedule.work_for(classes, table) for classes in ({"a", "c"}, {"d"}, set())] == [schedule.OBSERVED] * 3


def test_the_end_of_a_fault_asks_for_a_challenge_and_that_of_heat_does_not() -> None:
    faulted, hot = (replace(HOST, conditions=(Condition(f"gpu.{x}:{ONE}", "", 1),)) for x in ("host_fault", "hot"))
    assert verdicts.is_fault_over(faulted, HOST)
    assert not verdicts.is_fault_over(hot, HOST)
    assert not verdicts.is_fault_over(HOST, faulted)


def test_a_new_inventory_does_not_end_what_a_challenge_found() -> None:
    running = replace(HOST, conditions=(Condition(f"challenge.running:{TWO}", "runs", 1),))
    failed = verdict(ONE, VerifyOutcome.FAILED, detail="An opened entry is not the product's.")
    found = verdicts.standing(running, INVENTORY, {ONE: failed, TWO: BOTH[TWO]})
    assert found.keys() == {f"challenge.failed:{ONE}", f"challenge.running:{TWO}"}
    assert "not the product's" in found[f"challenge.failed:{ONE}"]


def test_the_summary_says_what_passed_and_why_the_rest_did_not() -> None:
    unprovable = verdict(TWO, VerifyOutcome.UNPROVABLE, detail="Not provable here: no OpenCL.")
    assert schedule.summary(HOST, {}) == "None of its 2 GPUs was challenged yet."
    assert schedule.summary(HOST, BOTH) == "2 of 2 GPUs passed their last challenge, at 2027-01-15T08:00:00.000Z."
    assert schedule.summary(HOST, BOTH | {TWO: unprovable}).endswith("; GPU 1: Not provable here: no OpenCL.")
    assert "simulated" in schedule.summary(replace(HOST, simulated=True), {})


def test_cards_that_worked_one_after_another_prove_nothing_and_are_flagged() -> None:
    apart = {uuid: replace(one, evidence={"together": "apart", "cards": 2}) for uuid, one in BOTH.items()}
    slots = (slot(ONE), slot(TWO))
    assert schedule.conclude(HOST, apart, ()) is VerifyEvent.GIVE_UP
    assert schedule.wanting(HOST, slots, apart, START_NS) == (ONE, TWO)
    assert "2 worked one after another" in schedule.summary(HOST, apart)
    found = verdicts.standing(HOST, INVENTORY, apart)
    assert found.keys() == {"challenge.apart"}
    assert found["challenge.apart"].startswith("2 GPUs of one class were challenged in the same second")
    calibrated = {uuid: replace(one, evidence={**one.evidence, "calibrated": True}) for uuid, one in apart.items()}
    assert verdicts.standing(HOST, INVENTORY, calibrated).keys() == {f"challenge.apart:{x}" for x in (ONE, TWO)}
    passed, event = {VerifyOutcome.PASSED}, VerifyEvent.GIVE_UP
    assert schedule.next_due_ns(event, passed, 2, START_NS, apart=True) == START_NS + 2 * BACK_OFF_NS


def test_only_a_class_that_is_calibrated_keeps_cards_that_worked_apart_off_the_market() -> None:
    def reason(code: str) -> str | None:
        return unavailable_reason(ONE, (Condition(code, "apart", 1),))

    assert (reason("challenge.apart"), reason(f"challenge.apart:{ONE}")) == (None, "apart")
