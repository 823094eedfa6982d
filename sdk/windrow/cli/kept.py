"""Combines what is kept, a request by its name and variables in a file, with the options of a command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from windrow import config
from windrow.cli import telltale
from windrow.cli.output import say
from windrow.cli.request import parse_env, read_env, variable_name
from windrow.client import Client
from windrow.errors import ApiProblem, NotFound

Json = dict[str, Any]


def variables(argv: Sequence[str], env: Sequence[str] | None, files: Sequence[Path] | None) -> dict[str, str] | None:
    """The variables of a request: those of files, then those beside the command, which count where both have a name;
    from this shell where only a name is written. None: none was given. Says what looks like a secret that others would
    read. Raises WindrowClientError."""
    beside = env or []
    for line in telltale.found(argv, parse_env([pair for pair in beside if "=" in pair])):
        say(f"  {line}")
    pairs = [*(pair for file in files or () for pair in read_env(file)), *(("", pair) for pair in beside)]
    whole = [p if "=" in p else f"{p}={config.variable(variable_name(p), place)}" for place, p in pairs]
    found = parse_env(whole)
    return found if env or files else None


def template_named(api: Client, name: str) -> Json:
    """Raises ApiProblem; NotFound where there is none."""
    try:
        found: Json = api.get(f"/templates/{quote(name, safe='')}")
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        raise NotFound(f"There is no template {name!r}. List yours: windrow template ls") from None
    return found


def changed(kept: Json, request: Json) -> Json:
    """A kept request with what was written beside its name: that also counts where it is a default (`--hosts 1`)."""
    gone = {"gpus", "gpu_model", "gpu_memory_bytes"} if "gpus" in request else set()
    gone |= {"slice"} if request.get("gpus") == 0 else set()
    return {name: value for name, value in kept.items() if value is not None and name not in gone} | request
