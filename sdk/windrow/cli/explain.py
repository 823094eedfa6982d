"""`windrow explain`: the meaning of the code of an error, a condition or an XID, without a Master; and why a job or
machine runs where it runs, or still waits."""

from difflib import get_close_matches
from textwrap import fill
from typing import Annotated

import typer

from windrow.cli import resolving
from windrow.cli.context import client
from windrow.cli.output import out, print_json, say
from windrow.cli.queueing import NotThere, Weights, explain_work
from windrow.cli.tables import Column, Table, View, lists
from windrow.conditions import CONDITIONS
from windrow.errors import NotFound
from windrow.explained import PARAGRAPHS, first_sentence
from windrow.xids import XIDS

CODES = Table(
    (Column("CODE", lambda one: one["code"]), Column("MEANING", lambda one: one["text"], most=60)),
    "There are no codes.",
)
KNOWN = PARAGRAPHS | CONDITIONS | XIDS
READABLE = 100
"""Columns of a paragraph at most."""


def _matches(incomplete: str) -> list[str]:
    return [code for code in KNOWN if code.startswith(incomplete)]


@lists(CODES)
def explain(
    context: typer.Context,
    view: View,
    about: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ID|CODE",
            help="A job or machine; or a code of an error (no_capacity), a condition (gpu.lost) or an XID (xid-79).",
            autocompletion=_matches,
        ),
    ] = None,
    host: NotThere = None,
    weights: Weights = None,
) -> None:
    """Explain why a job or machine runs where it runs or still waits; or what a code means, and what to do."""
    if about is None:
        view.print(None, ({"code": one, "text": first_sentence(one, KNOWN)} for one in KNOWN))
        return
    name = about.partition(":")[0].replace("XID", "xid")  # of a condition of one GPU, gpu.lost:GPU-1
    if name in KNOWN:
        _explain_code(name, view)
        return
    if near := get_close_matches(name, KNOWN, 1):
        raise NotFound(f"There is no code {about!r}. Did you mean {near[0]}?")
    api = client(context)
    _, whole = resolving.work(api, about, shows=True)
    explain_work(api, whole, view.is_json, host, weights)


def _explain_code(name: str, view: View) -> None:
    if view.is_json:
        print_json({"code": name, "text": KNOWN[name]})
        return
    out.print(fill(KNOWN[name], min(out.width, READABLE)), markup=False)
    say(f"Code {name}. All codes: windrow explain")
