"""Shared parts of every benchmark: its scale, its table, its last line, and the processor time of processes it
watches."""

import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def scale() -> float:
    """BENCH_SCALE: 0.1 for a quick look, 1 by default, more for steadier figures."""
    return max(0.01, float(os.environ.get("BENCH_SCALE") or "1"))


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time of processes and their ended children, in seconds (proc(5), fields 14 to 17)."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS_PER_S


def exact_cpu_seconds(pids: Iterable[int]) -> float:
    """The same by the processes' own clocks (clock_getcpuclockid(3)), in nanoseconds and not in ticks of 10 ms; without
    ended children."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def rss_mib(pid: int) -> float:
    """Resident memory of one process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` (0 to 1) of the values lie, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def table(rows: Sequence[tuple[str, Any]]) -> None:
    """Name and figure, a line each."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        text = f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
        sys.stdout.write(f"  {name.ljust(width)}  {text}\n")


def last_line(
    name: str, value: float, unit: str, peer: str | None, ratio: float | None, detail: dict[str, Any]
) -> None:
    """The one JSON object that ends a benchmark; no ratio without a peer in the same run."""
    record = {"bench": name, "value": round(value, 4), "unit": unit, "peer": peer, "ratio": ratio and round(ratio, 4)}
    sys.stdout.write(json.dumps(record | {"detail": detail}) + "\n")
    sys.stdout.flush()
