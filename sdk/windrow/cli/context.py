"""Shared context of every command: the client, made when it is first asked for, from the options before the noun."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli.output import say
from windrow.config import find
from windrow.errors import InvalidInput

if TYPE_CHECKING:
    from windrow.client import Client

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Tests = Annotated[bool, typer.Option("--tests", help="Also the Master's own tests of hosts.")]
Watch = Annotated[bool, typer.Option("--watch", help="Keep watching for changes; with --json one object per line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(slots=True)
class Options:
    """Options before the noun."""

    url: str | None = None
    token: str | None = None


def confirm(question: str) -> None:
    """Asks on standard error, so that standard output has data alone; anything but yes ends the command."""
    typer.confirm(question, abort=True, err=True)


def agreed(yes: bool, question: str) -> None:
    """Goes on where `--yes` was written or a person says so. Raises InvalidInput where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Nobody can be asked here, and nothing was done. To confirm, add --yes.")
    confirm(question)


def say_link_note(api: "Client") -> None:
    """Say why a link to the Master may not open for whom it is sent to; nothing where it does."""
    if note := api.get("/cli").get("link_note"):
        say(note)


def client(context: typer.Context) -> "Client":
    """The client of this invocation; closed when the command ends."""
    from windrow.client import Client  # slow to load, and `--version` and `explain` do without

    options = context.find_root().obj or Options()
    return context.with_resource(Client(find(options.url, options.token)))
