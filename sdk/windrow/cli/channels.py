"""`windrow channel` and `windrow delivery`: where alerts are delivered to, and how that went."""

import sys
from typing import Annotated, Any, Final

import typer

from windrow.cli import completing
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.flags import options
from windrow.cli.output import print_json, say
from windrow.cli.resolving import CHANNELS, DELIVERIES, found
from windrow.cli.tables import Column, Table, View, id_column, lists, spoken, time_column
from windrow.client import Client
from windrow.errors import InvalidInput
from windrow.fields import Field
from windrow.words import severity_name

channel_app = typer.Typer(help="Channels: mail, webhooks and chats that alerts go to.", no_args_is_help=True)
delivery_app = typer.Typer(help="Deliveries: messages of alerts on their way to channels.", no_args_is_help=True)

Item = dict[str, Any]
Channel = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="Name or id of a channel.", autocompletion=completing.channels)
]
NONE: Final = "none"
"""In place of a value: this setting ends."""
SETTINGS: Final = (
    Field("min_severity", "text", flag="--min-severity", help="info, ticket (can wait) or page (urgent); else ticket."),
    Field("rules", "texts", flag="--rule", help="Rules of alerts, such as host.*; none: all."),
    Field("quiet", "text", flag="--quiet", help="Quiet hours, such as 22:00-07:00; none ends them."),
    Field("time_zone", "text", flag="--time-zone", help="Of the quiet hours, such as Europe/Berlin; default: UTC."),
    Field("digest", "text", flag="--digest", help="Minutes at which what can wait goes together; none ends it."),
)
SETTABLE: Final = ("name", "min_severity", "rules", "quiet", "digest_minutes", "is_enabled")

SHOWN: Final = Table(
    (
        Column("NAME", lambda c: c["name"]),
        Column("KIND", lambda c: c["kind"]),
        Column("FOR", lambda c: c["scope"]),
        Column("TARGET", lambda c: c["target"]),
        Column("FROM", lambda c: c["min_severity"], 1, show=severity_name),
        Column("RULES", lambda c: ", ".join(c["rules"]) or "all", 2),
        Column("QUIET", lambda c: _quiet_text(c["quiet"]), 2),
        Column("STATE", lambda c: "on" if c["is_enabled"] else "off", 1),
        id_column(rank=3),
    ),
    "No channels. Make one: windrow channel add NAME --kind webhook --to https://example.org/hook",
    name=lambda c: c["name"],
)
STATES: Final = ("waiting", "held", "sent", "given_up")
SENT: Final = Table(
    (
        id_column(),
        Column("TITLE", lambda d: d["title"], 0, 48),
        Column("KIND", lambda d: d["kind"], 1),
        Column("STATE", lambda d: d["state"], show=spoken),
        Column("TRIES", lambda d: d["tries"], 2),
        Column("ANSWER", lambda d: d["last_answer"], 2),
        time_column("SINCE", lambda d: d["first_at"], 1),
        id_column(lambda d: d["channel_id"], "CHANNEL", 3),
    ),
    "No deliveries yet. Try a channel: windrow channel test CHANNEL",
    states=lambda d: (d["state"],),
    at=lambda d: d["first_at"],
    state_words=STATES,
)


@channel_app.command("ls")
@lists(SHOWN)
def channel_ls(context: typer.Context, view: View) -> None:
    """List your channels, and those of your project, organisation and market that you may see."""
    api = client(context)
    view.print(api, api.items("/channels"))


@channel_app.command("add")
@options(SETTINGS)
def channel_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the channel.")],
    to: Annotated[str, typer.Option("--to", help="Mail address or URL; - reads it from standard input.")],
    kind: Annotated[str, typer.Option("--kind", help="mail, webhook or apprise (Slack, Teams, PagerDuty ...).")],
    scope: Annotated[
        str, typer.Option("--for", help="Whose alerts: me, project, organisation or operators.")
    ] = "project",
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Make a channel. The secret of a webhook is printed, only now. Read a URL with a secret in it from standard input:
    others see command lines."""
    target = sys.stdin.readline().strip() if to == "-" else to
    body = {"name": name, "kind": kind, "target": target, "scope": scope} | _settings(asked, None)
    _print_made(client(context).request("POST", "/channels", body=body), as_json)


@channel_app.command("set")
@options(SETTINGS)
def channel_set(
    context: typer.Context,
    channel: Channel,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    is_enabled: Annotated[bool | None, typer.Option("--on/--off", help="Switch it on or off.")] = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Change the settings of a channel; those not named stay."""
    api = client(context)
    path = _path(api, channel)
    before = api.get(path)
    given = {key: value for key, value in (("name", name), ("is_enabled", is_enabled)) if value is not None}
    body = {key: before[key] for key in SETTABLE} | given | _settings(asked, before["quiet"])
    changed = api.request("PUT", path, body=body)
    print_json(changed) if as_json else say(f"The channel {changed['name']} is changed.")


