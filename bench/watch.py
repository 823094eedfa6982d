"""`watch`: what alerting adds to the processor time of ingest, in percent.

The shipped Master and Access take samples of BENCH_SCALE x 1,000 hosts with eight cards at their nominal pace, without
a break, while conditions of GPUs come and go: one an hour on each host, which is more than a fleet has. Operators have
rules of their own about metrics of all of them. In turn the alert service works and rests (_unwatched.py), ten seconds
each, in pairs of which chance says what is first. The median of the pairs counts. Goal: at most 5 % more.

It ends within five minutes and stops what it started: hosts that join slowly leave time for fewer pairs.
"""

import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bench._load import Ordered, join_all
from bench._report import exact_cpu_seconds, last_line, median, scale, table
from bench._series import Plan, uuid
from bench.ingest import HOSTS, HOSTS_MIN, LEAD_PER_HOST_S, PERIOD_S, nearest_access
from tests.support.stack import Stack, stack, wait_for
from tests.support.wrapped_up import COMMAND, wrapped
from windrow.client import Client

PAIRS, PAIRS_MIN = 9, 3
PART_BATCHES: Final = 2
PART_S: Final = PART_BATCHES * PERIOD_S
"""In which the Master's conditions are looked at five times, and metrics and idle leases once: more often than they
would be without the rests."""
WARM_BATCHES: Final = 1
RAISED_PER_HOST_HOUR: Final = 1.0
LIMIT_S: Final = 290.0
"""The whole benchmark takes no longer."""
STOP_S: Final = 25.0
"""The part of LIMIT_S that is left for stopping everything."""
RULES: Final = (("gpu_temperature_celsius", 95.0), ("gpu_power_watts", 900.0), ("gpu_memory_used_bytes", 90e9))
GOAL_PERCENT: Final = 5.0


