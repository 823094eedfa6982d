"""`burst`: a submit to the first line of a job on a machine that is bought for it; and how well its cost is forecast.

Ours: a job for which there is no room in the shipped `windrow up`, until its first line is read here; its machine is
bought at EC2 (moto, with the machine room of tests/support/machine_room.py: each instance is a Debian with systemd that
runs its first script). The peer, in turn: the same instance by boto3 alone with the same first script, where the shell
that installed the agent prints the line itself. Goal: 1.3 times the peer. All of it shares this machine (root).

Forecast: jobs of a known length on bought machines at a fixed price, each forecast by `/route` before it starts, beside
what the book of costs has once its machine is gone. Most are simulated, by the shipped decisions in virtual time with
the starts that were seen here and the boot of a real cloud before them; goal: 95 % within 15 %.
"""

import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench._bought import cost_of_job
from bench._report import last_line, median, percentile, scale, table
from tests.support.machine_room import CONSOLE, machine_room
from tests.support.moto_cloud import AMI_PARAMETER
from tests.support.room_market import JOIN_S, NAME, PRICES, ZONE, RoomMarket, room_market
from tests.support.stack import wait_for
from windrow_master.hybrid.backends.bootstrap import user_data
from windrow_master.hybrid.backends.port import MachineOffer, PurchaseId
from windrow_master.hybrid.places import book_places, waits_of
from windrow_master.hybrid.routing import Work, cost_of
from windrow_master.prices.offers import Kind
from windrow_master.prices.shipped import price_book
from windrow_proto.clock import SystemClock
from windrow_proto.units import HOUR, SECOND, Bytes, parse_money

GOAL: Final = 1.3
TURNS, TURNS_MIN = 6, 2
JOBS, JOBS_IN_ROOM = 500, 20
CPUS: Final = 2
"""Processors that a job in the room asks for: all of its machine, so that no other job starts beside it."""
LENGTHS_S: Final = 240.0, 480.0
"""The shortest and the longest job in the room, in seconds."""
APART_S: Final = 8.0
"""Between two starts there, so that two processors install one agent after the other."""
JOB_S: Final = 3_600.0
WITHIN: Final = 0.15
LINE: Final = "first line"
LOOK_S: Final = 0.05
OFFER: Final = f"m5.large/{ZONE}/on-demand"
BOOTS_S: Final = 40.0, 120.0
"""A real cloud's own part of a start, before the first script, for the simulated jobs; our judgement."""
HOURS: Final = 0.2, 8.0
"""The shortest and the longest simulated job; lengths are drawn evenly by their logarithm."""
KNOWN: Final = 20
"""Starts that the simulated market has seen before."""


def ours(market: RoomMarket) -> float:
    """Seconds from a submit to the first line of the job, on a machine that is bought for it."""
    began = time.monotonic()
    with market.stack.client() as api:
        job = api.submit_job({"argv": ["echo", LINE], "backend": NAME, "runtime": "process"})[0]["id"]
        said = next(one for one in api.job_logs(job, follow=True) if LINE.encode() in one)
        took = time.monotonic() - began
        if not said:
            raise RuntimeError(f"{job} said nothing")
        api.wait_job(job, JOIN_S)
    ended(market, bought_for(market, job))
    return took


def bought_for(market: RoomMarket, job: str) -> str:
    """The purchase on whose machine a job runs."""
    tries = market.renter.ask("GET", f"/jobs/{job}")["tries"]
    return next((str(one["purchase_id"]) for one in tries if one["state"] == "used"), "")


def bare(market: RoomMarket) -> float:
    """Seconds of the same instance, image, first script and line, by boto3 and the shell alone."""
    made, before = market.renter.ask("POST", "/join-tokens", {"role": "host"}), hosts(market)
    ends_ns = SystemClock().wall_ns() + HOUR
    script = f"{user_data(made['command'], PurchaseId('bare'), ends_ns, 1800)}echo '{LINE}'\n"
    room, began = market.room, time.monotonic()
    ec2, ssm = room.cloud.client(), room.cloud.client("ssm")
    image = ssm.get_parameter(Name=AMI_PARAMETER)["Parameter"]["Value"]
    instance = ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=image,
        InstanceType="m5.large",
        UserData=script,
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        InstanceInitiatedShutdownBehavior="terminate",
    )["Instances"][0]["InstanceId"]
    machine = wait_for(lambda: room.lived[instance].host, pause_s=LOOK_S)
    console = Path(f"/proc/{machine.holder}/root{CONSOLE}")
    wait_for(lambda: console.read_text().endswith(f"{LINE}\n"), JOIN_S, LOOK_S)
    took = time.monotonic() - began
    for host in hosts(market) - before:  # it is no room for the next job
        market.renter.ask("POST", f"/hosts/{host}/retire", {"reason": "measured"})
    ec2.terminate_instances(InstanceIds=[instance])
    return took


def hosts(market: RoomMarket) -> set[str]:
    """The ids of all hosts."""
    return {str(one["id"]) for one in market.renter.all("/hosts")}


def ended(market: RoomMarket, purchase_id: str) -> None:
    """Have its machine taken away before the next turn."""
    market.renter.ask("POST", f"/purchases/{purchase_id}/end", {"reason": "measured"})
    if not market.machine(purchase_id).is_ended.wait(JOIN_S):
        raise RuntimeError(f"{purchase_id} was not ended")


