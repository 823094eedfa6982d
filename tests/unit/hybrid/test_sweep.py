"""`windrow-master sweep`: ends all of a market that is gone, and nothing of others."""

import asyncio

import pytest

from tests.support.memory_backend import Fault, MemoryBackend, MemoryCloud, Planned, Terms
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE
from windrow_master.hybrid.sweep import main, until_gone
from windrow_proto.units import HOUR, MINUTE

OURS = {TAG_MARKET: "ours", TAG_PURCHASE: "purchase_1"}


class Time:
    """Passes when somebody sleeps, and a moment with each look at it."""

    def __init__(self) -> None:
        self.now = HOUR

    def wall_ns(self) -> int:
        self.now += 1_000_000
        return self.now

    monotonic_ns = wall_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        self.now += duration_ns


def swept(cloud: MemoryCloud, time: Time, wait_s: float = 600) -> int:
    return asyncio.run(until_gone(MemoryBackend(cloud, time), "ours", wait_s, time))


def test_all_of_the_market_is_ended_and_nothing_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    time = Time()
    cloud = MemoryCloud(time.wall_ns, Planned(is_stale=True, volumes_stay=True), Terms(list_lag_ns=MINUTE))
    for tags in (OURS, OURS, OURS | {TAG_MARKET: "theirs"}, {}):
        cloud.add_foreign(tags)
    assert swept(cloud, time) == 0
    assert [dict(one.tags).get(TAG_MARKET) for one in cloud.living()] == ["theirs", None]
    assert [one for one in cloud.volumes() if one.tags.get(TAG_MARKET) == "ours"] == []
    assert "Nothing of this market is left there." in capsys.readouterr().out


def test_a_provider_that_loses_answers_is_asked_until_it_shows_that_all_is_gone() -> None:
    time, faults = Time(), Planned(is_stale=False)
    faults.then("describe", Fault.LOST, None, Fault.UNDONE)
    faults.then("terminate", Fault.IGNORED)
    cloud = MemoryCloud(time.wall_ns, faults, Terms())
    cloud.add_foreign(OURS)
    assert swept(cloud, time) == 0
    assert cloud.living() == []


def test_what_is_not_known_to_be_gone_in_time_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    time, faults = Time(), Planned(is_stale=False)
    faults.then("terminate", *[Fault.IGNORED] * 50)
    cloud = MemoryCloud(time.wall_ns, faults, Terms())
    cloud.add_foreign(OURS)
    assert swept(cloud, time, wait_s=90) == 1
    assert "Run it again" in capsys.readouterr().err


def test_credentials_that_are_refused_end_it_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    time, faults = Time(), Planned()
    faults.then("describe", Fault.AUTH)
    before = time.now
    assert swept(MemoryCloud(time.wall_ns, faults, Terms()), time) == 1
    assert time.now - before < MINUTE
    assert "refuses" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "regio=x"), "regio"),
        (("--set", "region"), "write NAME=VALUE"),
        (("--set", "region=eu-central-1", "--secret-file", "aws_access_key_id=none"), "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kind", "ec2", "--market", "ours", *words]) == 1
    assert says in capsys.readouterr().err
