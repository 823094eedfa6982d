"""Joins the processes of one call over all hosts of a cluster: by PyTorch's names, or by Ray or Dask on each host.

    pytorch   the function runs in every process; the environment says which one each is and where rank 0 listens
    ray       rank 0 starts the head, waits for the others and runs the function; the others only run Ray
    dask      the same with a scheduler and a worker on rank 0, and a worker on each other host

An engine lives as long as its call. `python -m windrow.worker.engines MODULE WORDS...` runs one, and ends it with the
process that started it.
"""

import contextlib
import importlib.util
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

from windrow.worker import config
from windrow.worker.parents import end_with_parent

RAY, DASK = "ray", "dask"
ENGINES: Final = (RAY, DASK)
KINDS: Final = ("pytorch", *ENGINES)
MODULES: Final = {RAY: "ray.scripts.scripts", DASK: "distributed.cli.dask_scheduler"}
DASK_WORKER: Final = "distributed.cli.dask_worker"
FREE_FROM, FREE_TO = 16, 64
"""Of a cluster's block of ports: those before it belong to what the Master starts."""
JOIN_S: Final = 300.0
"""For all hosts to join: an engine takes 5 to 15 seconds to start, on a busy host a minute."""
STARTS: Final = 5
"""Of an engine on one host: Ray gives a start up that takes 15 s in one of its parts, and has no setting for that."""
LOOK_S: Final = 0.2
GONE_S: Final = 2.0
"""For a head that ends to listen no more, before it is taken to be there."""
END_S: Final = 20.0
"""For an engine to end its own processes, before it is killed."""
SAID_BYTES: Final = 2000
"""Of an engine's last words, for the error."""
WAITS: Final = {
    RAY: "import ray, sys, time\nray.init(log_to_driver=False, logging_level='ERROR')\n"
    "while sum(node['Alive'] for node in ray.nodes()) < int(sys.argv[1]): time.sleep(0.2)",
    DASK: "import sys\nfrom distributed import Client\nClient().wait_for_workers(int(sys.argv[1]))",
}
"""Programs that end once so many hosts have joined."""
Part = Mapping[str, Any]
"""The part of one process in a call. kind; port: where rank 0 listens; local_rank, local_size: which process of this
host, of how many; cpus: of each host; secret: what shows Ray that somebody belongs here."""


def free_port() -> int:
    """A TCP port that nobody listens on here; of the cluster's own block where it has one."""
    rank, addresses = config.members()
    first = config.first_port()
    for port in [*range(first + FREE_FROM, first + FREE_TO), 0] if first else [0]:
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind((addresses[rank], port))
            return int(tried.getsockname()[1])
    raise OSError("no port is free on this host")


@contextlib.contextmanager
def joined(part: Part | None) -> Iterator[None]:
    """Meanwhile this process is one of a call over several. Raises RuntimeError where the others do not come."""
    if part is None:
        yield
        return
    rank, addresses = config.members()
    if part["kind"] not in ENGINES:
        config.add(_names(part, rank, addresses))
        yield
        return
    _meet_at(part, addresses)
    with contextlib.ExitStack() as running:
        _begin_head(part, rank, addresses, running)
        yield


def follow(part: Part) -> None:
    """Be a host of an engine whose head is elsewhere, until this call is cancelled or the head has gone."""
    rank, addresses = config.members()
    _meet_at(part, addresses)
    _await_head(addresses[0], part["port"])
    said = ""
    for _ in range(STARTS):
        with contextlib.ExitStack() as running:
            engines = _begun(part, rank, addresses, running)
            while not any(engine.has_ended() for engine in engines):
                time.sleep(LOOK_S)
            said = _said(engines)
        if not _is_there(addresses[0], part["port"]):
            return
    raise RuntimeError(f"{part['kind']} has ended on this host, {STARTS} times. {said}")


def _begun(part: Part, rank: int, addresses: list[str], running: contextlib.ExitStack) -> "list[_Engine]":
    return [running.enter_context(_Engine(*words)) for words in _commands(part, rank, addresses)]


def _begin_head(part: Part, rank: int, addresses: list[str], running: contextlib.ExitStack) -> None:
    """Start the engine on rank 0, and wait until all hosts have joined; raises RuntimeError."""
    said, ends = "", time.monotonic() + JOIN_S
    for _ in range(STARTS):
        engines = _begun(part, rank, addresses, running)
        if _have_joined(engines, part["kind"], len(addresses), ends):
            return
        said = _said(engines)
        if time.monotonic() > ends:
            raise RuntimeError(f"Not all of {len(addresses)} hosts joined {part['kind']} within {JOIN_S:.0f} s. {said}")
    raise RuntimeError(f"{part['kind']} did not start on rank 0. {said}")


