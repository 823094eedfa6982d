"""`windrow login`, `token`, `receipt`, `ledger`: who you are and what you paid."""

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow import link
from windrow.cli.context import AsJson, client
from windrow.cli.output import facts, plain, print_json, print_list, say
from windrow.client import Client
from windrow.config import Config, refuse_plain_http, save, save_authority
from windrow.errors import InvalidInput
from windrow.transport import fetch_authority

token_app = typer.Typer(help="API tokens and join tokens.", no_args_is_help=True)
receipt_app = typer.Typer(help="Receipts: what ran, for how long, at what cost.", no_args_is_help=True)
ledger_app = typer.Typer(help="Balances and transfers.", no_args_is_help=True)


def login(
    url: Annotated[str, typer.Argument(help="The Master, as https://market.example:8443, or a sign-in link.")],
    token_file: Annotated[Path | None, typer.Option(help="File with the token; without it you are asked.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="PEM file of the Master's own certificate authority.")] = None,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Allow plain HTTP to another machine; the token is sent in clear.")
    ] = False,
) -> None:
    """Remember a Master and a token for this user; the token is tried first. A sign-in link brings its own token."""
    if link.is_link(url):
        _login_by(link.parse(url), ca_file, insecure_http)
        return
    # Refused before a token is asked for or read.
    refuse_plain_http(Config(url, "", source="the command line", allows_plain_http=insecure_http))
    if token_file is not None:
        token = _token_in(token_file)
    elif sys.stdin.isatty():
        token = typer.prompt("Token", hide_input=True, err=True).strip()
    else:
        token = sys.stdin.readline().strip()
    _keep(Config(url, token, _whole(ca_file), "the command line", insecure_http))


def _login_by(given: link.SignInLink, ca_file: Path | None, insecure_http: bool) -> None:
    # Its secret goes the same way as a token.
    place = refuse_plain_http(Config(given.url, "", _whole(ca_file), "the link", insecure_http))
    if ca_file is None and given.url.startswith("https://"):
        authority = save_authority(given.ca_hash, link.check_authority(given, fetch_authority(given.url)))
        place = replace(place, ca_file=authority)
    with Client(place) as api:
        opened = api.redeem_link(given.secret)
    _keep(replace(place, token=opened["token"]["token"]))


def _whole(path: Path | None) -> str | None:
    """It is used from other folders, too."""
    return str(path.absolute()) if path else None


def _keep(config: Config) -> None:
    with Client(config) as api:
        me = api.get("/me")
    say(f"Signed in as {me['account']['name']} ({', '.join(me['roles'])}); kept in {save(config)}.")


def _token_in(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a token: {type(error).__name__}.") from None


@token_app.command("ls")
def token_ls(context: typer.Context, as_json: AsJson = False) -> None:
    """List your API tokens (never their secrets)."""
    columns = [
        ("ID", lambda t: t["id"]),
        ("NAME", lambda t: t["name"]),
        ("ROLES", lambda t: ", ".join(t.get("roles") or [])),
        ("EXPIRES", lambda t: t.get("expires_at")),
        ("LAST USED", lambda t: t.get("last_used_at")),
    ]
    print_list(client(context).items("/tokens"), columns, "No tokens. Make one: windrow token add NAME", as_json)


@token_app.command("add")
def token_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the token, for example its purpose.")] = "",
    join: Annotated[bool, typer.Option("--join", help="Create a single-use token with which one host joins.")] = False,
    role: Annotated[list[str] | None, typer.Option(help="Roles of the token; with --join: host or access.")] = None,
    days: Annotated[int, typer.Option(min=1, max=90, help="Lifetime of an API token, in days.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Create a token; its secret is shown only now."""
    api = client(context)
    if join:
        made: dict[str, Any] = api.request("POST", "/join-tokens", body={"role": (role or ["host"])[0]})
        secret = made["join_token"]
    else:
        body = {"name": name or "cli", "expires_in_s": int(timedelta(days=days).total_seconds())}
        made = api.request("POST", "/tokens", body=body | ({"roles": role} if role else {}))
        secret = made["token"]
    if as_json:
        print_json(made)
        return
    sys.stdout.write(secret + "\n")
    if not join:
        say(f"It expires at {made['expires_at']}: no token outlives the one that made it.")
    if join and made.get("command"):
        say("Run this on the host that should join, within 15 minutes:")
        sys.stdout.write(made["command"] + "\n")
    elif join:
        say("Within 15 minutes, on the machine of the new Access (docs/regions.md has the rest):")
        sys.stdout.write("windrow-access join https://MASTER --token-file FILE --data-dir DIR --name NAME\n")


@token_app.command("rm")
def token_rm(context: typer.Context, token_id: str) -> None:
    """Revoke a token at once."""
    client(context).request("DELETE", f"/tokens/{token_id}")
    say(f"{token_id} is revoked.")


@receipt_app.command("ls")
def receipt_ls(context: typer.Context, as_json: AsJson = False) -> None:
    """List receipts, newest first."""
    columns = [
        ("ID", lambda r: r["id"]),
        ("CLUSTER", lambda r: r.get("cluster_name") or r["cluster_id"]),
        ("SECONDS", lambda r: r["running_seconds"]),
        ("AMOUNT", lambda r: f"{r['amount']} {r['currency']}"),
        ("ENDED", lambda r: r.get("ended_at") or "running"),
    ]
    print_list(client(context).items("/receipts"), columns, "Nothing was rented yet: windrow run -- CMD", as_json)


@receipt_app.command("show")
def receipt_show(context: typer.Context, receipt: str, as_json: AsJson = False) -> None:
    """Show one receipt and the signed running time behind it."""
    item = client(context).get(f"/receipts/{receipt}")
    if as_json:
        print_json(item)
    else:
        print_receipt(item)


def _line(line: dict[str, Any]) -> str:
    said = f"{line['workload_id']} on {line['host_id']}: {line['running_seconds']} s"
    return f"{said} ({line['note']})" if line.get("note") else said


def print_receipt(item: dict[str, Any]) -> None:
    """A receipt for people."""
    test = " (test money: it buys nothing outside this Master)" if item.get("test_money") else ""
    facts(
        [
            ("Receipt", item["id"]),
            ("Cluster", f"{item.get('cluster_name') or ''} {item['cluster_id']}"),
            ("Tier", item.get("tier")),
            ("Price per hour", f"{item['price_per_hour']} {item['currency']}"),
            ("Ran", f"{plain(item.get('started_at'))} to {item.get('ended_at') or 'now'}"),
            ("Signed running time", f"{item['running_seconds']} s"),
            *[("  workload", _line(line)) for line in item.get("lines", [])],
            ("Amount", f"{item['amount']} {item['currency']}{test}"),
            ("Balance after", item.get("balance_after")),
        ]
    )


@ledger_app.command("ls")
def ledger_ls(context: typer.Context, as_json: AsJson = False) -> None:
    """List your transfers, newest first."""
    columns = [
        ("AT", lambda t: t["at"]),
        ("DEBIT", lambda t: t["debit"]),
        ("CREDIT", lambda t: t["credit"]),
        ("AMOUNT", lambda t: t["amount"]),
        ("KIND", lambda t: t["kind"]),
    ]
    print_list(client(context).items("/ledger/transfers"), columns, "No transfers yet.", as_json)


@ledger_app.command("balances")
def ledger_balances(context: typer.Context, as_json: AsJson = False) -> None:
    """List the balances that you may see."""
    answer = client(context).get("/ledger/balances")
    columns = [
        ("ACCOUNT", lambda b: b["account"]),
        ("AMOUNT", lambda b: b["amount"]),
        ("CURRENCY", lambda b: b["currency"]),
    ]
    print_list(answer["items"], columns, "No balances.", as_json)
