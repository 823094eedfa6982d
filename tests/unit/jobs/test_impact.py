"""The effect of a job on its cards: which stretches of time are looked at, and what the readings in them come to."""

from dataclasses import replace

import pytest

from tests.unit.clusters.conftest import site as site
from tests.unit.master_api.described import assert_described
from windrow_master.api import job_routes
from windrow_master.clusters.model import Workload
from windrow_master.jobs.gpu_impact import (
    MEMORY,
    METRICS,
    POWER,
    THROTTLE,
    USE,
    Card,
    Span,
    cards_of,
    impact,
    query_of,
    spans_of,
)
from windrow_master.jobs.model import Attempt
from windrow_master.telemetry.model import SeriesKey, SeriesPoints
from windrow_proto.ids import ClusterId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.metrics import BY_NAME
from windrow_proto.model import SlotGrant
from windrow_proto.units import HOUR, SECOND, Bytes

T = 1_000_000 * SECOND
CARD = Card(HostId("host_1"), "one", "GPU-1")
RAN = Attempt(ClusterId("c"), T - 5 * SECOND, started_at_ns=T, ended_at_ns=T + 100 * SECOND)


def ms(at_s: int) -> int:
    return (T // SECOND + at_s) * 1000


def points(name: str, *values: tuple[int, float | None], card: Card = CARD) -> SeriesPoints:
    """Readings by the second since it began."""
    key = SeriesKey(card.host_id, card.uuid, BY_NAME[name].number)
    return SeriesPoints(key, tuple((ms(at), value) for at, value in values))


def test_it_is_looked_at_from_a_minute_before_to_a_minute_after() -> None:
    spans = spans_of(RAN, T + HOUR)
    assert (spans.before, spans.during) == (Span(ms(-60), ms(0)), Span(ms(0), ms(100)))
    assert (spans.after, spans.step_ms) == (Span(ms(100), ms(160)), 1000)
    asked = query_of([CARD], spans)
    assert (asked.from_ms, asked.to_ms, len(asked.keys)) == (ms(-60), ms(160), len(METRICS))


@pytest.mark.parametrize(("hours", "step_s"), [(1, 15), (8, 120), (48, 600), (2000, 86_400)])
def test_a_long_job_has_longer_steps_and_never_more_points_than_a_chart_draws(hours: int, step_s: int) -> None:
    spans = spans_of(replace(RAN, ended_at_ns=T + hours * HOUR), T + 3000 * HOUR)
    assert spans.step_ms == step_s * 1000
    assert (spans.after.to_ms - spans.before.from_ms) // spans.step_ms <= 303


def test_what_has_not_ended_has_no_after_and_what_has_just_ended_a_short_one() -> None:
    going = spans_of(replace(RAN, ended_at_ns=None), T + 30 * SECOND)
    assert (going.during, going.after) == (Span(ms(0), ms(30)), Span(ms(30), ms(30)))
    assert spans_of(RAN, T + 110 * SECOND).after == Span(ms(100), ms(110))


def test_readings_count_for_the_stretch_they_lie_in() -> None:
    found = [
        points(USE, (-60, 0.0), (-1, 0.02), (0, 0.8), (50, None), (99, 1.0), (100, 0.1)),
        points(MEMORY, (-1, 1e9), (0, 20e9), (99, 30e9), (100, 1e9)),
        points(POWER, (-1, 60.0), (0, 300.0), (99, 320.0), (100, 61.0)),
        points(THROTTLE, (-1, 1.0), (0, 0.0), (50, 4.0), (98, 2.0), (99, 68.0), (100, 3.0)),
    ]
    (one,) = impact([CARD], spans_of(RAN, T + HOUR), found)

    assert one.before.use.mean == pytest.approx(0.01)
    assert one.during.use.mean == pytest.approx(0.9)
    assert (one.before.use.most, one.during.use.most, one.after.use.mean) == (0.02, 1.0, 0.1)
    assert (one.before.memory_bytes.most, one.during.memory_bytes.most) == (1e9, 30e9)
    assert (one.during.power_watts.mean, one.after.power_watts.most) == (310.0, 61.0)
    # Idle (1) and clocks that its owner set (2) hold nobody back.
    assert (one.before.throttled, one.during.throttled, one.after.throttled) == (0.0, 0.5, 0.0)
    assert set(one.lines) == {USE, MEMORY, POWER}


def test_what_was_not_read_is_none_and_never_zero() -> None:
    (one,) = impact([CARD], spans_of(RAN, T + HOUR), [points(USE, (5, None))])
    assert (one.during.use.mean, one.during.power_watts.most, one.during.throttled) == (None, None, None)


def test_a_job_shorter_than_a_step_still_has_the_step_it_lies_in() -> None:
    short = replace(RAN, started_at_ns=T + SECOND // 4, ended_at_ns=T + SECOND // 2)
    (one,) = impact([CARD], spans_of(short, T + HOUR), [points(USE, (0, 0.7))])
    assert one.during.use.mean == 0.7


def test_cards_come_in_the_order_of_members_and_once() -> None:
    def work(rank: int, *uuids: str) -> Workload:
        slots = tuple(SlotGrant(SlotId(f"s{uuid}"), 1, GpuUuid(uuid)) for uuid in uuids)
        name = f"host_{rank}"
        return Workload(
            *(WorkloadId(f"w{rank}"), ClusterId("c"), HostId(name), name, "docker", "", slots, 1, Bytes(0), T),
            rank=rank,
        )

    found = cards_of([work(1, "C"), work(0, "A", "B"), work(2, "")])
    assert [(one.host_id, one.uuid) for one in found] == [("host_0", "A"), ("host_0", "B"), ("host_1", "C")]


async def test_a_job_that_had_no_card_has_no_impact(site) -> None:
    (job,) = (await site.client.post("/api/v1/jobs", json={"argv": ["true"]})).json()["jobs"]
    answer = await site.client.get(f"/api/v1/jobs/{job['id']}/impact")
    assert_described(answer, job_routes.ImpactOut)
    assert (answer.json()["attempt"], answer.json()["gpus"]) == (None, [])
    assert (await site.client.get("/api/v1/jobs/job_none/impact")).status_code == 404
