"""Silence becomes a verdict in its time, and never when it is our own fault."""

from dataclasses import replace

import pytest

from windrow_master.fleet.liveness import (
    START_GRACE_NS,
    Breaker,
    Presence,
    heard,
    lost_after_ns,
    suspect_after_ns,
    trip,
    verdict,
)
from windrow_master.fleet.states import LinkEvent, LinkState
from windrow_proto.ids import HostId
from windrow_proto.units import SECOND

S = SECOND
HOST = HostId("host_1")
CLOSED = Breaker()
ONLINE = Presence(HOST, LinkState.ONLINE, "acc_1", heard_ns=1000 * S)


def judge(presence, now_s, *, interval_s=5, started_s=0, breaker=CLOSED):
    return verdict(presence, interval_ns=interval_s * S, started_ns=started_s * S, now_ns=now_s * S, breaker=breaker)


@pytest.mark.parametrize(
    ("interval_s", "suspect_s", "lost_s"), [(1, 15, 120), (5, 15, 120), (10, 30, 120), (30, 90, 240)]
)
def test_limits_stretch_with_the_interval(interval_s, suspect_s, lost_s):
    assert suspect_after_ns(interval_s * S) == suspect_s * S
    assert lost_after_ns(interval_s * S) == lost_s * S


def test_a_host_is_suspect_after_fifteen_seconds_and_lost_after_two_minutes():
    assert judge(ONLINE, 1014) is None
    assert judge(ONLINE, 1015) is LinkEvent.SILENT
    suspect = replace(ONLINE, link=LinkState.SUSPECT)
    assert judge(suspect, 1119) is None
    assert judge(suspect, 1120) is LinkEvent.SILENT_LONG


def test_a_host_that_has_not_spoken_since_the_masters_start_gets_the_long_grace():
    before = replace(ONLINE, heard_ns=None)
    grace_s = START_GRACE_NS // S
    assert judge(before, 500 + grace_s - 1, started_s=500) is None
    assert judge(before, 500 + grace_s, started_s=500) is LinkEvent.SILENT


def test_no_verdict_is_passed_on_a_host_that_never_connected():
    assert judge(replace(ONLINE, link=LinkState.UNSEEN, heard_ns=None), 10_000) is None


def fleet(silent, talking, access="acc_1"):
    quiet = [Presence(HostId(f"q{access}{n}"), LinkState.ONLINE, access, heard_ns=1000 * S) for n in range(silent)]
    loud = [Presence(HostId(f"l{access}{n}"), LinkState.ONLINE, access, heard_ns=1030 * S) for n in range(talking)]
    return quiet + loud


@pytest.mark.parametrize(
    ("presences", "frozen"),
    [
        (fleet(5, 5), True),
        (fleet(4, 0), False),
        (fleet(5, 100), False),
        (fleet(11, 99), True),
        (fleet(5, 10, "acc_2") + fleet(0, 100), True),
        (fleet(5, 20, "acc_2") + fleet(0, 100), False),
    ],
)
def test_mass_silence_freezes_lost_verdicts(presences, frozen):
    breaker = trip(Breaker(), presences, interval_ns=5 * S, now_ns=1030 * S)
    assert breaker.is_frozen(1031 * S) is frozen
    suspect = replace(ONLINE, link=LinkState.SUSPECT)
    assert judge(suspect, 1130, breaker=breaker) is (None if frozen else LinkEvent.SILENT_LONG)


def test_the_freeze_ends_by_itself():
    breaker = trip(Breaker(), fleet(10, 0), interval_ns=5 * S, now_ns=1030 * S)
    later = trip(breaker, fleet(10, 0), interval_ns=5 * S, now_ns=1200 * S)
    assert not later.is_frozen(1700 * S)


def test_a_word_ends_every_silence_and_says_the_way():
    for link in (LinkState.UNSEEN, LinkState.SUSPECT, LinkState.LOST, LinkState.ONLINE):
        back = heard(replace(ONLINE, link=link), "acc_2", 2000 * S)
        assert back == Presence(HOST, LinkState.ONLINE, "acc_2", heard_ns=2000 * S)