@channel_app.command("test")
def channel_test(context: typer.Context, channel: Channel, as_json: AsJson = False) -> None:
    """Send a test message now, and say how it went."""
    api = client(context)
    sent = api.request("POST", f"{_path(api, channel)}/test")
    print_json(sent) if as_json else say(f"{spoken(sent['state']).capitalize()}: {sent['last_answer']}")
    if sent["state"] != "sent":
        raise typer.Exit(1)


@channel_app.command("rotate")
def channel_rotate(context: typer.Context, channel: Channel, as_json: AsJson = False) -> None:
    """Make a new secret for a webhook and print it, only now. For one day each message is signed by both."""
    api = client(context)
    _print_made(api.request("POST", f"{_path(api, channel)}/rotate"), as_json)


@channel_app.command("rm")
def channel_rm(context: typer.Context, channel: Channel, yes: Yes = False) -> None:
    """Delete a channel. What it has not sent is given up."""
    agreed(yes, f"Delete the channel {channel}?")
    api = client(context)
    api.request("DELETE", _path(api, channel))
    say(f"The channel {channel} is deleted.")


@channel_app.command("mail")
def channel_mail(
    context: typer.Context,
    level: Annotated[str | None, typer.Argument(metavar="[LEVEL]", help="none, urgent or all.")] = None,
) -> None:
    """Show or choose the alerts that you get by mail without a channel: none, urgent (page) or all (also ticket)."""
    api = client(context)
    path = "/user/alert-mail"
    kept = api.get(path) if level is None else api.request("PUT", path, body={"level": level})
    say(f"Alerts by mail: {kept['level']}.")


@delivery_app.command("ls")
@lists(SENT)
def delivery_ls(context: typer.Context, view: View) -> None:
    """List the messages that were or will be sent, the latest first, each with the last answer."""
    api = client(context)
    view.print(api, api.items("/deliveries", state=view.state))


@delivery_app.command("again")
def delivery_again(
    context: typer.Context, delivery: Annotated[str, typer.Argument(metavar="ID", help="Id of a delivery.")]
) -> None:
    """Send a message again, with the id that it had."""
    api = client(context)
    api.request("POST", f"/deliveries/{found(api, DELIVERIES, delivery)}/again")
    say("It is sent again.")


def _settings(asked: Item, quiet: Item | None) -> Item:
    """The settings that a command line gives, as the Master takes them. quiet: those that the channel has."""
    said: Item = {key: asked[key] for key in ("min_severity", "rules") if asked[key]}
    if asked["rules"] == [NONE]:
        said["rules"] = []
    if asked["quiet"] == NONE:
        said["quiet"] = None
    elif asked["quiet"] or asked["time_zone"]:
        hours = asked["quiet"] or (quiet and f"{quiet['begin']}-{quiet['end']}") or ""
        begin, dash, end = hours.partition("-")
        if not dash:
            raise InvalidInput(f"--quiet looks like 22:00-07:00, or is {NONE}.")
        zone = asked["time_zone"] or (quiet or {}).get("time_zone", "UTC")
        said["quiet"] = {"begin": begin, "end": end, "time_zone": zone}
    if asked["digest"]:
        if asked["digest"] != NONE and not asked["digest"].isdecimal():
            raise InvalidInput(f"--digest is a number of minutes, or {NONE}.")
        said["digest_minutes"] = None if asked["digest"] == NONE else int(asked["digest"])
    return said


def _quiet_text(quiet: Item | None) -> str | None:
    return f"{quiet['begin']}-{quiet['end']} {quiet['time_zone']}" if quiet else None


def _path(api: Client, channel: str) -> str:
    return f"/channels/{found(api, CHANNELS, channel)}"


def _print_made(made: Item, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    if made["secret"]:
        sys.stdout.write(made["secret"] + "\n")
        say("This is its secret, by which the receiver verifies messages. It is not shown again.")
    name = made["channel"]["name"]
    say(f"Try the channel: windrow channel test {name}")
