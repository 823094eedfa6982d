"""GPUs may be offered or not, each with its reason, and a reason lasts for its time."""

import pytest

from windrow_agent.core import availability
from windrow_agent.core.availability import Availability, Blame, GpuState
from windrow_agent.core.gpu_port import Condition, GpuEvent, GpuEventKind, GpuHealth
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import GIB, SECOND

UUID = "GPU-1"
WELL = GpuHealth(UUID, False, False, False, 40, 87, 4 << 20, 80 * GIB, 0)


def sick(**changes: object) -> GpuHealth:
    return GpuHealth(**{name: getattr(WELL, name) for name in WELL.__slots__} | changes)


def swept(health: GpuHealth, *at_s: float, leased: bool = False, state: GpuState | None = None) -> GpuState:
    state = state or GpuState()
    for second in at_s:
        state = availability.after_sweep(state, health, leased, int(second * SECOND))
    return state


@pytest.mark.parametrize(
    ("kind", "number", "part", "where"),
    [
        (GpuEventKind.XID, 94, "MIG-1", "MIG-1"),
        (GpuEventKind.XID, 94, "", UUID),
        (GpuEventKind.XID, 95, "MIG-1", UUID),
        (GpuEventKind.XID, 79, "MIG-1", UUID),
        (GpuEventKind.LOST, 0, "", UUID),
    ],
)
def test_what_the_driver_puts_down_to_a_slice_stays_in_it_but_for_what_is_the_cards(
    kind: GpuEventKind, number: int, part: str, where: str
):
    assert availability.stricken(GpuEvent(kind, UUID, number, slice_uuid=part)) == where


def test_before_the_first_sweep_a_gpu_is_initialising():
    assert GpuState().availability is Availability.INITIALISING


@pytest.mark.parametrize(
    ("health", "leased", "expected"),
    [
        (WELL, False, Availability.FREE),
        (WELL, True, Availability.LEASED),
        (sick(is_lost=True), False, Availability.LOST),
        (sick(is_lost=True), True, Availability.LOST),
        (sick(remap_pending=True), False, Availability.DEGRADED),
        (sick(remap_failed=True), True, Availability.DEGRADED),
        (sick(temperature_celsius=78), False, Availability.DEGRADED),
        (sick(temperature_celsius=77), False, Availability.FREE),
        (sick(temperature_celsius=None), False, Availability.FREE),
        (sick(slowdown_celsius=None, temperature_celsius=99), False, Availability.FREE),
        (GpuHealth(UUID), False, Availability.FREE),
        (sick(compute_processes=1), False, Availability.FREE),
        (sick(compute_processes=1), True, Availability.LEASED),
    ],
)
def test_one_sweep_gives_this_verdict(health: GpuHealth, leased: bool, expected: Availability):
    assert swept(health, 0, leased=leased).availability is expected


@pytest.mark.parametrize("use", [{"compute_processes": 1}, {"memory_used_bytes": 2 * GIB}])
def test_use_by_others_counts_when_two_sweeps_in_a_row_saw_it(use: dict[str, object]):
    health = sick(**use)
    once = swept(health, 1)
    assert (once.availability, once.is_in_doubt(SECOND)) == (Availability.FREE, True)
    assert swept(health, 2, state=once).availability is Availability.FOREIGN_USE
    assert swept(health, 3, state=swept(WELL, 2, state=once)).availability is Availability.FREE
    assert swept(health, 0, 30, 60, leased=True).availability is Availability.LEASED


def test_what_a_lease_left_behind_is_foreign_only_after_a_minute():
    ended = swept(WELL, 0, leased=True)
    assert swept(sick(compute_processes=1), 1, 30, 59, state=ended).availability is Availability.FREE
    assert swept(sick(compute_processes=1), 1, 30, 60, state=ended).availability is Availability.FOREIGN_USE
    assert swept(WELL, 1, 30, 60, state=ended).availability is Availability.FREE


@pytest.mark.parametrize(
    ("bits", "leased", "expected"),
    [
        (0x01, False, False),  # idle
        (0x04, True, False),  # at its power limit, as it should be
        (0x20, True, False),  # at its temperature limit under load
        (0x20, False, True),  # the same with nothing to do
        (0x08, True, True),
        (0x40, True, True),
        (0x80, False, True),
        (None, False, False),
    ],
)
def test_clocks_held_down_count_by_what_holds_them(bits: int | None, leased: bool, expected: bool):
    slowed = swept(sick(slowed_by=bits), 1, 2, leased=leased)
    assert (ConditionCode.GPU_THROTTLED in slowed.reasons) is expected


def test_a_slowdown_of_one_sweep_may_be_a_change_of_clocks():
    assert swept(sick(slowed_by=0x08), 1).availability is Availability.FREE
    assert swept(sick(slowed_by=0x08), 3, state=swept(WELL, 2, state=swept(sick(slowed_by=8), 1))).reasons == {}


