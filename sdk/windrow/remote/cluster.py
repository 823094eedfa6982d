"""A cluster that functions run on: found by its name, or made; an ordinary box whose command is the worker, or over
several hosts a gang of workers."""

import asyncio
import contextlib
import importlib.util
import io
import json
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from windrow.cli.request import body, parse_gpu
from windrow.config import Config, find, proxies
from windrow.errors import (
    ApiProblem,
    FunctionError,
    InvalidInput,
    MasterUnreachable,
    PythonMismatch,
    WindrowClientError,
    WorkerRefused,
)
from windrow.fields import CLUSTER, ClusterFields
from windrow.nearest import Nearest
from windrow.remote import loop, memory, tunnel_request
from windrow.remote.line import through_tunnel
from windrow.remote.session import Session
from windrow.telling import tell
from windrow.tunnel import Ask
from windrow.words import counted
from windrow.worker.config import is_in_call

if TYPE_CHECKING:
    from windrow.client import Client

CREATE_S: Final = 900.0
WAIT_S: Final = 3_600
"""For a place, where one elsewhere may be bought."""
DESCRIPTION_BYTES_MAX: Final = 16 << 10
"""Of what a worker says of itself: three short values."""
DELETE_S: Final = 180.0
ENDED: Final = ("Deleted", "Finished", "Failed", "Deleting", "Stopping", "Stopped")
LIB: Final = ".windrow/lib"
START: Final = (
    'v=$1; shift; p=$(command -v "$v" || command -v python3 || command -v python) || '
    '{ echo "windrow: there is no Python here; name an image that has one" >&2; exit 127; }; '
    f'PYTHONPATH="$PWD/{LIB}${{PYTHONPATH:+:$PYTHONPATH}}" exec "$p" -m windrow.worker "$@"'
)
"""Takes the Python of our own minor version where the host has it."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Env:
    """The environment that calls find beside the code. reqs: as for pip; variables: of the environment."""

    reqs: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def env(reqs: Iterable[str] = (), variables: Mapping[str, str] | None = None) -> Env:
    """An environment with these requirements, made on the host once and kept; and with these variables."""
    if isinstance(reqs, str):
        raise FunctionError(f"reqs is a list: windrow.env(reqs=[{reqs!r}]).")
    return Env(tuple(reqs), dict(variables or {}))


def cluster(
    name: str,
    instance_type: str = "CPU:1",
    provider: str | None = None,
    use_spot: bool = False,
    open_ports: Iterable[int] = (),
    default_env: Env | None = None,
    *,
    memory: str | None = None,
    host: str | None = None,
    max_price: str | None = None,
    trusts_host: bool = False,
    client: "Client | None" = None,
    **fields: Unpack[ClusterFields],
) -> "Cluster":
    """A cluster of this name; it is asked for by `up_if_not`, or by the first call on it.

    instance_type: "A100:2" (two of that model), "24GB:1" (a GPU with at least that), "CPU:4+" (processors).
    provider: a backend of the market where a machine is bought if there is no room (docs/clouds.md), `any` of them, or
    the `cheapest` place; use_spot: spot machines first. Where that may not be, it says so, and takes the best of its
    own. optimize: `cost` or `speed`, as of `POST /clusters`.
    hosts: how many, each with that; functions run on all of them by `.distribute`, else on the first.
    open_ports: ports that the cluster serves. max_price: per hour. fields: any other field of `POST /clusters`, such as
    tier, budget and image: one with Python; without it your own host runs a process, and where there is none a plain
    Python image is taken.
    client_lease_s: end it once no program that asked for it with this has been heard from for so long.
    trusts_host: make whatever objects the host returns, as if it were your own machine; otherwise plain data.
    """
    said = {"kind": "box", "name": name, "await_files": True, "ports": list(open_ports) or None}
    short = {"memory_bytes": memory, "host_id": host, "max_price_per_hour": max_price}
    request = body(CLUSTER, {**said, **short, **fields}) | _needs(instance_type)
    if request.get("hosts") not in (None, 1):
        request["kind"] = "gang"
    elsewhere: Json = {}
    if provider or use_spot:
        is_any = provider in (None, "any", "cheapest")
        elsewhere = {"backend": "any" if is_any else provider, "spot": use_spot, "wait_seconds": WAIT_S}
        elsewhere |= {"optimize": "cost"} if provider == "cheapest" else {}
    return Cluster(name, request, default_env or Env(), trusts_host, elsewhere, client)


def _needs(instance_type: str) -> Json:
    what, _, count = instance_type.partition(":")
    if what.upper() != "CPU":
        return parse_gpu(instance_type)
    number = count.removesuffix("+") or "1"
    if not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= 4096:
        raise InvalidInput(f"instance_type {instance_type!r}: write CPU:4, CPU:4+ or A100:2.")
    return {"cpus": int(number)}


class Cluster:
    """A handle; nothing is asked of the market until it is used."""

    def __init__(
        self, name: str, request: Json, env: Env, trusts_host: bool, elsewhere: Json, client: "Client | None"
    ) -> None:
        self.name, self.default_env, self.trusts_host = name, env, trusts_host
        self.id: str | None = None
        self.shape = {"hosts": 1, "cpus": 1, "gpus": 0}
        """How many hosts it has, and what each gives; known once it is up."""
        self._request, self._elsewhere, self._client = request, elsewhere, client
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._others: list[Session] | None = None
        self.turn = asyncio.Lock()
        """Of the calls of this program over all hosts: they are made one after another."""
        self._envs: dict[tuple[str, ...], str] = {}

    def __repr__(self) -> str:
        return f"<windrow cluster {self.name!r} {self.id or 'not asked for yet'}>"

    # --- its life ----------------------------------------------------------------------------------------------------

    def up_if_not(self) -> Self:
        """Find it running, or make it and wait until it takes calls. Raises WindrowClientError."""
        self.session()
        return self

    async def aio_up_if_not(self) -> Self:
        """The same for callers that are asynchronous."""
        return await asyncio.to_thread(self.up_if_not)

    def down(self) -> None:
        """Delete it with all that runs on it; nothing happens where it is not there."""
        with self._lock:
            found = self._named() if self.id is None else self.id
            sessions = [one for one in (self._session, *(self._others or ())) if one is not None]
            self._session = self._others = self.id = None
            for session in sessions:
                loop.finish(session.close())
            if found is not None:
                _let_go(found)
                api = self._api()
                api.delete_cluster(found)
                api.wait_cluster(found, lambda c: c["phase"] in ("Deleted", "Finished", "Failed"), DELETE_S)
                memory.forget(found)

    async def aio_down(self) -> None:
        """The same for callers that are asynchronous."""
        await asyncio.to_thread(self.down)

    # --- for functions -----------------------------------------------------------------------------------------------

    def session(self) -> Session:
        """The session with its worker, made now if it has to be."""
        with self._lock:
            if self._session is None:
                if is_in_call():
                    raise FunctionError(
                        "This runs in a call already, where no cluster can be asked for. Put what makes clusters "
                        'under `if __name__ == "__main__":`.'
                    )
                self._session = self._recalled() or self._found()
                self._hold(str(self.id))
            return self._session

    def sessions(self) -> list[Session]:
        """The sessions with the workers of all its hosts, by rank, made now if they have to be."""
        first = self.session()
        with self._lock:
            if self._others is None:
                known, hosts = str(self.id), self.shape["hosts"]
                self._others = [session_of(self._api(), known, rank) for rank in range(1, hosts)]
            return [first, *self._others]

    def env_name(self, env: Env) -> str | None:
        """The name of this environment, which each host makes now if it has to; None: the host's own Python."""
        if not env.reqs:
            return None
        if env.reqs not in self._envs:
            self._envs[env.reqs] = loop.finish(_made_everywhere(self.sessions(), list(env.reqs)))
        return self._envs[env.reqs]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _api(self) -> "Client":
        if self._client is None:
            self._client = connect()
        return self._client

    def _hold(self, cluster_id: str) -> None:
        """Renew its lease for as long as this program lives, where one was asked for."""
        if (lease_s := self._request.get("client_lease_s")) is not None:
            _hold(self._api(), cluster_id, lease_s)

    def _recalled(self) -> Session | None:
        """The session with the worker that last had this name, if it still answers: without asking for the cluster."""
        if self._client is not None or proxies((config := find()).url):
            return None
        known = memory.named(config, self.name)
        remembered = memory.of_worker(known) if known is not None else None
        if known is None or remembered is None or not _is_same_python(remembered.python):
            return None
        if self._request.get("hosts", remembered.shape["hosts"]) != remembered.shape["hosts"]:
            return None
        port = remembered.port
        session = _session(known, 0, remembered, partial(tunnel_request.open_tunnel, config, known, port), config)
        try:
            loop.finish(session.connect())
        except MasterUnreachable:  # no word about the worker: it stays known
            _forget_sessions(known)
            raise
        except WindrowClientError:
            _forget_sessions(known)
            memory.forget(known)
            return None
        self.id, self.shape = known, remembered.shape
        return session

    def _found(self) -> Session:
        """The session with the worker of the cluster of this name, which is made now if it has to be."""
        api = self._api()
        self.id = self._named() or self._make(api)
        self.shape = _remembered(api, self.id, 0).shape
        asked, hosts = self._request.get("hosts"), self.shape["hosts"]
        if asked is not None and asked != hosts:
            raise WindrowClientError(
                f"{self.name!r} has {counted(hosts, 'host')}, and hosts={asked} was asked for. "
                f"Choose another name, or delete that cluster: windrow cluster delete {self.name}"
            )
        memory.keep_name(api.config, self.name, self.id)
        return session_of(api, self.id)

    def _named(self) -> str | None:
        found = [one for one in self._api().own("/clusters", self.name) if one["phase"] not in ENDED]
        if len(found) > 1:
            raise WindrowClientError(f"{len(found)} clusters are called {self.name!r}; delete all but one.")
        return str(found[0]["id"]) if found else None

    def _make(self, api: "Client") -> str:
        tell(f"windrow: making cluster {self.name}")
        python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        request = {**self._request, "argv": ["sh", "-c", START, "windrow", python, "serve"]}
        if self._elsewhere:
            made = self._made_elsewhere(api, {**self._elsewhere, **request})
            if made is not None:
                return self._started(api, made)
        try:
            made = api.create_cluster(request, tell=tell)
        except ApiProblem as problem:
            if problem.code != "no_capacity" or "image" in request:
                raise
            try:
                made = api.create_cluster(
                    {**request, "image": f"{python.replace('python', 'python:')}-slim"}, tell=tell
                )
            except ApiProblem:
                raise problem from None
        return self._started(api, made)

    def _made_elsewhere(self, api: "Client", request: Json) -> Json | None:
        """The cluster where it may run at a backend, too; None, and said, where that may not be."""
        try:
            made = api.create_cluster(request, tell=tell)
        except ApiProblem as problem:
            if problem.code not in ("forbidden", "invalid_input") or problem.subject != "backend":
                raise
            tell(f"  {problem.detail} Its own best fitting host is taken.")
            return None
        steps = Steps()
        return api.wait_cluster(str(made["id"]), lambda one: one["phase"] != "Queued", WAIT_S, steps)

    def _started(self, api: "Client", made: Json) -> str:
        """Send it the worker, and wait until it takes calls; returns its id."""
        found = str(made["id"])
        self._hold(found)
        try:
            steps = Steps()
            api.wait_cluster(found, _takes_files, CREATE_S, steps)
            with io.BytesIO(packed_worker()) as tar:
                api.put_files(found, tar, commit=True)
            api.wait_cluster(found, _runs, CREATE_S, steps)
        except BaseException:
            _let_go(found)
            with contextlib.suppress(WindrowClientError):
                api.delete_cluster(found)
            raise
        until = ".down()" + (", or the end of this program" if "client_lease_s" in self._request else "")
        tell(f"windrow: {self.name} is up ({found}); it costs {made.get('price_per_hour')} per hour until {until}")
        return found


