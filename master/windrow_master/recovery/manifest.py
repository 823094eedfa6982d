"""The list at the head of a backup: when and by which version it was made, the size and hash of each file. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from windrow_proto.errors import InvalidInput

NAME: Final = "manifest.json"
FORMAT: Final = 1
MANIFEST_BYTES_MAX: Final = 4 * 1024 * 1024
DATABASE: Final = "master.sqlite3"
DUMP: Final = "master.pgdump"
ANCHOR: Final = "audit.anchor"
CLI: Final = "cli.json"
ACCESS_PATHS: Final = ("identity/*", "access.json")
"""Of each Access that `windrow up` runs beside this Master."""
PATHS: Final = (ANCHOR, "identity/*", CLI, *(f"access-*/{path}" for path in ACCESS_PATHS))
"""The files that make a market the same one, beside its database: the audit log's anchor, keys, where members and
the command line find it, and who its own Accesses are."""
SEALED_PATHS: Final = ("audit/*.jsonl.gz",)
"""The old parts of the audit log: a part is written before its entries leave the database."""
_LEGAL: Final = re.compile(
    r"(master\.(sqlite3|pgdump)|audit\.anchor|cli\.json|(access-[\w.-]+/)?identity/[\w-][\w.-]*|access-[\w.-]+/access\.json"
    r"|audit/[\w.-]+\.jsonl\.gz)"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a backup."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One backup. database: `sqlite`, `postgresql` (dumped with it) or `elsewhere` (a PostgreSQL that is not in it)."""

    made_at_ns: int
    version: str
    schema: str
    epoch: int
    database: str
    files: Mapping[str, Part]

    def encoded(self) -> bytes:
        """As it is written."""
        record = {
            "format": FORMAT,
            "made_at_ns": self.made_at_ns,
            "version": self.version,
            "schema": self.schema,
            "epoch": self.epoch,
            "database": self.database,
            "files": {name: {"bytes": one.size_bytes, "sha256": one.sha256} for name, one in self.files.items()},
        }
        return json.dumps(record, indent=1, sort_keys=True).encode() + b"\n"


def decoded(data: bytes) -> Manifest:
    """The manifest that these bytes are. Raises InvalidInput with what is wrong."""
    try:
        record: dict[str, Any] = json.loads(data)
        if int(record["format"]) > FORMAT:
            raise InvalidInput("This backup was made by a newer Windrow. Install that version or a later one.")
        files = {str(name): Part(int(one["bytes"]), str(one["sha256"])) for name, one in record["files"].items()}
        found = Manifest(
            made_at_ns=int(record["made_at_ns"]),
            version=str(record["version"]),
            schema=str(record["schema"]),
            epoch=int(record["epoch"]),
            database=str(record["database"]),
            files=files,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput("This is no backup of Windrow: its manifest cannot be read.") from error
    for name, part in found.files.items():
        if not is_legal(name) or not _SHA256.fullmatch(part.sha256) or part.size_bytes < 0:
            raise InvalidInput(f"This is no backup of Windrow: it may not hold {name[:80]!r}.")
    return found


def is_legal(name: str) -> bool:
    """Return whether a backup may hold a file of this name: one of a data directory, and no way out of it."""
    return _LEGAL.fullmatch(name) is not None and ".." not in name.split("/")
