"""Trains a line by gradient descent, with checkpoints: the work of test_job_kills.py on hosts that die.

The standard library alone, deterministic to the last bit, and far from its end in every step, so that one step too many
or too few is seen in the final loss. Each part of a checkpoint is hashed in it: a torn one is recognised.
"""

import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("CKPT_DIR", "ckpt"))
PACE_S = float(os.environ.get("PACE_S", "0.02"))
STEPS = int(os.environ.get("STEPS", "300"))
EVERY = 5
FEATURES, POINTS, RATE = 8, 40, 0.002
BALLAST_BYTES = 300_000


def points() -> list[tuple[list[float], float]]:
    chance = random.Random(7)
    xs = [[chance.gauss(0, 1) for _ in range(FEATURES)] for _ in range(POINTS)]
    return [(x, sum(value * (number + 1) for number, value in enumerate(x)) + chance.gauss(0, 1)) for x in xs]


def errors(weights: list[float], data: list[tuple[list[float], float]]) -> list[float]:
    return [sum(w * value for w, value in zip(weights, x, strict=True)) - y for x, y in data]


def trained(weights: list[float], data: list[tuple[list[float], float]], step: int) -> list[float]:
    """One step; the batch is drawn by its number."""
    batch = random.Random(step).sample(data, POINTS // 2)
    off = errors(weights, batch)
    slopes = [sum(e * x[at] for e, (x, _) in zip(off, batch, strict=True)) for at in range(FEATURES)]
    return [w - RATE * slope for w, slope in zip(weights, slopes, strict=True)]


def save(step: int, weights: list[float]) -> None:
    """Into a folder of another name, in no hurry, so that death finds it half written; then renamed."""
    temporary = ROOT / f".tmp-{step}"
    temporary.mkdir(parents=True, exist_ok=True)
    parts = {"weights": json.dumps(weights).encode(), "ballast": bytes([step % 256]) * BALLAST_BYTES}
    for name, content in parts.items():
        (temporary / name).write_bytes(content[: len(content) // 2])
        time.sleep(PACE_S)
        (temporary / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    (temporary / "sums").write_text(json.dumps({"step": step, **sums}))
    temporary.rename(ROOT / f"step-{step}")


def newest() -> tuple[int, list[float]]:
    """The step that the newest checkpoint is of, and its weights; exits with 9 where it is torn."""
    steps = [int(path.name.removeprefix("step-")) for path in ROOT.glob("step-*")]
    if not steps:
        return -1, [0.0] * FEATURES
    folder = ROOT / f"step-{max(steps)}"
    try:
        sums = json.loads((folder / "sums").read_text())
        assert sums.pop("step") == max(steps)
        assert set(sums) == {"weights", "ballast"}
        for name, digest in sums.items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        weights = json.loads((folder / "weights").read_text())
    except (OSError, ValueError, AssertionError, AttributeError) as error:
        print(f"torn: {folder.name}: {error!r}", flush=True)
        sys.exit(9)
    return max(steps), [float(one) for one in weights]


def main() -> None:
    data = points()
    done, weights = newest()
    print(f"goes on from step {done}", flush=True)
    for step in range(done + 1, STEPS):
        weights = trained(weights, data, step)
        time.sleep(PACE_S)
        if step % EVERY == 0:
            save(step, weights)
    loss = sum(e * e for e in errors(weights, data)) / len(data)
    print(f"final loss {loss!r}", flush=True)


if __name__ == "__main__":
    main()
