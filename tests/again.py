"""Runs pytest and, where a few tests failed beside others, those again alone: `python -m tests.again ARGUMENTS`.

The tests of real daemons need processors, and a busy machine has them taken away for seconds at a time. Who fails alone
as well has failed. Who passes alone is named at the end and is still a bug: of the test, or of what it tests.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.provision import run

FEW = 5
"""More failures than this are no accident of the machine, and stand."""
FAILED = 1
"""pytest's exit status when all tests ran and some failed."""


def failed_in(cache: Path) -> list[str]:
    """The ids of what failed in a run that had this empty folder as its cache."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def main(arguments: Sequence[str]) -> int:
    """The exit status of pytest; of the second run, where there was one."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="windrow-again-") as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        status = run(command, environment)
        failed = failed_in(Path(cache))
        if status != FAILED or not 0 < len(failed) <= FEW:
            return status
        say("these failed, and run again by themselves:", failed)
        alone = [*command, "-n0", "--last-failed", "--last-failed-no-failures=none"]
        status = run(alone, environment)
        still = failed_in(Path(cache))
    flaky = [name for name in failed if name not in still]
    if status in {0, FAILED} and flaky:
        say("these passed by themselves, having failed beside others (each is a bug to find):", flaky)
    return status or (FAILED if still else 0)


def say(what: str, names: Sequence[str]) -> None:
    """A line, and one for each test."""
    print("\n".join([f"again: {what}", *(f"again:   {name}" for name in names)]), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
