"""Remembers clusters' workers, so that the next program need not ask for them.

None of it has to be true still: whoever finds a worker gone by it asks the Master, as if nothing were remembered.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from windrow.config import Config, state_folder

KNOWN_MAX: Final = 20_000
"""Digests of files that are remembered of a worker."""
_WHERE: Final = ("address", "ca_pem", "server_name")
"""The fields of a ticket that identify the tunnel's Access."""
Json = dict[str, Any]


class Memory:
    """Of one worker: its Python, port and secret, the files it has, and the Access that it was last reached by.

    shape: of its cluster: how many hosts, and the cpus and gpus of each.
    """

    def __init__(self, cluster_id: str, record: Json, rank: int = 0) -> None:
        self._path = _of_worker(cluster_id, rank)
        self.shape = {name: int(record["shape"][name]) for name in ("hosts", "cpus", "gpus")}
        self.python: list[int] = record["python"]
        self.port, self.secret = int(record["port"]), bytes.fromhex(record["secret"])
        self.known: list[str] = record.get("known") or []
        self.access: Json | None = record.get("access")

    def know(self, digests: set[str]) -> None:
        """It has these files."""
        self.known = sorted(digests)[:KNOWN_MAX]
        self.keep()

    def reached(self, ticket: Json) -> None:
        """It was reached by this ticket's Access."""
        access = {name: ticket[name] for name in _WHERE}
        if access != self.access:
            self.access = access
            self.keep()

    def keep(self) -> None:
        """Write it down."""
        secret = self.secret.hex()
        record = {"python": self.python, "port": self.port, "secret": secret, "known": self.known}
        write(self._path, {**record, "access": self.access, "shape": self.shape})


def of_worker(cluster_id: str, rank: int = 0) -> Memory | None:
    """Of the worker on the host of this rank, if anything."""
    try:
        return Memory(cluster_id, json.loads(_of_worker(cluster_id, rank).read_bytes()), rank)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def forget(cluster_id: str) -> None:
    """Its workers are gone."""
    with contextlib.suppress(OSError):
        for path in state_folder().glob(f"{cluster_id}*.json"):
            path.unlink()


def named(config: Config, name: str) -> str | None:
    """The cluster that last had this name for whoever asks there, if it is remembered."""
    try:
        return str(json.loads(_of_name(config, name).read_bytes())["cluster"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep_name(config: Config, name: str, cluster_id: str) -> None:
    """This cluster has this name."""
    write(_of_name(config, name), {"cluster": cluster_id})


def _of_worker(cluster_id: str, rank: int) -> Path:
    return state_folder() / (f"{cluster_id}.{rank}.json" if rank else f"{cluster_id}.json")


def _of_name(config: Config, name: str) -> Path:
    whose = "\0".join((config.url, config.token, name)).encode()
    return state_folder() / f"name_{hashlib.sha256(whose).hexdigest()[:32]}.json"


def write(path: Path, record: Json) -> None:
    """Keep this for the next program, where that can be done; nobody else reads it."""
    with contextlib.suppress(OSError):  # the next program asks again
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(record, file)
        made.replace(path)
