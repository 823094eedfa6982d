"""`windrow resource`: the registry of what a team can compute on, at home, in clouds and at the edge."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from windrow.cli import resolving, ssh_box
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import facts, print_json, say
from windrow.cli.tables import Column, Table, View, lists, time_column
from windrow.client import Client
from windrow.errors import InvalidInput
from windrow.words import money_text

resource_app = typer.Typer(
    help="Compute resources: the registry of machines at home, in clouds and at the edge.", no_args_is_help=True
)

FILE_MAX: Final = 16 << 20
"""Bytes of a file of records; ten thousand have 5 MB."""

F = TypeVar("F", bound=Callable[..., None])
Id = Annotated[str, typer.Argument(metavar="ID", help="resource_id of the resource.")]
Type = Annotated[str | None, typer.Option("--type", help="on-premise, cloud or edge.")]
Provider = Annotated[str | None, typer.Option(help="Cloud provider: AWS, Azure, GCP or another.")]


def _option(kind: Any, flag: str, text: str) -> Any:
    return Annotated[kind | None, typer.Option(flag, help=text)]


DECLARED: Final = {
    "resource_type": Type,
    "provider": Provider,
    "location": _option(str, "--location", "Data centre or place."),
    "region": _option(str, "--region", "Cloud region, such as us-east-1."),
    "supported_frameworks": _option(list[str], "--framework", "Framework it supports; repeatable."),
    "status": _option(str, "--status", "available, busy, maintenance or unavailable."),
    "max_parallel_jobs": _option(int, "--max-parallel-jobs", "Jobs it can run at once; default: 1."),
    "network_bandwidth_gbps": _option(float, "--network-bandwidth-gbps", "Network bandwidth in Gbit/s."),
    "cost_per_hour_usd": _option(float, "--cost-per-hour-usd", "Cost of an hour in USD."),
    "auth_method": _option(str, "--auth-method", "ssh_key, api_token or iam_role."),
    "latency_ms": _option(int, "--latency-ms", "Network latency to the Master in ms."),
}
CAPABILITIES: Final = {
    "gpu_count": _option(int, "--gpu-count", "Number of GPUs; 0: none."),
    "gpu_type": _option(str, "--gpu-type", 'Model of the GPUs, such as "NVIDIA A100".'),
    "cpu_cores": _option(int, "--cpu-cores", "CPU cores."),
    "memory_gb": _option(float, "--memory-gb", "Main memory in GB."),
    "storage_gb": _option(float, "--storage-gb", "Disk space in GB."),
}
"""The options of `add` and `set`, by the field of a record that they give."""


def declares(command: F) -> F:
    """Give a command these options; it takes what they say as `fields` of a record."""

    @wraps(command)
    def run(**asked: Any) -> None:
        own = {name: value for name, value in asked.items() if name not in (*DECLARED, *CAPABILITIES)}
        said = {name: asked[name] for name in DECLARED if asked[name] not in (None, [])}
        has = {name: _whole(asked[name]) for name in CAPABILITIES if asked[name] is not None}
        if "gpu_count" in has or "gpu_type" in has:
            has["gpu"] = has.get("gpu_count") != 0
        command(**own, fields=said | ({"capabilities": has} if has else {}))

    own = [one for one in signature(command).parameters.values() if one.name != "fields"]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in {**DECLARED, **CAPABILITIES}.items()
    ]
    parameters = [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own), *options]
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]  # for Typer
    return run  # type: ignore[return-value]  # Typer calls it by name


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _gpus(resource: dict[str, Any]) -> str:
    has = resource["capabilities"]
    count, kind = has.get("gpu_count"), has.get("gpu_type")
    if not has.get("gpu") and not count:
        return "none"
    return f"{count or '?'} x {kind or 'GPU'}"


def _place(resource: dict[str, Any]) -> str:
    parts = (resource["provider"], resource["region"], resource["location"])
    return ", ".join(part for part in parts if part)


def _cost(resource: dict[str, Any]) -> str:
    cost = resource["cost_per_hour_usd"]
    return "" if cost is None else f"{cost:.2f} USD"


def _price(bound: dict[str, Any]) -> str:
    if bound["price_per_hour"] is None:
        return "unknown"
    return f"{money_text(bound['price_per_hour'], 2)} USD, by {bound['price_source']}"


RESOURCES = Table(
    (
        Column("ID", lambda r: r["resource_id"], most=40),
        Column("TYPE", lambda r: r["resource_type"], 1),
        Column("STATUS", lambda r: r["status"]),
        Column("GPUS", _gpus, most=24),
        Column("JOBS", lambda r: r["max_parallel_jobs"], 4),
        Column("PER HOUR", _cost, 2),
        Column("PLACE", _place, 3, 32),
        time_column("CREATED", lambda r: r["created_at"], 5),
    ),
    "No resource is registered. Register one: windrow resource add ID --type on-premise --gpu-count 1",
    name=lambda r: r["resource_id"],
    states=lambda r: (r["status"],),
    state_words=("available", "busy", "maintenance", "unavailable"),
)


@resource_app.command("ls")
@lists(RESOURCES)
def resource_ls(context: typer.Context, view: View, kind: Type = None, provider: Provider = None) -> None:
    """List resources."""
    api = client(context)
    view.print(api, iter(api.resources(resource_type=kind, provider=provider)))


@resource_app.command("show")
def resource_show(context: typer.Context, resource: Id, as_json: AsJson = False) -> None:
    """Show everything about one resource."""
    api = client(context)
    one, bound = api.resource(resource), api.binding(resource)
    if as_json:
        print_json(one | {"binding": bound})
        return
    has = {name: value for name, value in one["capabilities"].items() if name not in ("gpu", "gpu_count", "gpu_type")}
    bandwidth, latency = one["network_bandwidth_gbps"], one["latency_ms"]
    rows = (
        ("Resource", one["resource_id"]),
        ("Type", one["resource_type"]),
        ("Status", one["status"]),
        ("Bound to", _bound(bound)),
        ("Running", bound["running"] if bound["host"] else None),
        ("Place", _place(one) or None),
        ("GPUs", _gpus(one)),
        *((name.replace("_", " ").capitalize(), value) for name, value in has.items()),
        ("Frameworks", ", ".join(one["supported_frameworks"]) or "not said"),
        ("Jobs at once", one["max_parallel_jobs"]),
        ("Cost per hour", _price(bound)),
        ("Bandwidth", None if bandwidth is None else f"{bandwidth:g} Gbit/s"),
        ("Latency", None if latency is None else f"{latency} ms"),
        ("Sign in by", one["auth_method"]),
        ("Created", one["created_at"]),
        ("Changed", one["updated_at"]),
    )
    facts([row for row in rows if row[1] is not None])


@resource_app.command("add")
@declares
def resource_add(
    context: typer.Context,
    fields: dict[str, Any],
    resource: Annotated[str | None, typer.Argument(metavar="[ID]", help="resource_id of the new resource.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="JSON file of one record or a list of them; -: standard input.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Register a resource, or those of a file."""
    if file is not None and (resource is not None or fields):
        raise InvalidInput("A file says everything: give either --file or an ID with its options.")
    if file is None and resource is None:
        raise InvalidInput("Give the ID of the resource, or a file of records: windrow resource add --file FILE.json")
    api, made = client(context), []
    records = [{"resource_id": resource, "capabilities": {}, **fields}] if file is None else _records(file)
    for one in records:
        made.append(api.add_resource(one))
        if not as_json:
            say(f"{made[-1]['resource_id']} is registered. Show it: windrow resource show {made[-1]['resource_id']}")
    if as_json:
        print_json(made if file is not None else made[0])
    elif not made:
        say("The file has no record.")