def forecast(market: RoomMarket, seconds: float) -> float:
    """The cost in US dollars that the Master forecasts for work of this length at the provider."""
    needs = {"gpu_count": 0, "cpu_count": CPUS, "duration_hours_estimated": seconds / 3600}
    answer = market.renter.ask("POST", "/route", {"requirements": needs})
    (place,) = (one for one in answer["recommendations"] if one["backend"] == f"aws/{Kind.ON_DEMAND}")
    return float(place["cost_estimate"]["total"])


def in_room(market: RoomMarket, count: int, chance: random.Random) -> list[tuple[float, float]]:
    """Run so many jobs side by side; returns the forecast and the cost of each that had a machine of its own."""

    def one(number: int) -> tuple[float, float] | None:
        wait_for(lambda: time.monotonic() >= began + number * APART_S, JOIN_S * 10)
        seconds = lengths[number]
        said = forecast(market, seconds)
        asked = {"argv": ["sleep", f"{seconds:.0f}"], "cpus": CPUS, "backend": NAME, "runtime": "process"}
        with market.stack.client() as api:
            job = api.submit_job(asked)[0]["id"]
            api.wait_job(job, JOB_S)
        bought = bought_for(market, job)
        return (said, float(market.until(bought, "gone", within_s=JOB_S)["spent"])) if bought else None

    lengths, began = [chance.uniform(*LENGTHS_S) for _ in range(count)], time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        return [each for each in pool.map(one, range(count)) if each is not None]


def simulated(count: int, starts_s: Sequence[float], prices: Path, chance: random.Random) -> list[tuple[float, float]]:
    """The same of jobs in virtual time. starts_s: as seen in the room."""
    today, book = datetime.now(UTC).date(), price_book(prices)

    def start() -> float:
        return chance.choice(starts_s) + chance.uniform(*BOOTS_S)

    seen = waits_of([(f"ec2/{Kind.ON_DEMAND}", int(start() * SECOND)) for _ in range(KNOWN)])
    offer = MachineOffer(
        offer_id=OFFER,
        kind=Kind.ON_DEMAND,
        gpu="",
        gpu_count=0,
        cpus=2,
        memory_bytes=Bytes(8 << 30),
        region=ZONE[:-1],
        price_per_hour=parse_money(PRICES["m5.large"]),
        currency="USD",
        priced_on=today,
    )
    found, least, most = [], *map(math.log, HOURS)
    for _ in range(count):
        hours = math.exp(chance.uniform(least, most))
        work = Work(gpus=0, hours=hours)
        places = book_places(book, today, work, seen)
        (place,) = (one for one in places if one.backend == f"aws/{Kind.ON_DEMAND}")
        cost = cost_of(work, place)
        if cost is None:
            raise RuntimeError("there is no forecast")
        found.append((cost.total / 1e8, cost_of_job(offer, start(), hours * 3600, chance) / 1e8))
    return found


def part_within(found: Sequence[tuple[float, float]]) -> float:
    """The part of the jobs that cost what was forecast, 15 % more or less."""
    return sum(abs(cost - said) <= WITHIN * said for said, cost in found) / len(found)


def measured(folder: Path) -> dict[str, Any]:
    """All of it."""
    chance = random.Random(1)
    with machine_room(folder) as room, room_market(room, folder, is_hasty=False) as market:
        market.packed()
        market.burst_only()
        ours(market)  # the first reads what the later ones find read
        turns = [(ours(market), bare(market)) for _ in range(max(TURNS_MIN, round(TURNS * scale())))]
        count = max(2, round(JOBS_IN_ROOM * min(1.0, scale())))
        costs = in_room(market, count, chance)
    starts = [one for one, _ in turns]
    more = simulated(max(0, round(JOBS * scale()) - len(costs)), starts, folder / "prices", chance)
    return {"turns": turns, "room": costs, "simulated": more}


def main() -> None:
    """Measure, print, end."""
    if os.geteuid() != 0:
        sys.exit("burst needs root: its machines are namespaces")
    with tempfile.TemporaryDirectory(prefix="windrow-bench-burst-") as name:
        found = measured(Path(name))
    mine, peer = ([turn[at] for turn in found["turns"]] for at in (0, 1))
    every = [*found["room"], *found["simulated"]]
    detail = {
        "turns": len(mine),
        "ours_p50_s": round(median(mine), 2),
        "ours_max_s": round(max(mine), 2),
        "bare_p50_s": round(median(peer), 2),
        "bare_max_s": round(max(peer), 2),
        "goal_ratio": GOAL,
        "jobs": len(every),
        "jobs_in_room": len(found["room"]),
        "forecast_within_15_percent": round(part_within(every), 4),
        "forecast_within_15_percent_in_room": round(part_within(found["room"]), 4),
        "forecast_error_p50_percent": round(100 * median([cost / said - 1 for said, cost in every]), 2),
        "forecast_error_p95_percent": round(100 * percentile([abs(cost / said - 1) for said, cost in every], 0.95), 2),
        "goal_within": 0.95,
    }
    table(list(detail.items()))
    words = "boto3 and the shell: the same instance, first script and line"
    last_line("burst", median(mine), "s", words, median(mine) / median(peer), detail)


if __name__ == "__main__":
    main()
