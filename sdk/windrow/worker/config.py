"""The worker's environment: what it passes on, and what it adds for a call. Its only module that touches it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

IN_CALL = "WINDROW_IN_CALL"
"""Set where a call runs: there is no Master to be found there."""


def passed_on(lib: Path) -> dict[str, str]:
    """The workload's own, with our library, and with what is compiled beside its source."""
    unwanted = {"PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join([str(lib), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return {**{k: v for k, v in os.environ.items() if k not in unwanted}, "PYTHONPATH": path, IN_CALL: "1"}


def add(variables: Mapping[str, str]) -> None:
    """Set these in this process."""
    os.environ.update(variables)


def for_installing(lib: Path) -> dict[str, str]:
    """Returns the environment of installers: the same without our library, which is none of theirs."""
    return {k: v for k, v in passed_on(lib).items() if k not in ("PYTHONPATH", IN_CALL)}


def is_in_call() -> bool:
    """True if this process runs a call."""
    return IN_CALL in os.environ


def found(program: str) -> str | None:
    """Returns the path of this command, if it is installed."""
    return shutil.which(program)
