"""`windrow backend`: accounts at providers that sell machines, what may be spent there, and their check and sweep."""

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from windrow.cli import completing
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import facts, plain, print_json, say, size_text
from windrow.cli.purchases import cost_against_forecast
from windrow.cli.tables import Column, Table, View, lists, time_column
from windrow.errors import InvalidInput
from windrow.words import counted, money_text

backend_app = typer.Typer(
    help="Backends: accounts at clouds where this market buys machines (operators).", no_args_is_help=True
)

Item = dict[str, Any]
FILE_MAX: Final = 64 * 1024
"""Bytes of a file of credentials."""
MONEY: Final = ("per_hour", "per_day", "in_all")
COUNTS: Final = ("machines", "vcpus")
NO_CAP: Final = "none"
LATEST: Final = 200
"""Ended purchases whose cost is compared with its forecast."""
ENDS_BY: Final = {
    "power-off": "a machine switches itself off after 30 min, which ends its bill",
    "uninstall": "the machine removes the agent after 30 min, and goes on",
    "sweep": "a machine is paid for until somebody sweeps: windrow-master sweep",
    "time": "a run ends after 30 min, and the provider ends it at its time",
}

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the backend, such as aws.", autocompletion=completing.backends)
]
PerHour = Annotated[str | None, typer.Option(help="Most that all its machines together cost an hour; none: no cap.")]
PerDay = Annotated[str | None, typer.Option(help="Most that is spent on a day (UTC); none: no cap.")]
InAll = Annotated[str | None, typer.Option(help="Most that is spent in all; none: no cap.")]
Machines = Annotated[str | None, typer.Option(help="Most machines at once; none: no cap.")]
Vcpus = Annotated[str | None, typer.Option(help="Most vCPUs at once; none: no cap.")]
Margin = Annotated[
    int | None, typer.Option(metavar="PERCENT", help="Added to the cost in the price of its hosts; default: 0.")
]
Credentials = Annotated[
    Path | None,
    typer.Option(help="File with NAME=VALUE lines or a JSON object; -: standard input. Default: the Master's own."),
]
SecretFile = Annotated[
    list[str] | None, typer.Option(metavar="NAME=FILE", help="Credential that is a file of its own; repeatable.")
]


@backend_app.command("add")
def backend_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and -")],
    kind: Annotated[str, typer.Option(help="ec2 or ssh; `windrow backend kinds` lists them.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Setting of this kind; repeatable.")
    ] = None,
    credentials: Credentials = None,
    secret_file: SecretFile = None,
    per_hour: PerHour = None,
    per_day: PerDay = None,
    in_all: InAll = None,
    machines: Machines = None,
    vcpus: Vcpus = None,
    margin: Margin = None,
    as_json: AsJson = False,
) -> None:
    """Add a backend with caps on what may be spent there. Nothing is bought by it."""
    caps = _caps(per_hour=per_hour, per_day=per_day, in_all=in_all, machines=machines, vcpus=vcpus)
    if not any(caps.get(one) for one in MONEY):
        raise InvalidInput("Say how much may be spent there: --per-hour, --per-day or --in-all AMOUNT.")
    record = {
        "name": name,
        "kind": kind,
        "settings": dict(_pairs("--set", settings)),
        "secrets": _secrets(credentials, secret_file),
        "caps": caps,
        "margin_percent": margin or 0,
    }
    made = client(context).add_backend(record)
    print_json(made) if as_json else say(f"{name} is added. See whether it works: windrow backend check {name}")


def _spent(backend: Item) -> str:
    owed, caps = backend["owed"], backend["caps"]
    most = f" of {money_text(caps['per_day'], 2)}" if caps["per_day"] else ""
    return f"{money_text(owed['today'], 2)}{most} {caps['currency']}"


def _health(backend: Item) -> str:
    if backend["checked_at"] is None:
        return "not checked"
    wrong = [one["what"] for one in backend["findings"] if not one["good"]]
    return "wrong: " + ", ".join(wrong) if wrong else "good"


