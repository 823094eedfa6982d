"""Short benchmarks of this host for its tier, run in a child process with a deadline and the lowest priority.

cpu.sha256_bytes_per_s    SHA-256 over 1 MiB blocks on one thread per processor, all at once: integer work of all cores
memory.copy_bytes_per_s   bytes copied (not read plus written) between buffers larger than caches, on up to 8 threads
disk.write_bytes_per_s    64 MiB of random bytes written to the data directory and fsynced once

Standard library only: hashing and copying let go of the interpreter's lock, so threads measure every core.
"""

import argparse
import asyncio
import ctypes
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from windrow_proto.metrics import BENCHMARK_UNIT, CPU_HASH, DISK_WRITE, MEMORY_COPY, MEMORY_COPY_THREADS
from windrow_proto.model import Benchmark
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, MIB

log = structlog.get_logger()

SPAN_S: Final = 0.2
"""Per figure: long enough for clocks to rise, which takes milliseconds, short enough not to be in anybody's way."""

DEADLINE_S: Final = 30.0
"""For the whole child; a disk at 3 MB/s still makes it."""

OUTPUT_MAX: Final = 16 * 1024
NICENESS: Final = 19
BLOCK_BYTES: Final = MIB
COPY_BYTES: Final = 64 * MIB
COPY_THREADS_MAX: Final = MEMORY_COPY_THREADS
DISK_BYTES: Final = 64 * MIB
DISK_FREE_MIN: Final = 2 * GIB
"""With less left the disk is not measured: filling it would be worse than not knowing."""

UNITS: Final = dict.fromkeys((CPU_HASH, MEMORY_COPY, DISK_WRITE), BENCHMARK_UNIT)


async def measure(data_dir: Path, clock: Clock, deadline_s: float = DEADLINE_S) -> tuple[Benchmark, ...]:
    """Run the child and give its figures, ordered by name; what could not be measured in time is left out."""
    command = (sys.executable, "-m", "windrow_agent.host.benchmarks", "--data-dir", str(data_dir))
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(deadline_s):
            output, _ = await child.communicate()
    except TimeoutError:
        log.warning("benchmarks_timed_out", deadline_s=deadline_s)
        return ()
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()  # not wait: it would wait for a pipe that nobody reads
    return parse(output, clock.wall_ns())


def parse(output: bytes, measured_wall_ns: int) -> tuple[Benchmark, ...]:
    """The child's JSON as benchmarks; names it should not know and figures that are no rates are left out."""
    try:
        found = json.loads(output[:OUTPUT_MAX])
    except ValueError:
        return ()
    if not isinstance(found, dict):
        return ()
    return tuple(
        Benchmark(name, float(value), UNITS[name], measured_wall_ns)
        for name, value in sorted(found.items())
        if name in UNITS and isinstance(value, int | float) and 0 < value < 1e18
    )


# --- in the child -----------------------------------------------------------------------------------------------------


def hash_rate(threads: int, span_s: float) -> float:
    """Bytes per second hashed by `threads` threads together."""
    block = os.urandom(BLOCK_BYTES)
    return _rate(threads, span_s, [lambda: _hash(block)] * threads)


def copy_rate(threads: int, span_s: float, size: int) -> float:
    """Bytes per second copied by `threads` threads together, each between two buffers of `size` bytes of its own."""
    works: list[Callable[[], int]] = []
    for _ in range(threads):
        source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
        ctypes.memset(source, 1, size)  # touched, or every page would be the same empty one
        works.append(partial(_copy, target, source, size))
    return _rate(threads, span_s, works)


def write_rate(folder: Path) -> float | None:
    """Bytes per second written and made durable in `folder`; None where too little space is left."""
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < DISK_FREE_MIN:
        return None
    block = os.urandom(BLOCK_BYTES)  # random: no file system compresses it away
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = time.perf_counter()
        for _ in range(DISK_BYTES // BLOCK_BYTES):
            file.write(block)
        os.fsync(file.fileno())
        return DISK_BYTES / max(1e-9, time.perf_counter() - began)


def _hash(block: bytes) -> int:
    hashlib.sha256(block).digest()
    return len(block)


def _copy(target: "ctypes.Array[ctypes.c_char]", source: "ctypes.Array[ctypes.c_char]", size: int) -> int:
    ctypes.memmove(target, source, size)
    return size


def _rate(threads: int, span_s: float, works: list[Callable[[], int]]) -> float:
    """Let all threads work at once until the span is over; bytes of all per second of the slowest."""
    done = [0] * threads
    ends = [0.0] * threads
    gate = threading.Barrier(threads + 1)

    def work(place: int) -> None:
        works[place]()  # once before it counts: pages in, clocks up
        gate.wait()
        until = time.perf_counter() + span_s
        while time.perf_counter() < until:
            done[place] += works[place]()
        ends[place] = time.perf_counter()

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for one in workers:
        one.start()
    gate.wait()
    began = time.perf_counter()
    for one in workers:
        one.join()
    return sum(done) / max(1e-9, max(ends) - began)


def _copy_plan(processors: int) -> tuple[int, int]:
    """Threads and bytes per buffer, so that all buffers together take at most an eighth of the free memory."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    threads = max(1, min(COPY_THREADS_MAX, processors))
    return threads, max(MIB, min(COPY_BYTES, free // 8 // (2 * threads)))


def main() -> None:
    """Measure and print one JSON object of names and rates."""
    parser = argparse.ArgumentParser(description="Measure this host: processors, memory, disk.")
    parser.add_argument("--data-dir", type=Path, required=True)
    arguments = parser.parse_args()
    os.nice(NICENESS)
    processors = len(os.sched_getaffinity(0))
    threads, size = _copy_plan(processors)
    found: dict[str, float | None] = {
        CPU_HASH: hash_rate(processors, SPAN_S),
        MEMORY_COPY: copy_rate(threads, SPAN_S, size),
    }
    try:
        found["disk.write_bytes_per_s"] = write_rate(arguments.data_dir)
    except OSError as error:
        print(f"disk not measured: {error}", file=sys.stderr)
    print(json.dumps({name: round(value) for name, value in found.items() if value is not None}))


if __name__ == "__main__":
    main()
