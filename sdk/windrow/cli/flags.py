"""Gives a command an option for each field of a request that has a flag, and says fields of the API by their flags."""

import re
from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Annotated, Any, Final, TypeVar

import typer

from windrow.cli import completing
from windrow.fields import CLUSTER, JOB, Field

F = TypeVar("F", bound=Callable[..., None])

TYPES: Final[dict[str, Any]] = {"whole": int, "yes": bool, "texts": list[str], "wholes": list[int]}
"""The type of an option by the kind of its field; any other is text."""


FLAGS: Final = {
    **{field.name: field.flag for field in (*CLUSTER, *JOB) if field.flag.lstrip("-") not in ("", field.name)},
    **dict.fromkeys(("gpus", "gpu_model", "gpu_memory_bytes"), "--gpu"),
    "ssh_keys": "--ssh-key",
    "packages": "--with",
    "wait_seconds": "--wait",
    **dict.fromkeys(("array_size", "array_at_once"), "--array"),
    "price_per_hour": "PRICE_PER_HOUR",
    **{f"max_{of}_cost": f"--max-{of}" for of in ("hourly", "monthly", "total")},
    "max_leases": "--max-leases",
    "requirements.gpu_count": "--gpus",
    "requirements.cpu_count": "--cpus",
    "requirements.gpu": "--gpu",
    "requirements.gpu_memory_gb": "--gpu-memory-gb",
    "requirements.duration_hours_estimated": "--hours",
    "requirements.checkpoint_frequency_minutes": "--checkpoint-minutes",
    "requirements.max_cost_usd": "--max-cost",
    "requirements.dataset_size_gb": "--dataset-gb",
    "requirements.results_size_gb": "--results-gb",
    "requirements.countries": "--country",
}
"""The option for a field of the API, where their names differ."""


def as_flags(text: str) -> str:
    """The same sentence of the Master with the words of the command line for the fields that it is about."""
    text = re.sub(r"\brequirements\.\w+", lambda found: FLAGS.get(found[0], found[0]), text)
    text = re.sub(r"^(\w+)(?:\.\w+)*(?=: | must be )", lambda found: FLAGS.get(found[1], found[0]), text)
    return re.sub(r"\b[a-z]+_\w+\b", lambda found: FLAGS.get(found[0], found[0]), text)


def options(fields: Iterable[Field]) -> Callable[[F], F]:
    """Give a command these options; it takes what was written as `**asked`, by the names of fields, None: nothing."""
    found = [_option(field) for field in fields if field.flag]

    def given(command: F) -> F:
        told = signature(command)
        own = [one for one in told.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        command.__signature__ = told.replace(parameters=[*own, *found])  # type: ignore[attr-defined]  # for Typer
        return command

    return given


def _option(field: Field) -> Parameter:
    is_list = field.kind in ("texts", "wholes")
    option = typer.Option(
        field.flag,
        min=field.least if field.kind == "whole" else None,
        max=field.most if field.kind == "whole" else None,
        help=f"{field.help} Repeatable." if is_list else field.help,
        show_default=False if field.default is None or is_list else str(field.default),
        autocompletion=completing.BY_FIELD.get(field.name),
    )
    kind: Any = TYPES.get(field.kind, str)
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])