BACKENDS = Table(
    (
        Column("NAME", lambda b: b["name"]),
        Column("KIND", lambda b: b["kind"]),
        Column("LEVEL", lambda b: b["level"], 2),
        Column("HEALTH", _health, 1, 40),
        Column("MACHINES", lambda b: b["owed"]["living"]),
        Column("PER HOUR", lambda b: f"{money_text(b['owed']['per_hour'], 2)} {b['caps']['currency']}"),
        Column("TODAY", _spent, 1),
        Column("IN ALL", lambda b: f"{money_text(b['owed']['in_all'], 2)} {b['caps']['currency']}", 3),
        time_column("CHECKED", lambda b: b["checked_at"], 4),
        time_column("SWEPT", lambda b: b["swept_at"], 5),
    ),
    "No backends. Add one: windrow backend add aws --kind ec2 --set region=eu-central-1 --per-day 40",
    name=lambda b: b["name"],
)


@backend_app.command("ls")
@lists(BACKENDS)
def backend_ls(context: typer.Context, view: View) -> None:
    """List the backends: how each was tested, whether it works, what is owed there now."""
    api = client(context)
    view.print(api, api.backends())


KINDS = Table(
    (
        Column("KIND", lambda k: k["kind"]),
        Column("TITLE", lambda k: k["title"]),
        Column("LEVEL", lambda k: k["level"]),
        Column("SETTINGS", lambda k: _fields(k["settings"]), 1, 60),
        Column("CREDENTIALS", lambda k: _fields(k["secrets"]), 2, 60),
    ),
    "This Master knows no kind of backend.",
    name=lambda k: k["kind"],
)


def _fields(fields: list[Item]) -> str:
    return ", ".join(one["name"] + ("" if one["required"] else "?") for one in fields)


@backend_app.command("kinds")
@lists(KINDS)
def backend_kinds(context: typer.Context, view: View) -> None:
    """List the kinds of backends, and what each needs; ? marks what may be left out."""
    api = client(context)
    view.print(api, api.backend_kinds())


@backend_app.command("show")
def backend_show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show one backend: settings, caps, what is owed, and its last check."""
    api = client(context)
    one, buyers = api.backend(name), list(api.buyers(name))
    if as_json:
        print_json(one | {"buyers": buyers})
        return
    owed, currency = one["owed"], one["caps"]["currency"]
    rows = (
        ("Backend", one["name"]),
        ("Kind", f"{one['title']} ({one['kind']}); tested: {one['level']}"),
        *((key.replace("_", " ").capitalize(), value) for key, value in one["settings"].items()),
        ("Credentials", "kept sealed" if one["has_secrets"] else "those of the Master's environment"),
        ("Living", f"{counted(owed['living'], 'machine')}, {owed['vcpus']} vCPUs"),
        ("Now", f"{money_text(owed['per_hour'])} {currency} per hour"),
        ("Today", f"{money_text(owed['today'])} {currency}"),
        ("In all", f"{money_text(owed['in_all'])} {currency}, and at most {money_text(owed['reserved'])} reserved"),
        *((f"Cap {key.replace('_', ' ')}", _cap(one, key)) for key in (*MONEY, *COUNTS)),
        ("Margin", f"{one['margin_percent']} %"),
        *((f"May buy: {_buyer(each)}", _allowed(each)) for each in buyers),
        ("Without the Master", ENDS_BY[one["ends_by"]]),
        ("Cost", cost_against_forecast(islice(api.purchases(backend=name, state="gone"), LATEST))),
        ("Market id", one["market_id"]),
        ("Swept", one["swept_at"] or "not yet"),
        ("Checked", one["checked_at"] or f"not yet: windrow backend check {name}"),
    )
    facts(rows)
    _print_findings(one["findings"])


def _cap(backend: Item, key: str) -> str:
    cap = backend["caps"][key]
    if cap is None:
        return NO_CAP
    return f"{money_text(cap, 2)} {backend['caps']['currency']}" if key in MONEY else str(cap)


@backend_app.command("check")
def backend_check(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Check credentials, permissions, quota, clock, image, and that a machine there could join. Buys nothing."""
    found = client(context).check_backend(name)
    print_json(found) if as_json else _print_findings(found)
    if not all(one["good"] for one in found):
        raise typer.Exit(EXIT_FAILURE)


def _print_findings(findings: list[Item]) -> None:
    for one in findings:
        sys.stdout.write(f"{'ok   ' if one['good'] else 'wrong'}  {plain(one['what'])}: {plain(one['said'])}\n")
        if one["way_out"]:
            sys.stdout.write(f"       {plain(one['way_out'])}\n")


