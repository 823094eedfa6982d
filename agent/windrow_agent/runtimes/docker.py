"""Workloads as containers, by the adapter of the Docker SDK (it drives Podman's service, too).

A container carries the marks of this host and is named after its workload and token, so that creating is finding.
What lacks the mark is never looked at twice. The floor of isolation: no capabilities, no new privileges, bounded
processes and memory, a read-only root with one writable volume, only the rented GPUs, ports on the loopback alone.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import os
import shutil
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from windrow_agent.core import devices, egress
from windrow_agent.core.workload_usage import Usage
from windrow_agent.runtimes import (
    docker_apt,
    docker_daemon,
    docker_disk,
    docker_exits,
    docker_inventory,
    docker_pause,
    docker_socket,
    docker_usage,
    egress_firewall,
    file_manifest,
    tar_pack,
    tar_unpack,
)
from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes.docker_streams import DockerExec, DockerTerminal, log_stream, put_archive, read_archive
from windrow_agent.runtimes.images import Images
from windrow_agent.runtimes.port import (
    FILES_CAP_BYTES,
    LOG_CAP_BYTES,
    ByteStream,
    FilesTaken,
    Progress,
    Run,
    RunState,
    RuntimeFacts,
    RuntimeSilent,
)
from windrow_agent.runtimes.pulled_images import Budget
from windrow_agent.runtimes.thread_pipe import ThreadPipe
from windrow_agent.threads import END_S, to_its_end
from windrow_proto import image_names
from windrow_proto.clock import BootClock
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    RuntimeUnavailable,
    WindrowError,
    WorkloadFailed,
)
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.model import GpuFacts, WorkloadSpec
from windrow_proto.ports import Clock
from windrow_proto.terminals import SHELL
from windrow_proto.units import MILLISECOND, SECOND
from windrow_tunnel import sockets

T = TypeVar("T")

NAME: Final = "docker"
DEFAULT_URL: Final = "unix:///var/run/docker.sock"
CALL_S: Final = 30
"""For one answer of the daemon; inspecting takes milliseconds, creating under load a few seconds."""
SEEN: Final = "daemon-seen"
"""A file in the runtime's folder: a daemon has answered here once, so that it is missed when it does not."""
OWN_USERS: Final = "container_own_users"
"""The name of a fact that the host reports (host_fields.py)."""
LOOK_NS: Final = 400 * MILLISECOND
"""Between two looks at a running container."""
THREADS: Final = 4
"""Calls at a time; more would only queue inside the daemon."""


