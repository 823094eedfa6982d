"""Measurements are limited for a host's owner: bytes of a day that no restart gives anew, and a ceiling."""

import pytest

from windrow_agent.app import config
from windrow_agent.link.bandwidth_budget import DAY_MIB, FILE, LEAST_BYTES, BandwidthBudget, LineLimits
from windrow_agent.threads import ThreadRunner
from windrow_proto.clock import SystemClock
from windrow_proto.disk import OsDisk
from windrow_proto.errors import InvalidInput, TooMany
from windrow_proto.model import BandwidthSpec
from windrow_proto.units import DAY, HOUR, MIB, SECOND

SPEC = BandwidthSpec(2 * SECOND, 256 * MIB, "nonce")


class Dated(SystemClock):
    """At a wall time of the test's own: ten hours into a day."""

    def __init__(self) -> None:
        self.now_ns = 20_000 * DAY + 10 * HOUR

    def wall_ns(self) -> int:
        return self.now_ns


@pytest.fixture
def clock():
    return Dated()


@pytest.fixture
def opened(tmp_path, clock):
    """An allowance over the same folder, each time as after a start."""

    def again(day_mib=DAY_MIB, ceiling_bps=0):
        limits = LineLimits(ceiling_bps, day_mib * MIB)
        return BandwidthBudget(limits, OsDisk(), str(tmp_path), ThreadRunner("test"), clock)

    return again


async def test_what_was_moved_today_is_remembered_by_the_next_start_and_refused_beyond_until_midnight(opened, clock):
    first = opened(1024)
    await first.settle(await first.take(SPEC), 400 * MIB)

    second = opened(1024)
    await second.settle(await second.take(SPEC), 512 * MIB)
    left = await opened(1024).take(SPEC)
    assert left.cap_bytes == (1024 - 912) * MIB // 2
    with pytest.raises(TooMany, match=r"used 1024 of the 1024 MiB .* 00:00 UTC") as refused:
        await opened(1024).take(SPEC)
    assert refused.value.retry_after_ns == 14 * HOUR

    clock.now_ns += 14 * HOUR
    assert await opened(1024).take(SPEC) == SPEC


async def test_what_a_measurement_may_move_counts_before_it_ends_so_that_a_crash_gives_nothing_back(opened):
    await opened(600).take(SPEC)
    assert (await opened(600).take(SPEC)).cap_bytes == 44 * MIB
    with pytest.raises(TooMany):
        await opened(600).take(SPEC)


async def test_what_was_not_moved_is_given_back(opened):
    line = opened(512)
    await line.settle(await line.take(SPEC), 0)
    assert await line.take(SPEC) == SPEC


async def test_less_than_what_says_something_is_not_measured_but_a_small_measurement_is(opened):
    line = opened(600)
    await line.settle(await line.take(SPEC), 540 * MIB)
    with pytest.raises(TooMany):
        await line.take(SPEC)
    small = BandwidthSpec(SECOND, LEAST_BYTES // 4, "nonce")
    assert await line.take(small) == small


async def test_a_ceiling_bounds_the_bytes_to_what_goes_through_at_it(opened):
    assert (await opened(ceiling_bps=100_000_000).take(SPEC)).cap_bytes == 25_000_000
    assert (await opened(ceiling_bps=100_000_000_000).take(SPEC)).cap_bytes == SPEC.cap_bytes


@pytest.mark.parametrize("text", ["", "{", '{"day": "x", "bytes": 1}', "[]", "\N{SNOWMAN}"])
async def test_a_file_that_cannot_be_read_gives_no_day_anew_but_the_next(opened, clock, tmp_path, text):
    (tmp_path / FILE).write_text(text or " ", encoding="utf-8")
    with pytest.raises(TooMany):
        await opened().take(SPEC)
    clock.now_ns += DAY
    assert await opened().take(SPEC) == SPEC


def test_an_owner_says_both_by_options_within_bounds():
    assert config.parse(["run"]).line == LineLimits(0, 4096 * MIB)
    given = config.parse(["run", "--measure-ceiling", "200", "--measure-budget", "1000"])
    assert given.line == LineLimits(200_000_000, 1000 * MIB)
    for wrong in (["--measure-ceiling", "0"], ["--measure-budget", "63"], ["--measure-budget", "2000000"]):
        with pytest.raises(InvalidInput, match=wrong[0]):
            config.parse(["run", *wrong])