def connect() -> "Client":
    """The Master that is configured here; raises NoMaster. Imported late: on a host there is no such library."""
    from windrow.client import Client

    return Client()


class Steps:
    """Tells each step of a cluster once."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, cluster: Json) -> None:
        for step in cluster.get("steps") or []:
            key = (str(step.get("name")), str(step.get("detail") or ""))
            if key not in self._seen:
                self._seen.add(key)
                tell(f"  {' '.join(key)}".rstrip())


_sessions: dict[tuple[str, int], Session] = {}
_sessions_lock = threading.Lock()


def session_of(api: "Client", cluster_id: str, rank: int = 0) -> Session:
    """The session with a worker of a running cluster; raises WindrowClientError where it has none for us."""
    known = _remembered(api, cluster_id, rank)
    _check_python(known.python)
    open_tunnel = partial(api.open_tunnel, cluster_id, known.port, rank=rank)
    return _session(cluster_id, rank, known, open_tunnel, api.config)


def _remembered(api: "Client", cluster_id: str, rank: int) -> memory.Memory:
    known = memory.of_worker(cluster_id, rank)
    if known is None:
        known = memory.Memory(cluster_id, _described(api, cluster_id, rank), rank)
        known.keep()
    return known


def _session(cluster_id: str, rank: int, known: memory.Memory, open_tunnel: Ask, config: Config) -> Session:
    """The one that this program has with it already, or a new one."""
    with _sessions_lock:
        if (cluster_id, rank) not in _sessions:
            way = through_tunnel(open_tunnel, known, Nearest(config.url))
            _sessions[cluster_id, rank] = Session(way, known.secret, set(known.known), known.know)
        return _sessions[cluster_id, rank]


_leases: dict[str, contextlib.ExitStack] = {}
"""The renewals of leases that go on until they are closed, by cluster."""


def _hold(api: "Client", cluster_id: str, lease_s: float) -> None:
    from windrow.cli.lease import renewed  # late: as its client

    with _sessions_lock:
        if cluster_id not in _leases:
            with contextlib.suppress(WindrowClientError):
                api.renew_cluster(cluster_id)  # of an earlier program's lease little may be left
            _leases[cluster_id] = contextlib.ExitStack()
            _leases[cluster_id].enter_context(renewed(api, cluster_id, lease_s))


def _let_go(cluster_id: str) -> None:
    with _sessions_lock:
        held = _leases.pop(cluster_id, None)
    if held is not None:
        held.close()


def _forget_sessions(cluster_id: str) -> None:
    with _sessions_lock:
        for known in [one for one in _sessions if one[0] == cluster_id]:
            del _sessions[known]


async def _made_everywhere(sessions: list[Session], reqs: list[str]) -> str:
    """Have an environment with these on each host; returns its name, which is the same on all."""

    def told(rank: int, line: str) -> None:
        tell(f"  rank {rank}: {line}" if len(sessions) > 1 else f"  {line}")

    names = await asyncio.gather(*(one.make_env(reqs, partial(told, rank)) for rank, one in enumerate(sessions)))
    return names[0]


def _is_same_python(version: list[int]) -> bool:
    return sys.version_info[:2] == tuple(version[:2])


def _check_python(version: list[int]) -> None:
    if not _is_same_python(version):
        here, there = sys.version_info[:2], version
        shown = ".".join(map(str, version))
        raise PythonMismatch(
            f"The host runs Python {shown} and this is {here[0]}.{here[1]}: what functions take and return would not "
            f"mean the same. Run this with Python {there[0]}.{there[1]}, or name an image with {here[0]}.{here[1]}. "
            "Nothing was sent."
        )


def _described(api: "Client", cluster_id: str, rank: int) -> Json:
    """Returns the worker's description of itself, for whoever may run commands in its cluster, and of the hosts."""
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    request = api.wait_cluster(cluster_id, _runs, CREATE_S)["request"]
    shape = {name: request.get(name) or 0 for name in ("hosts", "cpus", "gpus")}
    out = err = b""
    for part in api.execute(cluster_id, ["sh", "-c", START, "windrow", python, "describe"], rank=rank):
        if not isinstance(part, int):
            out, err = (out + part[1], err) if part[0] == 1 else (out, err + part[1])
        if max(len(out), len(err)) > DESCRIPTION_BYTES_MAX:
            break
    try:
        return {"shape": shape, **_description(out)}
    except (ValueError, TypeError, KeyError, RecursionError):
        said = err.decode(errors="replace").strip()[-300:]
        raise WorkerRefused(
            "no_worker", f"{cluster_id} runs no worker for functions; choose another name. {said}".strip()
        ) from None


