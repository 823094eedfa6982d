"""The commands `windrow-master backup`, `restore` and `check`: their arguments, their output and their exit codes."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from windrow_master.config import database_of_process, market_of_process
from windrow_master.recovery import archive, backup, check, restore
from windrow_master.recovery.manifest import Manifest
from windrow_proto.clock import SystemClock
from windrow_proto.errors import WindrowError
from windrow_proto.units import time_text

EXIT_FAILURE: Final = 1


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the commands."""
    parser = argparse.ArgumentParser(prog="windrow-master", description="Keep a market safe.")
    verbs = parser.add_subparsers(required=True)
    for name, run, target, text in _VERBS:
        verb = verbs.add_parser(name, help=text, description=text)
        target(verb)
        verb.add_argument(
            "--data-dir", type=Path, help="data directory; default: WINDROW_DATA_DIR, or .windrow here or above"
        )
        verb.set_defaults(run=run)
    return parser


def main(arguments: Sequence[str]) -> int:
    """One of the commands; returns its exit status."""
    read = command_line().parse_args(list(arguments))
    os.umask(0o077)
    try:
        data_dir = (read.data_dir or market_of_process()).expanduser().resolve()
        return int(read.run(read, data_dir, database_of_process(data_dir)))
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
        return EXIT_FAILURE


def _say(line: str) -> None:
    print(line, flush=True)


def _backup(read: argparse.Namespace, data_dir: Path, database: str) -> int:
    path, listed = backup.make(data_dir, database, read.target.expanduser().absolute(), SystemClock().wall_ns())
    _say(f"{path}: {path.stat().st_size:,} bytes, of {data_dir} at {time_text(listed.made_at_ns)}")
    if listed.database == "elsewhere":
        _say(
            "The database is NOT in it: pg_dump is not on this machine. Save it with `pg_dump --format=custom` where "
            "PostgreSQL is, right after this."
        )
    _say("It holds the market's keys: keep it where nobody else reads it.")
    _say("Not in it: what renters keep (artefacts/) and the readings of the past (log/, history/).")
    return 0


def _restore(read: argparse.Namespace, data_dir: Path, database: str) -> int:
    done = restore.run(read.backup.expanduser().absolute(), data_dir, database, SystemClock().wall_ns(), _say)
    _say(f"Restored: the market of {time_text(done.made_at_ns)}, from term {done.epoch} on.")
    if done.aside is not None:
        _say(f"What was there before is in {done.aside}.")
    _say(
        "Start it as before. Hosts and relays that it knows are back within a minute; who joined after the backup is "
        "told to join again. What ran then and has ended since is closed with what had been signed by then; what began "
        "since and still runs is ended after 5 min, and nobody pays for it."
    )
    return 0


def _check(read: argparse.Namespace, data_dir: Path, database: str) -> int:
    if read.backup is not None:
        listed = check_backup(read.backup.expanduser().absolute())
        _say(
            f"ok       backup         of {time_text(listed.made_at_ns)}, {len(listed.files)} files, term {listed.epoch}"
        )
        return 0
    is_well = True
    for found in check.examine(data_dir, database):
        _say(f"{'ok      ' if found.is_ok else 'PROBLEM '} {found.name:<14} {found.words}")
        if not found.is_ok:
            is_well = False
            _say(f"{'':<23} repair: {found.repair}")
    _say(f"{data_dir} is whole." if is_well else f"{data_dir} is NOT whole.")
    return 0 if is_well else EXIT_FAILURE


def check_backup(path: Path) -> Manifest:
    """The manifest of a backup, after every file of it was looked at. Raises InvalidInput where it is damaged."""
    with tempfile.TemporaryDirectory(prefix="windrow-check-") as folder:
        listed = archive.unpack(path, Path(folder))
        check.check_copy(Path(folder), listed)
        return listed


def _target(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("target", type=Path, metavar="FILE|FOLDER", help="a new file, or a folder to make one in")


def _given(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("backup", type=Path, metavar="BACKUP", help="a file that `backup` made")


def _perhaps(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("backup", type=Path, metavar="BACKUP", nargs="?", help="check this backup instead of a market")


Verb = Callable[[argparse.Namespace, Path, str], int]
_VERBS: Final[tuple[tuple[str, Verb, Callable[[argparse.ArgumentParser], None], str], ...]] = (
    ("backup", _backup, _target, "Back up a market, while it runs or not, into one file."),
    ("restore", _restore, _given, "Put a backup in place of a market that does not run; what is there is kept beside."),
    ("check", _check, _perhaps, "Look whether a market's files, or a backup, are whole; exits 1 where they are not."),
)
NAMES: Final = frozenset(verb[0] for verb in _VERBS)
