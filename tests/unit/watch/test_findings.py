"""Findings: each planted cause is named once, the healthy have none, and what is not read is no finding."""

from collections.abc import Callable, Mapping

import pytest

from tests.support import gpu_loads
from windrow_master.watch.findings import looks, rules
from windrow_master.watch.findings.model import TITLES, CardFacts, Cause, Line, Readings
from windrow_proto.ids import HostId

STEP_MS = 10_000
POINTS = 180
GIB = 1 << 30
CARD = CardFacts(
    host_id=HostId("host_a"),
    host_name="rack7-node2",
    rank=0,
    gpu="GPU-1",
    index=3,
    cpus=8,
    memory_bytes=80 * GIB,
    power_limit_watts=700.0,
    power_limit_max_watts=700.0,
    pcie_generation=4,
    pcie_lanes=16,
)
At = Callable[[int], float | None]


def line(value: float | At) -> Line:
    at = value if callable(value) else lambda _: value
    return [(place * STEP_MS, at(place)) for place in range(POINTS)]


def counter(per_s: float) -> Line:
    """One that grows so much a second, and began at something."""
    return line(lambda place: 1000.0 + place * per_s * STEP_MS / 1000)


def readings(**changed: Line) -> Readings:
    healthy: Mapping[str, Line] = {
        rules.USE: line(0.95),
        rules.MEMORY: line(60.0 * GIB),
        rules.TEMPERATURE: line(64.0),
        rules.POWER: line(650.0),
        rules.CLOCK: line(1.8e9),
        rules.HEAT: counter(0.0),
        rules.HELD: counter(0.2),
        rules.SENT: counter(1e9),
        rules.RECEIVED: counter(2e9),
        rules.WAITING: line(0.01),
        rules.CORES: line(3.0),
        rules.DISK: line(50e6),
        rules.NETWORK: line(0.0),
    }
    return Readings(STEP_MS, {**healthy, **changed})


PLANTED: Mapping[Cause, tuple[CardFacts, Readings]] = {
    Cause.HOT: (CARD, readings(**{rules.HEAT: counter(0.3), rules.TEMPERATURE: line(88.0)})),
    Cause.POWER_CAPPED: (
        CardFacts(**{name: getattr(CARD, name) for name in CARD.__slots__} | {"power_limit_watts": 350.0}),
        readings(**{rules.HELD: counter(0.9), rules.POWER: line(349.0)}),
    ),
    Cause.IDLE: (CARD, readings(**{rules.USE: line(0.0), rules.CORES: line(0.01)})),
    Cause.PCIE_BOUND: (CARD, readings(**{rules.USE: line(0.4), rules.RECEIVED: counter(28e9)})),
    Cause.CPU_BOUND: (CARD, readings(**{rules.USE: line(0.35), rules.CORES: line(7.8)})),
    Cause.DATA_STARVED: (CARD, readings(**{rules.USE: line(0.3), rules.WAITING: line(0.4)})),
    Cause.MEMORY_NEARLY_FULL: (CARD, readings(**{rules.MEMORY: line(79.0 * GIB)})),
}


@pytest.mark.parametrize("cause", Cause)
def test_each_planted_cause_is_named_with_its_evidence(cause: Cause) -> None:
    card, read = PLANTED[cause]
    found = rules.finding(card, read)
    assert found is not None
    assert found.cause is cause
    assert found.evidence and TITLES[cause]
    assert "GPU 3 of rack7-node2" in found.words
    assert found.remedy.endswith((".", "next one."))
    assert 0 <= found.lost <= 1


@pytest.mark.parametrize("seed", range(5))
def test_seven_planted_loads_are_named_once_each_and_twenty_healthy_ones_never(seed: int) -> None:
    """Two and a half minutes of each; of the idle one, eleven: the same loads as of a real agent in `make long`."""
    for load in (*gpu_loads.planted(), *gpu_loads.healthy(seed)):
        seconds = 660 if load.cause in (Cause.IDLE, None) else 150
        found = rules.finding(*gpu_loads.history(load, seconds, seed))
        assert (found and found.cause) is load.cause, load.name


def test_a_card_that_is_half_busy_beside_work_that_waits_for_disks_has_no_finding() -> None:
    """The pressure is the host's; its own work reads nothing."""
    quiet = {rules.DISK: line(0.0), rules.NETWORK: line(500.0)}
    read = readings(**{rules.USE: line(0.4), rules.WAITING: line(0.5), **quiet})
    assert rules.finding(CARD, read) is None


@pytest.mark.parametrize(("host", "cause"), [(0.99, Cause.CPU_BOUND), (0.7, None)])
def test_work_that_gets_less_than_its_processors_waits_for_them_where_the_host_has_none_left(
    host: float, cause: Cause | None
) -> None:
    squeezed = {rules.USE: line(0.4), rules.CORES: line(5.5), rules.HOST_CORES: line(host)}
    found = rules.finding(CARD, readings(**squeezed))
    assert (found and found.cause) is cause


def test_one_processor_that_feeds_a_card_alone_starves_a_job_and_no_service() -> None:
    read = readings(**{rules.USE: line(0.4), rules.CORES: line(1.0)})
    found = rules.finding(CARD, read)
    assert found is not None
    assert (found.cause, "num_workers" in found.remedy) == (Cause.DATA_STARVED, True)
    service = CardFacts(**{name: getattr(CARD, name) for name in CARD.__slots__} | {"serves": True})
    assert rules.finding(service, read) is None


def test_what_was_not_read_is_no_finding() -> None:
    nothing = Readings(STEP_MS, {})
    assert rules.finding(CARD, nothing) is None
    little = readings(**{rules.USE: line(lambda place: 0.0 if place < 5 else None)})
    assert rules.finding(CARD, little) is None
    quiet = {name: line(lambda _: None) for name in (*rules.OF_HOST, *rules.OF_WORKLOAD)}
    half_busy = readings(**{rules.USE: line(0.4), **quiet})
    assert rules.finding(CARD, half_busy) is None


def test_work_that_just_began_is_not_idle() -> None:
    read = readings(**{rules.USE: line(lambda place: 0.0 if place < 50 else None), rules.CORES: line(0.0)})
    assert rules.finding(CARD, read) is None


def test_a_host_that_started_anew_does_not_count_twice() -> None:
    """Its counters begin at nothing again."""
    heat = line(lambda place: 5_000.0 if place < 90 else float(place))
    found = rules.finding(CARD, readings(**{rules.HEAT: heat}))
    assert found is None


def test_the_window_is_half_an_hour_of_what_runs_and_the_whole_of_what_ended() -> None:
    minute = 60 * 10**9
    cards = [looks.Card(CARD, "workload_a")]
    goes_on = looks.query_of(cards, 0, None, 600 * minute)
    assert (goes_on.to_ms - goes_on.from_ms, goes_on.step_ms) == (30 * 60_000, STEP_MS)
    ended = looks.query_of(cards, 0, 90 * minute, 600 * minute)
    assert (ended.from_ms, ended.to_ms) == (0, 90 * 60_000)
    assert (ended.to_ms - ended.from_ms) // ended.step_ms <= looks.POINTS


@pytest.mark.parametrize(("findings", "words"), [((), "No finding"), (None, "Too little was read")])
def test_no_finding_is_an_answer(findings: tuple[()] | None, words: str) -> None:
    looked = looks.Looked(0, 1, 1, (), 0 if findings is None else 1, 1)
    assert words in looked.words
    assert "no GPU" in looks.Looked(0, 1, 1, (), 0, 0).words