def _description(data: bytes) -> Json:
    """Returns Python's version, port and secret of a worker; raises ValueError, TypeError, KeyError or RecursionError
    for what is none: its host may say anything."""
    if len(data) > DESCRIPTION_BYTES_MAX:
        raise ValueError("too long")
    found = json.loads(data)
    port, version = int(found["port"]), [int(one) for one in found["python"]]
    if not 0 < port < 1 << 16 or len(version) < 2:
        raise ValueError("no port, or no version")
    return {"python": version, "port": port, "secret": bytes.fromhex(found["secret"]).hex()}


def _takes_files(cluster: Json) -> bool:
    return _phases(cluster, {"waiting_files", "running", "exited"})


def _runs(cluster: Json) -> bool:
    if _phases(cluster, {"exited", "gone"}):
        raise FunctionError(f"The worker of {cluster['id']} has ended. See why: windrow cluster logs {cluster['id']}")
    return _phases(cluster, {"running"})


def _phases(cluster: Json, wanted: set[str]) -> bool:
    if cluster["phase"] in ENDED:
        raise WindrowClientError(f"{cluster['id']} is {cluster['phase']}: {cluster.get('reason') or 'it was deleted'}")
    found = {one["phase"] for one in cluster.get("workloads") or []}
    return bool(found) and found <= wanted


# --- the worker's files ----------------------------------------------------------------------------------------------


def packed_worker() -> bytes:
    """The worker, what scripts import of us, and what reads functions that were sent by value, as a tar file."""
    import tarfile  # late: a worker is packed once, and its cluster is found many times

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in _library():
            info = tar.gettarinfo(path, arcname=f"{LIB}/{name}")
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            with path.open("rb") as file:
                tar.addfile(info, file)
    return packed.getvalue()


def _library() -> Iterator[tuple[str, Path]]:
    for name in ("windrow", "windrow_tunnel", "cloudpickle"):
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            yield path.relative_to(root.parent).as_posix(), path
