"""A renter in a container attacks the host it is on: what it tries is in probes.c, and none of it may pass.

The container is the shipped runtime's own, on a real Docker. Around it are networks of the test's own: what answers at
the metadata addresses, in the host's private networks and on the host itself is there to be reached, as the control
shows, in which the fence is down.
"""

import contextlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.services import need
from tests.support.containers import host_id as host_id
from tests.support.containers import runtime as runtime
from tests.support.namespaces import namespace, need_networks
from tests.support.places import new_id, no_progress
from tests.waiting import poll_async
from windrow_agent.core import egress
from windrow_agent.runtimes import docker_facts
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import RunState
from windrow_proto.ids import ClusterId, SlotId
from windrow_proto.model import SlotGrant, WorkloadSpec

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(240)]

IMAGE = "windrow-test-probes:local"
PROBES_MIN = 40
DOCKERS_BRIDGE = "docker0"
LEFT = "10.77.0.1"
RIGHT = ("10.77.0.2/24", "172.31.9.2/32", "192.168.77.2/32", "100.64.7.2/32", "169.254.169.254/32", "169.254.170.2/32")
OUTSIDE = "11.22.33.2/32"
"""Stands for an address of the internet."""
SERVER = """
import select, socket, sys
lines = {}
for port in map(int, sys.argv[1].split(",")):
    for address in sys.argv[2:]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            line = socket.socket(socket.AF_INET, kind)
            line.bind((address, port))
            if kind == socket.SOCK_STREAM:
                line.listen()
            lines[line] = kind
print("up", flush=True)
while True:
    for line in select.select(list(lines), [], [])[0]:
        if lines[line] == socket.SOCK_STREAM:
            line.accept()[0].close()
        else:
            line.sendto(b"here", line.recvfrom(64)[1])
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of the probes and nothing else."""
    need("docker")
    need_networks()
    folder = tmp_path_factory.mktemp("probes")
    source = Path(__file__).parent / "probes.c"
    subprocess.run(["gcc", "-static", "-O1", "-o", folder / "probes", source], check=True, timeout=60)
    with tarfile.open(folder / "image.tar", "w") as tar:
        tar.add(folder / "probes", "probes")
        for inner in ("tmp", "proc", "sys", "dev", "etc", "workspace"):
            member = tarfile.TarInfo(inner)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
    subprocess.run(["docker", "import", folder / "image.tar", IMAGE], check=True, capture_output=True, timeout=120)
    with contextlib.suppress(subprocess.CalledProcessError):  # the agent's first container makes it
        options = {"name": egress.BRIDGE, "enable_icc": "false"}
        words = [f"--opt=com.docker.network.bridge.{name}={value}" for name, value in options.items()]
        _docker("network", "create", *words, egress.NETWORK)
    yield IMAGE
    subprocess.run(["docker", "rmi", "--force", IMAGE], check=False, capture_output=True, timeout=60)


@pytest.fixture
def neighbourhood() -> Iterator[None]:
    """A network behind this host with everything in it that a container must not reach, and servers on the host."""
    with ExitStack() as cleanup:
        far = cleanup.enter_context(namespace())
        _ip("link", "add", "wprobe0", "type", "veth", "peer", "name", "cable", "netns", far.path)
        cleanup.callback(_ip, "link", "delete", "wprobe0")
        _ip("address", "add", f"{LEFT}/24", "dev", "wprobe0")
        _ip("link", "set", "wprobe0", "up")
        for address in (*RIGHT, OUTSIDE):
            far.call("ip", "address", "add", address, "dev", "cable")
        far.call("ip", "link", "set", "cable", "up")
        far.call("ip", "route", "add", "default", "via", LEFT)
        for address in (*RIGHT[1:], OUTSIDE):
            _ip("route", "replace", address, "via", RIGHT[0].split("/")[0])
        with far.entered():
            cleanup.callback(_end, _served("80,25,587,53", *(one.split("/")[0] for one in (*RIGHT, OUTSIDE))))
        own = (LEFT, _gateway(DOCKERS_BRIDGE), _gateway(egress.BRIDGE))
        cleanup.callback(_end, _served("2375,5353", *own))
        yield


