"""`windrow host facts`: what a host says of its machine, field by field."""

import typer

from windrow.cli import resolving
from windrow.cli.context import AsJson, client
from windrow.cli.hosts import Host, host_app
from windrow.cli.output import facts, field_text, print_json, print_whole


@host_app.command("facts")
def host_facts(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Show what a host reports of its machine, disk, network and containers; nothing of it is proven."""
    api = client(context)
    found = api.get(f"/hosts/{resolving.found(api, resolving.HOSTS, host)}/facts")
    if as_json:
        print_json(found)
        return
    for group in found["groups"]:
        print_whole(f"{group['name']}:")
        facts([(one["label"], field_text(one["value"], one["unit"])) for one in group["fields"]])
