"""`python -m tests.simulation SEED`: play one history again, say what the judges say, keep the trace if asked."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.simulation.world import Plan, World, play
from windrow_proto.units import MINUTE, SECOND

HOUR_MINUTES = 60.0


def described(world: World, real_s: float | None = None) -> str:
    """One history in a few lines: how to play it again, what happened, what was wrong."""
    plan = world.plan
    created = sum(len(renter.created) for renter in world.renters)
    took = "" if real_s is None else f", {real_s:.0f} s of real time"
    lines = [
        f"seed {plan.seed}: {world.clock.monotonic_ns() / SECOND:.0f} virtual s, {plan.hosts} agents{took}",
        f"  play it again: {command(plan)}",
        f"  trace {world.trace.hash[:16]}, {world.trace.count} lines, {world.witness.frames} frames, {created} rented",
        f"  faults: {', '.join(f'{count} x {name}' for name, count in sorted(world.happened.items()))}",
        *(f"  BROKEN {sentence[:1000]}" for sentence in world.verdicts[:20]),
    ]
    return "\n".join(lines)


def command(plan: Plan) -> str:
    """Returns the command that plays a plan again."""
    options = f"--hosts {plan.hosts} --minutes {plan.faulty_ns / MINUTE:g} --settle {plan.settle_ns / MINUTE:g}"
    options += f" --every {plan.fault_every_ns / SECOND:g}"
    options += f" --withhold {plan.withhold_chance:g} --turns {plan.turns_chance:g}" + (
        " --hosts-only" if plan.hosts_only else ""
    )
    options += (
        (" --copies" if plan.copies else "")
        + (" --tight" if plan.tight else "")
        + f" --sample {plan.sample_ns / SECOND:g}"
    )
    options += f" --masters {plan.masters}" if plan.masters > 1 else ""
    options += "".join(f" --fault '{name}'" for name in plan.faults)
    return f"python -m tests.simulation {plan.seed} {options}"


def main() -> int:
    """0: every promise held."""
    default = Plan(0)
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--hosts", type=int, default=default.hosts)
    parser.add_argument("--minutes", type=float, default=HOUR_MINUTES, help="virtual minutes of faults (60)")
    parser.add_argument("--settle", type=float, default=default.settle_ns / MINUTE, help="minutes after everybody left")
    parser.add_argument("--every", type=float, default=default.fault_every_ns / SECOND, help="seconds between faults")
    parser.add_argument("--fault", action="append", default=[], help="draw only from these")
    parser.add_argument("--withhold", type=float, default=default.withhold_chance)
    parser.add_argument("--turns", type=float, default=default.turns_chance, help="that a renter stops or starts one")
    parser.add_argument("--hosts-only", action="store_true", help="judge the hosts only")
    parser.add_argument("--copies", action="store_true", help="judge identities only")
    parser.add_argument("--tight", action="store_true", help="caps are so small that everything fills")
    parser.add_argument("--sample", type=float, default=default.sample_ns / SECOND, help="seconds between samples")
    parser.add_argument("--masters", type=int, default=1, help="over one database, of which one leads")
    parser.add_argument("--trace", type=Path, help="write the whole trace to this file")
    asked = parser.parse_args()
    plan = Plan(
        asked.seed,
        hosts=asked.hosts,
        faulty_ns=int(asked.minutes * MINUTE),
        settle_ns=int(asked.settle * MINUTE),
        fault_every_ns=int(asked.every * SECOND),
        faults=tuple(asked.fault),
        withhold_chance=asked.withhold,
        turns_chance=asked.turns,
        hosts_only=asked.hosts_only,
        copies=asked.copies,
        masters=asked.masters,
        tight=asked.tight,
        sample_ns=int(asked.sample * SECOND),
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        world = play(plan, Path(directory), keep_trace=asked.trace is not None, is_last=True)
    if asked.trace is not None:
        asked.trace.write_text("\n".join(world.trace.kept) + "\n")
    print(described(world, time.monotonic() - began))
    return 1 if world.verdicts else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # a market in memory takes a second to be put away piece by piece
