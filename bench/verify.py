"""`verify`: what it costs the Master to check 64 openings of a product of 16,384 x 16,384. Goal: 20 ms.

Limit: the same rows and columns made by the same generator in the same way, in turn with it, and nothing else: no check
can do with less. Beside it the same with paths hashed and entries multiplied. Measured as wall time of one thread, the
middle of the runs, and as that thread's own processor time, which other work on the machine does not lengthen.

The answer is an honest one to one round of n = 16,384 whose tree is made up around the opened leaves: the Master's work
is the same, and no machine has to multiply for minutes. With OpenCL on processors (Debian: `pocl-opencl-icd`) the
prover's own rate is in the detail, too, at a small size: it is of this processor and of no GPU.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from bench._report import last_line, median, percentile, scale, table
from windrow_agent.challenge.opencl import ComputeFailed, OpenCl
from windrow_agent.challenge.prover import Prover, open_session
from windrow_master.verification.draw import CHANCE_BYTES, draw
from windrow_master.verification.judge import Answered, Committed, Phase, Trial, step
from windrow_master.verification.product import entries, lines
from windrow_proto import merkle
from windrow_proto.challenge import (
    ENTRY_BYTES,
    LEAF_BYTES,
    LEAF_COLUMNS,
    OPENINGS,
    Answer,
    Challenge,
    Commitment,
    Opening,
    Selection,
)
from windrow_proto.ids import GpuUuid

SIZE = 16_384
GOAL_MS = 20.0
PROVER_SIZE = 512


def honest(challenge: Challenge, chance: bytes) -> tuple[Commitment, Answer]:
    """A commitment and the answer to the places that this chance draws of it; every leaf that is not opened is zeros,
    so that all of the tree beside the opened leaves is one hash a level."""
    selection = draw(challenge, chance)
    true = entries(challenge, (bytes(32),), selection.places)
    leaves: dict[int, bytearray] = {}
    for place, value in zip(selection.places, true, strict=True):
        leaf = leaves.setdefault(place.leaf(challenge), bytearray(LEAF_BYTES))
        start = place.column % LEAF_COLUMNS * ENTRY_BYTES
        leaf[start : start + ENTRY_BYTES] = value.to_bytes(ENTRY_BYTES, "little")
    level = {index: merkle.leaf_hash(bytes(leaf)) for index, leaf in leaves.items()}
    empty = merkle.leaf_hash(bytes(LEAF_BYTES))
    paths: dict[int, list[bytes]] = {index: [] for index in leaves}
    for depth in range(challenge.depth):
        for index, path in paths.items():
            path.append(level.get((index >> depth) ^ 1, empty))
        level = {
            index >> 1: merkle.node_hash(level.get(index & ~1, empty), level.get(index | 1, empty)) for index in level
        }
        empty = merkle.node_hash(empty, empty)
    opened = (place.leaf(challenge) for place in selection.places)
    openings = tuple(Opening(bytes(leaves[index]), tuple(paths[index])) for index in opened)
    return Commitment(challenge.id, challenge.gpu_uuid, (level[0],)), Answer(challenge.id, openings)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of one call: wall, and this thread's own."""
    began, own = time.perf_counter_ns(), time.thread_time_ns()
    work()
    return (time.perf_counter_ns() - began) / 1e6, (time.thread_time_ns() - own) / 1e6


def prover_rate() -> tuple[str, float] | None:
    """The first OpenCL device's name and multiplications per second of a whole commitment; None where there is none."""
    try:
        opencl = OpenCl()
        device, *_ = (one for one in opencl.devices() if one.uuid)
        with open_session(opencl, device) as session:
            prover = Prover(session, device, PROVER_SIZE)
            challenge = Challenge(os.urandom(32), bytes(32), GpuUuid(device.uuid), PROVER_SIZE, 1)
            prover.commit(challenge)  # compiled for these shapes, memory touched
            rounds = 4
            wall_ms, _ = timed(lambda: prover.commit(replace(challenge, rounds=rounds)))
            return device.name, rounds * PROVER_SIZE**3 / (wall_ms / 1e3)
    except (ComputeFailed, ValueError):
        return None


def main() -> None:
    """Measure, print, end."""
    runs = max(5, round(100 * scale()))
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    passed = 0
    for _ in range(runs):
        challenge = Challenge(os.urandom(32), os.urandom(32), GpuUuid("GPU-1"), SIZE, 1)
        chance = os.urandom(CHANCE_BYTES)
        commitment, answer = honest(challenge, chance)
        trial, _ = step(Trial(challenge, 0), Committed(commitment, 1, chance))
        selection: Selection = trial.selection or draw(challenge, chance)
        judged: list[Trial] = []
        ours.append(timed(lambda: judged.append(step(trial, Answered(answer, 2))[0])))  # noqa: B023 - called at once
        bare.append(timed(lambda: deque(lines(challenge, commitment.roots, selection.places), 0)))  # noqa: B023
        passed += judged[0].phase is Phase.PASSED
    value, limit = median([wall for wall, _ in ours]), median([wall for wall, _ in bare])
    cpu, limit_cpu = median([own for _, own in ours]), median([own for _, own in bare])
    prover = prover_rate()
    table(
        [
            ("runs", runs),
            ("verdicts that are right", passed),
            (f"verify {OPENINGS} openings at n={SIZE}, ms", value),
            ("the quickest of them, ms", min(wall for wall, _ in ours)),
            ("the same, 95 of 100 within, ms", percentile([wall for wall, _ in ours], 0.95)),
            ("its processor time, ms", cpu),
            ("the rows and columns alone, ms", limit),
            ("their processor time, ms", limit_cpu),
            ("prover", prover[0] if prover else "no OpenCL device here; on Debian: pocl-opencl-icd"),
            *([(f"its rate at n={PROVER_SIZE}, 1e9 multiplications/s", prover[1] / 1e9)] if prover else []),
        ]
    )
    detail = {
        "goal_ms": GOAL_MS,
        "openings": OPENINGS,
        "size": SIZE,
        "runs": runs,
        "right": passed,
        "best_ms": round(min(wall for wall, _ in ours), 3),
        "p95_ms": round(percentile([wall for wall, _ in ours], 0.95), 3),
        "cpu_ms": round(cpu, 3),
        "limit_ms": round(limit, 3),
        "limit_cpu_ms": round(limit_cpu, 3),
        "prover": prover and prover[0],
        "prover_multiplications_per_s": prover and round(prover[1]),
    }
    last_line("verify", value, "ms", "the same rows and columns alone, same generator", value / limit, detail)


if __name__ == "__main__":
    main()
