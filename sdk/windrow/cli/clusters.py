"""`windrow cluster`: create, look, read logs, run a command inside, fetch files, delete."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from windrow.cli import cluster_text as text
from windrow.cli import completing, entering, kept, quoting, resolving
from windrow.cli.bringing import AllowExecutables, bring_cluster, exit_unless_whole, say_report
from windrow.cli.context import AsJson, Tests, Watch, Yes, agreed, client
from windrow.cli.exits import EXIT_CONFLICT, EXIT_FAILURE, EXIT_OK
from windrow.cli.findings import print_findings
from windrow.cli.flags import options
from windrow.cli.output import (
    err,
    facts,
    out,
    print_ids,
    print_json,
    print_whole,
    say,
)
from windrow.cli.queueing import NotThere, Weights, explain_work, queue_rows
from windrow.cli.request import body, parse_gpu, registry_login
from windrow.cli.streams import ProgramOutput, Raw, refuse_input, say_unsent_input
from windrow.cli.tables import Column, Table, View, id_column, lists, money_column, time_column
from windrow.cli.waiting import ENDLESS, Wait, WaitCommand, left_queue, may_wait, wait_part
from windrow.client import Client
from windrow.errors import MasterUnreachable, NameTaken, WaitTimedOut, WindrowClientError
from windrow.fields import CLUSTER
from windrow.soon import SOON_S, patiently
from windrow.words import counted, money_or_none, money_text

cluster_app = typer.Typer(help="Machines and clusters: work on rented GPUs and CPUs.", no_args_is_help=True)

LOGIN_MAX = 16_384
"""Characters of a registry's login; more is none."""
CREATE_TIMEOUT_S = 900.0
END_TIMEOUT_S = 180.0
"""Pulling a large image takes minutes; the host itself gives up after ten."""

Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu", help="GPUs: a memory size (24GB), a model (H100), either with a number (H100:2), or a number."
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", help="Variable: NAME=value, or NAME to take it from your environment; repeatable."),
]
EnvFile = Annotated[
    list[Path] | None,
    typer.Option("--env-file", help="File of variables, NAME=value or NAME on each line; repeatable."),
]
Rank = Annotated[int, typer.Option("--rank", min=0, help="Member of a cluster, counted from 0.")]
SshKey = Annotated[
    list[Path] | None,
    typer.Option("--ssh-key", help="File of public keys (.pub) that may log in to a machine; repeatable."),
]
Notebook = Annotated[
    bool | None,
    typer.Option(
        "--notebook/--no-notebook",
        help="Start Jupyter on the machine; default: yes, if no command is given.",
        show_default=False,
    ),
]
MaxPrice = Annotated[str | None, typer.Option("--max-price", help="Highest price per hour, for all hosts together.")]
Login = Annotated[
    typer.FileText | None,
    typer.Option(
        "--registry-login", help="File with NAME:PASSWORD for the registry of the image; - is standard input."
    ),
]
Which = Annotated[
    str, typer.Argument(metavar="NAME|ID", help="Name or id of the machine.", autocompletion=completing.clusters)
]


def cluster_named(api: Client, name: str, *, ended: bool = False) -> dict[str, Any]:
    """The cluster of this name, or of an id that begins so; with `ended` else the newest of the name that has. Raises
    ApiProblem, NotFound, InvalidInput."""
    return api.cluster(cluster_id(api, name, ended=ended))


def cluster_id(api: Client, name: str, *, ended: bool = False, shows: bool = False) -> str:
    """Its id; `shows` as for `found`."""
    return resolving.found(api, resolving.CLUSTERS, name, ended=ended, shows=shows)


def is_up(cluster: dict[str, Any]) -> bool:
    """Running, or past it."""
    return cluster["phase"] in ("Running", "Degraded", *text.RESTS)


def _first_of(hosts: str) -> str:
    first, *others = hosts.split(", ")
    return f"{first} +{len(others)}" if others else first


