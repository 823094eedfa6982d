"""Workloads of a simulated host: nothing runs, but everything else is as with the real runtimes.

The machine outlives the agent that uses it, so that a restarted agent in the same process finds what it left. Commands
it knows: `echo WORDS`, `sleep SECONDS`, `exit CODE`, `write NAME TEXT`, `rates MARK`; anything else runs one second and
exits 0. Nothing asked for: it stays up. `rates` writes the drawn rates of its cards as JSON after this mark, and stays
up. Time comes from the Clock, so that a virtual hour takes no time.
"""

import io
import json
import socket
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windrow_agent.core.workload_usage import Usage
from windrow_agent.gpu.drawn_rates import DrawnRates
from windrow_agent.gpu.simulated import unit, wave
from windrow_agent.runtimes.port import (
    CHUNK_BYTES,
    FILES_CAP_BYTES,
    LOG_CAP_BYTES,
    ByteStream,
    FilesTaken,
    Progress,
    Run,
    RunState,
    RuntimeFacts,
    TerminalSession,
)
from windrow_agent.runtimes.tar_pack import TarOut
from windrow_proto.errors import Conflict, ImageUnavailable, InvalidInput, NotFound, TooLarge, WorkloadFailed
from windrow_proto.ids import WorkloadId
from windrow_proto.model import WorkloadSpec
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, MIB, MILLISECOND, SECOND

NAME: Final = "simulated"
MISSING_IMAGE: Final = "missing"
"""An image whose name begins so cannot be found."""
FILES_MEMORY_MAX: Final = 16 * MIB
"""Of one workload's files: they are in memory, and hundreds of hosts share one process."""
POLL_NS: Final = 100 * MILLISECOND
KILLED: Final = 137
TERMINATED: Final = 143


@dataclass(slots=True)
class _Box:
    """One workload of a simulated machine; times on the machine's monotonic clock."""

    spec: WorkloadSpec
    started_ns: int | None = None
    started_wall_ns: int | None = None
    ends_ns: int | None = None
    exit_code: int = 0
    stopped_ns: int | None = None
    stop_code: int = 0
    log: bytearray = field(default_factory=bytearray)
    files: dict[str, bytes] = field(default_factory=dict)
    brought: dict[str, bytes] = field(default_factory=dict)


class SimulatedMachine:
    """The workloads of a simulated host; shared by the agents that use it one after another."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.boxes: dict[WorkloadId, _Box] = {}
        self.starts = 0
        """How many times anything was started: tests compare it with what was asked for."""

    def reboot(self) -> None:
        """Everything that runs ends unseen, as when the power fails."""
        self.boxes.clear()


class SimulatedExec:
    """The ExecSession of a simulated workload: it says what it was asked and ends."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.exit_code: int | None = None
        self._lines = [(1, (" ".join(argv[1:]) + "\n").encode())] if argv[0] == "echo" else []
        self._code = int(argv[1]) if argv[0] == "exit" and len(argv) > 1 and argv[1].isdigit() else 0

    async def read(self) -> tuple[int, bytes] | None:
        """Its output, then the end."""
        if self._lines:
            return self._lines.pop(0)
        self.exit_code = self._code
        return None

    async def write(self, data: bytes) -> None:
        """Input is echoed."""
        if data:
            self._lines.append((1, data))

    async def close(self) -> None:
        """Nothing to end."""
        self.exit_code = self._code if self.exit_code is None else self.exit_code