class DockerRuntime:
    """The runtime `docker` of one host; `folder` keeps what Docker does not: manifests and monotonic starts.

    cards: those of this host, as they are now. clock: says when to look again at what changes seldom."""

    name = NAME
    cards: Callable[[], tuple[GpuFacts, ...]] = tuple
    clock: Clock = BootClock()

    def __init__(
        self,
        folder: Path,
        host_id: HostId,
        base_url: str = DEFAULT_URL,
        registries: tuple[str, ...] = (),
        image_budget: Budget | None = None,
    ) -> None:
        self._folder, self._host_id, self._base_url = folder, host_id, base_url
        self.images = Images(folder, registries, self._call, budget=image_budget)
        self.images.is_podman = lambda: bool(self._kind.podman_url)
        self.images.root = lambda: self._kind.root
        self.driver_of: facts_of.DriverOf = facts_of.no_driver
        self._threads = concurrent.futures.ThreadPoolExecutor(THREADS, "windrow-docker")
        self._made: Any = None
        self._ids: dict[WorkloadId, str] = {}
        self._unstarted: dict[WorkloadId, str] = {}
        self._asked: set[WorkloadId] = set()
        self._stopped: set[WorkloadId] = set()
        self._notes = threading.Lock()
        self._is_fenced = False
        self._disk = docker_disk.DiskWatch(folder, host_id, base_url, self.images.root)
        self._bare = docker_inventory.BareVolumes(host_id)
        self._kind = docker_daemon.DaemonKind()
        self.pause_containers = docker_pause.PauseContainers(base_url, host_id)

    async def facts(self) -> RuntimeFacts:
        """Ask the daemon for its version, and have the fence stand."""
        try:
            answer = await asyncio.to_thread(docker_socket.ask, self._base_url, "/version", CALL_S)
            info = await asyncio.to_thread(docker_socket.ask, self._base_url, "/info", CALL_S)
        except WindrowError as error:
            was_there = (self._folder / SEEN).exists()
            return RuntimeFacts(False, "", error.detail, ConditionCode.DOCKER_LOST if was_there else "")
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / SEEN).touch()
        failed = docker_daemon.ROOTLESS_NETWORK if docker_daemon.is_rootless(info) else ""
        failed = failed or await asyncio.to_thread(egress_firewall.install, is_anew=not self._is_fenced)
        self._is_fenced = not failed
        away = f"they reach this host's network: {failed}" if failed else "kept away from this host's network"
        detail = f"containers without capabilities, {docker_daemon.users_of(info)}; {away}"
        more = {OWN_USERS: int(docker_daemon.is_apart(info))}
        condition = ConditionCode.DOCKER_UNFENCED if failed else ""
        gives_nvidia = await asyncio.to_thread(docker_daemon.gives_nvidia, answer, info)
        return RuntimeFacts(True, str(answer.get("Version", "")), detail, condition, more, gives_nvidia)

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """Have the image, then the volume and the container; a container of this name is taken as it is."""
        if not spec.image:
            raise InvalidInput("A container needs an image.", subject=spec.workload_id)
        if not spec.argv and await self._find(spec.workload_id) is not None:
            return
        # Where the owner names a command the daemon is asked at once, and says if it has no such image; not so on
        # cards, where others wait to hear which image it is, or where some images are not everybody's.
        is_looked_at = facts_of.cards(spec) or not spec.argv or spec.await_members or not self.images.are_all_open
        is_looked_at = is_looked_at or not spec.may_use_local_image
        image = (await self.images.find(spec, progress)).record if is_looked_at else None
        facts_of.check_driver(spec, image, self.driver_of)
        progress("preparing", 500)
        try:
            await self._call(functools.partial(self._create, spec=spec, image=image), CALL_S, END_S)
        except NotFound:
            image = (await self.images.find(spec, progress)).record
            await self._call(functools.partial(self._create, spec=spec, image=image), CALL_S, END_S)

    def may_have(self, workload_id: WorkloadId) -> bool:
        """True from just before the daemon is asked to make something of it, and where a container of it was seen."""
        return workload_id in self._asked or workload_id in self._ids

    async def put_files(self, workload_id: WorkloadId, chunks: AsyncIterator[bytes], cap_bytes: int) -> FilesTaken:
        """Check the archive, then let the daemon unpack it into the volume."""
        container = await self._known(workload_id)
        cap = cap_bytes or FILES_CAP_BYTES
        folder = await asyncio.to_thread(self._own_folder, workload_id)
        archive = folder / "incoming.tar"
        try:
            await tar_unpack.receive(archive, chunks, cap)
            taken = await asyncio.to_thread(tar_unpack.check_archive, archive, cap)
            await self._call(lambda api: put_archive(api, container["Id"], archive, facts_of.WORKSPACE), 600)
            known = {**file_manifest.load_manifest(folder / "manifest.json"), **taken.manifest}
            await asyncio.to_thread(file_manifest.save_manifest, folder / "manifest.json", known)
        finally:
            archive.unlink(missing_ok=True)
        return taken.files

    async def start(self, workload_id: WorkloadId) -> Run:
        """Start the container unless it ever ran; note the monotonic time of its start."""
        container_id = self._unstarted.pop(workload_id, None)
        if container_id is None:
            container = await self._known(workload_id)
            container_id = container["Id"] if container["State"]["Status"] == "created" else None
        if container_id is not None:
            start = functools.partial(self._start, workload_id=workload_id, container_id=container_id)
            try:
                return await self._call(start, CALL_S, END_S)
            except (InvalidInput, RuntimeUnavailable) as error:
                if isinstance(error, RuntimeUnavailable) and docker_daemon.NO_SUCH_COMMAND not in error.detail:
                    raise
                raise WorkloadFailed(f"The container could not start: {error.detail}", subject=workload_id) from error
        run = await self.observe(workload_id)
        if run is None:
            raise NotFound(f"{workload_id} went away while it started.", subject=workload_id)
        return run

    async def exec(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> DockerExec:
        """Run one more command in the container."""
        return await DockerExec.start(*await self._running(workload_id, argv), argv, self._call)

    async def terminal(self, workload_id: WorkloadId) -> DockerTerminal:
        """A shell there, with the daemon's own terminal."""
        return await DockerTerminal.start(*await self._running(workload_id, SHELL), SHELL, self._call)

    async def _running(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> tuple[Any, str]:
        """The daemon's client and the container, where it can run this command."""
        container = await self._known(workload_id)
        if container["State"]["Status"] != "running":
            raise Conflict(f"{workload_id} does not run; nothing can be executed in it.", subject=workload_id)
        if not argv:
            raise InvalidInput("A command needs at least one word.", subject=workload_id)
        return await self._call(lambda api: api, CALL_S), container["Id"]

    async def logs(self, workload_id: WorkloadId, offset: int, follow: bool) -> ByteStream:
        """The container's output, capped as it is read."""
        container = await self._known(workload_id)
        cap = int(container["Config"]["Labels"].get(facts_of.LOG_CAP, LOG_CAP_BYTES))
        client, goes_on = await self._call(lambda api: api, CALL_S), follow and facts_of.may_go_on(container)
        return log_stream(client, container["Id"], offset, goes_on, cap, bool(self._kind.podman_url))

    async def get_files(self, workload_id: WorkloadId, changed_only: bool, offset: int) -> ByteStream:
        """The volume's content, filtered while it streams."""
        container = await self._known(workload_id)
        known = file_manifest.load_manifest(self._folder / workload_id / "manifest.json") if changed_only else None
        client = await self._call(lambda api: api, CALL_S)

        def again(name: str) -> IO[bytes]:
            return read_archive(client, container["Id"], f"{facts_of.WORKSPACE}/{name}")

        def produce(pipe: ThreadPipe[bytes]) -> None:
            source = read_archive(client, container["Id"], facts_of.WORKSPACE)
            tar_pack.sift(source, "workspace", known, offset, pipe.put, again)

        return ByteStream().feed(ThreadPipe(produce, "windrow-docker-files").read())

    async def work_folder(self, workload_id: WorkloadId) -> Path | None:
        """The volume's place, where the daemon keeps it on this host and lets us see it."""
        return await self.volume_folder(workload_id, "")

    async def volume_folder(self, workload_id: WorkloadId, name: str) -> Path | None:
        """Likewise."""
        await self._known(workload_id)
        name = facts_of.volume_name(workload_id, name)
        volume = await self._call(lambda api: api.inspect_volume(name), CALL_S)
        place = Path(str(volume.get("Mountpoint") or "/nonexistent"))
        return place if await asyncio.to_thread(os.access, place, os.R_OK | os.W_OK | os.X_OK) else None

    async def reach(self, workload_id: WorkloadId, port: int) -> tuple[tuple[str, int], ...]:
        """Its own address where the daemon's bridge is on this host; else (rootless daemons) the port as published."""
        container = await self._known(workload_id)
        if container["State"]["Status"] != "running":
            raise Conflict(f"{workload_id} does not run; nothing listens in it.", subject=workload_id)
        joined = await asyncio.to_thread(self.pause_containers.networks, container)
        near = () if self._kind.is_rootless else facts_of.networks(joined)  # there such an address may be another's
        own = tuple((ip, port) for ip, gateway in near if docker_socket.is_here(gateway))
        found = own or facts_of.published(container, port)
        if not found:
            words = f"Port {port} of this container is not published, and its network is not this host's."
            raise Conflict(f"{words} Name it when you create it: --port {port}.", subject=workload_id)
        return found

    async def dial(self, workload_id: WorkloadId, address: str, port: int) -> socket.socket:
        """From this host's own network."""
        return await sockets.dial(address, port)

    async def network(self, workload_id: WorkloadId) -> Path:
        """The network namespace of this workload, made ahead of its container if need be."""
        container = await self._find(workload_id)
        if self._kind.podman_url:
            raise RuntimeUnavailable("Podman's containers are in no private network yet.", subject=workload_id)
        await self._call(lambda api: self._kind.have_network(api, self._base_url), CALL_S)
        self._asked.add(workload_id)
        return await asyncio.to_thread(self.pause_containers.network, workload_id, container)

    async def usage(self, workload_id: WorkloadId) -> Usage | None:
        """By the daemon's statistics; its disk as the watch over its limit found it."""
        container = await self._find(workload_id)
        if container is None or container["State"]["Status"] != "running":
            return None
        own, holder = str(container["Id"]), docker_pause.holder_of(container)
        asked = dict.fromkeys((own, holder or own))
        told = {one: await asyncio.to_thread(self._statistics, one) for one in asked}
        return docker_usage.usage(told[own], told[holder or own], self._disk.used.get(workload_id))

    def _statistics(self, container_id: str) -> dict[str, Any]:
        return _dict(docker_socket.ask(self._base_url, docker_usage.path(container_id), CALL_S))

    async def pause(self, workload_id: WorkloadId, clock: Clock) -> None:
        """For a while: a look is a question to the daemon."""
        await clock.sleep_ns(LOOK_NS)
        if self._disk.is_due(clock):
            with contextlib.suppress(WindrowError):  # what it is asked next says so
                await self._call(functools.partial(self._disk.look, kill=_kill), CALL_S)

    async def observe(self, workload_id: WorkloadId) -> Run | None:
        """Inspect the container of this workload."""
        now_ns, wall_ns = time.monotonic_ns(), time.time_ns()  # it ran then if the answer says so, and not later
        container = await self._find(workload_id)
        while (
            container is not None
            and workload_id not in self._stopped
            and facts_of.may_lack_reason(container, time.time_ns())
        ):
            await asyncio.sleep(facts_of.REASON_S)
            container = await self._find(workload_id)
        return None if container is None else await asyncio.to_thread(self._run, container, now_ns, wall_ns)

    async def list(self) -> tuple[Run, ...]:
        """Every container with this host's mark, and every volume whose container never came, as last looked for."""
        is_due = self._bare.is_due(self.clock)
        if self._made is None and not await self._has_any(is_due):
            if is_due:
                self._bare.none(self.clock)
            return ()  # seen without the SDK, which stays unloaded on a host that runs no containers
        names = await self._call(functools.partial(docker_inventory.names, host_id=self._host_id), CALL_S)
        found = [await self.observe(WorkloadId(name)) for name in names]
        if is_due:
            await self._call(functools.partial(self._bare.look, clock=self.clock), CALL_S)
        return (*(run for run in found if run is not None), *self._bare.runs(names))

    async def stop(self, workload_id: WorkloadId, grace_ns: int) -> None:
        """Docker's own stop: SIGTERM, then SIGKILL; all of a container's processes end with its first."""
        container = await self._find(workload_id)
        self._stopped.add(workload_id)
        if container is None or container["State"]["Status"] not in ("running", "restarting", "paused"):
            return
        grace_s = -(-grace_ns // SECOND)  # rounded up: never less than was promised
        with contextlib.suppress(NotFound):
            if grace_ns > 0:
                await self._call(lambda api: api.stop(container["Id"], timeout=grace_s), CALL_S + grace_s)
            else:
                await self._call(lambda api: _kill(api, container["Id"]), CALL_S)

    async def remove(self, workload_id: WorkloadId) -> None:
        """Container, its network's holder, volume and our own notes."""
        container = await self._find(workload_id)
        if container is not None:
            with contextlib.suppress(NotFound):
                await self._call(lambda api: api.remove_container(container["Id"], v=True, force=True), CALL_S)
        await asyncio.to_thread(self.pause_containers.release, workload_id, container)
        await self._call(functools.partial(_remove_volumes, host_id=self._host_id, of=workload_id), CALL_S)
        await asyncio.to_thread(self._forget, workload_id)
        self._ids.pop(workload_id, None)
        self._asked.discard(workload_id)
        self._unstarted.pop(workload_id, None)
        self._stopped.discard(workload_id)
        self._bare.forget(workload_id)
        await self.images.clear()

    async def close(self) -> None:
        """Close the connection; containers go on, but for the one that only holds a network ahead."""
        await asyncio.to_thread(self.pause_containers.close)
        if self._made is not None:
            self._made.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # --- inside ---------------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[Any], T], within_s: float, end_s: float = 0) -> T:
        """Run one call in our threads and turn what the SDK raises into our errors; end_s: see `to_its_end`."""
        try:
            async with asyncio.timeout(within_s + 5):
                return await to_its_end(functools.partial(self._guarded, work), self._threads, end_s)
        except TimeoutError as error:
            raise RuntimeSilent(f"The container daemon did not answer within {within_s:.0f} s.") from error

    def _guarded(self, work: Callable[[Any], T]) -> T:
        import docker  # loaded at the first container only: it costs 15 MiB
        import docker.errors

        try:
            if self._made is None:
                self._made = docker.APIClient(base_url=self._base_url, version="auto", timeout=CALL_S)
                self._kind = docker_daemon.kind_of(self._made.version(), self._made.info(), self._base_url)
            return work(self._made)
        except docker.errors.NotFound as error:
            raise NotFound(f"The container daemon knows nothing of it: {facts_of.explained(error)}") from error
        except docker.errors.APIError as error:
            if error.is_client_error():
                raise InvalidInput(facts_of.explained(error)) from error
            raise RuntimeUnavailable(f"The container daemon failed: {facts_of.explained(error)}") from error
        except (docker.errors.DockerException, OSError) as error:
            raise RuntimeSilent(f"The container daemon cannot be reached: {str(error)[:200]}") from error

    async def _has_any(self, volumes: bool) -> bool:
        label = f"{facts_of.HOST}={self._host_id}"
        return await asyncio.to_thread(docker_socket.has_any, self._base_url, label, CALL_S, volumes=volumes)

    async def _find(self, workload_id: WorkloadId) -> dict[str, Any] | None:
        return await self._call(functools.partial(self._inspect, workload_id=workload_id), CALL_S)

    def _inspect(self, api: Any, workload_id: WorkloadId) -> dict[str, Any] | None:
        """By its id where that is known, which no other container ever has; else by our marks."""
        known = self._ids.get(workload_id)
        container = _inspect_one(api, known) if known is not None else None
        container = container or _inspect_own(api, workload_id, self._host_id)
        if container is not None:
            self._ids[workload_id] = container["Id"]
        return container

    async def _known(self, workload_id: WorkloadId) -> dict[str, Any]:
        container = await self._find(workload_id)
        if container is None:
            raise NotFound(f"This host has no container for workload {workload_id}.", subject=workload_id)
        return container

    def _create(self, api: Any, spec: WorkloadSpec, image: dict[str, Any] | None) -> None:
        """image: as inspected; None where the request names the command. Raises NotFound if the image is not here."""
        import docker.errors

        log_cap = min(spec.log_cap_bytes or LOG_CAP_BYTES, LOG_CAP_BYTES)
        shares = docker_disk.share(self._kind.root), docker_disk.share_of_files(self._kind.root)
        labels = facts_of.labels(spec, self._host_id, log_cap, *shares)
        given, kind = devices.of(spec, self.cards()), self._kind
        kind.have_network(api, self._base_url)
        machine = os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        calls = kind.system_calls(self._folder)
        host_config = facts_of.host_config(
            spec, *machine, given, kind.limits, kind.cdi, kind.caps, calls, has_init=kind.has_init
        )
        if not spec.ports:  # ports are published with the network they are of
            joined = self.pause_containers.take(spec.workload_id)
            if spec.peers and not joined:
                raise RuntimeUnavailable("The network that was held for it is gone.")
            host_config["network_mode"] = joined or egress.NETWORK
        image_id = image["Id"] if image is not None else image_names.parsed(spec.image).asked
        known = image or _dict(api.inspect_image(image_id))
        self._asked.add(spec.workload_id)
        try:
            renters = (facts_of.volume_name(spec.workload_id, one.name) for one in spec.volumes)
            names = (facts_of.volume_name(spec.workload_id), facts_of.tmp_volume_name(spec.workload_id), *renters)
            workspace, tmp, *_ = [_dict(api.create_volume(name, labels=labels)) for name in names]
            made = api.create_container(
                image_id,
                entrypoint=facts_of.entrypoint(spec),
                command=facts_of.command(spec, known),
                name=facts_of.container_name(spec),
                labels=labels,
                environment=facts_of.environment(spec, known, kind.cdi),
                working_dir=facts_of.working_folder(spec, known),
                stdin_open=not spec.argv,  # a bare shell then waits for its input instead of ending at once
                ports=list(spec.ports),
                host_config=api.create_host_config(**host_config),
            )
        except docker.errors.APIError:
            self.pause_containers.release(spec.workload_id, None)
            if self._inspect(api, spec.workload_id) is not None:
                return  # made before a crash; taken as it is (Docker says 409, Podman 500)
            with contextlib.suppress(docker.errors.APIError):
                _remove_volumes(api, self._host_id, spec.workload_id)  # or they are found minutes later
            raise
        _open_to_its_user(workspace, tmp)
        if facts_of.is_root(facts_of.user_of(known.get("Config") or {})) and not kind.caps:
            with contextlib.suppress(docker.errors.APIError):  # most often: its image has no such folder, and no apt
                api.put_archive(made["Id"], docker_apt.FOLDER, docker_apt.settings())
        self._ids[spec.workload_id] = self._unstarted[spec.workload_id] = made["Id"]

    def _start(self, api: Any, workload_id: WorkloadId, container_id: str) -> Run:
        """Note the time, start it, and say what runs: its own answer, since the daemon's says when it began."""
        note = self._own_folder(workload_id) / "start.json"
        facts_of.write_start(note, time.monotonic_ns())
        self._begin(api, container_id)
        now_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        container = _dict(api.inspect_container(container_id))
        facts_of.correct_start(note, container, now_ns, wall_ns)
        return replace(self._run(container, now_ns, wall_ns), image=self.images.pin_of(api, container))

    def _begin(self, api: Any, container_id: str) -> None:
        import docker.errors

        try:
            api.start(container_id)
        except docker.errors.APIError as error:
            if docker_pause.NOT_RUNNING not in facts_of.explained(error):
                raise
            self.pause_containers.start_again(_dict(api.inspect_container(container_id)))
            api.start(container_id)
        if not self._kind.podman_url:
            with contextlib.suppress(RuntimeError):  # just closed
                self._threads.submit(self.pause_containers.tend)

    def _own_folder(self, workload_id: WorkloadId) -> Path:
        folder = self._folder / workload_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _run(self, container: dict[str, Any], now_ns: int, wall_ns: int) -> Run:
        start = facts_of.read_start(self._folder / facts_of.workload_of(container) / "start.json")
        run = facts_of.run_of(container, start, now_ns, wall_ns)
        if run.state is not RunState.EXITED:
            return run
        folder = self._folder / run.workload_id
        run = replace(run, detail=docker_disk.note_of(folder) or run.detail)
        is_known = run.detail or run.workload_id in self._stopped or self._kind.podman_url
        at = "" if is_known else self._base_url
        container_id = str(container["Id"])
        last_line = functools.partial(self._last_line, container_id)
        return docker_exits.seen(folder, self._notes, run, at, container_id, last_line)

    def _last_line(self, container_id: str) -> bytes:
        said = self._guarded(lambda api: api.logs(container_id, tail=1)) if self._kind.has_init else b""
        return said if isinstance(said, bytes) else b""

    def _forget(self, workload_id: WorkloadId) -> None:
        with self._notes:  # nobody who still looks makes it anew
            shutil.rmtree(self._folder / workload_id, ignore_errors=True)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _kill(api: Any, container: str) -> None:
    api.kill(container)
    api.wait(container, timeout=CALL_S)


def _inspect_own(api: Any, workload_id: WorkloadId, host_id: HostId) -> dict[str, Any] | None:
    found = (_inspect_one(api, one["Id"]) for one in docker_inventory.by_labels(api, host_id, workload_id))
    return next((container for container in found if container is not None), None)


def _inspect_one(api: Any, container_id: str) -> dict[str, Any] | None:
    """A container that is there and is not just going away."""
    import docker.errors

    try:
        container = _dict(api.inspect_container(container_id))
    except docker.errors.NotFound:
        return None
    return None if container["State"]["Status"] == "removing" else container


def _open_to_its_user(workspace: dict[str, Any], tmp: dict[str, Any]) -> None:
    """Let a container's user write to /workspace and /tmp.

    The daemon makes both volumes for root, or for the owner of such a folder in the image; even root has no capability
    to write into another's folder. Where the daemon's folders are out of our reach, the image decides."""
    for volume, mode in ((workspace, 0o777), (tmp, 0o1777)):
        with contextlib.suppress(OSError):
            os.chmod(str(volume.get("Mountpoint") or ""), mode)


def _remove_volumes(api: Any, host_id: HostId, of: WorkloadId) -> None:
    import docker.errors

    for name in docker_inventory.volumes(api, host_id, of):
        with contextlib.suppress(docker.errors.NotFound):
            api.remove_volume(name, force=True)