def _is_there(address: str, port: int) -> bool:
    """True if rank 0 still listens in a while; its own end ends the others."""
    ends = time.monotonic() + GONE_S
    while time.monotonic() < ends:
        try:
            socket.create_connection((address, port), GONE_S).close()
        except ConnectionRefusedError:
            return False
        except OSError:
            pass  # a busy host is late, and still there
        time.sleep(LOOK_S)
    return True


def _names(part: Part, rank: int, addresses: list[str]) -> dict[str, str]:
    """The names by which `torch.distributed.init_process_group` and its like find the others."""
    local, size = part["local_rank"], part["local_size"]
    return {
        "RANK": str(rank * size + local),
        "WORLD_SIZE": str(len(addresses) * size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(size),
        "GROUP_RANK": str(rank),
        "MASTER_ADDR": addresses[0],
        "MASTER_PORT": str(part["port"]),
    }


def _meet_at(part: Part, addresses: list[str]) -> None:
    """Set what `ray.init()` and `Client()` look for; raises RuntimeError where the engine is not installed."""
    if importlib.util.find_spec(MODULES[part["kind"]].partition(".")[0]) is None:
        wanted = {RAY: "ray", DASK: "distributed"}[part["kind"]]
        raise RuntimeError(f'This host has no {wanted}. Ask for it: windrow.env(reqs=["{wanted}"]).')
    head = f"{addresses[0]}:{part['port']}"
    if part["kind"] == RAY:
        config.add({"RAY_ADDRESS": head, "RAY_AUTH_TOKEN": part["secret"]})
        return
    config.add({"DASK_SCHEDULER_ADDRESS": f"tcp://{head}"})
    known: Any = sys.modules.get("dask.config")
    if known is not None:  # what the code imported has read the environment before
        known.refresh()


def _commands(part: Part, rank: int, addresses: list[str]) -> list[list[str]]:
    """The programs of this host, as modules with their words."""
    own, head, cpus = addresses[rank], f"{addresses[0]}:{part['port']}", str(part["cpus"])
    if part["kind"] == RAY:
        where = (
            ["--head", f"--port={part['port']}", "--include-dashboard=false"] if rank == 0 else [f"--address={head}"]
        )
        flags = [f"--node-ip-address={own}", f"--num-cpus={cpus}", "--disable-usage-stats", "--block"]
        return [[MODULES[RAY], "start", *where, *flags]]
    flags = ["--nthreads", cpus, "--no-nanny", "--no-dashboard", "--death-timeout", "60", "--name", f"rank-{rank}"]
    worker = [DASK_WORKER, f"tcp://{head}", "--host", own, *flags]
    scheduler = [MODULES[DASK], "--host", own, "--port", str(part["port"]), "--no-dashboard", "--no-show"]
    return [scheduler, worker] if rank == 0 else [worker]


class _Engine:
    """One program of an engine, as long as it is entered. Its output is read only where it fails."""

    def __init__(self, module: str, *words: str) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed when it is left
        command = [sys.executable, "-m", __name__, str(os.getpid()), module, *words]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output)

    def __enter__(self) -> "_Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def said(self) -> str:
        """Its last words."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - SAID_BYTES))
        return self._output.read().decode(errors="replace").strip()


def _have_joined(engines: list[_Engine], kind: str, hosts: int, ends: float) -> bool:
    """Wait until all hosts have joined; False where the engine has ended before, or time is up."""
    command = [sys.executable, "-c", WAITS[kind], str(hosts)]
    waiting: subprocess.Popen[bytes] | None = None
    try:
        while waiting is None or waiting.poll() != 0:
            if any(engine.has_ended() for engine in engines) or time.monotonic() > ends:
                return False
            if waiting is None or waiting.poll() is not None:  # the head was not there yet
                nothing = subprocess.DEVNULL
                waiting = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
            time.sleep(LOOK_S)
        return True
    finally:
        if waiting is not None and waiting.poll() is None:
            waiting.kill()
            waiting.wait()


def _await_head(address: str, port: int) -> None:
    """Until rank 0 listens; raises RuntimeError."""
    ends = time.monotonic() + JOIN_S
    while True:
        try:
            socket.create_connection((address, port), JOIN_S).close()
            return
        except OSError as error:
            if time.monotonic() > ends:
                raise RuntimeError(f"Rank 0 does not listen at {address}:{port}: {error}") from error
        time.sleep(LOOK_S)


def _said(engines: list[_Engine]) -> str:
    return "\n".join(engine.said() for engine in engines)


def _run(parent: int, module: str, words: list[str]) -> None:
    """Be this program, and end with the process that asked for it."""
    end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it was over before we asked for that
        return
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