class SimulatedRuntime:
    """The runtime `simulated` on one machine."""

    name = NAME

    def __init__(self, machine: SimulatedMachine, rates: Mapping[str, DrawnRates]) -> None:
        """rates: of the machine's cards, by UUID."""
        self._machine, self._rates = machine, rates
        self._clock = machine.clock

    async def facts(self) -> RuntimeFacts:
        """Always there."""
        return RuntimeFacts(True, "1", "nothing runs; for trying things out")

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """Take a moment, as a pull would."""
        if spec.image.startswith(MISSING_IMAGE):
            raise ImageUnavailable(f"There is no image {spec.image!r}.", subject=spec.workload_id)
        progress("preparing", 0)
        await self._clock.sleep_ns(20 * MILLISECOND)
        self._machine.boxes.setdefault(spec.workload_id, _Box(spec))
        progress("preparing", 1000)

    def may_have(self, workload_id: WorkloadId) -> bool:
        """Always: a look costs nothing and needs nobody."""
        return True

    async def put_files(self, workload_id: WorkloadId, chunks: AsyncIterator[bytes], cap_bytes: int) -> FilesTaken:
        """Keep regular files in memory."""
        box = self._box(workload_id)
        cap = min(cap_bytes or FILES_CAP_BYTES, FILES_MEMORY_MAX)
        archive = io.BytesIO()
        async for chunk in chunks:
            if archive.tell() + len(chunk) > cap + MIB:
                raise TooLarge(f"The files are larger than the limit of {cap} bytes.", subject=workload_id)
            archive.write(chunk)
        archive.seek(0)
        found = _untar(archive)
        if sum(map(len, found.values())) > cap:
            raise TooLarge(f"The files are larger than the limit of {cap} bytes.", subject=workload_id)
        box.files.update(found)
        box.brought.update(found)
        return FilesTaken(len(found), sum(map(len, found.values())))

    async def start(self, workload_id: WorkloadId) -> Run:
        """Begin it, once."""
        box = self._box(workload_id)
        if box.started_ns is None:
            argv = box.spec.argv
            if argv and argv[0].startswith("/nonexistent"):
                raise WorkloadFailed(f"There is no command {argv[0]!r} on this host.", subject=workload_id)
            self._machine.starts += 1
            box.started_ns, box.started_wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
            _play(box, box.started_ns, self._rates)
        return _run(box, self._clock.monotonic_ns())

    async def exec(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> SimulatedExec:
        """Play one more command."""
        run = _run(self._box(workload_id), self._clock.monotonic_ns())
        if run.state is not RunState.RUNNING:
            raise Conflict(f"{workload_id} does not run; nothing can be executed in it.", subject=workload_id)
        if not argv:
            raise InvalidInput("A command needs at least one word.", subject=workload_id)
        if argv[0].startswith("/nonexistent"):
            raise WorkloadFailed(f"There is no command {argv[0]!r} on this host.", subject=workload_id)
        return SimulatedExec(argv)

    async def terminal(self, workload_id: WorkloadId) -> TerminalSession:
        """There is no shell: nothing runs."""
        self._box(workload_id)
        raise Conflict("A simulated host has no shell.", subject=workload_id)

    async def logs(self, workload_id: WorkloadId, offset: int, follow: bool) -> ByteStream:
        """The output of the workload."""
        box, stream = self._box(workload_id), ByteStream()
        cap = min(box.spec.log_cap_bytes or LOG_CAP_BYTES, LOG_CAP_BYTES)

        async def read() -> AsyncGenerator[bytes, None]:
            position = offset
            while True:
                over = _run(box, self._clock.monotonic_ns()).state is not RunState.RUNNING
                over = over and box.started_ns is not None
                while position < min(len(box.log), cap):
                    piece = bytes(box.log[position : min(cap, position + CHUNK_BYTES)])
                    position += len(piece)
                    yield piece
                if over or not follow or workload_id not in self._machine.boxes:
                    break
                await self._clock.sleep_ns(POLL_NS)
            stream.truncated = len(box.log) > cap

        return stream.feed(read())

    async def get_files(self, workload_id: WorkloadId, changed_only: bool, offset: int) -> ByteStream:
        """Its files as tar."""
        box = self._box(workload_id)
        pieces: list[bytes] = []
        out = TarOut(pieces.append, offset)
        for name, data in sorted(box.files.items()):
            if not changed_only or box.brought.get(name) != data:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                out.add(member, io.BytesIO(data))
        out.end()

        async def read() -> AsyncGenerator[bytes, None]:
            for piece in pieces:
                yield piece

        return ByteStream().feed(read())

    async def work_folder(self, workload_id: WorkloadId) -> Path | None:
        """There is none on any disk."""
        self._box(workload_id)
        return None

    async def volume_folder(self, workload_id: WorkloadId, name: str) -> Path | None:
        """Nor of any volume."""
        self._box(workload_id)
        return None

    async def reach(self, workload_id: WorkloadId, port: int) -> tuple[tuple[str, int], ...]:
        """Nowhere: nothing runs that could listen."""
        self._box(workload_id)
        raise Conflict(f"A simulated workload listens nowhere, nor on port {port}.", subject=workload_id)

    async def dial(self, workload_id: WorkloadId, address: str, port: int) -> socket.socket:
        """Nowhere."""
        raise ConnectionRefusedError(f"A simulated workload listens nowhere, nor on port {port}.")

    async def usage(self, workload_id: WorkloadId) -> Usage | None:
        """Figures that are drawn: they go up and down, and differ between workloads."""
        box, now_ns = self._machine.boxes.get(workload_id), self._clock.monotonic_ns()
        if box is None or box.started_ns is None or _run(box, now_ns).state is not RunState.RUNNING:
            return None
        at_s = (now_ns - box.started_ns) / SECOND
        size, drift = 0.2 + 0.7 * unit(workload_id, "size"), wave(at_s, workload_id, "drift")
        cores = (box.spec.cpu_milli or 1000) / 1000
        return Usage(
            cpu_ns=int(cores * (0.6 * at_s + 2.0 * (1.0 + drift)) * SECOND),
            memory_bytes=int((box.spec.memory_bytes or 4 * GIB) * size * (0.8 + 0.2 * drift)),
            disk_bytes=int(GIB * size + MIB * at_s),
            disk_read_bytes=int(20 * MIB * size * at_s),
            disk_write_bytes=int(MIB * at_s),
            network_receive_bytes=int(4 * MIB * size * at_s),
            network_transmit_bytes=int(MIB * size * at_s),
        )

    async def pause(self, workload_id: WorkloadId, clock: Clock) -> None:
        """Until it ends, or for a second: it may be stopped before that."""
        box, now_ns = self._machine.boxes.get(workload_id), clock.monotonic_ns()
        ends_ns = None if box is None else box.ends_ns
        await clock.sleep_ns(SECOND if ends_ns is None else min(SECOND, max(MILLISECOND, ends_ns - now_ns)))

    async def observe(self, workload_id: WorkloadId) -> Run | None:
        """The state of the workload now."""
        box = self._machine.boxes.get(workload_id)
        return None if box is None else _run(box, self._clock.monotonic_ns())

    async def list(self) -> tuple[Run, ...]:
        """All of it."""
        now_ns = self._clock.monotonic_ns()
        return tuple(_run(box, now_ns) for _, box in sorted(self._machine.boxes.items()))

    async def stop(self, workload_id: WorkloadId, grace_ns: int) -> None:
        """Stops the workload, which obeys at once."""
        box = self._machine.boxes.get(workload_id)
        now_ns = self._clock.monotonic_ns()
        if box is not None and _run(box, now_ns).state is RunState.RUNNING:
            box.stopped_ns, box.stop_code = now_ns, TERMINATED if grace_ns > 0 else KILLED

    async def remove(self, workload_id: WorkloadId) -> None:
        """Forget it."""
        self._machine.boxes.pop(workload_id, None)

    async def close(self) -> None:
        """Nothing is held open."""

    def _box(self, workload_id: WorkloadId) -> _Box:
        box = self._machine.boxes.get(workload_id)
        if box is None:
            raise NotFound(f"This host has no simulated workload {workload_id}.", subject=workload_id)
        return box


def _play(box: _Box, now_ns: int, rates: Mapping[str, DrawnRates]) -> None:
    match box.spec.argv:
        case ():
            return
        case ("echo", *words):
            box.log += (" ".join(words) + "\n").encode()
            box.ends_ns = now_ns + 10 * MILLISECOND
        case ("sleep", text) if text.replace(".", "", 1).isdigit():
            box.ends_ns = now_ns + int(float(text) * SECOND)
        case ("exit", text) if text.isdigit():
            box.exit_code, box.ends_ns = int(text) % 256, now_ns + 10 * MILLISECOND
        case ("write", name, text):
            box.files[name] = text.encode()
            box.ends_ns = now_ns + 10 * MILLISECOND
        case ("rates", mark):
            given = [(slot.gpu_uuid, rates[slot.gpu_uuid]) for slot in box.spec.slots if slot.gpu_uuid in rates]
            for line in [*(_told(uuid, drawn) for uuid, drawn in given), {"measured": len(given)}]:
                box.log += f"{mark}{json.dumps(line)}\n".encode()
        case argv:
            box.log += f"simulated: {' '.join(argv)}\n".encode()[:1024]
            box.ends_ns = now_ns + SECOND


def _told(uuid: str, drawn: DrawnRates) -> dict[str, object]:
    return {"benchmark": uuid, "device": f"simulated {drawn.name}", "memory": drawn.memory, "matrix": drawn.matrix}


def _run(box: _Box, now_ns: int) -> Run:
    spec = box.spec
    run = Run(spec.workload_id, spec.cluster_id, spec.slots, NAME, RunState.CREATED)
    if box.started_ns is None:
        return run
    ends = [at for at in (box.ends_ns, box.stopped_ns) if at is not None and at <= now_ns]
    ended_ns = min(ends, default=None)
    code = box.stop_code if ended_ns is not None and ended_ns == box.stopped_ns else box.exit_code
    return Run(
        *(spec.workload_id, spec.cluster_id, spec.slots, NAME),
        state=RunState.RUNNING if ended_ns is None else RunState.EXITED,
        started_wall_ns=box.started_wall_ns,
        running_ns=(now_ns if ended_ns is None else ended_ns) - box.started_ns,
        exit_code=None if ended_ns is None else code,
        ports={str(port): port for port in spec.ports},
    )


def _untar(archive: io.BytesIO) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise InvalidInput(f"{member.name[:200]!r} leads out of the folder.")
                content = tar.extractfile(member) if member.isreg() else None
                if content is not None:
                    found[member.name.removeprefix("./")] = content.read()
                elif not member.isdir() and not member.issym():
                    raise InvalidInput(f"{member.name[:200]!r} is neither a file nor a folder nor a link.")
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"This is not a whole tar archive: {error}") from error
    return found
