"""A kept request for a cluster, and what is written beside its name on a command line."""

from typing import Any

import typer

from windrow.client import Client
from windrow.errors import WindrowClientError

Json = dict[str, Any]
ALWAYS_SAID = ("kind", "cpus", "await_files", "argv", "notebook")
"""What a request says although nobody asked for it."""


def template_named(api: Client, name: str) -> Json:
    """Raises ApiProblem; WindrowClientError where there is none."""
    for one in api.items("/templates"):
        if one["name"] == name:
            return one
    raise WindrowClientError(f"No template {name!r} is there. See what is: windrow template ls")


def written(context: typer.Context) -> frozenset[str]:
    """The parameters that somebody wrote."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def changed(kept: Json, request: Json, by_hand: frozenset[str]) -> Json:
    """A kept request with what was written beside its name; by_hand: as `written` says."""
    fresh = {key: value for key, value in request.items() if key not in ALWAYS_SAID or key in by_hand}
    return {key: value for key, value in kept.items() if value is not None} | fresh
