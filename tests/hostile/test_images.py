"""A renter asks a host for images that are not his: the owner's own, another renter's, by every name a daemon takes."""

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.namespaces import namespace, need_networks
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.own_podman import own_podman
from tests.support.places import new_id, no_progress
from tests.support.rental import APPLETS
from tests.support.tiny_registry import TinyRegistry, tiny_registry
from tests.waiting import poll_async
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import RunState
from windrow_agent.runtimes.pulled_images import Budget, PulledImage, to_collect
from windrow_proto.errors import ImageUnavailable
from windrow_proto.ids import ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import SlotGrant, WorkloadSpec
from windrow_proto.sealed import RegistryLogin, SealKey, seal_login

pytestmark = [
    *(pytest.mark.docker, pytest.mark.timeout(240), pytest.mark.row("F17")),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

HOST = HostId("host_" + "7" * 32)
SECRET = "the-owners-secret"
OWNERS, RENTERS = RegistryLogin("owner", "owners-password"), RegistryLogin("renter", "renters-password")
KEY = SealKey.of(SigningKey.from_raw(bytes(32)))
READS = ("cat", "/secret.txt")
ALL = 1 << 60
"""More bytes than any image has."""


@dataclass
class Site:
    """A container daemon, its client for the host's owner, the registry that it asks and the agent's runtime."""

    url: str
    api: Any
    registry: TinyRegistry
    runtime: DockerRuntime
    make: Callable[[Budget | None], DockerRuntime]

    def owns(self, folder: Path, name: str, text: str = SECRET) -> str:
        """The host's owner makes an image with a secret in it; its id."""
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{abs(hash(name))}.tar"
        (folder / "secret.txt").write_text(text)
        with tarfile.open(archive, "w") as tar:
            tar.add(str(shutil.which("busybox")), "bin/busybox")
            tar.add(folder / "secret.txt", "secret.txt")
            for applet in APPLETS:
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        own = os.environ | {"DOCKER_HOST": self.url}
        subprocess.run(["docker", "import", archive, name], check=True, capture_output=True, timeout=60, env=own)
        return str(self.api.inspect_image(name)["Id"])

    async def said(self, spec: WorkloadSpec) -> str:
        """Returns the output of a workload; it is gone afterwards. Raises ImageUnavailable."""
        await self.runtime.prepare(spec, no_progress)
        try:
            await self.runtime.start(spec.workload_id)
            await poll_async(lambda: _has_ended(self.runtime, spec.workload_id))
            stream = await self.runtime.logs(spec.workload_id, 0, False)
            return b"".join([piece async for piece in stream]).decode()
        finally:
            await self.runtime.remove(spec.workload_id)

    async def refused(self, spec: WorkloadSpec) -> None:
        """It gets no container at all."""
        try:
            await self.runtime.prepare(spec, no_progress)
        except ImageUnavailable:
            assert await self.runtime.observe(spec.workload_id) is None
        else:
            await self.runtime.remove(spec.workload_id)
            pytest.fail(f"a stranger got {spec.image}")

    def names(self) -> set[str]:
        """All that the daemon's images are called."""
        return {name for one in self.api.images() for name in (one.get("RepoTags") or ()) if name != "<none>:<none>"}


async def _has_ended(runtime: DockerRuntime, workload_id: WorkloadId) -> bool:
    run = await runtime.observe(workload_id)
    return run is not None and run.state is RunState.EXITED


def stranger(image: str, *argv: str, **more: Any) -> WorkloadSpec:
    """Asked by an account that does not own the host."""
    slots = (SlotGrant(SlotId("cpu/0"), 1),)
    return WorkloadSpec(new_id(), ClusterId("cluster_x"), slots, "docker", image, argv or READS, **more)


def owner(image: str, *argv: str) -> WorkloadSpec:
    return stranger(image, *argv, may_use_local_image=True)


def with_login(spec: WorkloadSpec, login: RegistryLogin) -> WorkloadSpec:
    return replace(spec, registry_login=seal_login(KEY.public, login, spec.workload_id))


@pytest.fixture(scope="module")
def daemon() -> Iterator[OwnDocker]:
    need_networks()
    need("docker")
    need("busybox")
    with namespace() as network, own_docker(network) as made:
        yield made


async def test_in_a_user_namespace_root_keeps_what_package_managers_need_and_nothing_else(tmp_path: Path) -> None:
    need_networks()
    need("busybox")
    remapped = "--userns-remap=default"
    with namespace() as network, own_docker(network, remapped) as made, tiny_registry(network) as registry:
        async for site in at(made.url, tmp_path, registry):
            site.owns(tmp_path / "own", "own:local")
            script = "grep -E 'Cap(Eff|Bnd)' /proc/self/status; cat /proc/self/uid_map"
            said = await site.said(owner("own:local", "sh", "-c", script))
    *caps, uids = [line.split() for line in said.splitlines()]
    kept = sum(1 << number for number in (0, 1, 3, 6, 7, 31))  # CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID, SETFCAP
    assert [int(value, 16) for _, value in caps] == [kept, kept]
    assert uids[0] == "0" and uids[1] != "0", "its root is nobody on the host"


def runtime_of(url: str, folder: Path, registry: TinyRegistry, budget: Budget | None) -> DockerRuntime:
    made = DockerRuntime(folder, HOST, url, (registry.address,), budget)
    made.images.seal_key = KEY
    return made


async def at(url: str, folder: Path, registry: TinyRegistry) -> AsyncIterator[Site]:
    import docker
    import docker.errors

    api = docker.APIClient(base_url=url, version="auto", timeout=60)
    registry.hold(1, Path(str(shutil.which("busybox"))).read_bytes())
    runtimes: list[DockerRuntime] = []

    def make(budget: Budget | None) -> DockerRuntime:
        runtimes.append(runtime_of(url, folder / "docker", registry, budget))
        return runtimes[-1]

    try:
        yield Site(url, api, registry, make(None), make)
    finally:
        for one in runtimes:
            await one.close()
        while images := api.images():  # what is made of another has to go first
            for image in images:
                with contextlib.suppress(docker.errors.APIError):
                    api.remove_image(image["Id"], force=True)
        api.close()


@pytest.fixture
async def site(daemon: OwnDocker, tmp_path: Path) -> AsyncIterator[Site]:
    with tiny_registry(daemon.network) as registry:
        async for made in at(daemon.url, tmp_path, registry):
            yield made


async def test_a_stranger_gets_no_image_of_the_owners_by_any_name(site: Site, tmp_path: Path) -> None:
    secret = site.owns(tmp_path / "own", "ownerprivate:local")
    site.api.tag(secret, "python", "3.12")
    site.api.tag(secret, f"{site.registry.address}/team/app", "1")
    stopped = site.api.create_container(secret, command=["true"])
    site.api.commit(stopped["Id"], repository="committed", tag="1")
    site.api.remove_container(stopped["Id"])
    site.registry.login = OWNERS.username, OWNERS.password
    shown = {"username": OWNERS.username, "password": OWNERS.password}
    site.api.pull(f"{site.registry.address}/private", tag="1", auth_config=shown)
    pulled = site.api.inspect_image(f"{site.registry.address}/private:1")
    bare, short = secret.removeprefix("sha256:"), secret.removeprefix("sha256:")[:12]

    for name in (
        *("ownerprivate:local", "python:3.12", "docker.io/library/python:3.12", "committed:1"),
        *(secret, bare, short, f"sha256:{short}", f"docker.io/{short}", bare[:4]),
        f"{site.registry.address}/team/app:1",
        f"{site.registry.address}/private:1",
        *pulled["RepoDigests"],
        f"{site.registry.address}/other@{pulled['RepoDigests'][0].partition('@')[2]}",
        *(pulled["Id"], pulled["Id"].removeprefix("sha256:")),
    ):
        await site.refused(stranger(name))

    assert await site.said(owner("ownerprivate:local")) == SECRET
    assert await site.said(owner(short)) == SECRET, "control: the owner keeps all rights"


async def test_a_stranger_gets_what_the_registry_gives_and_the_owners_tag_stays_what_it_was(
    site: Site, tmp_path: Path
) -> None:
    name = f"{site.registry.address}/open:1"
    secret = site.owns(tmp_path / "own", name)

    assert await site.said(stranger(name, "sleep", "0")) == ""
    assert "exec cat failed" in await site.said(stranger(name)), "the registry's has no such program"
    assert site.api.inspect_image(name)["Id"] == secret
    site.registry.is_denying = True
    assert await site.said(stranger(name, "sleep", "0")) == "", "what this agent pulled is there for all"
    await site.refused(stranger(f"{site.registry.address}/open:2"))
    assert await site.said(owner(name)) == SECRET


async def test_what_another_renter_pulled_with_a_login_is_his(site: Site) -> None:
    site.registry.login = RENTERS.username, RENTERS.password
    name = f"{site.registry.address}/private:1"
    mine = with_login(stranger(name, "sleep", "600"), RENTERS)
    await site.runtime.prepare(mine, no_progress)
    image_id = str(site.api.inspect_image(f"{site.registry.address}/private@{site.registry.digest}")["Id"])
    wrong = RegistryLogin("renter", "guessed")

    for other in (name, f"{site.registry.address}/private@{site.registry.digest}", image_id, image_id[7:19]):
        await site.refused(stranger(other))
        await site.refused(with_login(stranger(other), wrong))
    await site.refused(replace(stranger(name), registry_login=mine.registry_login))
    again = site.make(None)  # the agent starts anew and still knows
    with pytest.raises(ImageUnavailable):
        await again.prepare(stranger(name), no_progress)
    await site.runtime.remove(mine.workload_id)
    assert site.api.images() == []


async def test_pulled_images_are_collected_and_the_owners_own_never_are(site: Site, tmp_path: Path) -> None:
    class Full(Budget):
        def excess(self, root: str, used_bytes: int) -> int:
            return ALL

    runtime = site.runtime = site.make(Full(kept_ns=0))
    site.owns(tmp_path / "own", "ownerprivate:local")
    site.api.pull(f"{site.registry.address}/owners", tag="1")
    owners = stranger(f"{site.registry.address}/owners:1", "sleep", "600")
    used = stranger(f"{site.registry.address}/used:1", "sleep", "600")
    await site.said(stranger(f"{site.registry.address}/owners:1", "sleep", "0"))
    await runtime.prepare(owners, no_progress)
    await runtime.prepare(used, no_progress)
    site.registry.hold(2, Path(str(shutil.which("busybox"))).read_bytes())
    await site.said(stranger(f"{site.registry.address}/unused:1", "sleep", "0"))

    assert site.names() == {"ownerprivate:local", f"{site.registry.address}/owners:1"}
    assert site.api.inspect_image(f"{site.registry.address}/used@{_digest_of(site, 'used')}")
    assert not [one for one in site.api.images() if "/unused" in json.dumps(one)]
    await runtime.remove(used.workload_id)
    await runtime.remove(owners.workload_id)
    assert not [one for one in site.api.images() if "/used" in json.dumps(one)]
    assert site.names() == {"ownerprivate:local", f"{site.registry.address}/owners:1"}


def _digest_of(site: Site, repository: str) -> str:
    told = [name for one in site.api.images() for name in one.get("RepoDigests") or () if f"/{repository}@" in name]
    return told[0].partition("@")[2]


def test_the_longest_unused_go_first_and_no_more_than_need_be() -> None:
    def pulled(used_ns: int, *, is_ours: bool = True) -> PulledImage:
        return PulledImage(f"sha256:{used_ns}", f"image-{used_ns}", False, is_ours, used_ns)

    images = {"new": pulled(30), "old": pulled(10), "older": pulled(5), "owners": pulled(1, is_ours=False)}
    sizes = {one.image_id: 10 for one in images.values()}
    assert to_collect(images, sizes, 15, 100) == ["older", "old"]
    assert to_collect(images, sizes, 0, 100) == []
    assert to_collect(images, sizes, ALL, 20) == ["older", "old"], "what was used a moment ago stays"


@pytest.fixture
async def podman_site(tmp_path: Path) -> AsyncIterator[Site]:
    need("podman")
    need("busybox")
    need_networks()
    with namespace() as network, tiny_registry(network) as registry:
        kept = tmp_path / "registries.conf"
        kept.write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n')
        with own_podman(network, {"CONTAINERS_REGISTRIES_CONF": str(kept)}) as url:
            async for made in at(url, tmp_path, registry):
                yield made


async def test_on_podman_a_stranger_gets_no_image_of_the_owners_and_moves_none_of_his_tags(
    podman_site: Site, tmp_path: Path
) -> None:
    site, name = podman_site, f"{podman_site.registry.address}/open:1"
    secret = site.owns(tmp_path / "own", "ownerprivate:local")
    for repository, tag in (("localhost/python", "3.12"), (f"{site.registry.address}/open", "1")):
        site.api.tag(secret, repository, tag)
    bare = secret.removeprefix("sha256:")
    for asked in ("ownerprivate:local", "localhost/ownerprivate:local", "python:3.12", secret, bare, bare[:12]):
        await site.refused(stranger(asked))

    image = await site.runtime.images.find(stranger(name), no_progress)
    assert image.record["Id"] != secret
    assert site.api.inspect_image(name)["Id"] == secret
    assert (await site.runtime.images.find(owner(name), no_progress)).record["Id"] == secret