@contextmanager
def limited() -> Iterator[float]:
    """Gives the monotonic second at which all is over; then, and when this process is told to end, what was started is
    stopped on the way out."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"watch: stopped after {time.monotonic() - began:.0f} s")

    began = time.monotonic()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S - STOP_S / 2)
    try:
        yield began + LIMIT_S
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def troubles(plan: Plan, parts: int, chance: random.Random) -> dict[str, list[tuple[int, str]]]:
    """The conditions of all parts: for each batch, by its place, pairs of a host's number and a condition that begins
    there. An empty condition ends it, in the second half of the same part."""
    count = max(parts, round(plan.hosts * RAISED_PER_HOST_HOUR * parts * PART_S / 3600))
    found: dict[str, list[tuple[int, str]]] = {str(place): [] for place in range(parts * PART_BATCHES)}
    hosts = chance.sample(range(plan.hosts), min(count, plan.hosts))
    for number, host in enumerate(hosts):
        place = number % parts * PART_BATCHES
        found[str(place)].append((host, f"gpu.hot:{uuid(plan.seed, host, chance.randrange(plan.gpus))}"))
        found[str(place + PART_BATCHES // 2)].append((host, ""))
    return found


@dataclass(frozen=True, slots=True)
class Part:
    """CPU-seconds in one part."""

    master: float
    access: float


def paced(running: Stack, load: Ordered, off: Path, order: list[bool], said: dict[str, Any]) -> list[Part]:
    """The cost of each part. order: whether alerts rest in it."""
    pids = running.daemons()
    last = WARM_BATCHES + len(order) * PART_BATCHES
    load.tell(do="pace", first=WARM_BATCHES, last=last, period_s=PERIOD_S, troubles=said)
    began, found = time.monotonic(), [[exact_cpu_seconds(pids[name]) for name in ("master", "access")]]
    for number, is_off in enumerate(order):
        off.touch() if is_off else off.unlink(missing_ok=True)
        time.sleep(max(0.0, began + (number + 1) * PART_S - time.monotonic()))
        found.append([exact_cpu_seconds(pids[name]) for name in ("master", "access")])
    answer = load.answer()
    assert answer["acked_batches"] == answer["wanted_batches"], answer
    return [Part(*(after - before for before, after in zip(*two, strict=True))) for two in pairwise(found)]


def ratio_of(on: Part, off: Part) -> float:
    """Ingest with alerts to ingest without. The Access has no part in alerting: what it takes differs by chance."""
    return 1 + (on.master - off.master) / (off.master + off.access)


def begun(running: Stack, api: Client, folder: Path, plan: Plan, cleanup: ExitStack) -> Ordered:
    """The hosts, joined and connected, and what operators watch."""
    for metric, threshold in RULES:
        body = {"name": metric, "metric": metric, "comparison": ">", "threshold": threshold, "duration_s": 60}
        api.request("POST", "/alert-rules", body=body)
    address = wait_for(lambda: nearest_access(running))
    folders = join_all(running.cli["https_url"], api, folder / "hosts", plan.hosts)
    start_ms = round((time.time() + plan.hosts * LEAD_PER_HOST_S) * 1000)
    (folder / "load.json").write_text(json.dumps({"plan": asdict(plan), "start_ms": start_ms}))
    load = Ordered("bench._agents", [str(folder / "load.json")])
    cleanup.callback(load.close)
    load.ask(do="encode")
    load.ask(do="connect", folders=folders, addresses=[address])
    load.ask(do="flood", first=0, last=WARM_BATCHES)
    return load


def measure(plan: Plan, pairs: int, ends_s: float) -> tuple[list[tuple[Part, Part]], dict[str, Any]]:
    """The parts with alerts and without, of each pair; what else there is to say."""
    chance = random.Random(plan.seed)
    with tempfile.TemporaryDirectory(prefix="windrow-watch-") as name, ExitStack() as cleanup:
        folder, began = Path(name), time.monotonic()
        off = folder / "off"
        words = wrapped({"master": (sys.executable, "-m", "bench._unwatched", "windrow_master", str(off))})
        running = cleanup.enter_context(stack(environment=words, command=COMMAND))
        wait_for(lambda: running.cli["token"])
        api = cleanup.enter_context(running.client())
        load = begun(running, api, folder, plan, cleanup)
        ready = time.monotonic()
        fits = min(pairs, int((ends_s - STOP_S - ready) / PART_S / 2))
        if fits < PAIRS_MIN:
            raise TimeoutError(f"watch: {plan.hosts} hosts were ready after {ready - began:.0f} s: too late")
        order = [is_off for _ in range(fits) for is_off in chance.sample((False, True), 2)]
        said = troubles(plan, len(order), chance)
        took = paced(running, load, off, order, said)
        told = sum(one["rule"] == "gpu.hot" for one in api.items("/alerts", state="all"))
        found = [(took[at + order[at]], took[at + 1 - order[at]]) for at in range(0, len(order), 2)]
        watched = (place for place in range(len(order)) if not order[place])
        events = sum(len(said[str(place * PART_BATCHES)]) for place in watched)
        return found, {"ready_s": round(ready - began), "raised_while_watched": events, "alerts": told}


def main() -> None:
    """Measure, print, end."""
    pairs = max(PAIRS_MIN, round(PAIRS * min(1.0, scale())))
    plan = Plan(max(HOSTS_MIN, round(HOSTS * scale())), WARM_BATCHES + 2 * pairs * PART_BATCHES)
    with limited() as ends_s:
        found, counted = measure(plan, pairs, ends_s)
    ratios = [ratio_of(on, off) for on, off in found]
    ratio = median(ratios)
    detail = {
        "hosts": plan.hosts,
        "pairs": len(found),
        "master_with_alerts_cpu_s": round(median([on.master for on, _ in found]), 3),
        "master_without_cpu_s": round(median([off.master for _, off in found]), 3),
        "access_cpu_s": round(median([off.access for _, off in found]), 3),
        "ratio_mean": round(sum(ratios) / len(ratios), 3),
        "ratios": [round(one, 3) for one in sorted(ratios)],
        **counted,
        "own_rules": len(RULES),
        "goal_percent": GOAL_PERCENT,
    }
    table([("started as", "windrow up (its defaults); the alert service rests in every other part"), *detail.items()])
    last_line("watch", (ratio - 1) * 100, "%", "the same Master without alerts", ratio, detail)


if __name__ == "__main__":
    main()
