"""The port of runtimes: how one workload is prepared, run, watched and ended, whatever runs it.

Every call is answered or fails within its own deadline. `prepare`, `start`, `stop` and `remove` may be repeated: what
is there already stays, and nothing runs twice. An adapter touches only what carries this host's own mark.
"""

import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from windrow_agent.core.workload_usage import Usage
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec
from windrow_proto.ports import Clock
from windrow_proto.terminals import TerminalSize
from windrow_proto.units import GIB, KIB, MIB

LOG_CAP_BYTES: Final = 128 * MIB
"""Of one run's log, where the command names none; the rest is dropped and the log says so."""
FILES_CAP_BYTES: Final = 1 * GIB
"""Of files either way, where the command names none."""
CHUNK_BYTES: Final = 64 * KIB
"""The largest piece of any stream: a channel's chunk."""

ENDED_BY_HOST: Final = "the workload was ended on its host, which was shut down, or by its container daemon, or by hand"
"""The end of a run whose command has not ended by itself; how it would have ended nobody knows."""


class Progress(Protocol):
    """Called on the loop with a step's name and how much of it is done, 0 to 1000."""

    def __call__(self, step: str, permille: int, /, **found: str) -> None:
        """found: what the command's result will say and is known already, such as the `image` that was found."""


class RunState(Enum):
    """The state of a workload in its runtime. LOST: it ran, and its end was seen by nobody or was not its own."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Run:
    """One workload as its runtime's own records show it.

    running_ns: on the monotonic clock; for LOST what is proved, maybe 0. exit_code: 128 + signal where one ended it.
    detail: why it ended, in words, where its exit code does not say it. image: that it was started from, by its digest.
    """

    workload_id: WorkloadId
    cluster_id: ClusterId
    slots: tuple[SlotGrant, ...]
    runtime: str
    state: RunState
    started_wall_ns: int | None = None
    running_ns: int = 0
    exit_code: int | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""
    image: str = ""

    def told(self) -> dict[str, str]:
        """The facts of the workload in the result of its creation."""
        image = {"image": self.image} if self.image else {}
        return {"runtime": self.runtime, **image, **{f"port.{port}": str(at) for port, at in self.ports.items()}}


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """The state of a runtime: whether it can be used here, its version, and how well it isolates, in words.

    condition: what is the matter with it, as `code` or `code:detail`; else empty. more: of the
    host's facts what this runtime knows. gives_nvidia: whether it can give NVIDIA's cards, where there are any.
    """

    is_usable: bool
    version: str
    detail: str
    condition: str = ""
    more: Mapping[str, int | str] = field(default_factory=dict)
    gives_nvidia: bool = True


@dataclass(frozen=True, slots=True)
class FilesTaken:
    """The contents of a tar stream that was taken."""

    files: int
    bytes: int


class ByteStream:
    """Pieces of at most CHUNK_BYTES; `truncated` is known when it has ended."""

    def __init__(self) -> None:
        self.truncated = False
        self._source: AsyncGenerator[bytes, None] | None = None

    def feed(self, source: AsyncGenerator[bytes, None]) -> "ByteStream":
        """Say where the pieces come from; once."""
        self._source = source
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._source is None:
            raise StopAsyncIteration
        return await anext(self._source)

    async def close(self) -> None:
        """Stop it; safe to call twice."""
        if self._source is not None:
            await self._source.aclose()


class ExecSession(Protocol):
    """One more command inside a workload. Read until it ends; then `exit_code` is known."""

    exit_code: int | None

    async def read(self) -> tuple[int, bytes] | None:
        """The next output: 1 or 2 (stdout, stderr) and bytes; None at the end."""

    async def write(self, data: bytes) -> None:
        """Give it input; empty data closes its input. Nothing if it takes none any more."""

    async def close(self) -> None:
        """End it and all it started, if it still runs; safe to call twice."""


class TerminalSession(ExecSession, Protocol):
    """A shell with a terminal. What it writes is all of stream 1, and input has no end: empty data is passed over."""

    async def resize(self, size: TerminalSize) -> None:
        """Tell its programs how large the terminal is now."""


class RuntimeSilent(RuntimeUnavailable):
    """The container daemon does not answer at all."""


@contextmanager
def worded(what: str, limit: str) -> Iterator[None]:
    """Raise RuntimeUnavailable, in words, in the place of a time limit or of what the system refused."""
    try:
        yield
    except TimeoutError as error:
        raise RuntimeUnavailable(f"{what} took longer than {limit} and was given up.") from error
    except OSError as error:
        raise RuntimeUnavailable(f"{what} failed: {error.strerror or error}.") from error


class Runtime(Protocol):
    """One kind of runtime on one host."""

    name: str

    async def facts(self) -> RuntimeFacts:
        """Try it out and say what was found; never raises."""

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """Make all that a start needs. Raises ImageUnavailable, RuntimeUnavailable, InvalidInput, WorkloadFailed."""

    def may_have(self, workload_id: WorkloadId) -> bool:
        """False if nothing of this workload was made or found since this process began, so that it may be forgotten
        without a look; asked where its creation has just failed in this process."""

    async def put_files(self, workload_id: WorkloadId, chunks: AsyncIterator[bytes], cap_bytes: int) -> FilesTaken:
        """Unpack a tar stream into its folder, before or after the start. Raises InvalidInput, TooLarge, NotFound."""

    async def start(self, workload_id: WorkloadId) -> Run:
        """Start what was prepared. Raises WorkloadFailed (it cannot be run), NotFound, RuntimeUnavailable."""

    async def exec(self, workload_id: WorkloadId, argv: tuple[str, ...]) -> ExecSession:
        """Run one more command in it. Raises NotFound, Conflict (it does not run), WorkloadFailed."""

    async def terminal(self, workload_id: WorkloadId) -> TerminalSession:
        """Start a shell with a terminal in it. Raises NotFound, Conflict (it does not run, or has no shell),
        WorkloadFailed."""

    async def logs(self, workload_id: WorkloadId, offset: int, follow: bool) -> ByteStream:
        """Its output from byte `offset`; with follow until it ends. Raises NotFound."""

    async def get_files(self, workload_id: WorkloadId, changed_only: bool, offset: int) -> ByteStream:
        """Its folder as a tar stream from byte `offset` on; the same bytes for as long as nothing changes there.
        changed_only: what differs in content from what `put_files` brought. Raises NotFound."""

    async def work_folder(self, workload_id: WorkloadId) -> Path | None:
        """Its working folder on this host's own disk; None where that cannot be reached. Raises NotFound."""

    async def volume_folder(self, workload_id: WorkloadId, name: str) -> Path | None:
        """The folder of one of its volumes, likewise. Raises NotFound."""

    async def reach(self, workload_id: WorkloadId, port: int) -> tuple[tuple[str, int], ...]:
        """The addresses at which `dial` comes to a TCP port of the workload, in the order to be tried; nothing else of
        the host is ever among them. Raises NotFound, Conflict (it does not run, or does not listen there),
        RuntimeUnavailable."""

    async def dial(self, workload_id: WorkloadId, address: str, port: int) -> socket.socket:
        """A connection to what `reach` has named, which does not block. Raises OSError."""

    async def observe(self, workload_id: WorkloadId) -> Run | None:
        """Looks at one workload; None: the runtime knows nothing of it. Raises RuntimeUnavailable when it cannot
        look."""

    async def usage(self, workload_id: WorkloadId) -> Usage | None:
        """The resources that a running workload has used; None: it does not run. Raises RuntimeUnavailable."""

    async def pause(self, workload_id: WorkloadId, clock: Clock) -> None:
        """Between two looks at a running workload: as long as a look costs, or until it seems to have ended."""

    async def list(self) -> tuple[Run, ...]:
        """All that carries this host's mark. Raises RuntimeUnavailable when it cannot look."""

    async def stop(self, workload_id: WorkloadId, grace_ns: int) -> None:
        """SIGTERM, after the grace SIGKILL, to all of it. Returns when nothing runs. Raises RuntimeUnavailable."""

    async def remove(self, workload_id: WorkloadId) -> None:
        """Take away what is left of it, running or not. Raises RuntimeUnavailable."""

    async def close(self) -> None:
        """Let go of connections and threads; what runs goes on."""
