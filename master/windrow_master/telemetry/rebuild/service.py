"""`windrow-master rebuild-history`: makes the file of history again from the segment log, and keeps what only it knew.

It runs while no Master does: it takes the Master's lock of the data directory, and DuckDB refuses a file that a Master
of a shared database holds. The new file is made in a folder of its own and takes the old ones' place when it is whole;
those are kept beside it under another name. Cut short, it leaves things as they were.
"""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.duckdb_view import HistoryView, is_damage, open_file, put_aside
from windrow_master.telemetry.history_roll import prepare, roll
from windrow_master.telemetry.rebuild.merge import take_over
from windrow_proto.clock import SystemClock
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.disk import OsDisk
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.ports import Clock, Disk
from windrow_proto.segments import segment_numbers, segment_path
from windrow_proto.units import MIB, MILLISECOND, SECOND

REPLACED: Final = ".replaced"
TELL_EVERY_NS: Final = 2 * SECOND
EXIT_FAILURE: Final = 1

Say = Callable[[str], None]


def command_line(default: Path) -> argparse.ArgumentParser:
    """Returns the parser of the command. default: the data directory where no flag names one."""
    text = "Make the history of charts again from the telemetry log, while no Master runs."
    parser = argparse.ArgumentParser(prog="windrow-master rebuild-history", description=text)
    parser.add_argument("--data-dir", type=Path, default=default)
    parser.add_argument("--remote", action="store_true", help="instead, send the whole log to the metrics store again")
    return parser


def main(arguments: Sequence[str], default: Path) -> int:
    """The command; returns its exit status. default: the data directory where no flag names one."""
    read = command_line(default).parse_args(list(arguments))
    os.umask(0o077)
    try:
        run(read.data_dir.expanduser().resolve(), OsDisk(), SystemClock(), _say, is_remote=read.remote)
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
        return EXIT_FAILURE
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def run(data_dir: Path, disk: Disk, clock: Clock, say: Say, *, is_remote: bool) -> None:
    """Do it, or raise with the reason it cannot be done now. Blocking."""
    if not data_dir.is_dir():
        raise InvalidInput(f"There is no data directory {data_dir}; give the Master's with --data-dir.")
    lock = DirectoryLock(data_dir)
    try:
        if is_remote:
            _forget_remote(data_dir / "history", say)
        else:
            _rebuild(data_dir, disk, clock, say)
    finally:
        lock.release()


def _forget_remote(directory: Path, say: Say) -> None:
    """Without its cursor the view of a metrics store begins with the log's first record."""
    cursors = list(directory.glob("remote-*.json"))
    for path in cursors:
        path.unlink()
    say(
        "The Master sends the whole log to the metrics store again when it starts."
        if cursors
        else "No metrics store was written to from here; there is nothing to send again."
    )


def _rebuild(data_dir: Path, disk: Disk, clock: Clock, say: Say) -> None:
    directory, log = data_dir / "history", f"{data_dir}/log"
    building = directory / "rebuilding"
    olds = [path for path in sorted(directory.glob("history-[0-9]*.duckdb")) if _is_sound(path, clock, say)]
    shutil.rmtree(building, ignore_errors=True)
    made = asyncio.run(_follow(disk, log, building, clock, say))
    connection = open_file(made)
    try:
        roll(connection, prepare(connection), clock.wall_ns() // MILLISECOND)
        for path in olds:
            try:
                rows = take_over(connection, str(path))
                say(f"{path.name}: taken over; {rows} rolled-up rows now.")
            except Exception as error:
                if not is_damage(error):
                    raise
                say(f"{path.name}: cannot be read to its end ({str(error)[:200]}); what only it knew is not in charts.")
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    numbers = [int(path.stem.split("-")[1]) for path in olds]
    target = directory / f"history-{max(numbers, default=0) + 1:04d}.duckdb"
    made.replace(target)
    for path in olds:
        path.replace(path.with_name(path.name + REPLACED))
    shutil.rmtree(building)
    say(
        f"History is in {target}."
        + (f" The old files are kept as *{REPLACED}; delete them when you like." if olds else "")
    )


def _is_sound(path: Path, clock: Clock, say: Say) -> bool:
    """Return whether a file opens; then all its samples are rolled up. Raises Conflict where another process holds
    it."""
    try:
        connection = open_file(path)
        try:
            roll(connection, prepare(connection), clock.wall_ns() // MILLISECOND)
        finally:
            connection.close()
    except Exception as error:
        if not is_damage(error):
            raise
        put_aside(path)
        say(f"{path.name}: damaged ({str(error)[:200]}); kept as *.damaged. What only it knew is lost.")
        return False
    return True


async def _follow(disk: Disk, log: str, building: Path, clock: Clock, say: Say) -> Path:
    """Make a file of all that the log holds; returns where it is."""
    terms = sorted(int(path.name) for path in Path(log).glob("[0-9]*"))
    sizes = {
        (term, number): disk.size(segment_path(f"{log}/{term:012d}", number))
        for term in terms
        for number in segment_numbers(disk, f"{log}/{term:012d}")
    }
    total = sum(sizes.values())
    view = HistoryView(disk, log, max(terms, default=1), building, clock, InlineExecutor())
    told_ns = clock.monotonic_ns()
    try:
        await view.catch_up_once()
        while view.is_behind:
            await view.catch_up_once()
            if clock.monotonic_ns() - told_ns >= TELL_EVERY_NS and view.cursor is not None:
                told_ns, at = clock.monotonic_ns(), (view.cursor.epoch, view.cursor.segment)
                done = sum(size for place, size in sizes.items() if place < at) + view.cursor.offset
                say(f"{done // MIB} of {total // MIB} MiB of the log, {view.health().rows} samples")
        health = view.health()
        say(f"All of the log: {health.rows} samples; {health.bad_batches} batches could not be read.")
        return Path(health.path)
    finally:
        view.close()
