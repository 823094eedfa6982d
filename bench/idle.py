"""`idle`: processor time of a Master with 100,000 ended and 10,000 waiting jobs, and no host to place them on.

Limit: 3 % of a core. The shipped `windrow-master` on SQLite with its defaults; BENCH_SCALE makes the time shorter and
not the jobs fewer. Measured once jobs that find no place are tried as rarely as they ever are.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._report import cpu_seconds, last_line, median, percentile, rss_mib, scale, table
from tests.support.many_jobs import ACCOUNTS, add_jobs
from tests.support.stack import wait_for
from windrow.client import Client
from windrow.config import Config
from windrow_master.app import wiring
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.data_directory import CliFile

WAITING, ENDED = 10_000, 100_000
LIMIT = 0.03
SETTLE_S = 75.0
"""Tries of a job that finds no place are 1, 2, 4, 8, 16 and then 30 seconds apart."""
WINDOW_S = 3.0
WINDOWS, WINDOWS_MIN = 20, 5
STOP_S = 30.0


def furnish(data: Path) -> float:
    """A market's data directory with these jobs; returns the seconds that it took."""
    began = time.monotonic()
    opened = wiring.build(data, SystemClock(), SystemRng())
    try:
        opened.store.write_now(lambda uow: add_jobs(uow, WAITING, ENDED), name="bench")
    finally:
        opened.close()
    return time.monotonic() - began


def shares(data: Path, log: Path, windows: int) -> tuple[list[float], float, float]:
    """Of each window the share of a core; seconds from the start to the first answer; resident MiB at the end."""
    with log.open("wb") as out:
        began = time.monotonic()
        master = subprocess.Popen([sys.executable, "-m", "windrow_master", "--data-dir", str(data)], stderr=out)
        try:
            record = wait_for(lambda: CliFile(data / "cli.json").read())
            with Client(Config(record["url"], record["token"])) as api:
                wait_for(lambda: api.get("/me"))
            answers_s = time.monotonic() - began
            time.sleep(SETTLE_S)
            found = []
            for _ in range(windows):
                cpu, wall = cpu_seconds([master.pid]), time.monotonic()
                time.sleep(WINDOW_S)
                found.append((cpu_seconds([master.pid]) - cpu) / (time.monotonic() - wall))
            return found, answers_s, rss_mib(master.pid)
        finally:
            master.terminate()
            try:
                master.wait(STOP_S)
            except subprocess.TimeoutExpired:
                master.kill()
                master.wait()


def main() -> None:
    """Measure, print, end."""
    windows = max(WINDOWS_MIN, round(WINDOWS * scale()))
    with tempfile.TemporaryDirectory(prefix="windrow-idle-") as name:
        furnished_s = furnish(Path(name) / "master")
        found, answers_s, rss = shares(Path(name) / "master", Path(name) / "log", windows)
    detail = {
        "jobs_waiting": WAITING,
        "jobs_ended": ENDED,
        "shapes_waiting": ACCOUNTS,
        "windows": windows,
        "mean": round(sum(found) / len(found), 4),
        "p90": round(percentile(found, 0.9), 4),
        "max": round(max(found), 4),
        "rss_mib": round(rss, 1),
        "master_answers_s": round(answers_s, 2),
    }
    table([("started as", "windrow-master with its defaults"), ("rows made in, s", furnished_s), *detail.items()])
    last_line("idle", median(found), "cores", "the limit of 0.03 cores", median(found) / LIMIT, detail)


if __name__ == "__main__":
    main()
