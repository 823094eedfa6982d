"""A renter names an image; the host asks no registry for it that only the host can reach."""

import socket
from pathlib import Path
from typing import Any
from unittest import mock

import docker.errors
import pytest

from windrow_agent.app.config import parse
from windrow_agent.runtimes import docker_facts, registries
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_proto.errors import ImageUnavailable
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.model import WorkloadSpec
from windrow_proto.networks import is_public

INSIDE = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.3.4",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    *("2002:7f00:1::", "2001:0:7f00:1::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1"),
    *("2a00::5efe:7f00:1", "2a00::200:5efe:a00:1", "fec0::1", "5f00::1"),
    "not an address",
)


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_of_this_machine_its_network_or_a_cloud_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("busybox", registries.DEFAULT),
        ("library/busybox:1", registries.DEFAULT),
        ("localhost/x", "localhost"),
        ("LOCALHOST/x", "LOCALHOST"),
        ("intranet:5000/x:1", "intranet:5000"),
        ("169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("[::1]:5000/x", "[::1]:5000"),
        ("2130706433:80/x", "2130706433:80"),
        ("x:5000", registries.DEFAULT),
    ],
)
def test_the_registry_is_read_from_a_name_as_container_daemons_do(image: str, registry: str) -> None:
    assert registries.registry_of(image) == registry


@pytest.mark.parametrize(
    "image",
    ["localhost/x", "LOCALHOST/x", "127.0.0.1:5000/x", "169.254.169.254/x", "[::1]:5000/x", "2130706433:80/x",
     "0x7f.1/x"],
)  # fmt: skip
def test_what_leads_inside_is_refused(image: str) -> None:
    with pytest.raises(ImageUnavailable):
        registries.check(image)


def test_what_leads_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", mock.Mock(side_effect=socket.gaierror("no such name")))
    with pytest.raises(ImageUnavailable):
        registries.check("registry.invalid/x")


def _answering(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_a_name_with_one_public_and_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _answering(monkeypatch, "1.1.1.1")
    registries.check("registry.example/x")

    _answering(monkeypatch, "1.1.1.1", "10.0.0.7")
    with pytest.raises(ImageUnavailable, match="not a public one"):
        registries.check("registry.example/x")


def test_the_owners_list_is_all_that_may_be_asked() -> None:
    listed = parse(["run", "--registries", "10.0.0.7:5000,default"]).registries

    registries.check("10.0.0.7:5000/x", listed)
    registries.check("busybox", listed)
    with pytest.raises(ImageUnavailable, match="listed"):
        registries.check("registry.example/x", listed)
    with pytest.raises(ImageUnavailable, match="listed"):
        registries.check("busybox", ("10.0.0.7:5000",))


class PretendApi:
    """A daemon that has no image, and notes whom it is told to ask."""

    def __init__(self) -> None:
        self.pulled: list[str] = []

    def inspect_image(self, image: str) -> Any:
        raise docker.errors.NotFound("no such image")

    def inspect_distribution(self, image: str, **_: object) -> Any:
        self.pulled.append(image)
        raise docker.errors.APIError('parsing HTTP 404 response body: invalid character: "root:x:0:0 stolen"')

    def pull(self, repository: str, **_: object) -> Any:
        self.pulled.append(repository)
        return iter([{"error": 'parsing HTTP 404 response body: invalid character: "root:x:0:0 stolen"'}])


async def _failing(tmp_path: Path, image: str) -> tuple[PretendApi, str]:
    runtime, api = DockerRuntime(tmp_path, HostId("host_1")), PretendApi()
    runtime._made = api
    spec = WorkloadSpec(WorkloadId("workload_1"), ClusterId("cluster_1"), (), "docker", image=image)
    with pytest.raises(ImageUnavailable) as failed:
        await runtime.images.find(spec, lambda *_, **__: None)
    return api, failed.value.detail


async def test_the_daemon_is_not_even_told_of_an_image_that_leads_inside(tmp_path: Path) -> None:
    api, detail = await _failing(tmp_path, "169.254.169.254/latest")

    assert api.pulled == []
    assert "not a public one" in detail


async def test_what_a_server_answered_that_is_no_registry_is_not_told_to_the_renter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answering(monkeypatch, "1.1.1.1")

    api, detail = await _failing(tmp_path, "registry.example/x")

    assert api.pulled == ["registry.example/x:latest"]
    assert "404 response body" in detail and "stolen" not in detail
    assert docker_facts.without_body("manifest unknown") == "manifest unknown"
