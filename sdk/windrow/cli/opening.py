"""`windrow open` and `windrow logs`: Jupyter, a web service or the console in the browser, and the log of whatever has
this name.
"""

import sys
import webbrowser
from collections.abc import Callable
from typing import Annotated, Any

import typer

from windrow.cli import completing, entering, resolving
from windrow.cli.cluster_text import OPEN_TO_ALL, RESTS, Progress
from windrow.cli.clusters import CREATE_TIMEOUT_S, Rank, cluster_logs, is_up
from windrow.cli.context import AsJson, client
from windrow.cli.forward import Local, hold
from windrow.cli.jobs import Attempt, job_logs
from windrow.cli.output import print_json, say
from windrow.cli.streams import Raw
from windrow.client import Client
from windrow.config import has_display
from windrow.errors import InvalidInput, NotFound, WindrowClientError

Work = Annotated[
    str,
    typer.Argument(metavar="NAME|ID", help="Name or id of a machine, cluster or job.", autocompletion=completing.work),
]


def logs(
    context: typer.Context,
    name: Work,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the work ends.")] = False,
    rank: Rank = 0,
    attempt: Attempt = None,
    raw: Raw = False,
) -> None:
    """Print the log of a machine, cluster or job, also after it has ended."""
    kind, found = resolving.work(client(context), name)
    if kind is resolving.JOBS:
        job_logs(context, found, follow, attempt, raw)
    else:
        cluster_logs(context, found, follow, rank, raw)


def open_work(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ID",
            help="Name or id of a machine, cluster or job; without: the console, signed in.",
            autocompletion=completing.work,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Argument(metavar="PORT", min=1, max=65_535, help="Port in it; default: of its service, or Jupyter."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open it in the browser, where this machine has one.")] = True,
    as_json: AsJson = False,
) -> None:
    """Open Jupyter, a web service or the console in the browser, or print its address. Jupyter and ports stay open
    until Ctrl-C."""
    api = client(context)
    show = _browse if browser and sys.stderr.isatty() and has_display() else _nothing
    if name is None:
        _open_console(api, show, as_json)
        return
    cluster = _running(api, name, as_json)
    urls: dict[str, str] = cluster.get("urls") or {}
    url = urls.get(str(port)) if port else next(iter(urls.values()), None)
    if url is not None:
        _print_url(url, as_json)
        show(url)
        return
    entry_ports = entering.entry_ports(api, cluster)
    notebook = entry_ports.get("notebook_port")
    if port in (None, entering.NOTEBOOK_PORT) and notebook:
        local = Local(entering.NOTEBOOK_PORT, False)
        hold(api, cluster, notebook, entry_ports["notebook_token"], local, show, as_json=as_json)
    elif port is not None:
        hold(api, cluster, port, None, Local(port, False), show, as_json=as_json)
    else:
        raise InvalidInput(
            f"{cluster['name']} has neither Jupyter nor a web service. Name a port of it: windrow open {name} 8000"
        )


def _open_console(api: Client, show: Callable[[str], None], as_json: bool) -> None:
    """The address with the token of this command, as `windrow up` prints it."""
    url = f"{api.config.url}/#token={api.config.token}"
    if as_json:
        print_json({"url": url})
    else:
        sys.stdout.write(f"{url}\n")
        say("This address signs in as you: show it to nobody.")
    show(url)


def _print_url(url: str, as_json: bool) -> None:
    if as_json:
        print_json({"url": url})
    else:
        sys.stdout.write(f"{url}\n")
        say(OPEN_TO_ALL)


def _running(api: Client, name: str, as_json: bool) -> dict[str, Any]:
    """The cluster of this name, or of the attempt of a job that runs, once it is up. Raises NotFound,
    WindrowClientError."""
    kind, found = resolving.work(api, name)
    if kind is resolving.JOBS:
        job = api.job(found)
        going = resolving.last_cluster(job, goes_on=True)
        if not going:
            where = (
                "runs at a service, where nothing can be opened"
                if resolving.runs_elsewhere(job)
                else "does not run now"
            )
            raise NotFound(f"The job {name} {where}. See: windrow status {name}")
        found = str(going[0])
    cluster = api.cluster(found)
    if not is_up(cluster):
        with Progress(is_silent=as_json) as progress:
            cluster = api.wait_cluster(found, is_up, CREATE_TIMEOUT_S, progress)
    if cluster["phase"] in RESTS:
        again = f" Start it again: windrow cluster start {name}" if cluster["phase"] == "Stopped" else ""
        raise WindrowClientError(f"{cluster['name']} is {cluster['phase']}; there is nothing to open.{again}")
    return cluster


def _browse(url: str) -> None:
    webbrowser.open(url)


def _nothing(url: str) -> None:
    """Where nobody would see a browser."""
