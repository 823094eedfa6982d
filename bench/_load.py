"""Processes that a benchmark gives orders to, and hosts joined for them through the API."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from windrow.client import Client
from windrow_proto import enrol

JOINERS = 8
JOIN_DEADLINE_S = 60.0


class Ordered:
    """A process that obeys lines of JSON and answers each with one."""

    def __init__(self, module: str, arguments: Sequence[str], errors: IO[bytes] | None = None) -> None:
        self.module = module
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order and wait for its answer; raises RuntimeError when the process has died."""
        self.tell(**order)
        return self.answer()

    def tell(self, **order: Any) -> None:
        """Give an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The answer to the order before."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.module} ended with {self.process.wait()}.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Kill the process and its children at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def join_all(https_url: str, api: Client, folder: Path, count: int) -> list[str]:
    """Join hosts through the API as an agent does; returns their identity folders."""

    def one(number: int) -> str:
        token = api.request("POST", "/join-tokens", body={"role": "host"})["join_token"]
        identity = enrol.IdentityFolder(folder / f"{number:04d}")
        request = enrol.JoinRequest("host", f"bench-{number:04d}", simulated=True)
        enrol.join(identity, https_url, token, request, JOIN_DEADLINE_S)
        return str(identity.path)

    with ThreadPoolExecutor(JOINERS) as pool:
        return list(pool.map(one, range(count)))
