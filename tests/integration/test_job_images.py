"""Jobs whose image is private, through the shipped daemons, a container daemon and a registry that wants a login."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.namespaces import need_networks, switched
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.regions import RegionalMarket, regional_market
from tests.support.stack import wait_for
from tests.support.tiny_registry import TinyRegistry, tiny_registry

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(400)]

NAME, PASSWORD = "a-renter", "their-very-own-password"
WAIT_S = 120


@dataclass(frozen=True, slots=True)
class Site:
    """A market, its one host's container daemon and the registry that this asks."""

    market: RegionalMarket
    daemon: OwnDocker
    registry: TinyRegistry
    login: Path

    def ended(self, *words: str) -> dict[str, Any]:
        """A job of the private image, once it is over."""
        image = f"{self.registry.address}/private:1"
        made = self.market.renter.windrow("job", "submit", "--no-files", "--image", image, *words)
        assert made.returncode == 0, made.stderr
        job = made.stdout.strip()
        return dict(wait_for(lambda: (j := self.market.renter.ask("GET", f"/jobs/{job}")) and j["ended_at"] and j))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    need_networks()
    need("docker")
    need("busybox")
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(3, "10.96.0"))
        names = ("master", "eu", "host")
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        daemon = cleanup.enter_context(own_docker(networks["host"]))
        registry = cleanup.enter_context(tiny_registry(networks["host"]))
        registry.hold(1, Path(str(shutil.which("busybox"))).read_bytes())
        registry.login = NAME, PASSWORD
        market = cleanup.enter_context(regional_market(tmp_path, networks, addresses))
        market.add_accesses("eu")
        words = ("--runtimes", "docker", "--registries", registry.address)
        market.add_host("host", *words, DOCKER_HOST=daemon.url)
        market.renter.online()
        login = tmp_path / "typed"
        login.write_text(f"{NAME}:{PASSWORD}\n")
        yield Site(market, daemon, registry, login)
        login.unlink()


@pytest.mark.proves("a job pulls its private image with a login that waits sealed, for each of its attempts")
@pytest.mark.long
def test_each_attempt_of_a_job_pulls_its_private_image_and_the_login_is_left_nowhere(site: Site) -> None:
    own = ("--registry-login", str(site.login))
    done = site.ended(*own, "--", "sleep", "0.1")
    assert done["state"] == "Succeeded", json.dumps(done, indent=1)
    wait_for(lambda: "/private" not in site.daemon.ask("images", "--format", "{{.Repository}}"), WAIT_S)
    again = site.ended(*own, "--retries", "1", "--retry-on-exit", "--", "sleep", "no-number")
    without = site.ended("--", "sleep", "0.1")

    assert [(one["exit_code"], one["outcome"]) for one in again["attempts"]] == [(1, "its command ended with 1")] * 2
    assert without["state"] == "Failed" and "image" in without["reason"]
    rerun = site.market.renter.windrow("job", "rerun", done["id"])
    assert rerun.returncode == 5 and "submit the job again" in rerun.stderr
    shown = json.dumps([done, again, without])
    kept = b"".join(
        path.read_bytes() for path in site.market.folder.rglob("*") if path.is_file() and path != site.login
    )
    assert done["id"].encode() in kept, "control: this is where it would be"
    assert PASSWORD not in shown and PASSWORD.encode() not in kept
    assert PASSWORD.encode() not in (site.daemon.folder / "log").read_bytes()
