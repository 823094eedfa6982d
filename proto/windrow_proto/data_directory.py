"""The data directory of a Master: its lock, and the file by which the command line finds the Master."""

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow_proto.errors import Conflict
from windrow_proto.keys import save_private


class DirectoryLock:
    """Holds `<directory>/<name>.lock`; `release` removes it, and the kernel lets it go when the process dies."""

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


@dataclass(frozen=True, slots=True)
class CliFile:
    """`cli.json` (0600) of a data directory: how the command line on this machine finds and speaks to the Master."""

    path: Path

    def read(self) -> dict[str, Any]:
        """Read the record; empty when there is none or it is damaged (it is written anew)."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, record: Mapping[str, Any]) -> None:
        """Replace it whole."""
        save_private(self.path, (json.dumps(record, indent=2) + "\n").encode())

    def ports(self) -> dict[str, int]:
        """The ports of the last start: members know them, so the next start tries them first."""
        found = self.read().get("ports", {})
        return {name: port for name, port in found.items() if isinstance(port, int) and 0 < port < 65536}
