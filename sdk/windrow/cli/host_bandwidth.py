"""`windrow host bandwidth`: what relays found of a host's line, round by round."""

import typer

from windrow.cli import resolving
from windrow.cli.context import client
from windrow.cli.hosts import Host, host_app
from windrow.cli.output import print_json, rate_text
from windrow.cli.tables import Column, Table, View, lists, time_column

ROUNDS = Table(
    (
        time_column("AT", lambda one: one["at"]),
        Column("REGION", lambda one: one["region"]),
        Column("DOWN", lambda one: rate_text(one["down_bps"])),
        Column("UP", lambda one: rate_text(one["up_bps"])),
        Column("RELAYS", lambda one: one["relays"], 1),
    ),
    "Not measured yet: it is soon after a host joins.",
    at=lambda one: one["at"],
)


@host_app.command("bandwidth")
@lists(ROUNDS, limit=20)
def host_bandwidth(context: typer.Context, view: View, host: Host) -> None:
    """List measurements of a host's line by relays, newest first, a row for each region."""
    api = client(context)
    found = api.get(f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/bandwidth", limit=view.limit)
    if view.is_json:
        print_json(found)
        return
    view.print(api, found["rounds"])
