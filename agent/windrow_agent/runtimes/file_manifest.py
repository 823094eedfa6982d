"""Records the files that were sent into a working folder, so that files which the workload changed are known later."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from windrow_proto.model import ENVIRONMENT

LINK: Final = -1
FOLDER: Final = -2
"""In the place of a size: an entry that is no regular file."""
PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry as it was sent. size: in bytes, or LINK, or FOLDER; digest: SHA-256 of the content in hex, or where the
    link leads; mtime_ns, ctime_ns: of the file on this disk, 0 where it is not this agent that keeps it."""

    size: int
    digest: str = ""
    mtime_ns: int = 0
    ctime_ns: int = 0


Manifest = Mapping[str, FileEntry]
"""Path below the folder to what came there."""


def save_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest in one piece."""
    record = {name: [mark.size, mark.digest, mark.mtime_ns, mark.ctime_ns] for name, mark in manifest.items()}
    path.with_suffix(".new").write_text(json.dumps(record))
    path.with_suffix(".new").replace(path)


def load_manifest(path: Path) -> Manifest:
    """Read a manifest; empty if there is none that is whole: then everything counts as changed."""
    try:
        return {
            name: FileEntry(int(size), str(digest), int(mtime), int(ctime))
            for name, (size, digest, mtime, ctime) in json.loads(path.read_text()).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def digest_of(file: IO[bytes]) -> str:
    """SHA-256 of what is left to read of a file, in hex."""
    digest = hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def is_own(name: str) -> bool:
    """True for an entry of the environment that the agent made: it is no result."""
    return name == ENVIRONMENT or name.startswith(f"{ENVIRONMENT}/")