def test_memory_errors_that_grew_are_a_fault_and_those_of_before_are_not():
    known = swept(sick(ecc_uncorrected=2), 1, 2)
    assert known.availability is Availability.FREE
    grown = swept(sick(ecc_uncorrected=3), 3, state=known)
    assert ConditionCode.GPU_HOST_FAULT in grown.reasons
    assert availability.ecc_growth(known, sick(ecc_uncorrected=3)) == 1
    assert ConditionCode.GPU_HOST_FAULT in swept(sick(ecc_uncorrected=0), 100, state=grown).reasons
    assert swept(sick(ecc_uncorrected=None), 3, state=known).availability is Availability.FREE


@pytest.mark.parametrize(
    ("enabled", "pending", "expected"),
    [(True, True, True), (False, True, True), (False, False, False), (None, None, False)],
)
def test_a_mig_mode_other_than_the_listed_one_or_about_to_change_counts(
    enabled: bool | None, pending: bool | None, expected: bool
):
    listed = swept(sick(mig_enabled=False, mig_pending=False), 1)
    changed = swept(sick(mig_enabled=enabled, mig_pending=pending), 2, state=listed)
    assert (ConditionCode.GPU_MIG_CHANGED in changed.reasons) is expected


@pytest.mark.parametrize(
    ("now", "last", "expected"),
    [
        ("work_2", ("work_1", 0), "work_2"),
        (None, ("work_1", 0), "work_1"),
        (None, ("work_1", -10 * SECOND), None),
        (None, None, None),
    ],
)
def test_an_event_right_after_a_lease_is_that_leases(now: str | None, last: tuple[str, int] | None, expected: str):
    assert availability.holder(now, last, SECOND // 2) == expected


def test_a_desktop_that_draws_windows_is_no_foreign_use():
    assert swept(sick(memory_used_bytes=900 << 20), 0, 100).availability is Availability.FREE


def test_a_reason_counts_at_once_and_goes_after_half_a_minute_without_it():
    hot = swept(sick(temperature_celsius=90), 10)
    assert swept(WELL, 39, state=hot).availability is Availability.DEGRADED
    assert swept(WELL, 40, state=hot).availability is Availability.FREE


def test_granting_a_gpu_in_use_ends_the_foreign_use():
    foreign = swept(sick(compute_processes=1), 0, 1)
    assert foreign.availability is Availability.FOREIGN_USE
    assert swept(WELL, 2, leased=True, state=foreign).availability is Availability.LEASED


def test_a_stalled_sweep_makes_the_state_unknown_until_the_next_one():
    state = availability.stalled(swept(WELL, 0))
    assert state.availability is Availability.UNKNOWN
    assert swept(WELL, 1, state=state).availability is Availability.FREE


@pytest.mark.parametrize(
    ("event", "faulted"),
    [
        (GpuEvent(GpuEventKind.XID, UUID, 79), True),
        (GpuEvent(GpuEventKind.XID, UUID, 48), True),
        (GpuEvent(GpuEventKind.XID, UUID, 31), False),
        (GpuEvent(GpuEventKind.XID, UUID, 63), False),
        (GpuEvent(GpuEventKind.ECC_UNCORRECTED, UUID), True),
        (GpuEvent(GpuEventKind.RECOVERY_ACTION, UUID, 0), False),
        (GpuEvent(GpuEventKind.RECOVERY_ACTION, UUID, 1), True),
        (GpuEvent(GpuEventKind.LOST, UUID), False),
    ],
)
def test_a_fault_of_the_host_stands_until_the_driver_is_opened_again(event: GpuEvent, faulted: bool):
    state = availability.after_event(swept(WELL, 0), event, SECOND // 2)
    assert (state.availability is Availability.DEGRADED) is faulted
    later = swept(WELL, 1, 1000, state=state)
    assert (later.availability is Availability.DEGRADED) is faulted
    assert (Condition(ConditionCode.GPU_HOST_FAULT, UUID) in availability.conditions({UUID: later})) is faulted


@pytest.mark.parametrize(
    ("xid", "leased", "expected"),
    [
        (31, True, Blame.TENANT),
        (31, False, Blame.NOBODY),
        (79, True, Blame.HOST),
        (79, False, Blame.HOST),
        (13, True, Blame.TENANT),
    ],
)
def test_who_an_xid_is_put_down_to(xid: int, leased: bool, expected: Blame):
    assert availability.blame(xid, leased) is expected
    known = GpuEvent(GpuEventKind.XID, UUID, xid, at_wall_ns=5, pid=4242, process="python3", detail="Ch 00000008")
    event = availability.event_of(known, "work_1" if leased else None)
    assert (event.code, event.subject, event.at_wall_ns) == ("gpu.xid", UUID, 5)
    holder = {"leased": "true", "workload": "work_1"} if leased else {"leased": "false"}
    evidence = {"xid": str(xid), "blame": expected.value, "pid": "4242", "process": "python3"}
    assert event.fields == {**holder, **evidence}
    assert event.detail.startswith(f"XID {xid}: ")
    assert event.detail.endswith(": Ch 00000008")
    unknown = availability.event_of(GpuEvent(GpuEventKind.XID, UUID, xid), None)
    assert not {"pid", "process", "workload"} & set(unknown.fields)
