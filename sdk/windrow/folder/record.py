"""Records the files that this user sent with a run or a job, and those of it that have come back: so that a later
program can fetch the rest.

OWNER.json          the folder it was sent from
OWNER_FOLDER.json   what has come into one folder, and how far
sent_DIGEST.json    what was sent: one for each state of a folder, which many share
"""

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow.config import transfers_folder

KEPT_S: Final = 40 * 24 * 3600
"""Longer than a Master keeps the files of what has ended."""


@dataclass(slots=True)
class Record:
    """Of one run or job and one folder. sent: digests of what was sent from there, by name; taken: of what has come;
    offset: up to which byte of the archive of this version everything is here."""

    owner_id: str
    root: Path
    sent: dict[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    offset: int = 0
    version: str = ""

    def known(self) -> dict[str, str]:
        """Returns the files in the folder that this program put there."""
        return self.sent | self.taken


def begin(owner_id: str, root: Path, sent: dict[str, str]) -> None:
    """Note what was sent from a folder; nothing where this user has no place for such notes."""
    with contextlib.suppress(OSError):
        transfers_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old(transfers_folder())
        _write(transfers_folder() / f"{owner_id}.json", {"root": os.fspath(root)})
    save(Record(owner_id, root, sent))


def save(record: Record) -> None:
    """Note how far it is; nothing where this user has no place for such notes."""
    with contextlib.suppress(OSError):
        folder = transfers_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256(json.dumps(record.sent, sort_keys=True).encode()).hexdigest()
        if not (sent := folder / f"sent_{digest}.json").exists():
            _write(sent, record.sent)
        state = {"sent": digest, "taken": record.taken, "offset": record.offset, "version": record.version}
        _write(_state(record.owner_id, record.root), state)


def of(owner_id: str, root: Path) -> Record:
    """Of this run or job and this folder; an empty one where nothing is known."""
    found = _read(_state(owner_id, root))
    try:
        sent = _read(transfers_folder() / f"sent_{found['sent']}.json")
        version = str(found.get("version", ""))
        return Record(owner_id, root, dict(sent), dict(found["taken"]), int(found["offset"]), version)
    except (KeyError, TypeError, ValueError):
        return Record(owner_id, root)


def origin(owner_id: str) -> Path | None:
    """The folder that this run or job was sent from; None: not by this user on this machine."""
    found = _read(transfers_folder() / f"{owner_id}.json")
    return Path(str(found["root"])) if "root" in found else None


def _state(owner_id: str, root: Path) -> Path:
    mark = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return transfers_folder() / f"{owner_id}_{mark}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
        os.utime(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, record: dict[str, Any]) -> None:
    made = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(record, file)
    made.replace(path)


def _forget_old(folder: Path) -> None:
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - KEPT_S:
                path.unlink()