CLUSTERS = Table(
    (
        id_column(),
        Column("NAME", lambda c: c.get("name"), most=20),
        Column("STATE", lambda c: c["phase"]),
        money_column("PRICE/H", lambda c: c.get("price_per_hour")),
        money_column("COST", lambda c: c.get("cost_so_far"), 1),
        Column("HOSTS", lambda c: ", ".join(str(one["host_name"]) for one in text.members(c)), 2, 24, _first_of),
        time_column("CREATED", lambda c: c.get("created_at"), 3),
        Column("KIND", lambda c: c["kind"], 5),
        Column("TIER", lambda c: c.get("tier"), 6),
        Column("REASON", lambda c: c.get("problem") or c.get("reason"), 4, 16),
    ),
    "No machines. Try: windrow run -- python -V",
    name=lambda c: c.get("name"),
    states=lambda c: (c["phase"],),
    state_words=(
        *("Requested", "Queued", "Placing", "Creating", "Running", "Degraded", "Stopping", "Deleting"),
        *text.RESTS,
    ),
    at=lambda c: c.get("created_at"),
    owner=lambda c: c.get("account_id"),
    has_ended=lambda c: c["phase"] in text.ENDED,
)


@cluster_app.command("ls")
@lists(CLUSTERS)
def cluster_ls(context: typer.Context, view: View, watch: Watch = False, tests: Tests = False) -> None:
    """List machines and clusters, newest first."""
    api = client(context)
    view.print(api, api.items("/clusters", name=view.exact_name, tests=tests or None))
    if watch:
        for _, _, event in api.events("/events/stream"):
            if any(str(subject).startswith("cluster_") for subject in event.get("subjects", [])):
                print_json(event) if view.is_json else say(f"{event['at']} {event['text']}")


Optimize = Annotated[
    Literal["cost", "speed"] | None,
    typer.Option("--optimize", help="With --backend: cost, also where places here are dearer; or what starts first."),
]


