"""When a GPU may be offered, why not, and how long a reason lasts."""

import re
from pathlib import Path

import pytest

from windrow_agent.core import availability
from windrow_agent.core.availability import Availability, Blame, GpuState
from windrow_agent.gpu.port import WAY_OUT, Condition, ConditionCode, GpuEvent, GpuEventKind, GpuHealth
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
def test_use_by_others_counts_after_a_minute(use: dict[str, object]):
    health = sick(**use)
    assert swept(health, 0, 59).availability is Availability.FREE
    assert swept(health, 0, 30, 60).availability is Availability.FOREIGN_USE
    assert swept(health, 0, 30, 60, leased=True).availability is Availability.LEASED


def test_a_desktop_that_draws_windows_is_no_foreign_use():
    assert swept(sick(memory_used_bytes=900 << 20), 0, 100).availability is Availability.FREE


def test_a_reason_counts_at_once_and_goes_after_half_a_minute_without_it():
    hot = swept(sick(temperature_celsius=90), 10)
    assert swept(WELL, 39, state=hot).availability is Availability.DEGRADED
    assert swept(WELL, 40, state=hot).availability is Availability.FREE


def test_granting_a_gpu_in_use_ends_the_foreign_use():
    foreign = swept(sick(compute_processes=1), 0, 60)
    assert swept(WELL, 61, leased=True, state=foreign).availability is Availability.LEASED


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
    state = availability.after_event(swept(WELL, 0), event)
    later = swept(WELL, 1, 1000, state=state)
    assert (later.availability is Availability.DEGRADED) is faulted
    assert (Condition(ConditionCode.HOST_FAULT, UUID) in availability.conditions({UUID: later})) is faulted


@pytest.mark.parametrize(
    ("xid", "leased", "expected"),
    [(31, True, Blame.TENANT), (31, False, Blame.HOST), (79, True, Blame.HOST), (13, True, Blame.TENANT)],
)
def test_who_an_xid_is_put_down_to(xid: int, leased: bool, expected: Blame):
    assert availability.blame(xid, leased) is expected
    event = availability.event_of(GpuEvent(GpuEventKind.XID, UUID, xid, at_wall_ns=5), leased)
    assert (event.code, event.subject, event.at_wall_ns) == ("gpu.xid", UUID, 5)
    assert event.fields == {"leased": str(leased).lower(), "xid": str(xid), "blame": expected.value}


def test_every_condition_has_its_way_out():
    assert set(WAY_OUT) == set(ConditionCode)


def test_the_readme_lists_every_condition():
    readme = Path(__file__).parents[3].joinpath("agent", "README.md").read_text()
    listed = set(re.findall(r"^\| `([a-z._]+)` \|", readme, re.MULTILINE))
    assert {str(code) for code in ConditionCode} <= listed