def _bound(binding: dict[str, Any]) -> str:
    if not binding["host"]:
        return "no host: nothing runs on it"
    return f"{binding['host_name']} (dedicated)" if binding.get("dedicated") else str(binding["host_name"])


@resource_app.command("set")
@declares
def resource_set(context: typer.Context, fields: dict[str, Any], resource: Id, as_json: AsJson = False) -> None:
    """Change a resource: what is given, and nothing else."""
    if not fields:
        raise InvalidInput("Nothing to change was given. Say what, for example: --status maintenance")
    api = client(context)
    if "capabilities" in fields:
        fields["capabilities"] = api.resource(resource)["capabilities"] | fields["capabilities"]
    one = api.set_resource(resource, fields)
    print_json(one) if as_json else say(f"{resource} is changed. Show it: windrow resource show {resource}")


@resource_app.command("bind")
def resource_bind(
    context: typer.Context,
    resource: Id,
    host: Annotated[str | None, typer.Option("--host", help="Host that is to run its work: name or id.")] = None,
    ssh: Annotated[
        str | None,
        typer.Option("--ssh", metavar="[USER@]HOST", help="Machine to make a host of, by OpenSSH with your own keys."),
    ] = None,
    ssh_config: Annotated[Path | None, typer.Option(help="Configuration for ssh in place of yours.")] = None,
    dedicated: Annotated[
        bool | None,
        typer.Option(
            "--dedicated/--shared", help="The host takes no work but yours. Default: with --ssh dedicated, else shared."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a host run a resource's work: one of this market, or a machine that ssh reaches."""
    if (host is None) == (ssh is None):
        raise InvalidInput("Say which host: --host NAME, or --ssh USER@HOST to make one of a machine.")
    api = client(context)
    if ssh is None:
        host_id = resolving.found(api, resolving.HOSTS, str(host))
    else:
        _check_bindable(api, resource)  # before anything is done to the machine
        host_id = ssh_box.joined(api, ssh, ssh_config)
    one = api.bind_resource(resource, host_id, dedicated=ssh is not None if dedicated is None else dedicated)
    print_json(one) if as_json else say(f"{resource} is bound to {_bound(one)} and {one['status']}.")


def _check_bindable(api: Client, resource: str) -> None:
    known = api.binding(resource)
    if known["dedicated"] and known["host"]:
        owner = api.get(f"/hosts/{known['host']}")["owner_account"]
        if owner != api.get("/me")["account"]["id"]:
            raise InvalidInput(f"{resource} is bound to {known['host_name']}, which is dedicated to another account.")


@resource_app.command("unbind")
def resource_unbind(context: typer.Context, resource: Id, as_json: AsJson = False) -> None:
    """Let no host run a resource's work any more; what runs goes on."""
    one = client(context).bind_resource(resource, None)
    print_json(one) if as_json else say(f"{resource} is bound to no host.")


@resource_app.command("rm")
def resource_rm(context: typer.Context, resource: Id, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a resource from the registry."""
    agreed(yes, f"Remove the resource {resource} from the registry?")
    client(context).remove_resource(resource)
    print_json({"removed": resource}) if as_json else say(f"{resource} is removed.")


def _records(file: Path) -> list[dict[str, Any]]:
    """The records of a file. Raises InvalidInput."""
    try:
        if str(file) == "-":
            found = json.loads(sys.stdin.read(FILE_MAX).removeprefix("\ufeff"))
        else:
            with file.open() as source:
                found = json.loads(source.read(FILE_MAX).removeprefix("\ufeff"))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} is not JSON: {error}"[:200]) from None
    records = found if isinstance(found, list) else [found]
    for number, one in enumerate(records, 1):
        if not isinstance(one, dict):
            raise InvalidInput(f"{file}: record {number} is not an object.")
    return records
