"""`windrow access`: the relays that hosts dial, how each fares, and taking one out of service."""

import sys
import time
from typing import Annotated, Any

import typer

from windrow.cli import resolving
from windrow.cli.context import AsJson, Yes, client
from windrow.cli.output import ABSENT, facts, print_json, say
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column

access_app = typer.Typer(help="Relays that hosts dial.", no_args_is_help=True)

STOP_LOOK_S = 0.5
"""Between two looks at how a test goes."""

Reason = Annotated[str, typer.Option(help="Reason; kept in the audit log.")]


ACCESSES = Table(
    (
        id_column(),
        Column("NAME", lambda a: a.get("name"), most=24),
        Column("STATE", lambda a: str(a["state"])),
        Column("REGION", lambda a: a["region"], 1, 16),
        Column("AGENTS", lambda a: a["agents"]),
        Column("LOAD", lambda a: load_text(a)),
        Column("RTT", lambda a: rtt_text(a), 3),
        Column("WORKERS", lambda a: a["workers"], 5),
        Column("ADDRESS", lambda a: a["address"], 4),
        time_column("SINCE", lambda a: a["since"], 6),
        Column("VERSION", lambda a: a["version"], 7),
    ),
    "No relay is known: start windrow-access, without it no host is heard.",
    name=lambda a: a.get("name"),
    states=lambda a: (a["state"],),
    state_words=("serving", "draining", "departed"),
)


@access_app.command("ls")
@lists(ACCESSES)
def access_ls(context: typer.Context, view: View) -> None:
    """List relays, also those that are drained or gone."""
    api = client(context)
    view.print(api, api.items("/accesses"))


@access_app.command("show")
def access_show(context: typer.Context, access: str, as_json: AsJson = False) -> None:
    """Show everything about one relay."""
    api = client(context)
    item = api.get(f"/accesses/{resolving.found(api, resolving.RELAYS, access)}")
    if as_json:
        print_json(item)
        return
    facts(
        [
            ("Relay", f"{item.get('name', 'relay')} ({item['id']})"),
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
    """Take a relay out of service: its agents move to other relays within seconds."""
    api = client(context)
    named = resolving.found(api, resolving.RELAYS, access)
    item = api.request("POST", f"/accesses/{named}/drain", body={"reason": reason})
    if as_json:
        print_json(item)
        return
    say(
        f"{item.get('name', access)} is draining; {item['agents']} agents leave it. See `windrow access show {access}`."
    )


@access_app.command("resume")
def access_resume(context: typer.Context, access: str, reason: Reason = "", as_json: AsJson = False) -> None:
    """Put a drained relay back into service."""
    api = client(context)
    named = resolving.found(api, resolving.RELAYS, access)
    item = api.request("POST", f"/accesses/{named}/resume", body={"reason": reason})
    if as_json:
        print_json(item)
        return
    say(f"{access} takes agents again." if item["state"] == "serving" else f"{access} will, once it is back.")


@access_app.command("stop")
def access_stop(
    context: typer.Context, access: str, reason: Reason = "", yes: Yes = False, as_json: AsJson = False
) -> None:
    """Kill a relay as a test and count what is lost (only in a market that `windrow up` started).

    The relay restarts by itself. Exits with 1 if acknowledged data was lost or an agent did not return in time.
    """
    api = client(context)
    named = resolving.found(api, resolving.RELAYS, access)
    name = api.get(f"/accesses/{named}")["stop_name"] or named
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("without a terminal this needs --yes")
        typed = typer.prompt(f"This kills the relay. Type {name} to confirm", err=True)
        if typed not in {name, access, named}:
            raise typer.Abort
    item = api.request("POST", f"/accesses/{named}/stop", body={"confirm": named, "reason": reason})
    if not as_json:
        say(f"{item['name']} is killed; {item['agents']} agents look for another relay.")
    while item["phase"] == "running":
        time.sleep(STOP_LOOK_S)
        item = api.get(f"/accesses/{named}/stop")
    if as_json:
        print_json(item)
    else:
        facts(stop_facts(item))
        say(item["how"])
    counted = item["counted"]
    if item["phase"] != "finished" or counted is None or counted["lost_samples"] or counted["lost_evidence"]:
        raise typer.Exit(1)


def stop_facts(item: dict[str, Any]) -> list[tuple[str, Any]]:
    """Describes the outcome of a test, line by line."""
    counted = item["counted"] or {}
    return [
        ("Relay", item["name"]),
        ("Test", item["phase"]),
        ("Problem", item["problem"]),
        ("Agents back", f"{item['back']} of {item['agents']}, {item['elsewhere']} of them at another relay"),
        ("Longest without connection", seconds_text(item["away_s"])),
        ("Longest between batches", seconds_text(counted.get("longest_gap_s"))),
        ("Before the kill", seconds_text(counted.get("usual_gap_s"))),
        ("Acknowledged samples", counted.get("acked_samples")),
        ("Acknowledged samples lost", counted.get("lost_samples")),
        ("Evidence lost", counted.get("lost_evidence")),
    ]


def seconds_text(seconds: float | None) -> str:
    """A time in seconds; absent stays absent."""
    return ABSENT if seconds is None else f"{seconds:.1f} s"


def load_text(item: dict[str, Any]) -> str:
    """How much of what it may carry is used, of its fullest worker."""
    return f"{item['load_permille'] / 10:.1f} %"


def rtt_text(item: dict[str, Any]) -> str:
    """The round trip its agents measured; absent stays absent."""
    return ABSENT if item["rtt_ms"] is None else f"{item['rtt_ms']:.1f} ms"
