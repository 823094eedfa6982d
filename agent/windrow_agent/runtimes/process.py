"""Workloads as process trees in sandboxes, each under a detached shim that outlives the agent.

Offered to the account that owns the host, never to strangers. Everything about a workload is
in its own folder; what `start.json` and `end.json` say there is believed, and nothing is kept in memory but what cannot
change while it runs, so that a restarted agent goes on where it was.
"""

import asyncio
import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from windrow_agent.core.workload_usage import Usage
from windrow_agent.runtimes import (
    cgroups,
    file_manifest,
    listening_sockets,
    process_network,
    process_usage,
    sandbox,
    sandbox_root,
    shared_memory,
    shim,
    tar_pack,
    tar_unpack,
)
from windrow_agent.runtimes.cgroups import Group
from windrow_agent.runtimes.port import (
    CHUNK_BYTES,
    ENDED_BY_HOST,
    FILES_CAP_BYTES,
    LOG_CAP_BYTES,
    ByteStream,
    FilesTaken,
    Progress,
    Run,
    RunState,
    RuntimeFacts,
)
from windrow_agent.runtimes.process_end import KILL_S, delete_tree, ends_within, kill_marked, mark
from windrow_agent.runtimes.process_exec import AttachedExec, AttachedTerminal
from windrow_agent.threads import to_its_end
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import Conflict, InvalidInput, NotFound, RuntimeUnavailable, WorkloadFailed
from windrow_proto.ids import ClusterId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.model import GpuFacts, SlotGrant, WorkloadSpec
from windrow_proto.ports import Clock
from windrow_proto.terminals import SHELL
from windrow_proto.units import MILLISECOND, SECOND
from windrow_tunnel import sockets

NAME: Final = "process"
START_S: Final = 20.0
"""From the shim's launch to the command's first instruction; a loaded machine needs a second or two."""
LOOK_S: Final = 0.02
"""Between two looks at a file that is about to appear."""
LOOK_NS: Final = 200 * MILLISECOND
"""Between two looks at a workload whose end cannot be waited for."""
LONG_LOOK_S: Final = 2.0
"""Between two looks at a workload whose end can be waited for: a look alone finds that somebody deleted its folder."""
FOLLOW_S: Final = 0.1
"""Between two looks at a log that is followed: below what a person notices."""
OWN_SESSION: Final = ("setsid", "--ctty", "--wait")
"""Makes its input the terminal that controls the command: without one there are no jobs and no Ctrl-C."""
SHIM: Final = str(Path(shim.__file__))
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True)
class _Live:
    """Facts that cannot change while a workload runs: a look at it then costs three system calls and reads no
    record."""

    run: Run
    shim_pid: int
    shim_ticks: int
    began_monotonic_ns: int
    kept: tuple[str, str]
    """Files: the one whose absence means that it was removed, and the one whose presence means that it ended."""

    def look(self) -> Run | None:
        """The run as it is now; None where its folder has to be read."""
        specification, end = self.kept
        if not os.path.exists(specification) or not shim.is_alive(self.shim_pid, self.shim_ticks):
            return None
        # Looked at after its shim was: as long as there is no record of an end, it ran at that moment.
        if os.path.exists(end):
            return None
        return replace(self.run, running_ns=time.monotonic_ns() - self.began_monotonic_ns)


