"""Makes a backup of a market, while it runs or not: its database at one moment, and all that makes it the same market.

The audit log's anchor is read before the database, so that it never names an entry that the copy lacks; its old parts
after the database, so that what has left the database is among them.
"""

import json
import tempfile
from pathlib import Path

from windrow_master.config import SQLITE_PREFIX
from windrow_master.recovery import archive, manifest
from windrow_master.recovery.last import LAST
from windrow_master.recovery.manifest import Manifest
from windrow_master.store import copies
from windrow_proto.errors import Conflict, InvalidInput, StorageFailed
from windrow_proto.keys import save_private
from windrow_proto.master_process import POSTGRESQL_PREFIX
from windrow_proto.units import time_text
from windrow_proto.version import VERSION


def make(data_dir: Path, database: str, target: Path, now_ns: int) -> tuple[Path, Manifest]:
    """Back up the market of this data directory into a file, or into a file of its own in a folder; returns where.

    Raises InvalidInput where there is no market, Conflict where the file is there, StorageFailed."""
    if not (data_dir / "identity" / "ca.key").is_file():
        raise InvalidInput(f"There is no market in {data_dir}; name its data directory with --data-dir.")
    if target.is_dir():
        stamp = time_text(now_ns)[:19].replace(":", "").replace("-", "")
        target = target / f"windrow-{stamp}Z.tar"
    if target.exists():
        raise Conflict(f"{target} exists; a backup does not replace a file. Choose another name.", subject=str(target))
    try:
        with tempfile.TemporaryDirectory(prefix=".windrow-backup-", dir=target.parent) as folder:
            listed, sources = _collect(data_dir, database, Path(folder), now_ns)
            archive.write(target, listed, sources)
        save_private(data_dir / LAST, json.dumps({"made_at_ns": now_ns, "path": str(target)}).encode() + b"\n")
    except OSError as error:
        raise StorageFailed(f"The backup could not be made: {error}.", subject=str(target)) from error
    return target, listed


def _collect(data_dir: Path, database: str, folder: Path, now_ns: int) -> tuple[Manifest, dict[str, Path]]:
    sources: dict[str, Path] = {}
    for pattern in manifest.PATHS:
        for path in sorted(data_dir.glob(pattern)):
            name = path.relative_to(data_dir).as_posix()
            if path.is_file() and manifest.is_legal(name):
                # A copy, since a Master that runs may replace it meanwhile.
                sources[name] = folder / f"{len(sources)}"
                sources[name].write_bytes(path.read_bytes())
    kind, copied = _copy_database(database, folder, sources)
    for pattern in manifest.SEALED_PATHS:
        sources |= {path.relative_to(data_dir).as_posix(): path for path in sorted(data_dir.glob(pattern))}
    files = {name: archive.part_of(path) for name, path in sources.items()}
    return Manifest(now_ns, VERSION, copied.schema, copied.epoch, kind, files), sources


def _copy_database(database: str, folder: Path, sources: dict[str, Path]) -> tuple[str, copies.Copied]:
    if not database.startswith(POSTGRESQL_PREFIX):
        sources[manifest.DATABASE] = folder / manifest.DATABASE
        return "sqlite", copies.copy_sqlite(Path(database.removeprefix(SQLITE_PREFIX)), sources[manifest.DATABASE])
    if not copies.can_dump():
        return "elsewhere", copies.look(database)
    sources[manifest.DUMP] = folder / manifest.DUMP
    return "postgresql", copies.copy_postgresql(database, sources[manifest.DUMP])
