"""One Master per data directory, by a lock that the kernel drops with the process."""

import contextlib
import fcntl
import os
from pathlib import Path

from windrow_proto.errors import Conflict


class DirectoryLock:
    """Holds `<directory>/<name>.lock`; removed by `release`, let go by the kernel when the process dies."""

    def __init__(self, directory: Path, name: str = "master", *, waits: bool = False) -> None:
        """Raises Conflict while another process holds it; waits: blocks instead, and a signal ends this process."""
        self._name = name
        self._path = directory / f"{name}.lock"
        self._how = fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB
        self._descriptor = self._take()

    def _take(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, self._how)
            except OSError:
                holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                whose = f" (process {holder})" if holder else ""
                holds = "`windrow up`" if self._name == "up" else self._name.capitalize()
                raise Conflict(
                    f"Another {holds}{whose} uses this data directory. Stop it first, or give another --data-dir.",
                    subject=str(self._path.parent),
                ) from None
            # A file that its holder removed between our open and our lock guards nothing: take the new one.
            if self._is_current(descriptor):
                with contextlib.suppress(OSError):  # on a full disk nobody is told who holds it
                    os.truncate(descriptor, 0)
                    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                return descriptor
            os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.fstat(descriptor).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the next Master in; safe to call twice."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1