@cluster_app.command("create", cls=WaitCommand)
@options(CLUSTER)
def cluster_create(
    context: typer.Context,
    argv: Annotated[
        list[str] | None, typer.Argument(help="Command to run; without one the machine stays on until you delete it.")
    ] = None,
    gpu: Gpu = None,
    env: Env = None,
    env_file: EnvFile = None,
    template: Annotated[
        str | None, typer.Option("--template", help="Start from this template.", autocompletion=completing.templates)
    ] = None,
    login: Login = None,
    ssh_key: SshKey = None,
    ssh: Annotated[
        bool | None,
        typer.Option("--ssh/--no-ssh", help="Allow SSH with your keys from ~/.ssh, on a machine without a command."),
    ] = None,
    notebook: Notebook = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show where it would run, and the price.")] = False,
    if_not_there: Annotated[
        bool, typer.Option("--if-not-there", help="Where you have a machine of this --name, use it; create none.")
    ] = False,
    yes: Yes = False,
    optimize: Optimize = None,
    wait: Wait = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once, before the machine runs.")] = False,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Create a machine, or a cluster of several hosts."""
    api = client(context)
    base = kept.template_named(api, template)["request"] if template else {}
    kind = asked["kind"] or base.get("kind") or "box"
    keys, is_asked = entering.asked(kind, argv or base.get("argv", []), ssh_key or [], ssh is not False, notebook)
    asked |= {
        "kind": kind,
        "argv": argv or None,
        "env": kept.variables(argv or [], env, env_file),
        "host_id": resolving.host(api, asked["host_id"]),
        "ssh_keys": keys if keys or ssh is False else None,
        "notebook": is_asked if notebook is not None or (is_asked and not base) else None,
    }
    wait = wait or (ENDLESS if asked["backend"] is not None else None)
    own = body(CLUSTER, asked | {"optimize": optimize}) | (parse_gpu(gpu) if gpu is not None else {}) | wait_part(wait)
    request = kept.changed(base, own)
    if plan:
        show_plan(api.plan(request), as_json)
        return
    found = _of_name(api, asked["name"]) if asked["name"] else None
    if found is not None and not if_not_there:
        raise NameTaken(
            f"You have a machine {found['name']!r} already: {found['id']}, {found['phase']}. Choose another name, or "
            "use that one with --if-not-there."
        )
    if found is None:
        quoting.quoted(lambda: api.plan(request), yes, is_silent=as_json)
    with may_wait(wait):
        found = found or api.create_cluster(request | login_part(login), tell=say)
    started(api, found if no_wait else left_queue(api, found, is_silent=as_json), not no_wait, as_json)


def _of_name(api: Client, name: str) -> dict[str, Any] | None:
    """Returns one's own cluster of this name that goes on; None: there is none."""
    return next((one for one in api.own("/clusters", name) if one["phase"] not in text.ENDED), None)


def login_part(login: typer.FileText | None) -> dict[str, Any]:
    """The login of a request, where there is one."""
    return {} if login is None else {"registry_login": registry_login(login.read(LOGIN_MAX))}


def started(api: Client, cluster: dict[str, Any], wait: bool, as_json: bool) -> None:
    """Wait until it runs, say how it went and how it is entered; exits where it failed."""
    if wait:
        with text.Progress(text.past_steps(cluster), is_silent=as_json) as progress:
            cluster = api.wait_cluster(cluster["id"], is_up, CREATE_TIMEOUT_S, progress)
    if as_json:
        print_json(cluster)
    else:
        say(text.state_text(cluster.get("name") or cluster["id"], cluster["phase"], cluster.get("reason")))
        if cluster["phase"] == "Running" and (end := text.end_text(cluster)):
            say(end)
        text.print_addresses(cluster, err)
        for line in entering.ways_in(api, cluster) if wait and cluster["phase"] == "Running" else ():
            print_whole(line, err)
        print_ids([cluster["id"]])
    if cluster["phase"] == "Failed":
        raise typer.Exit(EXIT_FAILURE)


@cluster_app.command("resize")
def cluster_resize(
    context: typer.Context,
    cluster: Which,
    hosts: Annotated[int, typer.Argument(min=1, help="New number of hosts.")],
    max_price: MaxPrice = None,
    login: Login = None,
    wait: Annotated[bool, typer.Option(help="Wait until all hosts run.")] = True,
    as_json: AsJson = False,
) -> None:
    """Change the number of hosts of a running Ray or Dask cluster."""
    api = client(context)
    asked: dict[str, Any] = {"hosts": hosts} | ({"max_price_per_hour": max_price} if max_price else {})
    asked |= login_part(login)
    named = cluster_id(api, cluster)
    found = patiently(lambda: api.request("POST", f"/clusters/{named}/resize", body=asked), SOON_S, say)
    if wait:
        with text.Progress(found.get("steps") or (), is_silent=as_json) as progress:
            found = api.wait_cluster(named, _are_up, CREATE_TIMEOUT_S, progress)
    if as_json:
        print_json(found)
        return
    if found["phase"] in text.RESTS:
        raise WindrowClientError(f"{found['name']} is {found['phase']}: {found.get('reason') or 'somebody ended it'}")
    size, price = counted(found["request"]["hosts"], "host"), money_text(found["price_per_hour"])
    say(f"{found['name']} has {size}, {price} per hour in all.")


def _are_up(cluster: dict[str, Any]) -> bool:
    """True if every member runs, or it is over."""
    return cluster["phase"] in text.RESTS or all(one["phase"] == "running" for one in text.members(cluster))


def show_plan(answer: dict[str, Any], as_json: bool) -> None:
    """Prints a plan; exits where nothing fits."""
    if as_json:
        print_json(answer)
        return
    text.print_plan(answer)
    text.print_tested(answer)
    if not answer["fits"]:
        raise typer.Exit(EXIT_CONFLICT)


@cluster_app.command("show")
def cluster_show(context: typer.Context, cluster: Which, as_json: AsJson = False) -> None:
    """Show everything about one machine or cluster."""
    api = client(context)
    item = api.cluster(cluster_id(api, cluster, ended=True, shows=True))
    used = _usage(api, item)
    if as_json:
        print_json(item | {"usage": used})
        return
    mounts = (item.get("request") or {}).get("volumes") or []
    volumes = _volumes(api, item) if mounts else {}
    facts(
        [
            ("Cluster", f"{item.get('name') or ''} {item['id']}"),
            ("Phase", f"{item['phase']} {item.get('reason') or ''}"),
            *queue_rows(item.get("queue")),
            *[("", f"- {change}") for change in _changes(api, item)],
            *([("Problem", item["problem"])] if item.get("problem") else []),
            ("Kind", item.get("kind")),
            ("Account", item.get("account_id")),
            *text.request_facts(item.get("request") or {}, text.hosts(item)),
            ("Tier", item.get("tier")),
            ("Price per hour", money_or_none(item.get("price_per_hour"))),
            ("Cost so far", money_or_none(item.get("cost_so_far"))),
            ("Created", item.get("created_at")),
            ("Started", item.get("started_at")),
            *([("Ended", item["ended_at"])] if item.get("ended_at") else []),
            *([("Ends", end)] if (end := text.ends(item)) else []),
            *[
                ("Workload" if one.get("address") is None else "Member", text.member_text(item, one))
                for one in text.members(item)
            ],
            *text.usage_rows(used),
            *[("Volume", text.volume(mount, volumes)) for mount in mounts],
            *([("Network", text.network(item))] if item.get("network") else []),
            *([("Visitors", text.traffic(item["traffic"]))] if item.get("kind") == "service" else []),
            *[
                ("Step", f"{s['at']} {str(s['name']).replace('_', ' ')} {text.of_step(s)}")
                for s in item.get("steps") or []
            ],
        ]
    )
    text.print_addresses(item, out)


def _changes(api: Client, cluster: dict[str, Any]) -> list[str]:
    """Returns what would have to change for what waits to have a place now."""
    return list(api.get(f"/explain/{cluster['id']}")["changes"]) if cluster.get("queue") else []


def _usage(api: Client, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """The resources that each of its members uses now; none where none runs."""
    return api.usage(cluster["id"]) if cluster["phase"] not in text.RESTS else []


def _volumes(api: Client, cluster: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the saved versions of the volumes of a cluster's account, by name; nothing where it is not for this token
    to know."""
    me = api.get("/me")
    is_mine = me["account"]["id"] == cluster["account_id"] and "renter" in me["roles"]
    return {one["name"]: one for one in api.volumes()} if is_mine else {}


@cluster_app.command("logs")
def cluster_logs(
    context: typer.Context,
    cluster: Which,
    follow: Annotated[bool, typer.Option("--follow", "-f")] = False,
    rank: Rank = 0,
    raw: Raw = False,
) -> None:
    """Print the log of a machine, or the kept log of one that has ended."""
    api = client(context)
    found, printed = cluster_id(api, cluster, ended=True), 0
    output = ProgramOutput(is_raw=raw)
    is_whole = False
    while not is_whole:
        before, is_whole = printed, True
        source = api.logs(found, follow=True, offset=printed, rank=rank) if follow else api.whole_log(found, rank=rank)
        try:
            for data in source:
                printed += len(data)
                output.write(data)
        except MasterUnreachable:  # cut: its host went away, or the Master
            if printed == before:
                raise
            is_whole = False
    output.end_colours()
    if follow:
        api.get(f"/clusters/{found}")  # a right that has ended cuts the log, too: this says so


@cluster_app.command("exec")
def cluster_exec(context: typer.Context, cluster: Which, argv: list[str], rank: Rank = 0) -> None:
    """Run a command on a machine; exits with the command's exit code. It reads no standard input."""
    api = client(context)
    raise typer.Exit(run_inside(api, cluster_id(api, cluster), argv, rank))


def run_inside(api: Client, cluster: str, argv: list[str], rank: int = 0) -> int:
    """Run and relay the output; returns the exit code."""
    output = ProgramOutput()
    refuse_input()
    for part in api.execute(cluster, argv, rank=rank):
        if isinstance(part, int):
            is_left = say_unsent_input()  # input may have come while it ran
            return part or (EXIT_FAILURE if is_left else EXIT_OK)
        stream, data = part
        output.write(data, stream)
    say(f"The command in {cluster} was cut off: your right to it has ended, or the Master has stopped.")
    return EXIT_FAILURE


@cluster_app.command("explain")
def cluster_explain(
    context: typer.Context, cluster: Which, host: NotThere = None, weights: Weights = None, as_json: AsJson = False
) -> None:
    """Explain why a machine runs on its host, or still waits."""
    api = client(context)
    whole = cluster_id(api, cluster, ended=True, shows=True)
    explain_work(api, whole, as_json, host, weights)


@cluster_app.command("doctor")
def cluster_doctor(context: typer.Context, cluster: Which, as_json: AsJson = False) -> None:
    """Tell what holds the GPUs of a cluster back: heat, power, PCIe, CPUs, data, or that it is idle."""
    api = client(context)
    print_findings(api, f"/clusters/{cluster_id(api, cluster, ended=True, shows=True)}", as_json)


@cluster_app.command("files")
def cluster_files(
    context: typer.Context,
    cluster: Which,
    into: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path("."),
    changed: Annotated[bool, typer.Option(help="Only changed files.")] = False,
    rank: Rank = 0,
    allow_executables: AllowExecutables = False,
) -> None:
    """Fetch the working folder of a machine; after its command has ended, the changed files (kept 30 days)."""
    api = client(context)
    found = cluster_id(api, cluster, ended=True)
    report = bring_cluster(api, found, into, changed=changed, rank=rank, allow_executables=allow_executables)
    say_report(report, f"the same command again, or windrow run fetch {found} --into DIR", into)
    exit_unless_whole(report)


@cluster_app.command("delete")
def cluster_delete(
    context: typer.Context,
    cluster: Which,
    keep_results: Annotated[
        bool, typer.Option("--keep-results", help="Keep its log and changed files, as after a normal end.")
    ] = False,
    yes: Yes = False,
    wait: bool = True,
) -> None:
    """Delete a machine. Files not fetched are lost, except with --keep-results."""
    api = client(context)
    found = cluster_id(api, cluster)
    agreed(yes, f"End {cluster}?" if keep_results else f"Delete {cluster} and everything in it?")
    api.delete_cluster(found, keep_results=keep_results)
    if wait:
        item = api.wait_cluster(found, text.is_settled, END_TIMEOUT_S)
        say(f"{cluster} is {item['phase']}.")
        tell_unsaved(api, item)


def await_volumes(api: Client, cluster_id: str, name: str) -> None:
    """Wait until the volumes of a cluster that has ended are saved, and say what was not: the next one that writes them
    is refused until then. name: the work, as the person calls it."""
    cluster = api.cluster(cluster_id)
    if not (cluster.get("request") or {}).get("volumes"):
        return
    try:
        tell_unsaved(api, api.wait_cluster(cluster_id, text.is_settled, END_TIMEOUT_S))
    except WaitTimedOut:  # what the work came to is said all the same
        say(f"The volumes of {name} are still being saved: windrow volume ls")


def tell_unsaved(api: Client, cluster: dict[str, Any]) -> None:
    """Say what of its volumes was not saved, once it is settled."""
    mounts = (cluster.get("request") or {}).get("volumes") or []
    for line in text.unsaved(mounts, _volumes(api, cluster) if mounts else {}):
        say(line)
