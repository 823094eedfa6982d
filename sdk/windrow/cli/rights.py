"""`windrow can-i`: what the caller may do, and who can give what is missing."""

import sys
from typing import Annotated

import typer

from windrow.cli.context import AsJson, client
from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import print_json, say

auth_app = typer.Typer(help="What you may do.", no_args_is_help=True)


def can_i(
    context: typer.Context,
    wanted: Annotated[
        list[str],
        typer.Argument(metavar="WHAT", help="A permission, as rent, or a method and a path, as POST /clusters."),
    ],
    as_json: AsJson = False,
) -> None:
    """Say whether you may do something, and if not who can give it; the exit code is 0 for yes and 1 for no."""
    answer = client(context).get("/permissions", wanted=" ".join(wanted))["items"][0]
    if as_json:
        print_json(answer)
    elif answer["allowed"]:
        sys.stdout.write("yes\n")
        if answer["objects"]:
            say(f"Objects in reach: {answer['objects']}.")
    else:
        sys.stdout.write("no\n")
        say(answer["reason"])
    if not answer["allowed"]:
        raise typer.Exit(EXIT_FAILURE)


auth_app.command("can-i")(can_i)
