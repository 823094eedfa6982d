"""Looks whether a market's files are whole: keys, database, ledger, audit log with its anchor, telemetry log.

It only reads, and may run while the Master does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_master.audit.model import Head, unseal
from windrow_master.audit.sealing import FOLDER, whole
from windrow_master.audit.service import judge
from windrow_master.config import SQLITE_PREFIX
from windrow_master.identity.authority import Authority
from windrow_master.market.service import wrong_with_ledger
from windrow_master.recovery import manifest
from windrow_master.recovery.last import last
from windrow_master.recovery.manifest import Manifest
from windrow_master.store import copies
from windrow_master.store.engine import sqlite_url
from windrow_master.store.migrate import check_revision
from windrow_master.store.model import CHAIN_START
from windrow_master.store.unit import UnitOfWork
from windrow_proto.disk import OsDisk
from windrow_proto.errors import BadProof, InvalidInput, StorageFailed, WindrowError
from windrow_proto.keys import DOMAIN_AUDIT, SigningKey, verify_signature
from windrow_proto.segments import scan_segment, segment_numbers
from windrow_proto.units import time_text

WORDS_MAX: Final = 3
"""Of a damaged file, so many of its damages are told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. repair: what to do; empty where it is whole."""

    name: str
    is_ok: bool
    words: str
    repair: str = ""


def examine(data_dir: Path, database: str) -> Iterator[Finding]:
    """Everything of a market, one after the other."""
    yield _keys(data_dir)
    is_sqlite = database.startswith(SQLITE_PREFIX)
    found = _database(Path(database.removeprefix(SQLITE_PREFIX))) if is_sqlite else _shared(database)
    yield found
    if found.is_ok:
        yield _ledger(database)
        yield _audit(data_dir, database)
    yield _telemetry(data_dir)
    yield _last_backup(data_dir)


def check_copy(folder: Path, listed: Manifest) -> None:
    """Look at what came out of a backup; raises InvalidInput with what is wrong."""
    check_revision(listed.schema, f"The backup of {time_text(listed.made_at_ns)}")
    findings = [_keys(folder)]
    if listed.database == "sqlite":
        findings.append(_database(folder / manifest.DATABASE))
        if findings[-1].is_ok:
            findings.append(_audit(folder, sqlite_url(folder / manifest.DATABASE)))
    wrong = [f"{one.name}: {one.words}" for one in findings if not one.is_ok]
    if wrong:
        raise InvalidInput(f"The backup is damaged ({'; '.join(wrong)}). Use another one; nothing was changed.")


def _keys(data_dir: Path) -> Finding:
    folder = data_dir / "identity"
    try:
        Authority.load(folder)
        if len((folder / "artefacts.key").read_bytes()) != 32:
            raise InvalidInput(f"{folder / 'artefacts.key'} is not a key.")
    except FileNotFoundError as error:
        return _restore("keys", f"{error.filename} is missing")
    except (WindrowError, ValueError, OSError) as error:
        return _restore("keys", str(error))
    readable = sorted(path.name for path in folder.iterdir() if path.suffix == ".key" and path.stat().st_mode & 0o077)
    if readable:
        return Finding("keys", False, f"others may read {', '.join(readable)}", f"chmod 600 {folder}/*.key")
    return Finding("keys", True, "whole, and they belong together")


def _restore(name: str, words: str) -> Finding:
    return Finding(name, False, words, "windrow-master restore BACKUP")


def _database(path: Path) -> Finding:
    if not path.exists():
        return _restore("database", f"{path} is missing")
    said = copies.problems_of_sqlite(path)
    if said:
        more = f", and {len(said) - WORDS_MAX} more" if len(said) > WORDS_MAX else ""
        return _restore("database", f"{path} is damaged: {'; '.join(said[:WORDS_MAX])}{more}")
    try:
        check_revision(copies.revision_of_sqlite(path), f"The database {path}")
    except StorageFailed as error:
        return Finding("database", False, error.detail, "see the sentence before")
    log = path.with_name(f"{path.name}-wal")  # what a market that runs has not moved into the file itself yet
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return Finding("database", True, f"{path}, {size:,} bytes")


def _shared(database: str) -> Finding:
    try:
        copied = copies.look(database)
        check_revision(copied.schema, "The database")
    except WindrowError as error:
        return Finding("database", False, error.detail, "see the sentence before")
    return Finding("database", True, f"PostgreSQL answers, schema {copied.schema}; amcheck looks inside")


def _ledger(database: str) -> Finding:
    try:
        wrong = copies.read_of(database, wrong_with_ledger)
    except WindrowError as error:
        return _restore("ledger", error.detail)
    if wrong:
        return _restore("ledger", "; ".join(wrong[:WORDS_MAX]))
    return Finding("ledger", True, "it balances")


def _audit(data_dir: Path, database: str) -> Finding:
    repair = "find out who wrote it; then `windrow audit reanchor --reason WHY`, or windrow-master restore BACKUP"
    try:
        anchor = anchor_of(data_dir)
        heads = [] if anchor is None else [("the anchor", anchor)]

        signing = SigningKey.from_raw((data_dir / "identity" / "sign.key").read_bytes())

        def read(uow: UnitOfWork) -> tuple[int, str | None]:
            verdict = judge(whole(uow, data_dir / FOLDER, signing.public), CHAIN_START, heads, anchor)
            return verdict.entries, verdict.problem

        count, problem = copies.read_of(database, read)
    except WindrowError as error:
        return Finding("audit log", False, error.detail, repair)
    except (OSError, ValueError) as error:  # of the key, as `keys` says
        return _restore("audit log", f"it cannot be judged: {error}")
    if problem is None and anchor is None:
        problem = f"its anchor {data_dir / manifest.ANCHOR} is missing: nobody can say whether its end was cut off"
    if problem is not None:
        return Finding("audit log", False, problem, repair)
    return Finding("audit log", True, f"{count:,} entries, intact")


def anchor_of(data_dir: Path) -> Head | None:
    """The audit log's anchor; None where there is none. Raises InvalidInput for one that the Master's key did not
    sign."""
    path = data_dir / manifest.ANCHOR
    try:
        signing = SigningKey.from_raw((data_dir / "identity" / "sign.key").read_bytes())
        head, signature = unseal(path.read_bytes())
        verify_signature(signing.public, DOMAIN_AUDIT, head.claim, signature)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, BadProof):
        raise InvalidInput(f"The anchor {path} is not one that this Master signed.") from None
    return head


def _telemetry(data_dir: Path) -> Finding:
    disk, damaged, count = OsDisk(), list[str](), 0
    for folder in sorted((data_dir / "log").glob("[0-9]*")):
        for number in segment_numbers(disk, str(folder)):
            count += 1
            damage = scan_segment(disk, str(folder), number).damage
            damaged += [f"{folder.name}/{number}: {one.reason}" for one in damage]
    if damaged:
        repair = "none is needed: the Master passes over it, and `windrow-master rebuild-history` makes charts anew"
        return Finding("telemetry log", False, "; ".join(damaged[:WORDS_MAX]), repair)
    return Finding("telemetry log", True, f"{count} segments, whole")


def _last_backup(data_dir: Path) -> Finding:
    found = last(data_dir)
    if found is None:
        return Finding("backup", True, "none was made yet: windrow-master backup FILE")
    there = "" if Path(found.path).exists() else ", not there any more"
    return Finding("backup", True, f"the last one at {time_text(found.made_at_ns)}: {found.path}{there}")
