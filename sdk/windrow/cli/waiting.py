"""`--wait`: how long a machine may wait in the queue for its place, and what is said meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from windrow.cli.output import say
from windrow.cli.request import parse_span
from windrow.client import Client
from windrow.errors import ApiProblem

ENDLESS_S: Final = 365 * 86_400
"""The longest wait that the Master takes, which stands for one without end."""
LATE_S: Final = 60.0
"""For the Master to say that the wait is over."""
ENDLESS: Final = "endless"
OPTION: Final = "--wait"

Wait = Annotated[
    str | None,
    typer.Option(
        OPTION, metavar="[TIME]", help="Where there is no place, wait in the queue: this long (2h), or without end."
    ),
]


class WaitCommand(TyperCommand):
    """A command whose --wait may have a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click does, with that value in the same word."""
        return super().parse_args(ctx, with_value(args))


def with_value(args: Sequence[str]) -> list[str]:
    """The words with the value of --wait in its own word: --wait=2h, --wait=endless. A word that follows it is its
    value, also one that is no time, unless it can only be the first of the command."""
    found, rest = list[str](), list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*found, word, *rest]
        if word == OPTION:
            is_value = rest and not rest[0].startswith("-") and ("--" in rest or rest[0][:1].isdigit())
            word = f"{word}={rest.pop(0) if is_value else ENDLESS}"
        found.append(word)
    return found


def wait_part(wait: str | None) -> dict[str, Any]:
    """The part of a request that says how long it may wait. Raises InvalidInput."""
    if wait is None:
        return {}
    return {"wait_seconds": ENDLESS_S if wait == ENDLESS else parse_span(wait)}


@contextmanager
def may_wait(wait: str | None) -> Iterator[None]:
    """Has a refusal for want of a free place say how to wait for one, unless that was asked for."""
    try:
        yield
    except ApiProblem as problem:
        if wait is None and problem.code == "no_capacity" and problem.retryable:
            problem.lines.append("Or wait in the queue until there is a place: --wait, or --wait 2h")
        raise


def left_queue(api: Client, cluster: dict[str, Any], *, is_silent: bool) -> dict[str, Any]:
    """The cluster once it waits in the queue no more; says its place and why it waits whenever that changes."""
    told = ""

    def is_out(one: dict[str, Any]) -> bool:
        nonlocal told
        if one["phase"] == "Queued" and (said := waits_text(one)) != told and not is_silent:
            told = said
            say(f"  {said}")
        return bool(one["phase"] != "Queued")

    if cluster["phase"] != "Queued":
        return cluster
    wait_s = float((cluster.get("request") or {}).get("wait_seconds") or ENDLESS_S)
    return api.wait_cluster(cluster["id"], is_out, wait_s + LATE_S)


def waits_text(cluster: dict[str, Any]) -> str:
    """Its place in the queue and its estimated start, as far as they are known, and why it still waits."""
    queued = cluster.get("queue") or {}
    said = [str(one).rstrip(".") for one in (queued.get("summary"), cluster.get("reason")) if one]
    return f"waiting: {'. '.join(said)}." if said else "waiting for a place."
