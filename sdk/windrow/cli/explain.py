"""`windrow explain`: what the code of an error, a condition or an XID means, and what to do; without a Master."""

from difflib import get_close_matches
from textwrap import fill
from typing import Annotated

import typer

from windrow.cli.output import out, print_json, say
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
    view: View,
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="As an error ends with (no_capacity), of a condition (gpu.lost) or an XID (xid-79); without: all.",
            autocompletion=_matches,
        ),
    ] = None,
) -> None:
    """Explain the code of an error, a condition or an XID: what happened, and what to do."""
    if code is None:
        view.print(None, ({"code": one, "text": first_sentence(one, KNOWN)} for one in KNOWN))
        return
    name = code.partition(":")[0].replace("XID", "xid")  # of a condition of one GPU, gpu.lost:GPU-1
    if name not in KNOWN:
        near = get_close_matches(name, KNOWN, 1)
        hint = f" Did you mean {near[0]}?" if near else " List them: windrow explain"
        raise NotFound(f"There is no code {code!r}.{hint}")
    if view.is_json:
        print_json({"code": name, "text": KNOWN[name]})
        return
    out.print(fill(KNOWN[name], min(out.width, READABLE)), markup=False)
    say(f"Code {name}. All codes: windrow explain")
