"""Starts the server and writes where it is."""

import asyncio
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from windrow.worker.frames import SECRET_BYTES
from windrow.worker.serving import Server

CONTAINED: Final = ("/.dockerenv", "/run/.containerenv")
"""Files that say that we are in a container, whose network is its own: the host then comes by its address there."""


def serve(write: Callable[[dict[str, Any]], None]) -> int:
    """Until SIGTERM or SIGINT. write: is given how to reach it."""
    asyncio.run(_serve(write))
    return 0


async def _serve(write: Callable[[dict[str, Any]], None]) -> None:
    secret = secrets.token_bytes(SECRET_BYTES)
    home, lib = Path(".windrow").resolve(), Path(__file__).parents[2]
    host = "0.0.0.0" if any(Path(path).exists() for path in CONTAINED) else "127.0.0.1"
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[int] = loop.create_future()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(Server(home, Path.cwd(), lib, secret).serve(host, 0, ready))
        port = await ready
        write({"python": list(sys.version_info[:3]), "port": port, "secret": secret.hex()})
        print(f"windrow worker: port {port}, Python {sys.version.split()[0]}", flush=True)
        await stop.wait()
        serving.cancel()
