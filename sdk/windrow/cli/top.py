"""`windrow top`: what hosts, machines and clusters use now, renewed every two seconds."""

import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from windrow.cli import completing, resolving
from windrow.cli import top_text as text
from windrow.cli.context import AsJson, client
from windrow.cli.front_text import hosts_of
from windrow.cli.output import out, print_json, say
from windrow.cli.status import READERS
from windrow.client import Client
from windrow.errors import ApiProblem, MasterUnreachable, NotFound

Item = dict[str, Any]
Look = Callable[[], list[Item]]

PAUSE_S: Final = 2.0
"""Hosts send readings every few seconds; a faster picture would repeat itself."""
SHOWN_MAX: Final = 12
"""Hosts or clusters in one picture: more do not fit on a screen."""
UP: Final = ("Running", "Degraded")


def top(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ID",
            help="A host, machine, cluster or job; without: all of yours.",
            autocompletion=completing.things,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once; also what a pipe gets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what GPUs, CPUs and memory are used now, every 2 s until Ctrl-C."""
    api = client(context)
    look = _look_at(api, name)
    if as_json:
        print_json(look())
        return
    first = look()
    if not first:
        say("Nothing of yours runs. Name a host: windrow top HOST")
        return
    if once or not out.is_terminal:
        out.print(_picture(first), soft_wrap=False)
        return
    with Live(_picture(first), console=out, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(PAUSE_S)
                live.update(_next(look), refresh=True)
        except KeyboardInterrupt:
            return


def _next(look: Look) -> RenderableType:
    """The next picture; a Master that is away for a while says so in its place."""
    try:
        return _picture(look())
    except MasterUnreachable as error:
        return Text(str(error), style="yellow")


def _look_at(api: Client, name: str | None) -> Look:
    """How to look at what was named, or at all that is one's own. Raises NotFound, InvalidInput, ApiProblem."""
    if name is None:
        return lambda: _all(api)
    try:
        kind, found = resolving.work(api, name, shows=True)
    except NotFound as lost:
        try:
            host = resolving.found(api, resolving.HOSTS, name)
        except NotFound:
            raise lost from None
        return lambda: [api.get(f"/hosts/{host}")]
    if kind is resolving.CLUSTERS:
        return lambda: [_used(api, api.cluster(found))]
    return lambda: [_used(api, api.cluster(one)) for one in resolving.last_cluster(api.job(found))]


def _all(api: Client) -> list[Item]:
    """One's own clusters that run; where none does, one's own hosts."""
    me = api.get("/me")
    own = me["account"]["id"]
    found: list[Item] = []
    if READERS & set(me["roles"]):
        running = (one for one in api.items("/clusters") if one["account_id"] == own and one["phase"] in UP)
        found = [_used(api, one) for one, _ in zip(running, range(SHOWN_MAX), strict=False)]
    if not found and {"provider", "operator"} & set(me["roles"]):
        found = [one for one in api.items("/hosts") if one.get("owner_account") == own][:SHOWN_MAX]
    return found


def _used(api: Client, cluster: Item) -> Item:
    """A cluster with what its members use."""
    try:
        used = api.usage(cluster["id"]) if cluster["phase"] in UP else []
    except ApiProblem as problem:
        if not problem.retryable:
            raise
        used = []
    return cluster | {"usage": used}


def _picture(found: Iterable[Item]) -> RenderableType:
    parts: list[RenderableType] = []
    for one in found:
        is_host = "usage" not in one
        title = text.host_title(one) if is_host else text.cluster_title(one)
        parts.append(Text(title, style="bold", no_wrap=True, overflow="ellipsis"))
        if is_host:
            parts.append(text.host_table(one, out.width))
        elif one["usage"]:
            parts.append(text.cluster_table(one["usage"], out.width))
        else:
            parts.append(Text(f"  no readings yet of {', '.join(hosts_of(one)) or 'its hosts'}", style="dim"))
        parts.append(Text(""))
    return Group(*parts[:-1])
