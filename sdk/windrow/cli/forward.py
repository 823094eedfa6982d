"""`windrow cluster forward` and `ssh`: a port of a cluster on this machine, through its host's outbound connection."""

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NamedTuple

import typer

from windrow.cli import entering
from windrow.cli.cluster_text import RESTS
from windrow.cli.clusters import Rank, Which, cluster_app, cluster_named
from windrow.cli.context import AsJson, Options, client
from windrow.cli.output import err, print_json, print_whole, say, size_text
from windrow.client import Client
from windrow.config import user_file
from windrow.errors import InvalidInput, WindrowClientError
from windrow.forwarding import LOCALHOST, Forward
from windrow.words import counted

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A cluster's name that may stand as a host in ~/.ssh/config."""
AGAIN = "from windrow.cli.main import main; main()"
"""This very command, however it was started."""


def ports_of(text: str) -> tuple[int, int | None]:
    """`PORT` or `PORT:LOCAL`; raises InvalidInput."""
    remote, colon, local = text.partition(":")
    words = [remote, local] if colon else [remote]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= 65_535 for word in words):
        raise InvalidInput(f"{text!r} is not a port. Write 8888, or 8888:9000 for port 9000 of this machine.")
    return int(remote), int(local) if colon else None


@cluster_app.command("forward")
def cluster_forward(
    context: typer.Context,
    cluster: Which,
    port: Annotated[
        str, typer.Argument(metavar="PORT[:LOCAL]", help="Port of the machine, or PORT:LOCAL for another port here.")
    ],
    local: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port on this machine.")] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Carry one connection over standard input and output.")
    ] = False,
    rank: Rank = 0,
    as_json: AsJson = False,
) -> None:
    """Reach a TCP port of a machine at a port of this computer, until Ctrl-C."""
    api = client(context)
    remote, wanted = ports_of(port)
    wanted = local or wanted
    found = cluster_named(api, cluster)
    if found["phase"] in RESTS:
        raise WindrowClientError(
            f"{found['id']} is {found['phase']}; there is nothing to reach. See: windrow cluster ls"
        )
    if stdio:
        _run(_forward(api, found["id"], remote, rank).pipe())
        return
    entry_ports = entering.entry_ports(api, found)
    nearest = wanted or remote
    is_notebook = bool(entry_ports.get("notebook_port")) and remote in (
        entering.NOTEBOOK_PORT,
        entry_ports["notebook_port"],
    )
    remote = entry_ports["notebook_port"] if is_notebook else remote
    token = entry_ports["notebook_token"] if is_notebook else None
    hold(api, found, remote, token, Local(nearest, wanted is not None), rank=rank, as_json=as_json)


class Local(NamedTuple):
    """A port of this machine; is_exact: or none."""

    port: int
    is_exact: bool


def _forward(api: Client, cluster_id: str, port: int, rank: int) -> Forward:
    return Forward(api, cluster_id, port, lambda error: say(f"A connection failed: {error}"), rank=rank)


def hold(
    api: Client,
    cluster: dict[str, Any],
    remote: int,
    token: str | None,
    local: Local,
    show: Callable[[str], object] = lambda url: None,
    *,
    rank: int = 0,
    as_json: bool = False,
) -> None:
    """Forward a port of a cluster until Ctrl-C. token: Jupyter's; None: something else listens there. show: is given
    the address for a browser."""
    forward = _forward(api, cluster["id"], remote, rank)

    def ready(port: int) -> None:
        url = entering.page_url(cluster["forward_host"], port, token)
        if as_json:
            at = f"{LOCALHOST}:{port}"
            print_json({"cluster": cluster["id"], "port": remote, "local_address": at, "url": url})
        else:
            if port != local.port:
                say(f"Port {local.port} of this machine is taken; using another one.")
            at = f"{LOCALHOST}:{port} is port {remote} of {cluster['name']}"
            say(f"{at} for as long as this command runs. Ctrl-C ends it.")
            print_whole(f"{'Jupyter' if token else 'In a browser'}: {url}", err)
        show(url)

    with suppress(KeyboardInterrupt):
        _run(forward.listen(local.port, local.is_exact, ready))
    figures = {
        "connections": forward.connections,
        "sent_bytes": forward.sent_bytes,
        "received_bytes": forward.received_bytes,
    }
    if as_json:
        print_json(figures)
    else:
        moved = f"{size_text(forward.sent_bytes)} sent, {size_text(forward.received_bytes)} received"
        say(f"{counted(forward.connections, 'connection')}, {moved}.")


@cluster_app.command("ssh", context_settings={"allow_interspersed_args": False})
def cluster_ssh(
    context: typer.Context,
    cluster: Which,
    words: Annotated[list[str] | None, typer.Argument(help="Options and a command for ssh, after --.")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port of the SSH server; default: the machine's own, else 22.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="User to log in as; default: the machine's user, else root.")] = None,
    config: Annotated[
        bool, typer.Option("--config", help="Print lines for ~/.ssh/config, by which editors such as VS Code log in.")
    ] = False,
) -> None:
    """Log in by OpenSSH, where an SSH server runs on the machine."""
    ssh = shutil.which("ssh")
    if ssh is None and not config:
        raise WindrowClientError(
            "This machine has no ssh: install OpenSSH's client (on Debian: apt-get install openssh-client). "
            "Without it: windrow cluster exec"
        )
    api = client(context)
    found = cluster_named(api, cluster)
    if port is None and entering.has_no_ssh(found):
        raise WindrowClientError(
            f"{found['name']} was started without an SSH key, so that no SSH server runs on it. Without SSH: "
            f"windrow cluster exec {found['name']} -- COMMAND. With SSH: start another machine with "
            "--ssh-key ~/.ssh/id_ed25519.pub"
        )
    own_port = entering.entry_ports(api, found).get("ssh_port")
    port = port or own_port or entering.SSH_PORT
    user = user or (entering.user_inside(api, found["id"]) if own_port else "root")
    options = context.find_root().obj or Options()
    again = [sys.executable, "-c", AGAIN, *(["--url", options.url] if options.url else [])]
    proxy = shlex.join([*again, "cluster", "forward", found["id"], str(port), "--stdio"])
    known = user_file().with_name("known_hosts")
    known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = {
        "ProxyCommand": proxy.replace("%", "%%"),
        # Each workload has keys of its own; that its host is reached is what the Master's grant says.
        "HostKeyAlias": found["id"],
        # Several files may stand there, and ssh fills in what follows a per cent sign.
        "UserKnownHostsFile": '"' + str(known).replace("%", "%%") + '"',
        "StrictHostKeyChecking": "accept-new",
        "User": user,
    }
    if config or ssh is None:
        name = found["name"] if _HOST.fullmatch(found["name"]) else found["id"]
        sys.stdout.write("".join([f"Host {name}\n", *(f"    {key} {value}\n" for key, value in settings.items())]))
        return
    asked = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    given = words or []
    os.execv(ssh, [ssh, *asked, found["id"], *(given[1:] if given[:1] == ["--"] else given)])


def _run(work: Any) -> None:
    """To its end; what fails is the first known error of those that came together."""
    try:
        # Sockets are waited for one by one, which Windows' own kind of loop cannot.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(work)
    except BaseExceptionGroup as errors:
        known = errors.subgroup(WindrowClientError)
        if known is None:
            raise
        first: BaseException = known
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
