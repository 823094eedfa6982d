"""Combines a template, which is a request kept by name, with the options beside its name on a command line."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import typer

from windrow import config
from windrow.cli import telltale
from windrow.cli.output import say
from windrow.client import Client
from windrow.errors import ApiProblem, WindrowClientError

Json = dict[str, Any]
ALWAYS_SAID = ("kind", "cpus", "await_files", "argv", "notebook")
"""The values that a request holds although nobody asked for them."""
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu": ("gpus", "gpu_model", "gpu_memory_bytes"),
    "part": ("slice",),
    "memory": ("memory_bytes",),
    "port": ("ports",),
    "host": ("host_id",),
    "max_price": ("max_price_per_hour",),
    "max_duration": ("max_duration_seconds",),
    "idle": ("idle_seconds",),
    "ssh_key": ("ssh_keys",),
    "ssh": ("ssh_keys",),
}
"""The part of a request that each parameter of a command line sets; that of its own name where it is not here."""


def given(argv: Sequence[str], env: Sequence[str]) -> list[str]:
    """The variables as NAME=value, from this shell where only a name is written; says what looks like a secret that
    others would read. Raises WindrowClientError."""
    written = dict(pair.split("=", 1) for pair in env if "=" in pair)
    for line in telltale.found(argv, written):
        say(f"  {line}")
    return [pair if "=" in pair else f"{pair}={config.variable(pair)}" for pair in env]


def template_named(api: Client, name: str) -> Json:
    """Raises ApiProblem; WindrowClientError where there is none."""
    try:
        found: Json = api.get(f"/templates/{quote(name, safe='')}")
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        raise WindrowClientError(f"There is no template {name!r}. List yours: windrow template ls") from None
    return found


def written(context: typer.Context) -> frozenset[str]:
    """The parameters that somebody wrote."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def changed(kept: Json, request: Json, by_hand: frozenset[str]) -> Json:
    """A kept request with what was written beside its name; by_hand: as `written` says. What is written counts also
    where it is what nobody has to say (`--hosts 1`, `--no-notebook`), and so is not in the request."""
    said = {field for name in by_hand for field in FIELDS.get(name, (name,))}
    if request.get("gpus") == 0:
        said.add("slice")
    fresh = {key: value for key, value in request.items() if key not in ALWAYS_SAID or key in by_hand}
    return {key: value for key, value in kept.items() if value is not None and key not in said} | fresh
