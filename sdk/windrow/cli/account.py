"""`windrow login`, `logout`, `whoami`, `token`, `receipt`, `ledger`: who you are and what you paid."""

import platform
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow import link
from windrow.cli import device, resolving
from windrow.cli.context import AsJson, Tests, client
from windrow.cli.flags import options
from windrow.cli.limits import LIMITS, given
from windrow.cli.output import facts, plain, print_json, say
from windrow.cli.tables import (
    Column,
    Table,
    View,
    id_column,
    lists,
    money_column,
    roles_text,
    spoken,
    time_column,
    time_of,
)
from windrow.client import Client
from windrow.config import Config, forget, kept, known_authority, refuse_plain_http, save, save_authority
from windrow.errors import ApiProblem, InvalidInput, NotSignedIn, WindrowClientError
from windrow.transport import fetch_authority
from windrow.words import money_text

FACTOR_REQUIRED = "second_factor_required"
MARKETS_OWN = "cli.json"
"""The name of the token that a Master keeps in its data directory, for whoever runs it."""
TOKEN_FILE_MAX = 4096
"""Characters: more than a token and its line end."""
token_app = typer.Typer(help="API tokens and join tokens.", no_args_is_help=True)
receipt_app = typer.Typer(help="Receipts: what ran, for how long, at what cost.", no_args_is_help=True)
ledger_app = typer.Typer(help="Balances and transfers.", no_args_is_help=True)


