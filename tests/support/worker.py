"""A worker of functions as a process of its own, run by a bare Python as on a host, and handles that reach it."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_S, poll
from windrow.remote.cluster import LIB, Cluster, Env, packed_worker
from windrow.remote.line import Way
from windrow.remote.session import Session

PYTHON = str(getattr(sys, "_base_executable", sys.executable))
"""Without this environment's libraries, as a host's."""


@dataclass(slots=True)
class Worker:
    """One that listens. place: its working folder."""

    process: "subprocess.Popen[bytes]"
    place: Path
    port: int
    secret: bytes

    def way(self) -> Way:
        """Straight to it."""

        @asynccontextmanager
        async def way() -> AsyncIterator[socket.socket]:
            one = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setblocking(False)
            with one:
                yield one

        return way

    def session(self, secret: bytes | None = None) -> Session:
        """A new line to it, as of a new program."""
        return Session(self.way(), secret or self.secret, set(), lambda _known: None)

    def cluster(self, session: Session | None = None, env: Env | None = None, trusts_host: bool = False) -> Cluster:
        """A handle whose worker this is."""
        made = Cluster("here", {}, env or Env(), trusts_host, {}, None)
        made.id, made._session = "cluster_here", session or self.session()
        return made


def unpack_worker(place: Path) -> None:
    """The worker's files, as a client sends them, in this folder; also by a Python 3.11.2, which knows no filters."""
    with tarfile.open(fileobj=io.BytesIO(packed_worker())) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(place)


@contextlib.contextmanager
def working(place: Path, **more: str) -> Iterator[Worker]:
    """Start one in this folder, and end it with all it has started. more: of its environment."""
    unpack_worker(place)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with (place / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [PYTHON, "-m", "windrow.worker", "serve"], cwd=place, stdout=log, stderr=log, start_new_session=True,
            env=environment | {"PYTHONPATH": str(place / LIB)} | more,
        )  # fmt: skip
        try:
            path = place / ".windrow" / "worker.json"
            poll(lambda: path.exists() or process.poll() is not None, what="the worker listens")
            if not path.exists():
                raise RuntimeError((place / "worker.log").read_text())
            said: dict[str, Any] = json.loads(path.read_text())
            yield Worker(process, place, said["port"], bytes.fromhex(said["secret"]))
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
