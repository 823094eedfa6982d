"""`windrow explain`: what an error code means and what to do about it; without a Master."""

from difflib import get_close_matches
from textwrap import fill
from typing import Annotated

import typer

from windrow.cli.output import out, print_json, say
from windrow.cli.tables import Column, Table, View, lists
from windrow.errors import NotFound
from windrow.explained import PARAGRAPHS, first_sentence

CODES = Table(
    (Column("CODE", lambda one: one["code"]), Column("MEANING", lambda one: one["text"], most=60)),
    "There are no codes.",
)
READABLE = 100
"""Columns of a paragraph at most."""


def _matches(incomplete: str) -> list[str]:
    return [code for code in PARAGRAPHS if code.startswith(incomplete)]


@lists(CODES)
def explain(
    view: View,
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="ERROR_CODE",
            help="As an error ends with: no_capacity; without: all codes.",
            autocompletion=_matches,
        ),
    ] = None,
) -> None:
    """Explain an error code: what happened, and what to do."""
    if code is None:
        view.print(None, ({"code": one, "text": first_sentence(one)} for one in PARAGRAPHS))
        return
    if code not in PARAGRAPHS:
        near = get_close_matches(code, PARAGRAPHS, 1)
        hint = f" Did you mean {near[0]}?" if near else " List them: windrow explain"
        raise NotFound(f"There is no error code {code!r}.{hint}")
    if view.is_json:
        print_json({"code": code, "text": PARAGRAPHS[code]})
        return
    out.print(fill(PARAGRAPHS[code], min(out.width, READABLE)), markup=False)
    say(f"Code {code}. All codes: windrow explain")
