"""A disk under SQLite whose syncs fail for a while, in real processes: a library that is loaded before libc."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("failing_disk.c")
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
GCC_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class FailingDisk:
    """A disk that is well until `fail`, and again from `heal` on."""

    library: Path
    switch: Path

    @property
    def environment(self) -> dict[str, str]:
        """For the processes whose disk it is to be."""
        return {"LD_PRELOAD": str(self.library), "FAILING_DISK": str(self.switch)}

    def fail(self) -> None:
        """From now on no sync of a SQLite file succeeds."""
        self.switch.touch()

    def heal(self) -> None:
        """From now on they do."""
        self.switch.unlink()


def failing_disk(folder: Path) -> FailingDisk:
    """Build it there; where gcc is missing, skip with that reason."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is missing: the failing disk cannot be built")
    library = folder / "failing_disk.so"
    subprocess.run([gcc, *FLAGS, "-o", str(library), str(SOURCE), "-ldl"], check=True, timeout=GCC_LIMIT_S)
    return FailingDisk(library, folder / "fails")
