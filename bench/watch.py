"""`watch`: what alerting adds to the processor time of ingest, in percent.

The shipped Master and Access take samples of BENCH_SCALE x 1,000 hosts with eight cards at their nominal pace, while
conditions of GPUs come and go: one an hour on each host, which is more than a fleet has. In turn the alert service
works and rests (_unwatched.py); what it missed meanwhile it reads before the next part is measured. The median of the
pairs counts. Goal: at most 5 % more.
"""

import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench._load import Ordered, join_all
from bench._report import cpu_seconds, last_line, median, scale, table
from bench._series import Plan, uuid
from bench.ingest import HOSTS, HOSTS_MIN, LEAD_PER_HOST_S, PERIOD_S, nearest_access
from tests.support.stack import Stack, stack, wait_for
from tests.support.wrapped_up import COMMAND, wrapped

PAIRS, PAIRS_MIN = 9, 3
PART_BATCHES: Final = 6
"""Half a minute, in which each level is looked at once at least."""
RAISED_PER_HOST_HOUR: Final = 1.0
SETTLE_S: Final = 4.0
GOAL_PERCENT: Final = 5.0


def troubles(plan: Plan, chance: random.Random) -> dict[str, list[tuple[int, str]]]:
    """The conditions in one part: for each batch, by its place, pairs of a host's number and a condition that begins
    there. An empty condition ends it. All have ended with the part."""
    count = max(1, round(plan.hosts * RAISED_PER_HOST_HOUR * PART_BATCHES * PERIOD_S / 3600))
    found: dict[str, list[tuple[int, str]]] = {str(place): [] for place in range(PART_BATCHES)}
    for host in chance.sample(range(plan.hosts), count):
        place = chance.randrange(PART_BATCHES // 2)
        found[str(place)].append((host, f"gpu.hot:{uuid(plan.seed, host, chance.randrange(plan.gpus))}"))
        found[str(place + PART_BATCHES // 2)].append((host, ""))
    return found


def part(running: Stack, load: Ordered, first: int, said: dict[str, Any]) -> float:
    """CPU-seconds of Access and Master for some batches at their pace."""
    pids = [pid for name, found in running.daemons().items() if name in ("access", "master") for pid in found]
    before = cpu_seconds(pids)
    answer = load.ask(do="pace", first=first, last=first + PART_BATCHES, period_s=PERIOD_S, troubles=said)
    assert answer["acked_batches"] == answer["wanted_batches"], answer
    return cpu_seconds(pids) - before


def measure(plan: Plan, pairs: int) -> tuple[list[tuple[float, float]], dict[str, int]]:
    """CPU-seconds with alerts and without, of each pair; events that were told of, and alerts that came of them."""
    chance = random.Random(plan.seed)
    with tempfile.TemporaryDirectory(prefix="windrow-watch-") as name:
        folder = Path(name)
        off = folder / "off"
        words = wrapped({"master": (sys.executable, "-m", "bench._unwatched", "windrow_master", str(off))})
        with ExitStack() as cleanup:
            running = cleanup.enter_context(stack(environment=words, command=COMMAND))
            address = wait_for(lambda: nearest_access(running))
            api = cleanup.enter_context(running.client())
            folders = join_all(running.cli["https_url"], api, folder / "hosts", plan.hosts)
            start_ms = round((time.time() + plan.hosts * LEAD_PER_HOST_S) * 1000)
            (folder / "load.json").write_text(json.dumps({"plan": asdict(plan), "start_ms": start_ms}))
            load = Ordered("bench._agents", [str(folder / "load.json")])
            try:
                load.ask(do="encode")
                load.ask(do="connect", folders=folders, addresses=[address])
                load.ask(do="flood", first=0, last=1)
                found = list[tuple[float, float]]()
                events = 0
                for pair in range(pairs):
                    took = {}
                    for turn in (0, 1):
                        is_off = (pair + turn) % 2 == 0  # who is first changes
                        off.touch() if is_off else off.unlink(missing_ok=True)
                        time.sleep(SETTLE_S)
                        said = troubles(plan, chance)
                        events += 0 if is_off else sum(map(len, said.values()))
                        took[is_off] = part(running, load, 1 + (2 * pair + turn) * PART_BATCHES, said)
                    found.append((took[False], took[True]))
            finally:
                load.close()
            told = sum(one["rule"] == "gpu.hot" for one in api.items("/alerts", state="all"))
    return found, {"events_while_watched": events, "alerts": told}


def main() -> None:
    """Measure, print, end."""
    pairs = max(PAIRS_MIN, round(PAIRS * min(1.0, scale())))
    plan = Plan(max(HOSTS_MIN, round(HOSTS * scale())), 1 + 2 * pairs * PART_BATCHES)
    found, counted = measure(plan, pairs)
    ratios = [on / off for on, off in found]
    ratio = median(ratios)
    detail = {
        "hosts": plan.hosts,
        "pairs": pairs,
        "with_alerts_cpu_s": round(median([on for on, _ in found]), 2),
        "without_cpu_s": round(median([off for _, off in found]), 2),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        **counted,
        "goal_percent": GOAL_PERCENT,
    }
    table([("started as", "windrow up (its defaults); the alert service rests in every other part"), *detail.items()])
    last_line("watch", (ratio - 1) * 100, "%", "the same Master without alerts", ratio, detail)


if __name__ == "__main__":
    main()
