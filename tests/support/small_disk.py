"""A disk of a stated size, in a mount namespace of its own, to be filled for real; needs root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.services import all_required

MOUNT: Final = "/mnt"
"""The path of the disk for processes of the namespace; nobody else's /mnt is touched."""
TOOLS: Final = ("unshare", "nsenter", "mount")
PIECE: Final = 1 << 20
READY_S: Final = 60

_HOLD = """
set -e
mount -t tmpfs -o size=$1 tmpfs /mnt
for name in $3; do mkdir -p /mnt/$name; mount --bind $2 /mnt/$name; done
echo ready
exec sleep infinity
"""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """The disk, and the process that holds its namespace."""

    holder: int

    @property
    def seen(self) -> Path:
        """Its root, as this process sees it."""
        return Path(f"/proc/{self.holder}/root{MOUNT}")

    @property
    def inside(self) -> tuple[str, ...]:
        """Returns the words before a command line to run it where the disk is at /mnt."""
        return ("nsenter", "--mount", f"--target={self.holder}", "--")

    def free_bytes(self) -> int:
        """Returns the bytes that can still be written."""
        facts = os.statvfs(self.seen)
        return facts.f_bavail * facts.f_frsize

    def fill(self, leave_bytes: int = 0) -> None:
        """Write until nothing fits, or until so much is left."""
        with (self.seen / "filler").open("ab", buffering=0) as file:
            while self.free_bytes() > leave_bytes:
                try:
                    file.write(bytes(min(PIECE, self.free_bytes() - leave_bytes)))
                except OSError:
                    return

    def empty(self) -> None:
        """Give back what `fill` took."""
        (self.seen / "filler").unlink(missing_ok=True)


@contextmanager
def small_disk(size_bytes: int, elsewhere: Sequence[str] = ()) -> Iterator[SmallDisk]:
    """elsewhere: folders of it that lie on another disk. Skips where namespaces cannot be made."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    reason = "it needs root" if os.geteuid() != 0 else f"it needs {', '.join(missing)}" if missing else ""
    if reason and all_required():
        pytest.fail(f"no disk of a stated size: {reason}", pytrace=False)
    if reason:
        pytest.skip(f"no disk of a stated size: {reason}")
    with tempfile.TemporaryDirectory(prefix="windrow-other-disk-") as other:
        command = ["unshare", "--mount", "--propagation=private", "sh", "-c", _HOLD, "sh", str(size_bytes), other]
        holder = subprocess.Popen([*command, " ".join(elsewhere)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert holder.stdout is not None
            said = holder.stdout.readline().decode()
            if said.strip() != "ready":
                pytest.skip(f"no disk of a stated size: {said.strip()}")
            yield SmallDisk(holder.pid)
        finally:
            holder.kill()
            holder.communicate(timeout=READY_S)
