"""An Access dies or falls silent with many agents on it: how long each is without its Master, and what that costs.

    make chaos, or: CHAOS=1 python -m pytest -s tests/integration/test_access_death.py

At full length 250 agents for each processor, a thousand at most, are on one Access, in two processes, each agent the
shipped one with a simulated host, behind a hundred addresses (an Access lets fifty streams a second in from one). More
agents than that keep two processors so busy that what is measured is how long they take to come back themselves. The
gap of an agent is from the fault to the Master's welcome on another connection.
"""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest

from bench._report import cpu_seconds
from tests.support import truth
from tests.support.killing import have_left, telemetry_flaws
from tests.support.namespaces import Namespace, need_networks, switched
from tests.support.nemesis import BOTH_WAYS, DEAF, KILLED, MUTE, Nemesis, struck
from tests.support.regions import ACCESS_PORT, RegionalMarket, regional_market
from tests.support.stack import wait_for
from windrow_agent.core.access_choice import LOAD_FULL_PERMILLE

pytestmark = [pytest.mark.slow, pytest.mark.chaos]

IS_LONG = bool(os.environ.get("CHAOS"))
AGENTS = int(os.environ.get("AGENTS") or (min(1000, 250 * (os.cpu_count() or 1)) if IS_LONG else 8))
NEMESES = (KILLED, BOTH_WAYS, DEAF, MUTE)[: int(os.environ.get("FAULTS") or (4 if IS_LONG else 1))]
HOSTS = AGENTS + (AGENTS // 10 if AGENTS >= 100 else 0)
"""A crowd makes an Access slow, and a part of it goes to others that seem nearer then."""
ACCESSES = ("one", "two", "three")
GROUPS = ("west", "east")
HELD_LEAST = AGENTS // len(ACCESSES)
"""Agents on an Access that is struck: once the others serve again, hosts go home to them by and by."""
ADDRESSES = 50
"""Of each group of agents."""
GATHER_S, PAUSE_S = (600.0, 8.0) if AGENTS >= 100 else (120.0, 0.5)
"""A question for a thousand hosts takes a third of a second of the Master's and of ours: rarely, while many wait."""
SAMPLE_EVERY_S = 30 if AGENTS >= 100 else 1
"""An agent that samples each second takes a hundredth of a processor, and here a thousand share two."""
RESET_GOAL_S, SILENT_GOAL_S = 2.0, 10.0
"""At the 99th percentile; judged at full length only."""
SHARE_GOAL = max(0.1, 3.5 / math.sqrt(HOSTS))
"""How far the count of an Access may be from its share by the free capacity that it told, as a part of an even share.
Each host draws between two equal ones: one standard deviation is a part of 1 / sqrt(HOSTS). What else runs on the
machine makes one of them the fuller, besides."""


@pytest.fixture
def market(tmp_path: Path) -> Iterator[RegionalMarket]:
    need_networks()
    names = ("master", *ACCESSES, *GROUPS)
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(len(names)))
        networks = {name: network for name, (network, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        for number, name in enumerate(GROUPS):
            _many_addresses(networks[name], addresses[name].rpartition(".")[0], 100 + number * ADDRESSES)
        yield cleanup.enter_context(regional_market(tmp_path, networks, addresses))


def _many_addresses(network: Namespace, prefix: str, first: int) -> None:
    """Traffic that leaves this network comes from so many addresses in turn, as from as many machines."""
    sources = [f"{prefix}.{number}" for number in range(first, first + ADDRESSES)]
    for source in sources:
        network.call("ip", "address", "add", f"{source}/24", "dev", "cable")
    turns = ", ".join(f"{turn} : {source}" for turn, source in enumerate(sources))
    rule = f"oifname cable snat to numgen inc mod {ADDRESSES} map {{ {turns} }}"
    chain = f"chain out {{ type nat hook postrouting priority 100;\n{rule}\n}}"
    network.call("nft", "-f", "-", told=f"table ip sources {{\n{chain}\n}}\n")


@pytest.mark.timeout(3000 if IS_LONG else 300)
@pytest.mark.proves("an Access that is killed, over real networks: its agents are heard elsewhere, none is called lost")
@pytest.mark.long
def test_agents_of_an_access_that_dies_or_falls_silent_are_heard_elsewhere(market: RegionalMarket) -> None:
    at = market
    at.add_accesses("one")
    hosts = [host for name in GROUPS for host in at.add_agents(name, HOSTS // len(GROUPS), SAMPLE_EVERY_S)]
    at.settled(*hosts)
    at.add_accesses(*ACCESSES[1:])

    worst: list[str] = []
    for nemesis in NEMESES:
        _gather(at, "one")
        free = [_free_permille(at, name) for name in ACCESSES[1:]]
        gaps_s = _gaps_s(at, hosts, nemesis)
        p50, p99 = _percentile(gaps_s, 50), _percentile(gaps_s, 99)
        homes = at.homes()
        shares = [sum(home == at.accesses[name].access_id for home in homes.values()) for name in ACCESSES[1:]]
        print(f"{nemesis.name}: {len(gaps_s)} agents, gap p50 {p50:.2f} s, p99 {p99:.2f} s, then {shares}")
        goal_s = RESET_GOAL_S if nemesis is KILLED else SILENT_GOAL_S
        worst += [f"{nemesis.name}: p99 {p99:.2f} s"] if p99 > goal_s else []
        fair = sum(shares) * free[0] / sum(free)
        is_even = abs(shares[0] - fair) <= SHARE_GOAL * AGENTS / 2
        worst += [] if is_even else [f"{nemesis.name}: shares {shares} where {free} were free"]

    assert telemetry_flaws(at.data_dir, *at.agent_dirs) == []
    wait_for(lambda: not truth.history_gaps(at.data_dir), pause_s=0.5)
    assert [one for one in at.verdicts(*hosts) if one.startswith("lost")] == []
    assert not IS_LONG or worst == []


def _gather(at: RegionalMarket, name: str) -> None:
    """Have that many agents on one Access, the others ready; at full length each with a second connection there."""
    _serving(at, *(one.access_id for one in at.accesses.values()))
    others = [one.access_id for other, one in at.accesses.items() if other != name]
    for access_id in others:
        at.renter.ask("POST", f"/accesses/{access_id}/drain", {"reason": "test"})
    wait_for(lambda: len(_held(at, name)) >= AGENTS, GATHER_S, pause_s=PAUSE_S)
    for access_id in others:
        at.renter.ask("POST", f"/accesses/{access_id}/resume", {"reason": "test"})
    _serving(at, *others)
    if IS_LONG:  # as in a fleet that has been up for a minute
        names = [other for other in at.accesses if other != name]
        wait_for(lambda: sum(map(at.connections, names)) >= 0.97 * HOSTS, GATHER_S, pause_s=PAUSE_S / 2)


def _free_permille(at: RegionalMarket, name: str) -> int:
    """What an Access may still carry, as the Master has it."""
    told = at.renter.ask("GET", f"/accesses/{at.accesses[name].access_id}")["load_permille"]
    return max(1, LOAD_FULL_PERMILLE - int(told))


def _held(at: RegionalMarket, name: str) -> set[str]:
    """The hosts on this Access, as the Master has it."""
    return {host for host, home in at.homes().items() if home == at.accesses[name].access_id}


def _serving(at: RegionalMarket, *access_ids: str) -> None:
    wait_for(lambda: all(at.renter.ask("GET", f"/accesses/{one}")["state"] == "serving" for one in access_ids))


def _gaps_s(at: RegionalMarket, hosts: Sequence[str], nemesis: Nemesis) -> list[float]:
    """Strike the first Access and wait until all are heard elsewhere; how long each was without its Master, sorted.

    Meanwhile the agents' logs are read and nobody is asked: a question for a thousand hosts is a tenth of a second of
    the Master's, which is the one that they all wait for.
    """
    moving = {host["id"]: host["last_seen_at"] for host in at.renter.all("/hosts")}
    struck_one = f"{at.addresses[ACCESSES[0]]}:{ACCESS_PORT}"
    pids = {"master": at.renter.stack.process.pid, **at.pids}
    del pids[f"access-{ACCESSES[0]}"]
    spent_s = {name: cpu_seconds([pid]) for name, pid in pids.items()}
    began = time.time()
    with struck(at, ACCESSES[0], nemesis):
        held = {host for host, address, _ in _connected(at, until=began) if address == struck_one}
        wait_for(lambda: held <= set(_welcomed_at(at, began)), GATHER_S, pause_s=0.5)
        back = _welcomed_at(at, began)
        used_s = {name: round(cpu_seconds([pid]) - spent_s[name], 1) for name, pid in pids.items()}
        print(f"{nemesis.name}: after {time.time() - began:.1f} s, in seconds of a processor: {used_s}")
        wait_for(lambda: have_left(at.renter, moving, at.accesses[ACCESSES[0]].access_id), GATHER_S, pause_s=PAUSE_S)
    assert len(held) >= HELD_LEAST, "those whose home is elsewhere may be back there by now"
    assert set(back) <= set(hosts)
    return sorted(back[host] - began for host in held)


def _connected(at: RegionalMarket, since: float = 0.0, until: float = math.inf) -> list[tuple[str, str, float]]:
    """Returns the Access of each host's last connection in this span of wall time, and the time of its first, by what
    agents log."""
    first: dict[str, float] = {}
    address: dict[str, str] = {}
    for name in GROUPS:
        for line in (at.folder / f"agents-{name}" / "log").read_text().splitlines():
            if '"connected"' in line:
                said = json.loads(line)
                moment = datetime.fromisoformat(said["timestamp"]).timestamp()
                if since < moment <= until:
                    first.setdefault(said["host_id"], moment)
                    address[said["host_id"]] = said["address"]
    return [(host, address[host], moment) for host, moment in first.items()]


def _welcomed_at(at: RegionalMarket, since: float) -> dict[str, float]:
    """When each host was welcomed first after this moment, in seconds of wall time."""
    return {host: moment for host, _, moment in _connected(at, since)}


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
