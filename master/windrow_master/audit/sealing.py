"""Moves old entries of the audit log into files beside the database: the chain goes on from one to the next, and into
it.

audit/000000000001-000000005000.jsonl.gz   entries 1 to 5000, one a line, and the Master's signature over the last one
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from windrow_master.audit.model import Head, seal, unseal
from windrow_master.store.model import AuditEntry
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import DOMAIN_AUDIT, SigningKey, save_private, verify_signature

FOLDER: Final = "audit"
SUFFIX: Final = ".jsonl.gz"
PART_ENTRIES: Final = 5_000
"""Of one file, some 2 MB before it is compressed: an eighth of that on the disk, and read as a whole."""
_SAYS: Final = b"part "
"""The beginning of signed bytes: no part's end is an anchor."""
_NAME: Final = re.compile(r"(\d{12,})-(\d{12,})\.jsonl\.gz")


def write(directory: Path, entries: Sequence[AuditEntry], signing: SigningKey) -> Path:
    """Put entries that follow one another into a file of their own, signed, and durable on return."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{entries[0].number:012d}-{entries[-1].number:012d}{SUFFIX}"
    end = Head(entries[-1].number, entries[-1].chain, entries[-1].at_ns)
    lines = "".join(f"{_line(entry)}\n" for entry in entries).encode()
    lines += seal(end, signing.sign(DOMAIN_AUDIT, _SAYS + end.claim))
    save_private(path, gzip.compress(lines, mtime=0))
    _sync(directory)
    _sync(directory.parent)
    return path


def files(directory: Path) -> list[tuple[int, int, Path]]:
    """The first and last number of each file, and the file, in order."""
    found = [(match, path) for path in directory.glob(f"*{SUFFIX}") if (match := _NAME.fullmatch(path.name))]
    return sorted((int(match[1]), int(match[2]), path) for match, path in found)


def part(path: Path, public: bytes) -> tuple[Sequence[AuditEntry], Head]:
    """The entries of one file, and their signed end. Raises InvalidInput where it cannot be read, or is not one that
    the Master with this key wrote."""
    try:
        *lines, end = gzip.decompress(path.read_bytes()).splitlines()
        head, signature = unseal(end)
        verify_signature(public, DOMAIN_AUDIT, _SAYS + head.claim, signature)
        entries = [_entry(line) for line in lines]
        if (entries[-1].number, entries[-1].chain) != (head.number, head.chain):
            raise ValueError("it does not end where it says")
    except BadProof:
        raise InvalidInput(f"The sealed part {path} of the audit log is not one that this Master signed.") from None
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        raise InvalidInput(f"The sealed part {path} of the audit log cannot be read: {error}.") from error
    return entries, head


def sealed(directory: Path, public: bytes) -> Iterator[AuditEntry]:
    """Every entry of the files, in order. Raises InvalidInput as above."""
    for _, _, path in files(directory):
        yield from part(path, public)[0]


def whole(uow: UnitOfWork, directory: Path, public: bytes) -> Iterator[AuditEntry]:
    """The whole log: what was sealed, then what is in the database."""
    uow.audit_log.list(limit=1)  # what is read is as of now: what is sealed from here on is still in the database
    yield from joined(sealed(directory, public), uow.audit_log.walk())


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


def _entry(line: bytes) -> AuditEntry:
    record = json.loads(line)
    return AuditEntry(**{**record, "chain": bytes.fromhex(record["chain"])})


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
