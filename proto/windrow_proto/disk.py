"""The Disk port on the operating system's files: descriptors stay open for appending, fsync means fsync."""

import os
from pathlib import Path


class OsDisk:
    """Files of this machine. Blocking: call it from a thread of its own. Not for two writers of one file."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def make_directory(self, path: str) -> None:
        """Make a folder and those above it, durably; nothing if it is there."""
        folder = Path(path)
        missing = [p for p in (folder, *folder.parents) if not p.exists()]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for made in missing:
            self.sync_directory(str(made.parent))

    def list(self, path: str) -> tuple[str, ...]:
        """Names of the files in a folder, sorted; empty if there is none."""
        try:
            with os.scandir(path) as entries:
                return tuple(sorted(entry.name for entry in entries if entry.is_file()))
        except FileNotFoundError:
            return ()

    def folders(self, path: str) -> tuple[str, ...]:
        """Names of the folders in a folder, sorted; empty if there is none."""
        try:
            with os.scandir(path) as entries:
                return tuple(sorted(entry.name for entry in entries if entry.is_dir()))
        except FileNotFoundError:
            return ()

    def size(self, path: str) -> int:
        """Bytes in a file."""
        return os.stat(path).st_size

    def read(self, path: str, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset`; fewer only at the end."""
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(count)

    def append(self, path: str, data: bytes) -> None:
        """Write all of it at the end, making the file (0600) if need be, or raise OSError."""
        view = memoryview(data)
        descriptor = self._descriptor(path)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, path: str) -> None:
        """Make the file's bytes survive a power cut."""
        os.fsync(self._descriptor(path))

    def sync_directory(self, path: str) -> None:
        """Make the folder's names survive a power cut."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes."""
        os.truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, atomically."""
        self.release(source)
        self.release(target)
        os.replace(source, target)

    def delete(self, path: str) -> None:
        """Remove a file; nothing if it is not there."""
        self.release(path)
        Path(path).unlink(missing_ok=True)

    def free_bytes(self, path: str) -> int:
        """Bytes that this user may still write in the folder's file system."""
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize

    def release(self, path: str) -> None:
        """Close the descriptor held for this file, if any."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def _descriptor(self, path: str) -> int:
        if path not in self._open:
            self._open[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return self._open[path]