def login(
    url: Annotated[
        str,
        typer.Argument(envvar="WINDROW_LINK", help="The Master, as https://market.example:8443, or a sign-in link."),
    ],
    token_file: Annotated[Path | None, typer.Option(help="File with the token.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="PEM file of the Master's own certificate authority.")] = None,
    address: Annotated[str | None, typer.Option(help="Sign in with this mail address and a password.")] = None,
    name: Annotated[str | None, typer.Option(help="Your name, to accept an invitation.")] = None,
    password_file: Annotated[Path | None, typer.Option(help="File with the password; else you are asked.")] = None,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Allow plain HTTP to another machine; the token is sent in clear.")
    ] = False,
) -> None:
    """Sign in: remember a Master and a token for this user. By a browser, where you approve this machine; by a mail
    address and password; by a token in a file or on standard input; by a sign-in link, or by an invitation, which makes
    a new user."""
    if link.is_link(url):
        given = link.parse(url)
        _login_by(given, ca_file, insecure_http, Person(name, address, password_file))
        return
    authority = _whole(ca_file) or known_authority(url)
    # Refused before a token is read.
    place = refuse_plain_http(Config(url, "", authority, "the command line", insecure_http))
    if address is not None:
        _sign_in(place, address, asked_password(password_file))
        return
    if token_file is not None:
        token = _token_in(token_file)
        if not token.strip():
            raise NotSignedIn(f"There is no token in {token_file}.")
    else:
        token = "" if sys.stdin.isatty() else sys.stdin.readline()
        if token and not token.strip():  # a line, of a variable without a value: nobody waits for a browser there
            raise NotSignedIn("There is no token on standard input: its first line is empty.")
    _keep(replace(place, token=token) if token else device.signed_in(place))


def logout() -> None:
    """Revoke the token that `windrow login` keeps for this user, with the tokens that it made, and forget it here."""
    said = _revoked()
    path = forget()
    say("No login is kept for this user." if path is None else f"Signed out: {path} is removed. {said}".rstrip())


def _revoked() -> str:
    """Revoke the token that is kept; returns in a sentence what has become of it. The one that a Master keeps for
    whoever runs it stays: the folder of its market needs it."""
    found = None
    try:
        found = kept()
        if found is None:
            return ""
        with Client(refuse_plain_http(found)) as api:
            me = api.get("/me")
            found = _with_token(found, me)
            if me["token"]["name"] == MARKETS_OWN:
                return f"Its token is the market's own, in its {MARKETS_OWN}, and stays valid until {found.expires_at}."
            api.request("DELETE", "/session" if me.get("session") else f"/tokens/{found.token_id}")
            return "Its token is revoked, and so are those that it made."
    except WindrowClientError as error:
        if isinstance(error, ApiProblem) and error.status == 401:
            return "Its token was not valid any more."
        return f"Its token was not revoked: {error} {_still_valid(found)}"


def _still_valid(config: Config | None) -> str:
    if config is None or not config.token_id:
        return "It stays valid until it expires. Find it (windrow token ls) and revoke it: windrow token rm ID"
    return f"It stays valid until {config.expires_at}. Revoke it: windrow token rm {config.token_id}"


def _with_token(config: Config, me: dict[str, Any]) -> Config:
    return replace(config, token_id=str(me["token"]["id"]), expires_at=str(me["token"]["expires_at"]))


@dataclass(frozen=True, slots=True)
class Person:
    """What was said of who accepts an invitation; the rest is asked for."""

    name: str | None
    address: str | None
    password_file: Path | None


def _login_by(given: link.SignInLink, ca_file: Path | None, insecure_http: bool, person: Person) -> None:
    # Its secret goes the same way as a token.
    place = refuse_plain_http(Config(given.url, "", _whole(ca_file), "the link", insecure_http))
    if ca_file is None and given.url.startswith("https://"):
        authority = save_authority(given.ca_hash, link.check_authority(given, fetch_authority(given.url)))
        place = replace(place, ca_file=authority)
    if given.is_invitation:
        _accept(place, given.secret, person)
        return
    with Client(place) as api:
        opened = api.redeem_link(given.secret)
    _keep(replace(place, token=opened["token"]["token"]))


def _accept(place: Config, secret: str, person: Person) -> None:
    with Client(place) as api:
        found = api.request("POST", "/invitation", body={"secret": secret})
        say(f"You are invited into {found['organisation']}.")
        address = person.address or found["address"] or _asked("Mail address")
        body = {"secret": secret, "name": person.name or _asked("Your name"), "address": address}
        body["password"] = asked_password(person.password_file, is_new=True)
        session = _session(api, "/invitation/accept", body)
    _keep_token_of(replace(place, token=session))


def _sign_in(place: Config, address: str, password: str) -> None:
    body = {"address": address, "password": password}
    with Client(place) as api:
        session = _session(api, "/sign-in/password", body)
    _keep_token_of(replace(place, token=session))


def _session(api: Client, path: str, body: dict[str, Any]) -> str:
    """The secret of a session; who has a second factor is asked for a code."""
    try:
        return str(api.request("POST", path, body=body)["secret"])
    except ApiProblem as problem:
        if problem.code != FACTOR_REQUIRED:
            raise
        code = _asked("Code of your app, or a recovery code")
        return str(api.request("POST", path, body={**body, "code": code})["secret"])


def _keep_token_of(signed_in: Config) -> None:
    """Keep a token that this session makes; the session itself ends."""
    with Client(signed_in) as api:
        made = api.request("POST", "/tokens", body={"name": f"windrow login on {platform.node()[:60] or 'a host'}"})
        api.request("DELETE", "/session")
    _keep(replace(signed_in, token=made["token"]))


def _asked(question: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question}: nobody can be asked here. Give it as an option: windrow login --help")
    return str(typer.prompt(question, err=True)).strip()


def asked_password(file: Path | None, *, is_new: bool = False) -> str:
    """The password in this file, or that somebody types. Raises InvalidInput where there is neither."""
    if file is not None:
        return _token_in(file).rstrip("\r\n")
    if not sys.stdin.isatty():
        raise InvalidInput("Nobody can be asked for the password here. Name its file: --password-file FILE")
    said = "New password, 12 characters or more" if is_new else "Password"
    return str(typer.prompt(said, hide_input=True, confirmation_prompt=is_new, err=True))


def whoami(context: typer.Context, as_json: AsJson = False) -> None:
    """Show who is signed in, to which Master, in which project, with which roles."""
    api = client(context)
    me = api.get("/me")
    if as_json:
        print_json(me)
        return
    facts(
        [
            *[(kind, one["name"]) for kind, one in _who(me)],
            *([("User id", me["user"]["id"])] if me.get("user") else []),
            ("Project", me["account"]["name"]),
            ("Roles", roles_text(", ".join(me["roles"]))),
            ("Token", f"{me['token']['name']}, until {me['token']['expires_at']}"),
            ("Balance", f"{money_text(me['balance']['amount'])} {me['balance']['currency']}"),
            ("Master", api.config.url),
        ]
    )


def _who(me: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(kind, me[key]) for kind, key in (("User", "user"), ("Service account", "service")) if me.get(key)]


def _whole(path: Path | None) -> str | None:
    """It is used from other folders, too."""
    return str(path.absolute()) if path else None


def _keep(config: Config) -> None:
    with Client(config) as api:
        me = api.get("/me")
    path = save(_with_token(config, me))
    who = _who(me)[0][1]["name"] if _who(me) else me["account"]["name"]
    say(f"Signed in as {who}, project {me['account']['name']} ({', '.join(me['roles'])}); kept in {path}.")


def _token_in(path: Path) -> str:
    try:
        with path.open() as file:
            return file.read(TOKEN_FILE_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a token: {type(error).__name__}.") from None


TOKENS = Table(
    (
        id_column(),
        Column("NAME", lambda t: t["name"]),
        Column("ROLES", lambda t: ", ".join(t.get("roles") or []), show=roles_text),
        time_column("EXPIRES", lambda t: t.get("expires_at")),
        time_column("LAST USED", lambda t: t.get("last_used_at"), 1),
        Column("FROM", lambda t: t.get("last_used_address"), 3),
    ),
    "No tokens. Make one: windrow token add NAME",
    name=lambda t: t["name"],
)


@token_app.command("ls")
@lists(TOKENS)
def token_ls(context: typer.Context, view: View) -> None:
    """List your API tokens (never their secrets)."""
    api = client(context)
    view.print(api, api.items("/tokens"))


@token_app.command("add")
@options(LIMITS)
def token_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the token, for example its purpose.")] = "",
    join: Annotated[bool, typer.Option("--join", help="Create a single-use token with which one host joins.")] = False,
    role: Annotated[list[str] | None, typer.Option(help="Roles of the token; with --join: host or access.")] = None,
    days: Annotated[int, typer.Option(min=1, max=90, help="Lifetime of an API token, in days.")] = 30,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Create a token; its secret is shown only now. Limits are of what it and the tokens that it makes spend."""
    api = client(context)
    limits = given(asked)
    if join and limits:
        raise InvalidInput("A join token spends nothing: leave the limits out.")
    if join:
        made: dict[str, Any] = api.request("POST", "/join-tokens", body={"role": (role or ["host"])[0]})
        secret = made["join_token"]
    else:
        body: dict[str, Any] = {"name": name or "cli", "expires_in_s": int(timedelta(days=days).total_seconds())}
        body |= ({"roles": role} if role else {}) | ({"limits": limits} if limits else {})
        made = api.request("POST", "/tokens", body=body)
        secret = made["token"]
    if as_json:
        print_json(made)
        return
    sys.stdout.write(secret + "\n")
    if not join:
        lasts = time_of(made["expires_at"]) - time_of(made["created_at"])
        is_shorter = lasts < timedelta(days=days, seconds=-1)
        why = "no token outlives the one that made it" if is_shorter else f"--days {days}"
        say(f"It expires at {made['expires_at']} ({why}).")
    if join and made.get("command"):
        say("Run this on the host that should join, within 15 minutes:")
        sys.stdout.write(made["command"] + "\n")
    elif join:
        say("Within 15 minutes, on the machine of the new relay (docs/regions.md has the rest):")
        sys.stdout.write("windrow-access join https://MASTER --token-file FILE --data-dir DIR --name NAME\n")


@token_app.command("rm")
def token_rm(
    context: typer.Context, token_id: Annotated[str, typer.Argument(metavar="NAME|ID", help="Name or id of the token.")]
) -> None:
    """Revoke a token at once."""
    api = client(context)
    api.request("DELETE", f"/tokens/{resolving.found(api, resolving.TOKENS, token_id)}")
    say(f"{token_id} is revoked.")


RECEIPTS = Table(
    (
        id_column(),
        Column("CLUSTER", lambda r: r.get("cluster_name") or r["cluster_id"], most=20),
        Column("STATE", lambda r: r.get("state")),
        Column("AMOUNT", lambda r: f"{money_text(r['amount'])} {r['currency']}"),
        Column("SECONDS", lambda r: r["running_seconds"], 3),
        time_column("ENDED", lambda r: r.get("ended_at"), 2),
        Column("TIER", lambda r: r.get("tier"), 4),
    ),
    "Nothing was rented yet: windrow run -- CMD",
    name=lambda r: r.get("cluster_name"),
    states=lambda r: (r.get("state"),),
    state_words=("open", "ending", "closed"),
    at=lambda r: r.get("started_at"),
)


@receipt_app.command("ls")
@lists(RECEIPTS)
def receipt_ls(context: typer.Context, view: View, tests: Tests = False) -> None:
    """List receipts, newest first. `--name`: of the machine."""
    api = client(context)
    view.print(api, api.items("/receipts", tests=tests or None))


@receipt_app.command("show")
def receipt_show(context: typer.Context, receipt: str, as_json: AsJson = False) -> None:
    """Show one receipt and the signed running time behind it."""
    api = client(context)
    item = api.get(f"/receipts/{resolving.found(api, resolving.RECEIPTS, receipt)}")
    if as_json:
        print_json(item)
    else:
        print_receipt(item)


def _line(line: dict[str, Any]) -> str:
    if _is_run(line):
        said = f"{line['workload_id']}, a run at a service: {line['running_seconds']} s"
    else:
        said = f"{line['workload_id']} on {line['host_id']}: {line['running_seconds']} s"
    return f"{said} ({line['note']})" if line.get("note") else said


def _is_run(line: dict[str, Any]) -> bool:
    """Returns whether the Master counted this time, since no host signs that of a run."""
    return bool(line["workload_id"] == line["host_id"])


def print_receipt(item: dict[str, Any]) -> None:
    """A receipt for people."""
    test = " (test money: it buys nothing outside this Master)" if item.get("test_money") else ""
    is_counted = any(map(_is_run, item.get("lines", [])))
    facts(
        [
            ("Receipt", item["id"]),
            ("Cluster", f"{item.get('cluster_name') or ''} {item['cluster_id']}"),
            ("Tier", item.get("tier")),
            ("Price per hour", f"{item['price_per_hour']} {item['currency']}"),
            ("Ran", f"{plain(item.get('started_at'))} to {item.get('ended_at') or 'now'}"),
            (f"{'Counted' if is_counted else 'Signed'} running time", f"{item['running_seconds']} s"),
            *[("  workload", _line(line)) for line in item.get("lines", [])],
            ("Amount", f"{item['amount']} {item['currency']}{test}"),
            ("Balance after", item.get("balance_after")),
        ]
    )


TRANSFERS = Table(
    (
        money_column("AMOUNT", lambda t: t["amount"]),
        Column("KIND", lambda t: t["kind"], most=20, show=spoken),
        Column("DEBIT", lambda t: t["debit"], 1),
        Column("CREDIT", lambda t: t["credit"], 1),
        time_column("AT", lambda t: t["at"]),
    ),
    "No transfers yet.",
    at=lambda t: t["at"],
)
BALANCES = Table(
    (
        Column("ACCOUNT", lambda b: b["account"]),
        money_column("AMOUNT", lambda b: b["amount"]),
        Column("CURRENCY", lambda b: b["currency"]),
    ),
    "No balances.",
)


@ledger_app.command("ls")
@lists(TRANSFERS)
def ledger_ls(context: typer.Context, view: View) -> None:
    """List your transfers, newest first."""
    api = client(context)
    view.print(api, api.items("/ledger/transfers"))


@ledger_app.command("balances")
@lists(BALANCES)
def ledger_balances(context: typer.Context, view: View) -> None:
    """List the balances that you may see."""
    api = client(context)
    view.print(api, api.get("/ledger/balances")["items"])
