"""Old entries of the audit log in files beside the database: the chain goes on from one to the next, and into it.

audit/000000000001-000000010000.jsonl.gz   entries 1 to 10000, one a line
"""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from windrow_master.store.model import AuditEntry
from windrow_proto.errors import InvalidInput
from windrow_proto.keys import save_private

FOLDER: Final = "audit"
SUFFIX: Final = ".jsonl.gz"
_NAME: Final = re.compile(r"(\d{12,})-(\d{12,})\.jsonl\.gz")


def write(directory: Path, entries: Sequence[AuditEntry]) -> Path:
    """Put entries that follow one another into a file of their own, durable on return."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{entries[0].number:012d}-{entries[-1].number:012d}{SUFFIX}"
    lines = "".join(f"{_line(entry)}\n" for entry in entries)
    save_private(path, gzip.compress(lines.encode(), mtime=0))
    _sync(directory.parent)
    return path


def files(directory: Path) -> list[tuple[int, int, Path]]:
    """The first and last number of each file, and the file, in order."""
    found = [(match, path) for path in directory.glob(f"*{SUFFIX}") if (match := _NAME.fullmatch(path.name))]
    return sorted((int(match[1]), int(match[2]), path) for match, path in found)


def sealed(directory: Path) -> Iterator[AuditEntry]:
    """Every entry of the files, in order. Raises InvalidInput where one cannot be read."""
    for _, _, path in files(directory):
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield _entry(line)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"The sealed part {path} of the audit log cannot be read: {error}.") from error


def joined(old: Iterable[AuditEntry], new: Iterable[AuditEntry]) -> Iterator[AuditEntry]:
    """The whole log: what was sealed, then what is in the database; what is in both, once."""
    number = 0
    for entries in (old, new):
        for entry in entries:
            if entry.number > number:
                yield entry
                number = entry.number


def _line(entry: AuditEntry) -> str:
    return json.dumps(
        {
            "number": entry.number,
            "at_ns": entry.at_ns,
            "epoch": entry.epoch,
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "reason": entry.reason,
            "fields": dict(entry.fields),
            "chain": entry.chain.hex(),
        },
        separators=(",", ":"),
    )


def _entry(line: str) -> AuditEntry:
    record = json.loads(line)
    return AuditEntry(**{**record, "chain": bytes.fromhex(record["chain"])})


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
