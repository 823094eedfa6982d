"""`windrow host bandwidth`: what relays found of a host's line, round by round."""

from typing import Annotated

import typer

from windrow.cli.context import AsJson, client
from windrow.cli.output import print_json, print_list, rate_text

COLUMNS = [
    ("AT", lambda one: one["at"]),
    ("REGION", lambda one: one["region"]),
    ("DOWN", lambda one: rate_text(one["down_bps"])),
    ("UP", lambda one: rate_text(one["up_bps"])),
    ("RELAYS", lambda one: one["relays"]),
]


def host_bandwidth(
    context: typer.Context,
    host: str,
    limit: Annotated[int, typer.Option(min=1, max=1024, help="Most rounds to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What Accesses measured of its line, the newest round first, a row for each of their regions."""
    found = client(context).get(f"/hosts/{host}/bandwidth", limit=limit)
    if as_json:
        print_json(found)
        return
    print_list(found["rounds"], COLUMNS, "Not measured yet: it is soon after a host joins.", False)
