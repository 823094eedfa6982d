"""Places where runtimes are tried: each kind on this machine, with an image made here and folders of the test's own."""

import contextlib
import io
import os
import tarfile
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.services import need
from tests.support.namespaces import need_networks
from tests.support.own_podman import own_podman
from tests.support.rental import import_image
from tests.waiting import poll_async
from windrow_agent.runtimes.docker import DEFAULT_URL, DockerRuntime
from windrow_agent.runtimes.port import Run, RunState, Runtime
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_proto.clock import SystemClock
from windrow_proto.ids import ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec

IMAGE = "windrow-test-busybox:local"
HOST = HostId("host_" + uuid.uuid4().hex)
"""Its own in each run: two runs on one Docker daemon never see each other's containers."""
BUBBLEWRAP = pytest.param("bubblewrap", marks=pytest.mark.proves("processes isolated by bubblewrap"))
DOCKER = pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.proves("containers on a real Docker")])
PODMAN = pytest.param(
    "podman", marks=[pytest.mark.long, pytest.mark.docker, pytest.mark.proves("containers on Podman's socket")]
)
"""The whole contract in `make long`; in `make test` its containers are attacked (tests/attacks)."""
CONTAINERS = (DOCKER, PODMAN)
PLAIN = "plain"
PROCESSES = (PLAIN, BUBBLEWRAP)
WITH_IMAGES = ("simulated", *CONTAINERS)
REAL = (*PROCESSES, *CONTAINERS)
KINDS = ("simulated", *REAL)


def only(kinds):
    """Run a test for these kinds of runtime and no others."""
    return pytest.mark.parametrize("place", kinds if type(kinds) is tuple else (kinds,), indirect=True)


class Place:
    """A runtime and how to make another one over the same state, as a restarted agent does."""

    def __init__(self, kind: str, folder, docker_url: str = DEFAULT_URL) -> None:
        self.kind, self.folder, self.docker_url = kind, folder, docker_url
        self.clock = SystemClock()
        self._machine = SimulatedMachine(self.clock)
        self.runtime = self.again()

    @property
    def image(self) -> str:
        return IMAGE if self.has_containers else ""

    @property
    def has_containers(self) -> bool:
        return self.kind in ("docker", "podman")

    @property
    def is_real(self) -> bool:
        return self.kind != "simulated"

    @property
    def looks_a_second(self) -> int:
        """More are too many. A container's end is looked for, others are waited for."""
        return 6 if self.has_containers else 2

    def again(self) -> Runtime:
        if self.kind == "simulated":
            return SimulatedRuntime(self._machine, {})
        if self.has_containers:
            return self.of(HOST)
        return ProcessRuntime(self.folder / "process", self.folder, HOST, self.kind == "bubblewrap")

    def of(self, host_id: HostId) -> DockerRuntime:
        """The runtime of a host on this daemon; one host cannot tell another's containers."""
        folder = self.folder / "docker" if host_id == HOST else self.folder / "other"
        return DockerRuntime(folder, host_id, self.docker_url)

    def spec(self, *argv: str, **more) -> WorkloadSpec:
        slots = (SlotGrant(SlotId("cpu/0"), 7),)
        more = {"may_use_local_image": True} | more
        return WorkloadSpec(new_id(), ClusterId("cluster_x"), slots, self.runtime.name, self.image, argv, **more)


def new_id() -> WorkloadId:
    return WorkloadId("work_" + os.urandom(16).hex())


@pytest.fixture(scope="session")
def busybox_image(tmp_path_factory) -> str:
    """An image made here from one static binary: no registry is asked."""
    need("docker")
    need("busybox")
    import_image(tmp_path_factory.mktemp("image"), IMAGE)
    return IMAGE


@pytest.fixture(scope="session")
def podman_url(tmp_path_factory) -> Iterator[str]:
    """Podman's service, with the same image."""
    need("podman")
    need("docker")  # the image is brought in by its client
    need("busybox")
    need_networks()
    with own_podman() as url:
        import_image(tmp_path_factory.mktemp("image"), IMAGE, docker_url=url)
        yield url


@pytest.fixture(params=KINDS)
async def place(request, tmp_path) -> AsyncIterator[Place]:
    if request.param == "bubblewrap":
        need("bubblewrap")
    if request.param == "docker":
        request.getfixturevalue("busybox_image")
    url = request.getfixturevalue("podman_url") if request.param == "podman" else DEFAULT_URL
    here = Place(request.param, tmp_path, url)
    try:
        yield here
    finally:
        for run in await here.runtime.list():
            await here.runtime.remove(run.workload_id)
        await here.runtime.close()


def no_progress(step: str, progress_permille: int, /, **found: str) -> None:
    del step, progress_permille


async def run_to_end(place: Place, spec: WorkloadSpec) -> Run:
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    return await until_ended(place, spec.workload_id)


async def until_ended(place: Place, workload_id: WorkloadId) -> Run:
    async def look() -> Run | None:
        run = await place.runtime.observe(workload_id)
        return run if run is not None and run.state is RunState.EXITED else None

    run = await poll_async(look, what=f"{workload_id} exits")
    assert run is not None
    return run


async def log_of(place: Place, workload_id: WorkloadId, offset: int = 0, follow: bool = False) -> tuple[bytes, bool]:
    stream = await place.runtime.logs(workload_id, offset, follow)
    data = b"".join([piece async for piece in stream])
    return data, stream.truncated


def tar_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 1_700_000_000
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


async def in_pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 4096):
        yield data[start : start + 4096]


async def tar_bytes_of(place: Place, workload_id: WorkloadId, changed_only: bool, offset: int = 0) -> bytes:
    stream = await place.runtime.get_files(workload_id, changed_only, offset)
    return b"".join([piece async for piece in stream])


async def files_of(place: Place, workload_id: WorkloadId, changed_only: bool) -> dict[str, bytes]:
    data = await tar_bytes_of(place, workload_id, changed_only)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isreg()}  # type: ignore[union-attr]


def commands() -> str:
    """The command lines of all processes."""
    lines = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            lines.append(file.read().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(lines)
