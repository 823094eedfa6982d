"""A host that claims ten times its rate, on a line of a known one: what is stored is what the line carries.

Real daemons, each in a network of its own; a process moves the packets of the host's line, as many as go through it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.boastful_agent import BOAST
from tests.support.forwarder import Line
from tests.support.killing import online
from tests.support.namespaces import namespace, need_networks
from tests.support.regions import RegionalMarket, regional_market
from tests.support.slow_link import lines
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

REGIONS = ("north", "south")
UP_KBIT_S, DOWN_KBIT_S = 16_000, 40_000
RATES = {"up_bps": UP_KBIT_S * 1000, "down_bps": DOWN_KBIT_S * 1000}
BURST_S = 0.3
"""The bytes that a shaper lets through at once after a silence: a tenth and a half of two seconds at the line's
rate."""
TOLERANCE = 0.1
ROUNDS_MAX = 3
"""On a busy machine packets come later, never sooner: a round may find less than the line carries, and not each may."""
SHIPPED_MIB = "256"


@pytest.fixture
def market(tmp_path: Path) -> Iterator[RegionalMarket]:
    need_networks()
    with ExitStack() as cleanup:
        networks = {name: cleanup.enter_context(namespace()) for name in ("master", *REGIONS, "box")}
        made = cleanup.enter_context(lines(networks))
        for region in REGIONS:
            made.set("box", region, Line(delay_ms=5, kbit_s=UP_KBIT_S, burst_s=BURST_S))
            made.set(region, "box", Line(delay_ms=5, kbit_s=DOWN_KBIT_S, burst_s=BURST_S))
        addresses = {name: made.address(name) for name in networks}
        as_shipped = {"WINDROW_MEASURE_MIB": SHIPPED_MIB, "WINDROW_PROOFS": "off"}
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses, environment=as_shipped))
        market.add_accesses(*REGIONS)
        yield market


@pytest.mark.proves("a host that claims ten times its rate is stored within 10 % of the truth, region by region")
@pytest.mark.long
def test_a_host_that_claims_ten_times_its_rate_is_stored_within_a_tenth_of_what_its_line_carries(
    market: RegionalMarket,
) -> None:
    market.add_host("box", agent="tests.support.boastful_agent")
    (host,) = wait_for(lambda: online(market.renter))
    path = f"/hosts/{host['id']}"

    stored = [_next_round(market, path, before) for before in range(ROUNDS_MAX)]

    for round_ in stored:
        found = [*round_["regions"].values(), round_["host"]]
        assert [_over(one) for one in found] == [[]] * 3, stored
        assert all(round_["claimed"][name] > BOAST * rate / 2 for name, rate in RATES.items()), round_
    assert any(not _under(round_["host"]) for round_ in stored), stored
    for region in REGIONS:
        assert any(not _under(round_["regions"][region]) for round_ in stored), stored


def _next_round(market: RegionalMarket, path: str, before: int) -> dict[str, Any]:
    """One more: what the host claimed in the end, what is stored of it, and what of each region."""
    ask = market.renter.ask
    if before:  # the first one comes by itself
        ask("POST", f"{path}/measure")
    wait_for(lambda: len(ask("GET", f"{path}/bandwidth")["rounds"]) == (before + 1) * len(REGIONS))
    (command, *_) = wait_for(
        lambda: (
            (c := ask("GET", f"/commands?host={path.rpartition('/')[2]}")["items"])
            and all(one["done_at"] for one in c)
            and [one for one in c if one["kind"] == "measure_bandwidth"]
        )
    )
    names = {"up_bps": "up_bits_per_s", "down_bps": "down_bits_per_s"}
    return {
        "claimed": {name: int(command["result"][said]) for name, said in names.items()},
        "host": ask("GET", path)["bandwidth"],
        "regions": {one["region"]: one for one in ask("GET", f"{path}/bandwidth")["rounds"][: len(REGIONS)]},
    }


def _over(found: dict[str, Any]) -> list[str]:
    return [name for name, rate in RATES.items() if found[name] > rate * (1 + TOLERANCE)]


def _under(found: dict[str, Any]) -> list[str]:
    return [name for name, rate in RATES.items() if found[name] < rate * (1 - TOLERANCE)]
