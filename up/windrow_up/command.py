"""The verb `windrow up`."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from windrow_proto.data_directory import DirectoryLock
from windrow_proto.errors import WindrowError
from windrow_proto.networks import parse_networks
from windrow_up import config
from windrow_up.free_ports import checked
from windrow_up.market import MASTERS_MAX, Market, UpConfig
from windrow_up.requests import SIMULATED_MAX

DATA_DIR: Final = Path(".windrow")


def command(
    data_dir: Annotated[Path, typer.Option(help="Folder for state, keys and logs.")] = DATA_DIR,
    listen: Annotated[str, typer.Option(help="Address for other machines: HTTPS, relays, trunk.")] = "127.0.0.1",
    public: Annotated[str, typer.Option(help="Name or address by which other machines reach this one.")] = "",
    simulate: Annotated[
        int | None,
        typer.Option(min=0, max=SIMULATED_MAX, help="Simulated hosts to add; without it as set in the console."),
    ] = None,
    faults: Annotated[
        bool,
        typer.Option(help="A few of the simulated hosts break, to see what is shown: lost GPU, hot GPU, full disk."),
    ] = True,
    once: Annotated[bool, typer.Option("--once", help="Rent this host once, print the receipt, and stop.")] = False,
    masters: Annotated[
        int, typer.Option(min=1, max=MASTERS_MAX, help="Number of Masters: one leads, the others stand by.")
    ] = 1,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Reverse proxy (ADDRESS or NET) whose X-Forwarded-For is trusted; repeatable."),
    ] = None,
) -> None:
    """Run a whole market on this machine: Master, two relays, this host's Agent, and the console."""
    os.umask(0o077)
    path = data_dir.expanduser().resolve()
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        proxies = tuple(map(str, parse_networks(trusted_proxy or (), "--trusted-proxy")))
        listen = checked(listen)
        lock = DirectoryLock(path, "up")
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
        raise typer.Exit(1) from None

    async def main(windrow: str) -> int:
        asked = UpConfig(path, listen, public, simulate, once, masters, proxies, windrow, faults)
        return await Market(asked).run()

    try:
        found = config.surroundings(path, is_default=data_dir == DATA_DIR, is_once=once)
        windrow = config.set_up(found, lambda question: typer.confirm(question, default=True), print)
        code = asyncio.run(main(windrow))
    finally:
        lock.release()
    if code:
        raise typer.Exit(code)
