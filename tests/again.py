"""Runs pytest and, where a few tests failed beside others, those again alone: `python -m tests.again ARGUMENTS`.

The second run only tells what kind of fault it is. Who fails alone as well has failed. Who passes alone is flaky, which
is a bug, of the test or of what it tests. With FLAKY=fail it fails the run too, unless `flaky.txt` names the test with
a date that is not older than DAYS; that is to be the rule once five full runs in a row have had none.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from tests.provision import run

FEW = 5
"""More failures than this are no accident of the machine, and stand."""
FAILED = 1
"""pytest's exit status when all tests ran and some failed."""
DAYS: Final = 14
"""For a flaky test to be mended: after that its entry no longer counts."""
LIST: Final = Path(__file__).with_name("flaky.txt")


class BadList(Exception):
    """The list of flaky tests has a line that is none; the message says which."""


def failed_in(cache: Path) -> list[str]:
    """The ids of what failed in a run that had this empty folder as its cache."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def listed(text: str, today: date) -> tuple[frozenset[str], frozenset[str]]:
    """The ids that the list excuses today, and those whose time is over. Raises BadList."""
    excused, late = set[str](), set[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = re.fullmatch(r"(\d{4}-\d\d-\d\d) (\S+\.py::.+?)  +(\S.*)", line)
        if found is None:
            raise BadList(f"line {number} is not `DATE TEST  REASON`, with two blanks before the reason: {line}")
        age = (today - date.fromisoformat(found[1])).days
        (excused if 0 <= age <= DAYS else late).add(found[2])
    return frozenset(excused), frozenset(late)


def main(arguments: Sequence[str]) -> int:
    """The exit status of pytest; with FLAKY=fail FAILED where a test is flaky that the list does not excuse."""
    is_strict = os.environ.get("FLAKY") == "fail"
    named = Path(os.environ.get("FLAKY_LIST") or LIST)
    excused, late = listed(named.read_text(), datetime.now(UTC).date())
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="windrow-again-") as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        status = run(command, environment)
        failed = failed_in(Path(cache))
        if status != FAILED or not 0 < len(failed) <= FEW:
            return status
        say("these failed, and run again by themselves, to tell flaky ones from broken ones:", failed)
        alone = [*command, "-n0", "--last-failed", "--last-failed-no-failures=none"]
        status = run(alone, environment)
        still = failed_in(Path(cache))
    flaky = [name for name in failed if name not in still] if status in {0, FAILED} else []
    unknown = [name for name in flaky if name not in excused]
    if known := [name for name in flaky if name in excused]:
        say(f"these are flaky, as {named.name} says:", known)
    if unknown:
        say(f"these are flaky: mend them, or list them in tests/{LIST.name} with a date and the reason:", unknown)
    if over := [name for name in unknown if name in late]:
        say(f"of these the time in {named.name} is over ({DAYS} days):", over)
    return status or (FAILED if still or (unknown and is_strict) else 0)


def say(what: str, names: Sequence[str]) -> None:
    """A line, and one for each test."""
    print("\n".join([f"again: {what}", *(f"again:   {name}" for name in names)]), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