def _machine(offer: Item) -> str:
    gpus = f"{offer['gpu_count']} x {offer['gpu'] or 'GPU'}, " if offer["gpu_count"] else ""
    return f"{gpus}{offer['cpus']} vCPUs, {size_text(offer['memory_bytes'])}"


OFFERS = Table(
    (
        Column("OFFER", lambda o: o["offer"], most=60),
        Column("KIND", lambda o: o["kind"], 1),
        Column("MACHINE", _machine, most=48),
        Column("PER HOUR", lambda o: f"{money_text(o['price_per_hour'])} {o['currency']}"),
        Column("ZONE", lambda o: o["zone"] or o["region"], 2),
        Column("PRICE OF", lambda o: o["priced_on"], 3),
    ),
    "Nothing that fits can be had there now.",
    name=lambda o: o["offer"],
)


@backend_app.command("offers")
@lists(OFFERS, 20)
def backend_offers(
    context: typer.Context,
    view: View,
    name: Annotated[str, typer.Argument(metavar="BACKEND", autocompletion=completing.backends)],
    gpu: Annotated[str | None, typer.Option(help="Model of the GPUs, such as a10g.")] = None,
    gpus: Annotated[int | None, typer.Option(help="At least so many GPUs.")] = None,
    cpus: Annotated[int | None, typer.Option(help="At least so many vCPUs.")] = None,
    memory_gib: Annotated[float | None, typer.Option(help="At least so much memory.")] = None,
    region: Annotated[str | None, typer.Option(help="In this region alone.")] = None,
    spot: Annotated[
        bool | None, typer.Option("--spot/--on-demand", help="Sold so alone; default: however it is sold.")
    ] = None,
) -> None:
    """List machines that could be bought there now, the cheapest first."""
    api = client(context)
    least = 1 if gpu and gpus is None else gpus
    kind: Literal["spot", "on-demand"] | None = None if spot is None else "spot" if spot else "on-demand"
    wanted = {"gpu": gpu, "gpus": least, "cpus": cpus, "memory_gib": memory_gib, "region": region, "kind": kind}
    view.print(api, api.backend_offers(name, **wanted))