class ProcessRuntime:
    """The runtime `process`; `folder` is its own, `hidden` what workloads must not see, `shown` what they may read.
    cards: those of this host, as they are now."""

    name = NAME

    def __init__(
        self,
        folder: Path,
        hidden: Path,
        host_id: HostId,
        is_bubblewrap_wanted: bool = True,
        shown: tuple[Path, ...] = (),
        cards: Callable[[], tuple[GpuFacts, ...]] = tuple,
    ) -> None:
        self._folder, self._host_id, self._cards = folder, host_id, cards
        self.has_own_networks = is_bubblewrap_wanted
        """True if each of its workloads has a network of its own; else they are in the host's."""
        self._find = functools.partial(sandbox.find_sandbox, hidden, is_bubblewrap_wanted, shown)
        self._sandbox: sandbox.Sandbox | None = None
        self._is_doubted = False
        self._limited: cgroups.Parents | None = None
        self._interpreters = folder / "bin"
        self._live: dict[WorkloadId, _Live] = {}
        self._sizes = process_usage.FolderSizes()

    async def facts(self) -> RuntimeFacts:
        """Tests whether a sandbox can be made here, and whether its network leads anywhere. An obstacle is looked at
        anew each time: a package may have been installed. So is a sandbox whose program is gone, or that failed."""
        known = self._sandbox
        if known is not None and (known.why or known.closed or self._is_doubted or _is_gone(known)):
            self._sandbox, self._is_doubted = None, False
        found = await self._wrapper()
        limited = cgroups.words(await self._parents())
        if found.is_plain:
            detail = "no sandbox: with all rights of the agent's user, as its owner has asked"
            return RuntimeFacts(True, sandbox.PLAIN, f"{detail}; {limited}", ConditionCode.PROCESS_UNCONFINED)
        if not found.bwrap:
            return RuntimeFacts(False, "", found.why, ConditionCode.PROCESS_NO_SANDBOX)
        network = f"loopback alone ({found.closed})" if found.closed else "own network with a way out"
        detail = f"own namespaces and root folder, no rights, {network}; {limited}"
        return RuntimeFacts(True, "bubblewrap", detail, ConditionCode.PROCESS_NO_NETWORK if found.closed else "")

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """Make the folder. A repeated call for the same workload changes nothing."""
        if spec.image:
            raise InvalidInput("The process runtime runs no images; ask for docker.", subject=spec.workload_id)
        folder = self._path(spec.workload_id)
        progress("preparing", 0)
        await to_its_end(functools.partial(self._make, folder, spec, (await self._usable()).user))
        progress("preparing", 1000)

    def may_have(self, workload_id: WorkloadId) -> bool:
        """Always: a look costs nothing and needs nobody."""
        return True

    async def put_files(self, workload_id: WorkloadId, chunks: AsyncIterator[bytes], cap_bytes: int) -> FilesTaken:
        """Unpack into the working folder and remember what came, to tell changed files from it later."""
        folder = self._known(workload_id)
        cap = cap_bytes or FILES_CAP_BYTES
        archive = folder / "incoming.tar"
        try:
            await tar_unpack.receive(archive, chunks, cap)
            taken = await asyncio.to_thread(tar_unpack.unpack, archive, folder / "work", cap)
            known = {**file_manifest.load_manifest(folder / "manifest.json"), **taken.manifest}
            await asyncio.to_thread(file_manifest.save_manifest, folder / "manifest.json", known)
        finally:
            archive.unlink(missing_ok=True)
        return taken.files

    async def start(self, workload_id: WorkloadId) -> Run:
        """Launch the shim and wait until the command has begun, or has failed to."""
        wrapper = await self._usable()
        folder = self._known(workload_id)
        if wrapper.bwrap and not self._told(folder).shares_memory:
            shared_memory.make(workload_id, self._host_id, wrapper.user)
        spec = _load_spec(folder)
        argv = spec.argv or sandbox.STAY_UP
        if not (folder / "start.json").exists():
            groups = _groups(folder) or cgroups.of(await self._parents(), spec)
            record = await self._record(spec, argv, folder, groups)
            await to_its_end(functools.partial(_launch, folder, record))
        await self._until(lambda: (folder / "running.json").exists() or (folder / "end.json").exists(), workload_id)
        ended = read_record(folder / "end.json")
        if ended and ended.get("exec_error"):
            raise WorkloadFailed(f"{argv[0]!r} could not be run: {ended['exec_error']}", subject=workload_id)
        run = await self.observe(workload_id)
        if run is None:
            raise NotFound(f"{workload_id} went away while it started.", subject=workload_id)
        return run

    async def exec(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> AttachedExec:
        """Start one more command in the same folder, environment and limits."""
        return await AttachedExec.start(*await self._beside(workload_id, argv), SHIM)

    async def terminal(self, workload_id: WorkloadId) -> AttachedTerminal:
        """A shell there, in a session of its own, whose terminal the agent's end of a pseudoterminal is."""
        return await AttachedTerminal.start(*await self._beside(workload_id, (*OWN_SESSION, *SHELL)), SHIM)

    async def _beside(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> tuple[Path, dict[str, Any]]:
        """The folder of a workload that runs, and the launch record of one more command in it."""
        folder = self._known(workload_id)
        run = await self.observe(workload_id)
        if run is None or run.state is not RunState.RUNNING:
            raise Conflict(f"{workload_id} does not run; nothing can be executed in it.", subject=workload_id)
        if not argv:
            raise InvalidInput("A command needs at least one word.", subject=workload_id)
        spec = _load_spec(folder)
        beside = await self._inner(folder)
        self._known(workload_id)  # a removal takes what the record names away after that, and nothing of it comes again
        record = await self._record(spec, argv, folder, _groups(folder), beside)
        self._known(workload_id)
        return folder, record

    async def logs(self, workload_id: WorkloadId, offset: int, follow: bool) -> ByteStream:
        """Read the log file; following polls it."""
        folder = self._known(workload_id)
        stream = ByteStream()
        return stream.feed(self._read_log(stream, folder, offset, follow))

    async def get_files(self, workload_id: WorkloadId, changed_only: bool, offset: int) -> ByteStream:
        """Pack the working folder in a thread."""
        folder = self._known(workload_id)
        known = file_manifest.load_manifest(folder / "manifest.json") if changed_only else None
        return tar_pack.packed(folder / "work", known, offset)

    async def work_folder(self, workload_id: WorkloadId) -> Path | None:
        """A folder of this host."""
        return self._known(workload_id) / "work"

    async def volume_folder(self, workload_id: WorkloadId, name: str) -> Path | None:
        """Likewise."""
        return self._known(workload_id) / sandbox.VOLUMES / name

    async def reach(self, workload_id: WorkloadId, port: int) -> tuple[tuple[str, int], ...]:
        """In a network of its own wherever something listens. In the host's, which it shares with everything else
        there, only where a process of its own does."""
        folder = self._known(workload_id)
        shim_pid = await asyncio.to_thread(self.shim_pid, workload_id)
        if shim_pid is None:
            raise Conflict(f"{workload_id} does not run; nothing listens in it.", subject=workload_id)
        if (network := process_network.of(folder)) is not None:
            found = await asyncio.to_thread(process_network.listening, network, port)
        else:
            found = await asyncio.to_thread(listening_sockets.addresses, port, shim_pid, mark(workload_id))
        if not found:
            raise Conflict(
                f"No process of this workload listens on port {port}, or another of this host shares it. Start a "
                "server there, or name another port.",
                subject=workload_id,
            )
        return tuple((address, port) for address in found)

    async def dial(self, workload_id: WorkloadId, address: str, port: int) -> socket.socket:
        """In its own network, or in the host's where it has none."""
        network = process_network.of(self._path(workload_id))
        if network is None:
            return await sockets.dial(address, port)
        return await process_network.dial(network, address, port)

    async def network(self, workload_id: WorkloadId, ports: tuple[int, ...] = ()) -> int | None:
        """A process in the network of its own, made if it is not there yet, maybe ahead of its preparation; None: it is
        in the host's. ports: to be published with it. Raises RuntimeUnavailable."""
        folder, wrapper = self._path(workload_id), await self._usable()
        if wrapper.bwrap is None:
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = folder, mark(workload_id), wrapper.user, wrapper.outward
        return (await to_its_end(functools.partial(process_network.ensure, *known, ports))).pid

    async def sockets(self, workload_id: WorkloadId) -> frozenset[int]:
        """The inodes of all sockets of its processes; none where it does not run."""
        shim_pid = await asyncio.to_thread(self.shim_pid, workload_id)
        if shim_pid is None:
            return frozenset()
        return await asyncio.to_thread(listening_sockets.owned, shim_pid, mark(workload_id))

    async def observe(self, workload_id: WorkloadId) -> Run | None:
        """Look whether the shim that its records name is alive."""
        known = self._live.pop(workload_id, None)
        run = known.look() if known is not None else None
        if known is None or run is None:
            folder = self._path(workload_id)
            run = _observe(folder) if (folder / "spec.json").exists() else None
            known = _live(folder, run) if run is not None and run.state is RunState.RUNNING else None
        if known is not None:
            self._live[workload_id] = known
        self._is_doubted |= run is not None and run.exit_code == shim.NO_SANDBOX
        return run

    async def usage(self, workload_id: WorkloadId) -> Usage | None:
        """By its control groups, or process by process; the network where it has one of its own."""
        folder = self._path(workload_id)
        shim_pid = await asyncio.to_thread(_shim_pid, folder)
        if shim_pid is None:
            return None
        network = process_network.of(folder)
        known = _groups(folder), shim_pid, mark(workload_id), None if network is None else network.pid
        return replace(await asyncio.to_thread(process_usage.used, *known), disk_bytes=self._sizes.of(folder))

    async def pause(self, workload_id: WorkloadId, clock: Clock) -> None:
        """Until its shim ends; for what else may become of it a look every two seconds is enough."""
        known = self._live.get(workload_id)
        if known is None or not await ends_within(known.shim_pid, known.shim_ticks, LONG_LOOK_S):
            await clock.sleep_ns(LOOK_NS)

    async def list(self) -> tuple[Run, ...]:
        """Every folder that holds a whole specification; all shared memory and networks of this host's without one."""
        runs = tuple(_observe(path.parent) for path in sorted(self._folder.glob("*/spec.json")))
        held = [WorkloadId(path.parent.name) for path in self._folder.glob(f"*/{process_network.NOTE}")]
        found = sorted({*held, *shared_memory.all_of(self._host_id)})
        bare = [one for one in found if not (self._path(one) / "spec.json").exists()]
        return (*runs, *(Run(one, ClusterId(""), (), NAME, RunState.CREATED) for one in bare))

    async def stop(self, workload_id: WorkloadId, grace_ns: int) -> None:
        """SIGTERM through the shim, then SIGKILL; and if the shim itself was killed, whatever it left."""
        folder = self._path(workload_id)
        if not (folder / "spec.json").exists():
            return
        with contextlib.suppress(OSError):  # a full disk keeps nothing from ending
            (folder / shim.ASKED).touch()
        if grace_ns > 0:
            _signal(folder, signal.SIGTERM)
        if not await self._ends(folder, grace_ns / SECOND):
            _signal(folder, signal.SIGUSR1)
            if not await self._ends(folder, KILL_S):
                _signal(folder, signal.SIGKILL)
        if (folder / "start.json").exists() and not (folder / "end.json").exists():
            await asyncio.to_thread(kill_marked, workload_id)
            await asyncio.to_thread(cgroups.end, _groups(folder))

    async def remove(self, workload_id: WorkloadId) -> None:
        """Stop it at once and delete its folder; where that is gone already, whatever else is left of it."""
        folder = self._path(workload_id)
        await self.stop(workload_id, 0)
        await asyncio.to_thread(process_network.end, folder)
        (folder / "spec.json").unlink(missing_ok=True)  # first: half a folder must not look like a workload
        groups = _groups(folder) or cgroups.left(await self._parents(), workload_id)
        await to_its_end(functools.partial(delete_tree, folder, groups))
        self._sizes.forget(folder)

    async def close(self) -> None:
        """Nothing is held open."""

    def shim_pid(self, workload_id: WorkloadId) -> int | None:
        """The process that watches over a workload; None: there is none alive."""
        return _shim_pid(self._path(workload_id))

    # --- inside ---------------------------------------------------------------------------------------------------

    def _path(self, workload_id: WorkloadId) -> Path:
        if not _SAFE_NAME.fullmatch(workload_id):
            raise InvalidInput("A workload id has other characters than letters, digits, `_` and `-`.")
        return self._folder / workload_id

    def _known(self, workload_id: WorkloadId) -> Path:
        folder = self._path(workload_id)
        if not (folder / "spec.json").exists():
            raise NotFound(f"This host has no process workload {workload_id}.", subject=workload_id)
        return folder

    async def _inner(self, folder: Path) -> int | None:
        """A process in the sandbox of this workload, which bubblewrap may still be making; None: it has none. Raises
        Conflict."""
        is_confined = (await self._usable()).bwrap is not None
        if is_confined != bool(read_record(folder / "launch.json").get("sandbox")):
            words = f"{folder.name} was started by another release, or with another --no-bubblewrap"
            raise Conflict(f"{words}: nothing can be executed in it. Start it anew.", subject=folder.name)
        until = time.monotonic() + START_S
        while is_confined:
            began = read_record(folder / "start.json")
            found = await asyncio.to_thread(sandbox.inner, int(began.get("pid", 0)))
            if found is not None:
                return found
            has_begun = bool(began)  # the shim says so itself, a moment after it was started
            if time.monotonic() > until or (has_begun and _shim_pid(folder) is None):
                raise Conflict(f"{folder.name} ends, or is not up yet; try again.", subject=folder.name)
            await asyncio.sleep(LOOK_S)
        return None

    async def _record(
        self,
        spec: WorkloadSpec,
        argv: tuple[str, ...],
        folder: Path,
        groups: Sequence[Group],
        beside: int | None = None,
    ) -> dict[str, Any]:
        wrapper, told = await self._usable(), self._told(folder)
        self._known(spec.workload_id)
        network = await self.network(spec.workload_id, spec.ports)
        nodes = sandbox_root.nodes(spec, self._cards()) if wrapper.bwrap else ()
        inside = sandbox.SandboxContents(spec, folder, self._interpreters, network or 0, told, nodes, beside)
        if not sandbox.resolve(argv[0], {**sandbox.search(spec, inside), **told.env}, wrapper, inside):
            raise WorkloadFailed(f"There is no command {argv[0]!r} on this host.", subject=spec.workload_id)
        try:
            return await asyncio.to_thread(sandbox.launch_record, wrapper, inside, argv, groups)
        except FileNotFoundError:
            raise NotFound(f"{spec.workload_id} was removed meanwhile.", subject=spec.workload_id) from None

    def _told(self, _folder: Path) -> sandbox.SandboxExtras:
        """The further environment of the workload of this folder for its GPU, and the parts of the hidden folder that
        it may see."""
        return sandbox.NOTHING_MORE

    async def _wrapper(self) -> sandbox.Sandbox:
        if self._sandbox is None:
            self._sandbox = await asyncio.to_thread(self._find)
        return self._sandbox

    async def _usable(self) -> sandbox.Sandbox:
        """Raises RuntimeUnavailable where there is no sandbox and the owner has not asked for none."""
        found = await self._wrapper()
        if found.why:
            raise RuntimeUnavailable(f"This host runs no processes, since it has no sandbox: {found.why}.")
        return found

    async def _parents(self) -> cgroups.Parents:
        if self._limited is None:
            self._limited = await asyncio.to_thread(cgroups.find)
        return self._limited

    def _make(self, folder: Path, spec: WorkloadSpec, user: int | None) -> None:
        sandbox.interpreter_folder(self._interpreters)
        if (folder / "spec.json").exists():
            return
        sandbox.make_folders(folder, spec, user)
        kept = asdict(replace(spec, log_cap_bytes=_log_cap(spec)))
        del kept["registry_login"], kept["sealed_env"]  # bytes, and nothing for a disk
        shim.write_whole(str(folder), "spec.json", kept)

    async def _until(self, condition: Callable[[], bool], workload_id: WorkloadId) -> None:
        end = time.monotonic() + START_S
        while not condition():
            if time.monotonic() > end:
                raise RuntimeUnavailable(f"{workload_id} did not start within {START_S:.0f} s.", subject=workload_id)
            await asyncio.sleep(LOOK_S)

    async def _ends(self, folder: Path, within_s: float) -> bool:
        end = time.monotonic() + within_s
        while (folder / "start.json").exists() and _shim_pid(folder) is not None:
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def _read_log(
        self, stream: ByteStream, folder: Path, offset: int, follow: bool
    ) -> AsyncGenerator[bytes, None]:
        while True:
            is_over = not follow or (folder / "end.json").exists() or not _may_still_run(folder)
            while data := _read_piece(folder / "log", offset):
                offset += len(data)
                yield data
            if is_over:
                break
            await asyncio.sleep(FOLLOW_S)
        stream.truncated = _is_cut(folder)


def _log_cap(spec: WorkloadSpec) -> int:
    return min(spec.log_cap_bytes, LOG_CAP_BYTES) if spec.log_cap_bytes else LOG_CAP_BYTES


def _launch(folder: Path, record: dict[str, Any]) -> None:
    shim.write_whole(str(folder), "launch.json", record)
    cgroups.make(record["groups"])
    with open(folder / "shim.err", "ab") as errors:
        done = subprocess.run(
            [sys.executable, "-I", "-S", SHIM, "run", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
            cwd="/",
            env={"PATH": sandbox.SEARCH_PATH},
            timeout=START_S,
            check=False,
        )
    if done.returncode != 0:
        text = (folder / "shim.err").read_text(errors="replace")[-300:]
        raise RuntimeUnavailable(f"The workload's shim could not be started: {text}", subject=folder.name)


def read_record(path: Path) -> dict[str, Any]:
    """Reads a JSON record; empty: it cannot be read."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _load_spec(folder: Path) -> WorkloadSpec:
    record = read_record(folder / "spec.json")
    if not record:
        raise NotFound(f"The records of workload {folder.name} are damaged.", subject=folder.name)
    slots = tuple(SlotGrant(SlotId(s["slot_id"]), s["token"], GpuUuid(s["gpu_uuid"])) for s in record["slots"])
    lists = {name: tuple(record.get(name, ())) for name in ("argv", "ports", "listens", "peers")}
    return WorkloadSpec(**{**record, **lists, "slots": slots, "volumes": sandbox.mounts_of(record)})


def _is_gone(known: sandbox.Sandbox) -> bool:
    return known.bwrap is not None and not os.access(known.bwrap, os.X_OK)


def _observe(folder: Path) -> Run:
    spec, began = _load_spec(folder), read_record(folder / "start.json")
    run = Run(WorkloadId(spec.workload_id), ClusterId(spec.cluster_id), spec.slots, NAME, RunState.CREATED)
    if not began:
        return run
    is_alive = _shim_pid(folder) is not None  # looked at before end.json: it may be written in between
    ended = read_record(folder / "end.json")
    network = read_record(folder / process_network.NOTE)
    ports = network.get("ports", ()) if network else spec.ports
    run = replace(run, started_wall_ns=int(began["wall_ns"]), ports={str(port): port for port in ports})
    if ended.get("is_by_host"):
        return replace(run, state=RunState.LOST, running_ns=int(ended["running_ns"]), detail=ENDED_BY_HOST)
    if ended:
        code, oom_limit = int(ended["exit_code"]), cgroups.oom_limit(_groups(folder)) if ended["exit_code"] else None
        why = "" if oom_limit is None else cgroups.out_of_memory(oom_limit)
        return replace(run, state=RunState.EXITED, running_ns=int(ended["running_ns"]), exit_code=code, detail=why)
    if is_alive:
        return replace(run, state=RunState.RUNNING, running_ns=time.monotonic_ns() - int(began["monotonic_ns"]))
    return replace(run, state=RunState.LOST)


def _live(folder: Path, run: Run) -> _Live:
    """Facts that need not be read again of a workload that was just seen to run."""
    began = read_record(folder / "start.json")
    kept = (str(folder / "spec.json"), str(folder / "end.json"))
    return _Live(run, int(began["shim_pid"]), int(began["shim_ticks"]), int(began["monotonic_ns"]), kept)


def _shim_pid(folder: Path) -> int | None:
    """The shim that `start.json` names, if it is this very process and not another with its number."""
    began = read_record(folder / "start.json")
    if not began or began["boot_id"] != shim.boot_id():
        return None
    pid = int(began["shim_pid"])
    return pid if shim.is_alive(pid, int(began["shim_ticks"])) else None


def _signal(folder: Path, number: int) -> None:
    pid = _shim_pid(folder)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _may_still_run(folder: Path) -> bool:
    began = (folder / "start.json").exists()
    return (folder / "spec.json").exists() and (not began or _shim_pid(folder) is not None)


def _is_cut(folder: Path) -> bool:
    cap_bytes = int(read_record(folder / "spec.json").get("log_cap_bytes", LOG_CAP_BYTES))
    try:
        return (folder / "log").stat().st_size > cap_bytes
    except OSError:
        return False


def _read_piece(path: Path, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except OSError:
        return b""


def _groups(folder: Path) -> list[Group]:
    """The control groups that it was to have."""
    return list(read_record(folder / "launch.json").get("groups", ()))
