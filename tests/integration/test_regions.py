"""Accesses in three regions, on lines of different length: agents land on the nearest, spread, and leave a drained one.

Real daemons, each in a network of its own; the lines between them are long because a process holds every packet up.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import truth
from tests.support.forwarder import Line
from tests.support.killing import have_left, online, telemetry_flaws
from tests.support.namespaces import namespace, need_networks
from tests.support.regions import RegionalMarket, regional_market
from tests.support.slow_link import Lines, lines
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow]

REGIONS = ("eu", "us", "ap")
TO_MASTER_MS = {"eu": 5.0, "us": 20.0, "ap": 40.0}
NEAR, FAR, BETWEEN = Line(delay_ms=3, jitter_ms=1), Line(delay_ms=90, jitter_ms=5), Line(delay_ms=25, jitter_ms=1)
NEIGHBOURS = 2
"""Hosts that are near one Access; a process of few hosts measures what a host measures."""
UNDECIDED = 30
"""Hosts that are as near to each Access."""
SPREAD_SD = 4
"""Hosts choose by chance among equals: a count so many standard deviations from its mean is one in 16,000."""


@pytest.fixture
def market(tmp_path: Path) -> Iterator[tuple[RegionalMarket, Lines]]:
    need_networks()
    names = ("master", *REGIONS, *(f"by-{region}" for region in REGIONS), "between")
    with ExitStack() as cleanup:
        networks = {name: cleanup.enter_context(namespace()) for name in names}
        made = cleanup.enter_context(lines(networks))
        for region in REGIONS:
            made.both(region, "master", Line(delay_ms=TO_MASTER_MS[region]))
            made.both(region, "between", BETWEEN)
            for other in REGIONS:
                made.both(region, f"by-{other}", NEAR if region == other else FAR)
        addresses = {name: made.address(name) for name in names}
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses))
        market.add_accesses(*REGIONS)
        yield market, made


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.proves(
    "three Accesses in three regions: agents land on the nearest, spread over equals, and move without a gap at a drain"
)
def test_agents_land_on_the_nearest_spread_over_equals_and_move_without_a_gap_when_one_drains(
    market: tuple[RegionalMarket, Lines],
) -> None:
    at, _ = market
    named = {one.access_id: region for region, one in at.accesses.items()}
    near = {region: at.add_agents(f"by-{region}", NEIGHBOURS) for region in REGIONS}
    homes = at.settled(*(host for hosts in near.values() for host in hosts))
    assert {host: named[home] for host, home in homes.items()} == {host: r for r in REGIONS for host in near[r]}

    undecided = at.add_agents("between", UNDECIDED)
    homes = at.settled(*homes, *undecided)
    counts = {region: sum(named[homes[host]] == region for host in undecided) for region in REGIONS}
    assert _spread_flaws(list(counts.values())) == [], counts
    regions = {host["id"]: host["region"] for host in online(at.renter)}
    assert {host: named[home] for host, home in homes.items()} == regions

    drained = at.accesses["eu"].access_id
    moving = {h["id"]: h["last_seen_at"] for h in online(at.renter) if h["access_id"] == drained}
    assert set(near["eu"]) < set(moving)
    at.renter.ask("POST", f"/accesses/{drained}/drain", {"reason": "test"})
    wait_for(lambda: have_left(at.renter, moving, drained), pause_s=0.2)
    wait_for(lambda: at.renter.ask("GET", f"/accesses/{drained}")["agents"] == 0)

    after = at.homes()
    assert {host: home for host, home in after.items() if homes[host] != drained} == {
        host: home for host, home in homes.items() if home != drained
    }  # nobody else moved
    assert telemetry_flaws(at.data_dir, *at.agent_dirs) == []
    wait_for(lambda: not truth.history_gaps(at.data_dir), pause_s=0.2)
    assert at.verdicts(*homes) == []


def _spread_flaws(counts: Sequence[int]) -> list[str]:
    """Which counts are farther from an even share than chance takes them."""
    total, shares = sum(counts), len(counts)
    deviation = (total / shares * (1 - 1 / shares)) ** 0.5
    return [f"{one} of {total}" for one in counts if abs(one - total / shares) > SPREAD_SD * deviation]
