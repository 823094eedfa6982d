"""A backup as one tar file (0600), its manifest first: written whole or not at all, and read only where it is whole."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from windrow_master.recovery import manifest
from windrow_master.recovery.manifest import Manifest, Part
from windrow_proto.errors import InvalidInput, NotFound, StorageFailed

BLOCK_BYTES: Final = 1024 * 1024


def part_of(path: Path) -> Part:
    """The size and hash of a file as it is now."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return Part(size, digest.hexdigest())


def write(target: Path, listed: Manifest, sources: Mapping[str, Path]) -> None:
    """Write a backup of these files. Raises StorageFailed."""
    draft = target.with_name(f".{target.name}.new")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                _add(archive, manifest.NAME, len(data := listed.encoded()), io.BytesIO(data), listed.made_at_ns)
                for name, source in sources.items():
                    with source.open("rb") as content:
                        _add(archive, name, listed.files[name].size_bytes, content, listed.made_at_ns)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        sync(target.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StorageFailed(f"The backup {target} could not be written: {error}.", subject=str(target)) from error


def _add(archive: tarfile.TarFile, name: str, size: int, content: IO[bytes], at_ns: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, at_ns // 1_000_000_000
    archive.addfile(entry, content)


def sync(directory: Path) -> None:
    """Flush this folder, so that a renamed file is on disk when this returns."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Manifest, tarfile.TarFile]]:
    """A backup's manifest, and the rest of it. Raises NotFound, InvalidInput for what is no backup or is damaged."""
    try:
        with tarfile.open(path, mode="r:") as archive:
            first = archive.next()
            content = archive.extractfile(first) if first is not None and first.name == manifest.NAME else None
            if first is None or content is None or first.size > manifest.MANIFEST_BYTES_MAX:
                raise InvalidInput(f"{path} is no backup of Windrow: it does not begin with a manifest.")
            yield manifest.decoded(content.read()), archive
    except FileNotFoundError:
        raise NotFound(f"There is no backup {path}.", subject=str(path)) from None
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"The backup {path} is damaged: {error}. Use another one.", subject=str(path)) from error
    except OSError as error:
        raise StorageFailed(f"The backup {path} cannot be read: {error}.", subject=str(path)) from error


def unpack(path: Path, folder: Path) -> Manifest:
    """Write every file of a backup into an empty folder, each as its manifest says. Raises InvalidInput for any that is
    damaged, missing or too much."""
    with opened(path) as (listed, archive):
        missing = set(listed.files)
        for entry in archive:
            if entry.name == manifest.NAME:
                continue
            part = listed.files.get(entry.name)
            content = archive.extractfile(entry) if entry.isreg() else None
            if part is None or content is None or entry.name not in missing:
                raise InvalidInput(f"The backup {path} holds {entry.name[:80]!r}, which its manifest does not name.")
            if _copied(content, folder / entry.name, part.size_bytes) != part:
                raise InvalidInput(
                    f"The backup {path} is damaged: {entry.name} is not what was saved. Use another one."
                )
            missing.discard(entry.name)
        if missing:
            raise InvalidInput(f"The backup {path} is cut off: {min(missing)} is missing. Use another one.")
        return listed


def _copied(content: IO[bytes], target: Path, size_bytes: int) -> Part:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while size <= size_bytes and (block := content.read(BLOCK_BYTES)):
            digest.update(block)
            size += len(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return Part(size, digest.hexdigest())
