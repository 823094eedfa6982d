"""Puts a backup in place of a market that does not run, and makes the fleet find it: a later term than any before.

read, check all of it ─▶ make its database current ─▶ (mark) put aside what is there ─▶ put in its place ─▶ (unmark)

What is there is kept beside it, under a name of its own. Cut short before the mark it leaves things as they were; after
it, the same command goes on.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_master.config import SQLITE_PREFIX
from windrow_master.identity.members import note_restored
from windrow_master.recovery import archive, manifest
from windrow_master.recovery.check import check_copy
from windrow_master.recovery.manifest import Manifest
from windrow_master.store import copies
from windrow_master.store.engine import sqlite_url
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.errors import Conflict, InvalidInput, StorageFailed
from windrow_proto.master_process import POSTGRESQL_PREFIX
from windrow_proto.units import time_text
from windrow_proto.version import VERSION

STAGING: Final = ".restoring"
MARK: Final = "restore.unfinished"
BESIDE: Final = ("-wal", "-shm", "-journal")
"""The files that SQLite keeps beside a database: those of another database would be taken for this one's."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. aside: where that is kept which was there before; None: nothing was."""

    made_at_ns: int
    epoch: int
    aside: Path | None


def check_whole(data_dir: Path) -> None:
    """Raises Conflict in a data directory whose restore was cut short: what is there belongs together no more."""
    if (data_dir / MARK).exists():
        raise Conflict(
            f"A restore of {data_dir} was cut short. Run the same `windrow-master restore` again.",
            subject=str(data_dir),
        )


def run(backup: Path, data_dir: Path, database: str, now_ns: int, say: Say) -> Restored:
    """Restore a backup. Blocking. Raises Conflict while the market runs, and what is wrong with the backup; then
    nothing was changed."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(data_dir, database):
        staging = data_dir / STAGING
        shutil.rmtree(staging, ignore_errors=True)
        try:
            staging.mkdir(mode=0o700)
            listed = archive.unpack(backup, staging)
            _check_kind(listed, database)
            check_copy(staging, listed)
            say(f"The backup of {time_text(listed.made_at_ns)} is whole: {len(listed.files)} files.")
            seen = _epoch_seen(data_dir, database)
            url = database
            if listed.database == "sqlite":
                url = sqlite_url(staging / manifest.DATABASE)
            elif listed.database == "postgresql":
                copies.restore_postgresql(database, staging / manifest.DUMP)
            epoch = copies.make_current(
                url,
                lambda uow: note_restored(uow, now_ns),
                at_least=seen + 1,
                now_ns=now_ns,
                version=VERSION,
                backup_at_ns=listed.made_at_ns,
            )
            aside = _swap(data_dir, database, staging, listed, now_ns)
        except OSError as error:
            raise StorageFailed(f"The backup could not be restored: {error}.", subject=str(data_dir)) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return Restored(listed.made_at_ns, epoch, aside)


@contextmanager
def _alone(data_dir: Path, database: str) -> Iterator[None]:
    locks: list[DirectoryLock] = []
    try:
        for name in ("up", "master"):
            locks.append(DirectoryLock(data_dir, name))
    except Conflict as error:
        for lock in locks:
            lock.release()
        raise Conflict(
            f"The market in {data_dir} runs: stop it first. {error.detail}", subject=str(data_dir)
        ) from error
    try:
        if database.startswith(POSTGRESQL_PREFIX):
            copies.check_unused(database)
        yield
    finally:
        for lock in locks:
            lock.release()


def _check_kind(listed: Manifest, database: str) -> None:
    is_shared = database.startswith(POSTGRESQL_PREFIX)
    if is_shared and listed.database == "sqlite":
        raise InvalidInput("This backup holds a SQLite database; unset WINDROW_DATABASE_URL to restore it.")
    if not is_shared and listed.database != "sqlite":
        raise InvalidInput(
            "This backup is of a market on PostgreSQL; set WINDROW_DATABASE_URL to the database that it goes into."
        )
    if listed.database == "postgresql" and not copies.can_dump():
        raise InvalidInput("This backup holds a dump of PostgreSQL; install pg_restore (Debian: postgresql-client).")


def _epoch_seen(data_dir: Path, database: str) -> int:
    """The latest term that anything here knows of: of the database that is there, and of the telemetry log."""
    if database.startswith(SQLITE_PREFIX):
        here = copies.epoch_of_sqlite(Path(database.removeprefix(SQLITE_PREFIX)))
    else:
        here = copies.look(database).epoch
    named = [int(path.name) for path in (data_dir / "log").glob("[0-9]*") if path.name.isdecimal()]
    return max([here, *named])


def _swap(data_dir: Path, database: str, staging: Path, listed: Manifest, now_ns: int) -> Path | None:
    """Put aside what is there and what was restored in its place; returns where the former is."""
    aside = data_dir / f"before-restore-{time_text(now_ns)[:19].replace(':', '').replace('-', '')}Z"
    (data_dir / MARK).touch(mode=0o600)
    archive.sync(data_dir)
    for path in _replaced(data_dir, database, listed):
        kept = aside / (path.relative_to(data_dir) if path.is_relative_to(data_dir) else path.name)
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.replace(kept)
    for name in listed.files:
        target = data_dir / name
        if name == manifest.DUMP or (name.startswith("access-") and target.exists()):
            continue  # an Access that is there may have renewed since
        if name == manifest.DATABASE:
            target = Path(database.removeprefix(SQLITE_PREFIX))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(staging / name, target)
        archive.sync(target.parent)
    (data_dir / MARK).unlink()
    archive.sync(data_dir)
    return aside if aside.exists() else None


def _replaced(data_dir: Path, database: str, listed: Manifest) -> Iterator[Path]:
    for name in ("identity", "audit", manifest.ANCHOR, manifest.CLI):
        if (data_dir / name).exists():
            yield data_dir / name
    if listed.database == "sqlite":
        path = Path(database.removeprefix(SQLITE_PREFIX))
        for one in (path, *(path.with_name(path.name + end) for end in BESIDE)):
            if one.exists():
                yield one
