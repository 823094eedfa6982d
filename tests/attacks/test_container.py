"""A renter in a container attacks the host it is on: what it tries is in probes.c, and none of it may pass.

The container is the shipped runtime's own, on each kind of daemon that an agent works with: Docker, Docker whose
containers have users of their own, and Podman, each started here on a host of the test's own (surroundings.py). All
that must not be reached is there to be found, as the control shows, in which the fence is down. Rootless daemons are
attacked as well: their network is the one way through, and so they are offered to nobody but the host's owner.
"""

import contextlib
import socket
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.attacks.surroundings import (
    HOME,
    MAY,
    NEIGHBOURS,
    PROBES_MIN,
    Surroundings,
    compiled,
    gateway,
    passed,
    results,
    served,
    surroundings,
    told,
)
from tests.services import need
from tests.support.namespaces import Namespace, need_networks
from tests.support.own_docker import own_docker
from tests.support.own_podman import own_podman
from tests.support.places import new_id, no_progress
from tests.support.rootless import rootless_docker, rootless_podman
from tests.waiting import poll_async
from windrow_agent.core import egress
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.docker_facts import container_name as named
from windrow_agent.runtimes.egress_firewall import CALLS
from windrow_agent.runtimes.port import RunState
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId, HostId, SlotId
from windrow_proto.model import SlotGrant, WorkloadSpec

pytestmark = [
    *(pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(300)),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

OWN_ROOT = frozenset({"write to the root", "write to /etc"})
"""The root layer is the container's own, and goes with it."""
IMAGE = "windrow-test-probes:local"
HOST = HostId("host_" + "6" * 32)
PEER_PORT = 8080
"""The address at which the other renter's workload listens, by probes.c."""
OPEN = "unfenced"
"""A network of the daemon's that the agent has not made."""
LIMITS = ("--ulimit", "nofile=1024", "--ulimit", "nproc=1024")
"""Podman's own defaults need more rights."""


@contextmanager
def _docker(network: Namespace) -> Iterator[str]:
    with own_docker(network) as made:
        yield made.url


@contextmanager
def _remapped(network: Namespace) -> Iterator[str]:
    with own_docker(network, "--userns-remap=default") as made:
        yield made.url


@contextmanager
def _podman(network: Namespace) -> Iterator[str]:
    need("podman")
    with own_podman(network) as url:
        yield url


KEPT = frozenset(
    {
        *("change the owner of a file", "become another user", "effective capabilities", "bounding capabilities"),
        "rights of the first process",
    }
)
"""The capabilities that package managers need: in a namespace of users root has it, over nothing of the host's."""
DAEMONS = {"docker": (_docker, MAY), "docker-own-users": (_remapped, MAY | KEPT), "podman": (_podman, MAY)}
UNREACHED = NEIGHBOURS | {
    "the host by its bridge",
    "the host by its bridge, by datagram",
    "a mail server by submission",
}
"""By the network, where the fence stands."""
ROOTLESS = {
    "rootless-docker": (rootless_docker, MAY | KEPT | UNREACHED),
    "rootless-podman": (rootless_podman, MAY | KEPT | UNREACHED | {"another renter's container"}),
}


@dataclass
class Site:
    """A daemon with the probes' image on that host, and the agent's runtime. may: what its containers' root may."""

    kind: str
    url: str
    host: Surroundings
    runtime: DockerRuntime
    may: frozenset[str] = field(default=frozenset())

    def ask(self, *words: str) -> str:
        """Returns the output of a command of the daemon's client."""
        return told("docker", *words, DOCKER_HOST=self.url)

    async def tried(self) -> dict[str, str]:
        """Run the probes in a container of a renter, beside one of another; what each try came to."""
        peer, spec = _spec("listen"), None
        try:
            await self.runtime.prepare(peer, no_progress)
            await self.runtime.start(peer.workload_id)
            if self.runtime.pause_containers.is_wanted:
                await poll_async(lambda: self.runtime.pause_containers.is_ready)  # which the attacker joins
            near, at = await self._addresses(peer)
            with served("2375,5353", *{near, HOME}):
                spec = _spec(*self.host.words("all", near, at))
                await self.runtime.prepare(spec, no_progress)
                await self.runtime.start(spec.workload_id)
                await poll_async(lambda: _has_ended(self.runtime, spec), 60)
            stream = await self.runtime.logs(spec.workload_id, 0, False)
            return results(b"".join([piece async for piece in stream]).decode())
        finally:
            for one in (peer, spec):
                if one is not None:
                    await self.runtime.remove(one.workload_id)

    async def _addresses(self, peer: WorkloadSpec) -> tuple[str, str]:
        """Of this host, as near as a container has it, and of the other renter's workload."""
        if self.kind in ROOTLESS:  # both have a network below this host's, in which the same addresses are others'
            words = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.Gateway}}{{end}}"
            at, near = self.ask("inspect", "-f", words, named(peer)).split()
            told("ip", "address", "replace", near, "dev", "lo")
            with pytest.raises(Conflict, match="not published"):
                await self.runtime.reach(peer.workload_id, PEER_PORT)
            return HOME, at
        ((at, _), *_) = await self.runtime.reach(peer.workload_id, PEER_PORT)
        await poll_async(lambda: _answers(at))
        return gateway(egress.BRIDGE), at


