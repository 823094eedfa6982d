"""`windrow access`: the relays that hosts dial, how each fares, and taking one out of service."""

from typing import Annotated, Any

import typer

from windrow.cli.context import AsJson, client
from windrow.cli.output import ABSENT, facts, print_json, print_list, say

access_app = typer.Typer(help="Accesses: the relays that hosts dial.", no_args_is_help=True)

Reason = Annotated[str, typer.Option(help="Goes into the audit.")]


@access_app.command("ls")
def access_ls(context: typer.Context, as_json: AsJson = False) -> None:
    """List Accesses, also those that are drained or gone."""
    columns = [
        ("ID", lambda a: a["id"]),
        ("REGION", lambda a: a["region"]),
        ("STATE", lambda a: a["state"]),
        ("AGENTS", lambda a: a["agents"]),
        ("LOAD", load_text),
        ("RTT", rtt_text),
        ("WORKERS", lambda a: a["workers"]),
        ("ADDRESS", lambda a: a["address"]),
        ("SINCE", lambda a: a["since"]),
        ("VERSION", lambda a: a["version"]),
    ]
    empty = "No Access is known: start windrow-access, without it no host is heard."
    print_list(client(context).items("/accesses"), columns, empty, as_json)


@access_app.command("show")
def access_show(context: typer.Context, access: str, as_json: AsJson = False) -> None:
    """Everything about one Access."""
    item = client(context).get(f"/accesses/{access}")
    if as_json:
        print_json(item)
        return
    facts(
        [
            ("Access", item["id"]),
            ("Region", item["region"]),
            ("Address", item["address"]),
            ("State", item["state"]),
            ("Since", item["since"]),
            ("Agents", item["agents"]),
            ("Load", load_text(item)),
            ("Round trip", rtt_text(item)),
            ("Workers", item["workers"]),
            ("Version", item["version"]),
            ("Drained", item["drained_at"] and f"{item['drained_at']} by {item['drained_by']}"),
            ("Why", item["drain_reason"]),
        ]
    )


@access_app.command("drain")
def access_drain(context: typer.Context, access: str, reason: Reason = "", as_json: AsJson = False) -> None:
    """Take it out of service: nobody new comes, its agents go to other Accesses within seconds."""
    item = client(context).request("POST", f"/accesses/{access}/drain", body={"reason": reason})
    if as_json:
        print_json(item)
        return
    say(f"{access} is draining; {item['agents']} agents leave it. See `windrow access show {access}`.")


@access_app.command("resume")
def access_resume(context: typer.Context, access: str, reason: Reason = "", as_json: AsJson = False) -> None:
    """Let it take agents again."""
    item = client(context).request("POST", f"/accesses/{access}/resume", body={"reason": reason})
    if as_json:
        print_json(item)
        return
    say(f"{access} takes agents again." if item["state"] == "serving" else f"{access} will, once it is back.")


def load_text(item: dict[str, Any]) -> str:
    """How much of what it may carry is used, of its fullest worker."""
    return f"{item['load_permille'] / 10:.1f} %"


def rtt_text(item: dict[str, Any]) -> str:
    """The round trip its agents measured; absent stays absent."""
    return ABSENT if item["rtt_ms"] is None else f"{item['rtt_ms']:.1f} ms"
