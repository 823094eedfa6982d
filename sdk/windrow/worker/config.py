"""The worker's environment: what it passes on, and what it adds for a call. Its only module that touches it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

MEMBERS = "WINDROW_MEMBERS"
"""Set where a cluster has several hosts: their addresses."""
IN_CALL = "WINDROW_IN_CALL"
"""Set where a call runs: there is no Master to be found there."""


def passed_on(lib: Path) -> dict[str, str]:
    """The workload's own, with our library, and with what is compiled beside its source."""
    unwanted = {"PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join([str(lib), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    # Ray reads this when it is imported, before a call says which token is its own.
    ray = {"RAY_AUTH_MODE": "token"} if MEMBERS in os.environ else {}
    return {**{k: v for k, v in os.environ.items() if k not in unwanted}, **ray, "PYTHONPATH": path, IN_CALL: "1"}


def add(variables: Mapping[str, str]) -> None:
    """Set these in this process; a PYTHONPATH goes behind our own."""
    ours = os.environ.get("PYTHONPATH", "")
    os.environ.update(variables)
    if "PYTHONPATH" in variables:
        find_modules_in(ours)


def find_modules_in(folder: str) -> None:
    """Let every Python that this process starts, as Ray's workers are, find the modules of this folder."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH", "")]))


def members() -> tuple[int, list[str]]:
    """The rank of this host in its cluster, and the addresses of all; a host alone is at its loopback."""
    return int(os.environ.get("WINDROW_RANK", "0")), os.environ.get(MEMBERS, "127.0.0.1").split(",")


def first_port() -> int | None:
    """The first of the ports that are the cluster's own on its hosts, if it has some."""
    found = os.environ.get("WINDROW_PORT")
    return None if found is None else int(found)


def for_installing(lib: Path) -> dict[str, str]:
    """Returns the environment of installers: the same without our library, which is none of theirs."""
    return {k: v for k, v in passed_on(lib).items() if k not in ("PYTHONPATH", IN_CALL)}


def is_in_call() -> bool:
    """True if this process runs a call."""
    return IN_CALL in os.environ


def found(program: str) -> str | None:
    """Returns the path of this command, if it is installed."""
    return shutil.which(program)
