"""The code that clients sent, by content: each state of a folder in a folder of its own, so that none is ever half.

A file is kept once, under its SHA-256, and linked into every state that has it. What Python compiled of it in the state
before is linked, too: it is valid as long as the source is the same file.
"""

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

TREES_KEPT: Final = 8
FILES_MAX: Final = 100_000
NAME_MAX: Final = 1024
CODE_BYTES_MAX: Final = 1 << 30
"""Of all files kept; more is refused until older states have gone."""
RUNNABLE: Final = "x"
"""Behind a file's hash: it may be executed."""

Manifest = dict[str, str]
"""Names relative to the folder, with `/`; each with its content's SHA-256 in hex, and perhaps RUNNABLE."""


class BadCode(Exception):
    """The code that was sent cannot be kept; the message says why."""


def manifest_digest(manifest: Manifest) -> str:
    """The name of a state."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Trees:
    """All states this worker knows, below one folder."""

    def __init__(self, folder: Path) -> None:
        self._blobs, self._trees = folder / "blobs", folder / "trees"
        for made in (self._blobs, self._trees):
            made.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Manifest] = {}
        self._size = 0
        self._last: Path | None = None

    def offer(self, digest: str, manifest: object) -> list[str]:
        """Learn of a state; returns the hashes of what has to be sent for it. Raises BadCode."""
        if not isinstance(manifest, dict) or len(manifest) > FILES_MAX:
            raise BadCode(f"A manifest names at most {FILES_MAX} files.")
        for name, entry in manifest.items():
            _checked(name, entry)
        if manifest_digest(manifest) != digest:
            raise BadCode("The manifest is not what its digest says.")
        self._known[digest] = manifest
        wanted = {entry.removesuffix(RUNNABLE) for entry in manifest.values()}
        return sorted(one for one in wanted if not (self._blobs / one).exists())

    def put(self, digest: str, data: bytes) -> None:
        """Keep one file's content; raises BadCode where it is not what its digest says, or too much."""
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadCode("A file is not what its digest says.")
        path = self._blobs / digest
        if path.exists():
            return
        if self._size + len(data) > CODE_BYTES_MAX:
            raise BadCode("More than 1 GiB of code is kept here; delete the cluster and begin anew.")
        made = path.with_suffix(".new")
        made.write_bytes(data)
        made.replace(path)
        self._size += len(data)

    def folder(self, digest: str) -> Path | None:
        """Returns the folder of this state, made now if it has to be; None: not all of it is here. Raises BadCode."""
        made = self._trees / digest[:32]
        if made.is_dir():
            os.utime(made)
            self._last = made
            return made
        manifest = self._known.get(digest)
        if manifest is None or any(not (self._blobs / e.removesuffix(RUNNABLE)).exists() for e in manifest.values()):
            return None
        building = made.with_suffix(".new")
        shutil.rmtree(building, ignore_errors=True)
        try:
            self._build(building, manifest)
            building.rename(made)
        except OSError as error:
            raise BadCode(f"The code could not be written here: {error}") from error
        self._last = made
        return made

    def forget_old(self, used: set[str]) -> None:
        """Remove the oldest states beyond TREES_KEPT; used: digests that something runs from."""
        kept = {digest[:32] for digest in used}
        found = sorted((path for path in self._trees.iterdir()), key=lambda path: path.stat().st_mtime)
        gone = [path for path in found[:-TREES_KEPT] if path.name not in kept]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)
            self._known = {d: m for d, m in self._known.items() if d[:32] != path.name}
        if gone:
            for blob in self._blobs.iterdir():
                state = blob.stat()
                if state.st_nlink == 1:
                    blob.unlink()
                    self._size -= state.st_size

    def _build(self, building: Path, manifest: Manifest) -> None:
        building.mkdir()
        folders: set[Path] = set()
        for name, entry in manifest.items():
            target = building / name
            if target.parent not in folders:
                target.parent.mkdir(parents=True, exist_ok=True)
                folders.add(target.parent)
            blob = self._blobs / entry.removesuffix(RUNNABLE)
            if entry.endswith(RUNNABLE):
                shutil.copy2(blob, target)
                target.chmod(0o755)
            else:
                os.link(blob, target)
        if self._last is not None:
            for one in folders:
                self._link_compiled(self._last / one.relative_to(building), one)

    @staticmethod
    def _link_compiled(before: Path, now: Path) -> None:
        """Links the compiled files of one folder whose sources are still the same."""
        with contextlib.suppress(OSError):
            compiled = sorted(os.listdir(before / "__pycache__"))
            (now / "__pycache__").mkdir()
            for name in compiled:
                source = name.partition(".")[0] + ".py"
                with contextlib.suppress(OSError):
                    if (before / source).stat().st_ino == (now / source).stat().st_ino:
                        os.link(before / "__pycache__" / name, now / "__pycache__" / name)


def _checked(name: object, entry: object) -> None:
    if not isinstance(name, str) or not isinstance(entry, str) or not 0 < len(name) <= NAME_MAX or "\0" in name:
        raise BadCode("A manifest holds something else than names and digests.")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or str(path) != name or name == ".":
        raise BadCode(f"{name!r} would be written outside the code's folder.")
    digest = entry.removesuffix(RUNNABLE)
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise BadCode(f"{name!r} has no digest.")