@pytest.mark.proves("a renter in a container tries 70 ways to the host, its network and its neighbours: none passes")
async def test_nothing_that_a_renter_tries_passes(image: str, neighbourhood: None, runtime: DockerRuntime) -> None:
    facts = await runtime.facts()
    tried = await _tried(runtime, image, "all")

    assert facts.is_usable and facts.condition == ""
    assert len(tried) >= PROBES_MIN
    assert {name: said for name, said in tried.items() if said == "passed"} == {}
    assert await _tried(runtime, image, "outside") == {"outside": "passed"}


async def test_what_the_probes_look_for_is_there_to_be_found(image: str, neighbourhood: None) -> None:
    words = ("network", _gateway(DOCKERS_BRIDGE), LEFT)
    open_ones = _passed(_docker("run", "--rm", "--network=bridge", image, "/probes", *words))

    assert {"metadata", "metadata of tasks", "metadata by datagram", "the host by its bridge"} <= open_ones
    assert {"the host by its other address", "a neighbour in 10/8", "a neighbour in 192.168/16"} <= open_ones
    assert {"a neighbour in 172.16/12", "a neighbour in 100.64/10", "a neighbour's names", "a mail server"} <= open_ones


async def test_rules_that_somebody_took_away_stand_again_with_the_next_look(image: str, runtime: DockerRuntime) -> None:
    await runtime.facts()
    _told("nft", "delete", "table", "inet", egress.TABLE)

    assert (await runtime.facts()).condition == ""
    assert "to_host" in _told("nft", "list", "table", "inet", egress.TABLE)


async def _tried(runtime: DockerRuntime, image: str, *words: str) -> dict[str, str]:
    """Run the probes in a container of a renter, beside one of another; what each try came to."""
    peer, spec = _spec(image, "listen"), None
    try:
        await runtime.prepare(peer, no_progress)
        await runtime.start(peer.workload_id)
        await poll_async(lambda: runtime.pause_containers.is_ready)  # which the attacker joins
        at = _docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", _name(peer))
        spec = _spec(image, *words, _gateway(egress.BRIDGE), at.strip())
        await runtime.prepare(spec, no_progress)
        await runtime.start(spec.workload_id)
        await poll_async(lambda: _has_ended(runtime, spec))
        stream = await runtime.logs(spec.workload_id, 0, False)
        return _results(b"".join([piece async for piece in stream]).decode())
    finally:
        for one in (peer, spec):
            if one is not None:
                await runtime.remove(one.workload_id)


async def _has_ended(runtime: DockerRuntime, spec: WorkloadSpec) -> bool:
    run = await runtime.observe(spec.workload_id)
    return run is not None and run.state is RunState.EXITED


def _spec(image: str, *words: str) -> WorkloadSpec:
    slots = (SlotGrant(SlotId("cpu/0"), 7),)
    return WorkloadSpec(
        new_id(), ClusterId("cluster_x"), slots, "docker", image, ("/probes", *words), may_use_local_image=True
    )


def _name(spec: WorkloadSpec) -> str:
    return docker_facts.container_name(spec)


def _results(text: str) -> dict[str, str]:
    return {name: said for name, _, said in (line.partition(": ") for line in text.splitlines())}


def _passed(text: str) -> set[str]:
    return {name for name, said in _results(text).items() if said == "passed"}


def _gateway(bridge: str) -> str:
    """Its address, by the link: a daemon that has just made its first bridge does not say it."""
    return _told("ip", "-4", "-o", "address", "show", "dev", bridge).split("inet ")[1].split("/")[0]


def _docker(*words: str) -> str:
    return _told("docker", *words)


def _ip(*words: str) -> None:
    _told("ip", *words)


def _told(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout


def _served(ports: str, *addresses: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, ports, *addresses], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.communicate(timeout=20)
