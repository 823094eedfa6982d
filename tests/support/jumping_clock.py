"""A wall clock that a test makes jump, in real daemons: Debian's libfaketime, loaded before libc. The monotonic clock
and the times of files stay the machine's."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.services import faketime, need

SLEEP = Path(__file__).with_name("plain_sleep.c")
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
GCC_LIMIT_S = 60
SHARED = Path("/dev/shm")  # where libfaketime's processes share their start


@dataclass(frozen=True, slots=True)
class JumpingClock:
    """One daemon's clock, which is the machine's until it jumps."""

    file: Path
    libraries: tuple[Path, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the words before the daemon's command line."""
        settings = {
            "LD_PRELOAD": " ".join(map(str, self.libraries)),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        return ("env", *(f"{name}={value}" for name, value in settings.items()))

    def jump(self, seconds: int) -> None:
        """Within a second it is so far ahead of the machine's; below zero: behind."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.file)


def jumping_clocks(folder: Path, *names: str) -> tuple[JumpingClock, ...]:
    """Some that have not jumped yet; where a library or gcc is missing, skip with that reason."""
    need("faketime")
    gcc, library = shutil.which("gcc"), faketime()
    if gcc is None or library is None:
        pytest.skip("gcc is missing: what lets sleep alone cannot be built")
    sleep = folder / "plain_sleep.so"
    subprocess.run([gcc, *FLAGS, "-o", str(sleep), str(SLEEP)], check=True, timeout=GCC_LIMIT_S)
    clocks = tuple(JumpingClock(folder / f"clock-{name}", (sleep, library)) for name in names)
    for clock in clocks:
        clock.jump(0)
    return clocks


def clear_up() -> None:
    """Take away what libfaketime leaves behind of processes that were killed."""
    for path in SHARED.glob("*faketime_*_*"):
        pid = path.name.rpartition("_")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            path.unlink(missing_ok=True)