@backend_app.command("renew")
def backend_renew(
    context: typer.Context,
    name: Name,
    credentials: Credentials = None,
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Give a backend other credentials of the same account. What runs there goes on."""
    one = client(context).renew_backend(name, _secrets(credentials, secret_file))
    print_json(one) if as_json else say(f"{name} uses these credentials from now on: windrow backend check {name}")


@backend_app.command("cap")
def backend_cap(
    context: typer.Context,
    name: Name,
    per_hour: PerHour = None,
    per_day: PerDay = None,
    in_all: InAll = None,
    machines: Machines = None,
    vcpus: Vcpus = None,
    margin: Margin = None,
    as_json: AsJson = False,
) -> None:
    """Change the caps that are given. What runs goes on; nothing more is bought above a cap."""
    given = _caps(per_hour=per_hour, per_day=per_day, in_all=in_all, machines=machines, vcpus=vcpus)
    if not given and margin is None:
        raise InvalidInput("No cap was given. Say which, for example: --per-day 40")
    api = client(context)
    one = api.set_caps(name, api.backend(name)["caps"] | given | ({} if margin is None else {"margin_percent": margin}))
    if as_json:
        print_json(one)
        return
    say(f"Caps of {name}: " + ", ".join(f"{key.replace('_', ' ')} {_cap(one, key)}" for key in (*MONEY, *COUNTS)))


Project = Annotated[str, typer.Argument(metavar="PROJECT", help="Name or id of the project.")]


@backend_app.command("allow")
def backend_allow(
    context: typer.Context,
    name: Name,
    project: Project,
    per_day: PerDay = None,
    in_all: InAll = None,
    as_json: AsJson = False,
) -> None:
    """Let the jobs and machines of a project buy machines here by themselves, for so much at most."""
    caps = _caps(per_day=per_day, in_all=in_all)
    if not any(caps.values()):
        raise InvalidInput("Say how much this project may spend there: --per-day or --in-all AMOUNT.")
    made = client(context).allow_buyer(name, project, caps)
    print_json(made) if as_json else say(f"{_buyer(made)} may buy at {name}: {_allowed(made)}.")


@backend_app.command("disallow")
def backend_disallow(context: typer.Context, name: Name, project: Project, as_json: AsJson = False) -> None:
    """Let the work of a project buy nothing more here. Machines that it has stay until their end."""
    client(context).disallow_buyer(name, project)
    print_json({"disallowed": project}) if as_json else say(f"{project} buys no more machines at {name}.")


def _buyer(one: Item) -> str:
    return str(one["account"] or one["account_id"])


def _allowed(one: Item) -> str:
    said = [
        f"{money_text(one[spent], 2)} of {money_text(one[cap], 2)} {words}"
        for cap, spent, words in (("per_day", "spent_today", "today"), ("in_all", "spent_in_all", "in all"))
        if one[cap] is not None
    ]
    return f"{', '.join(said)}; {counted(one['living'], 'machine')} now"


@backend_app.command("sweep")
def backend_sweep(
    context: typer.Context,
    name: Name,
    market: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of another market of yours that is gone; default: this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """End all there that was bought for this market and belongs to no living purchase. Other machines stay."""
    done = client(context).sweep_backend(name, market)
    if as_json:
        print_json(done)
    else:
        for key, words in (("ended", "ended"), ("unknown", "not ended")):
            for one in done[key]:
                sys.stdout.write(f"{words}  {plain(one['id'])}  {plain(one['said'])}\n")
        say(f"{counted(len(done['ended']), 'machine')} ended, {len(done['left_alone'])} left alone.")
    if done["unknown"]:
        raise typer.Exit(EXIT_FAILURE)


@backend_app.command("stop-all")
def backend_stop_all(context: typer.Context, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """End all purchases of a backend now, whatever runs on them, and set its cap of machines to 0."""
    agreed(yes, f"End all that is bought at {name}, and what runs there?")
    ended = client(context).stop_all(name)
    if as_json:
        print_json({"ended": ended})
        return
    say(f"{counted(len(ended), 'purchase')} of {name} will end, and nothing more is bought there.")
    say(f"To buy again: windrow backend cap {name} --machines N")


@backend_app.command("rm")
def backend_rm(context: typer.Context, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a backend and its credentials. Refused while something bought there is not surely gone."""
    agreed(yes, f"Remove the backend {name} and its credentials?")
    client(context).remove_backend(name)
    print_json({"removed": name}) if as_json else say(f"{name} is removed.")


def _caps(**given: str | None) -> Item:
    """The caps that are given; None stands for no cap."""
    found: Item = {}
    for key, text in given.items():
        if text is None:
            continue
        if text == NO_CAP:
            found[key] = None
        elif key in COUNTS and not (text.isascii() and text.isdecimal()):
            raise InvalidInput(f"--{key} {text}: give a number, or none.")
        else:
            found[key] = int(text) if key in COUNTS else text
    return found


def _pairs(flag: str, given: list[str] | None) -> list[tuple[str, str]]:
    found = []
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"{flag} {key[:40]}: write NAME=VALUE.")  # the value may be a secret
        found.append((key, value))
    return found


def _secrets(credentials: Path | None, secret_file: list[str] | None) -> dict[str, str]:
    secrets = {} if credentials is None else _credentials(credentials)
    return secrets | {key: _read(Path(file)) for key, file in _pairs("--secret-file", secret_file)}


def _credentials(file: Path) -> dict[str, str]:
    """The credentials of a file: a JSON object, or lines NAME = VALUE, as a profile of ~/.aws/credentials has them.
    What is wrong is said without a value. Raises InvalidInput."""
    text = _read(file)
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidInput(f"{file} is not JSON.") from None
        return {str(key).lower(): str(value) for key, value in found.items()}
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    if sum(line.startswith("[") for _, line in lines) > 1:
        raise InvalidInput(f"{file} has several profiles. Give a file with one.")
    kept: dict[str, str] = {}
    for number, line in lines:
        if not line or line.startswith(("#", "[")):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise InvalidInput(f"{file}, line {number}: write NAME=VALUE.")
        kept[key.removeprefix("export ").strip().lower()] = value.strip().strip("\"'")
    return kept


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(FILE_MAX + 1)
        else:
            with file.expanduser().open("rb") as opened:
                raw = opened.read(FILE_MAX + 1)
        text = raw.decode()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is no text in UTF-8.") from None
    if not 1 <= len(raw) <= FILE_MAX:
        raise InvalidInput(f"{file} is empty, or longer than {FILE_MAX:,} bytes.")
    return text
