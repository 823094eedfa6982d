"""Combines a template, which is a request kept by name, with the options beside its name on a command line."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from windrow import config
from windrow.cli import telltale
from windrow.cli.output import say
from windrow.client import Client
from windrow.errors import ApiProblem, NotFound

Json = dict[str, Any]


def given(argv: Sequence[str], env: Sequence[str]) -> list[str]:
    """The variables as NAME=value, from this shell where only a name is written; says what looks like a secret that
    others would read. Raises WindrowClientError."""
    written = dict(pair.split("=", 1) for pair in env if "=" in pair)
    for line in telltale.found(argv, written):
        say(f"  {line}")
    return [pair if "=" in pair else f"{pair}={config.variable(pair)}" for pair in env]


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
