"""`start`: from `windrow up`, installed, to the first real sample of this host in what the console reads. Goal: 5 s.

Peer: the bare start of the same interpreter with the same libraries imported, twice in a row (Master and Agent), which
nothing written in Python with these libraries can beat.
"""

import subprocess
import sys
import time
from typing import Any

from bench._report import last_line, median, scale, table
from tests.support.stack import stack, wait_for

IMPORTS = (
    "import fastapi, uvicorn, sqlalchemy, alembic, duckdb, numpy, grpc, cryptography",
    "import grpc, psutil, pynvml",
)
LOOK_S = 0.02


def _is_read(host: dict[str, Any]) -> bool:
    return (host.get("live") or {}).get("cpu_ratio") is not None


def bare_start_s() -> float:
    """Seconds to start the interpreter with the Master's and then the Agent's libraries."""
    began = time.monotonic()
    for line in IMPORTS:
        subprocess.run([sys.executable, "-c", line], check=True)
    return time.monotonic() - began


def first_sample_s() -> tuple[float, float]:
    """Seconds from the command to the Master's first answer, and to the first live CPU reading of this host."""
    with stack() as running:
        wait_for(lambda: running.cli["url"], pause_s=LOOK_S)
        with running.client() as api:
            wait_for(lambda: api.get("/me"), pause_s=LOOK_S)
            answered = time.monotonic() - running.started_at
            wait_for(lambda: any(map(_is_read, api.items("/hosts"))), pause_s=LOOK_S)
            return answered, time.monotonic() - running.started_at


def main() -> None:
    """Measure, print, end."""
    runs = max(1, round(3 * scale()))
    bare = [bare_start_s() for _ in range(runs)]
    measured = [first_sample_s() for _ in range(runs)]
    value, peer = median([sample for _, sample in measured]), median(bare)
    answered = median([first for first, _ in measured])
    table([("runs", runs), ("Master answers, s", answered), ("first sample, s", value), ("bare imports, s", peer)])
    detail = {"master_answers_s": round(answered, 3), "runs": runs, "goal_s": 5.0}
    last_line("start", value, "s", "bare interpreter with the same imports", value / peer, detail)


if __name__ == "__main__":
    main()
