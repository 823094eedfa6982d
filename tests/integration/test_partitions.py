"""Networks fail between agents, Accesses and the Master: silence both ways or one way, resets, half-open, bad lines.

Rules of nftables and a process that holds packets up, around real daemons in networks of their own; truth.py judges.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support import truth
from tests.support.forwarder import Line
from tests.support.killing import have_left, online, telemetry_flaws
from tests.support.namespaces import namespace, need_networks
from tests.support.nemesis import (
    BOTH_WAYS,
    DEAF,
    FROZEN,
    HALF_OPEN,
    KILLED,
    MUTE,
    RESET,
    TRUNKLESS,
    struck,
)
from tests.support.regions import RegionalMarket, regional_market
from tests.support.slow_link import Lines, lines
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.chaos]

IS_LONG = bool(os.environ.get("CHAOS"))
SEED = int(os.environ.get("SEED") or 1)
ACCESSES = ("one", "two", "three", "four")
AGENTS = 60 if IS_LONG else 16
THROTTLED = Line(delay_ms=100, jitter_ms=30, loss=0.02, kbit_s=512)
CABIN = Line(delay_ms=400, jitter_ms=20, loss=0.05, kbit_s=64)
"""A satellite's line: a round trip of 0.8 s, 64 kbit/s, every twentieth packet lost."""


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RegionalMarket, Lines]]:
    """All of a module's tests share it; each leaves it whole."""
    need_networks()
    names = ("master", *ACCESSES, "hosts", "far")
    with ExitStack() as cleanup:
        networks = {name: cleanup.enter_context(namespace()) for name in names}
        made = cleanup.enter_context(lines(networks, SEED))
        addresses = {name: made.address(name) for name in names}
        market = cleanup.enter_context(regional_market(tmp_path_factory.mktemp("market"), networks, addresses))
        market.add_accesses(*ACCESSES)
        yield market, made


@pytest.fixture(scope="module")
def hosts(market: tuple[RegionalMarket, Lines]) -> list[str]:
    """Their ids."""
    at, _ = market
    found = at.add_agents("hosts", AGENTS)
    at.settled(*found)
    return found


@pytest.mark.timeout(600)
@pytest.mark.proves(
    "silence one way and both ways, resets, half-open and frozen Accesses, bad lines: no record is lost"
)
@pytest.mark.long
def test_agents_leave_an_access_that_fails_in_any_way_and_lose_no_record(
    market: tuple[RegionalMarket, Lines], hosts: list[str]
) -> None:
    at, made = market

    with ExitStack() as faults:
        for access, nemesis in zip(ACCESSES, (BOTH_WAYS, DEAF, MUTE), strict=False):
            faults.enter_context(struck(at, access, nemesis))
        _moved(at, "four")
        assert sum(at.networks[name].hits() for name in ACCESSES[:3]) > 0
    for name in ACCESSES:
        made.both("hosts", name, THROTTLED)
    with struck(at, "four", RESET):
        _moved(at, "one", "two", "three")
        assert at.networks["four"].hits() > 0
    with ExitStack() as faults:
        for access, nemesis in zip(ACCESSES, (TRUNKLESS, FROZEN, KILLED), strict=False):
            faults.enter_context(struck(at, access, nemesis))
        _moved(at, "four")
    for name in ACCESSES:
        made.both("hosts", name, Line())
    with struck(at, "four", HALF_OPEN):
        _heard(at, hosts)
    _unharmed(at, hosts)


def _moved(at: RegionalMarket, *left: str) -> None:
    """Wait until every host is heard anew through one of these Accesses."""
    allowed = {at.accesses[name].access_id for name in left}
    gone = [one.access_id for name, one in at.accesses.items() if name not in left]
    moving = {host["id"]: host["last_seen_at"] for host in at.renter.all("/hosts")}
    wait_for(lambda: all(have_left(at.renter, moving, one) for one in gone), pause_s=0.2)
    assert set(at.homes().values()) <= allowed


def _heard(at: RegionalMarket, hosts: list[str]) -> None:
    """Wait until every host is online and was heard once more."""
    before = {host["id"]: host["last_seen_at"] for host in at.renter.all("/hosts")}
    wait_for(
        lambda: set(hosts) <= {h["id"] for h in online(at.renter) if h["last_seen_at"] > before[h["id"]]}, pause_s=0.2
    )


def _unharmed(at: RegionalMarket, hosts: list[str]) -> None:
    """After all faults have ended: every host is back, every record is in the log once, nobody was called lost."""
    _heard(at, hosts)
    assert telemetry_flaws(at.data_dir, *at.agent_dirs) == []
    wait_for(lambda: not truth.history_gaps(at.data_dir), pause_s=0.2)
    assert [one for one in at.verdicts(*hosts) if one.startswith("lost")] == []
    assert truth.ledger_flaws(at.data_dir) == []


@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_host_behind_a_satellites_line_comes_in_and_its_records_arrive(market: tuple[RegionalMarket, Lines]) -> None:
    at, made = market
    for name in ("master", *ACCESSES):
        made.both("far", name, CABIN)
    (host,) = at.add_agents("far", 1)
    at.settled(host)
    _unharmed(at, [host])