async def _answers(address: str) -> bool:
    """True if the other renter's workload is there to be found, for this host at least."""
    with contextlib.suppress(OSError), socket.create_connection((address, PEER_PORT), 1):
        return True
    return False


async def _has_ended(runtime: DockerRuntime, spec: WorkloadSpec | None) -> bool:
    run = await runtime.observe(spec.workload_id) if spec is not None else None
    return run is not None and run.state is RunState.EXITED


def _spec(*words: str) -> WorkloadSpec:
    slots = (SlotGrant(SlotId("cpu/0"), 7),)
    return WorkloadSpec(
        new_id(), ClusterId("cluster_x"), slots, "docker", IMAGE, ("/probes", *words), may_use_local_image=True
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of the probes and nothing else."""
    need("docker")
    need("gcc")
    need_networks()
    folder = tmp_path_factory.mktemp("probes")
    with tarfile.open(folder / "image.tar", "w") as tar:
        tar.add(compiled(folder), "probes")
        for inner in ("tmp", "proc", "sys", "dev", "etc", "workspace"):
            member = tarfile.TarInfo(inner)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
    return folder / "image.tar"


@pytest.fixture
async def site(request: pytest.FixtureRequest, archive: Path, tmp_path: Path) -> AsyncIterator[Site]:
    start, may = (DAEMONS | ROOTLESS)[request.param]
    with surroundings(tmp_path) as host, start(host.network) as url:
        told("docker", "import", str(archive), IMAGE, DOCKER_HOST=url)
        runtime = DockerRuntime(tmp_path / "docker", HOST, url)
        runtime.pause_containers.is_wanted = not request.param.endswith("podman")
        try:
            yield Site(request.param, url, host, runtime, may)
        finally:
            for run in await runtime.list():
                await runtime.remove(run.workload_id)
            await runtime.close()


@pytest.mark.parametrize("site", DAEMONS, indirect=True)
@pytest.mark.proves("a renter in a container tries 120 ways to the host, its network and its neighbours: none passes")
async def test_nothing_that_a_renter_tries_passes(site: Site) -> None:
    for name in CALLS:  # as on a machine where nobody needed it before
        Path("/proc/sys/net/bridge", name).write_text("0")
    facts = await site.runtime.facts()
    tried = await site.tried()

    assert facts.is_usable and facts.condition == ""
    assert len(tried) >= PROBES_MIN
    assert {name for name, said in tried.items() if said == "passed"} - OWN_ROOT == site.may

    site.ask("network", "create", OPEN)
    words = site.host.words("looks", HOME, HOME)
    with served("2375,5353,8080", HOME):
        found = passed(site.ask("run", "--rm", "--network", OPEN, *LIMITS, IMAGE, "/probes", *words))
    assert found >= NEIGHBOURS, "the control: all of it was there to be found"

    told("nft", "delete", "table", "inet", egress.TABLE)
    assert (await site.runtime.facts()).condition == ""
    assert "to_host" in told("nft", "list", "table", "inet", egress.TABLE), "rules taken away stand again"


@pytest.mark.parametrize("site", ROOTLESS, indirect=True)
@pytest.mark.proves("in a container of a rootless daemon the network is the one way out: strangers get none there")
async def test_a_rootless_daemon_keeps_in_all_but_the_network_and_is_its_owners_alone(site: Site) -> None:
    facts = await site.runtime.facts()
    tried = await site.tried()

    assert facts.is_usable and facts.condition == ConditionCode.DOCKER_UNFENCED
    assert len(tried) >= PROBES_MIN
    assert {name for name, said in tried.items() if said == "passed"} - OWN_ROOT == site.may
