"""Images on a real container daemon: pulled with a login that stays nowhere, kept from others, and run by digest."""

import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.agent_world import HOST, World, creation, deletion, until_done
from tests.support.namespaces import namespace, need_networks
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.tiny_registry import TinyRegistry, tiny_registry
from tests.waiting import poll_async
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import SlotId
from windrow_proto.image_names import parsed
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.model import Command, CommandPhase, SlotGrant
from windrow_proto.sealed import RegistryLogin, SealKey, seal_login
from windrow_proto.units import SECOND

pytestmark = [
    *(pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(240)),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

LOGIN = RegistryLogin("a-renter", "their-very-own-password")
STAY = ("sleep", "600")


@pytest.fixture(scope="module")
def daemon() -> Iterator[OwnDocker]:
    need_networks()
    need("docker")
    need("busybox")
    with namespace() as network, own_docker(network) as made:
        yield made


@pytest.fixture
def registry(daemon: OwnDocker) -> Iterator[TinyRegistry]:
    with tiny_registry(daemon.network) as made:
        made.hold(1, Path(str(shutil.which("busybox"))).read_bytes())
        yield made


@pytest.fixture
async def world(daemon: OwnDocker, registry: TinyRegistry, tmp_path: Path) -> AsyncIterator[World]:
    runtime = DockerRuntime(tmp_path / "docker", HOST, daemon.url, (registry.address,))
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        here = World(tmp_path, network, {"docker": runtime})
        runtime.images.seal_key = SealKey.of(here.signing)
        await here.open()
        yield here
    await runtime.close()
    for name in daemon.ask("images", "--quiet", "--no-trunc").split():
        daemon.ask("rmi", "--force", name)


def asked(image: str, *argv: str, slot: int = 0, **more: Any) -> Command:
    made = creation(*(argv or STAY), **more)
    assert made.create is not None
    slots = (SlotGrant(SlotId(f"cpu/{slot}"), 1),)
    return replace(made, create=replace(made.create, runtime="docker", image=image, slots=slots))


def with_login(world: World, create: Command, login: RegistryLogin = LOGIN) -> Command:
    """The same with a login for this workload's pull, sealed to this host as the Master does."""
    assert create.create is not None
    sealed = seal_login(SealKey.of(world.signing).public, login, create.create.workload_id)
    return replace(create, create=replace(create.create, registry_login=sealed))


async def ran(world: World, create: Command, phase: CommandPhase = CommandPhase.SUCCEEDED) -> Any:
    await world.master.command(create)
    return await until_done(world, create, phase)


async def ended(world: World, create: Command) -> None:
    delete = deletion(create, grace_ns=SECOND)
    await world.master.command(delete)
    await until_done(world, delete)


def images(daemon: OwnDocker) -> list[str]:
    return daemon.ask("images", "--quiet", "--no-trunc").split()


@pytest.mark.proves("a private image is pulled with a sealed login that is found nowhere, and goes with its lease")
@pytest.mark.parametrize("by_token", [False, True], ids=["basic", "bearer"])
async def test_a_private_image_comes_with_its_login_and_leaves_neither_itself_nor_the_login(
    world: World, daemon: OwnDocker, registry: TinyRegistry, by_token: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    registry.login, registry.by_token = (LOGIN.username, LOGIN.password), by_token
    image = f"{registry.address}/private:1"
    create = with_login(world, asked(image))
    async with world.running():
        status = await ran(world, create)

        assert status.result["image"] == f"{image}@{registry.digest}"
        assert [shown for shown in registry.said if shown.startswith("Basic")], "control: the login was shown"
        await ended(world, create)

    assert images(daemon) == []
    kept = b"".join(path.read_bytes() for path in world.folder.rglob("*") if path.is_file())
    said = capfd.readouterr()
    assert create.create is not None and create.create.workload_id.encode() in kept, "control: the journal is there"
    assert create.create.registry_login not in kept
    for text in (kept, (said.out + said.err).encode(), (daemon.folder / "log").read_bytes()):
        assert LOGIN.password.encode() not in text


async def test_without_the_login_nobody_else_runs_it_from_this_host_while_it_is_here(
    world: World, daemon: OwnDocker, registry: TinyRegistry
) -> None:
    registry.login = (LOGIN.username, LOGIN.password)
    image = f"{registry.address}/private:1"
    wrong = RegistryLogin("another", "guess")
    async with world.running():
        mine = with_login(world, asked(image))
        status = await ran(world, mine)
        by_digest = status.result["image"]
        others = [asked(image, slot=1), asked(by_digest, slot=2), with_login(world, asked(image, slot=3), wrong)]
        refused = [await ran(world, other, CommandPhase.FAILED) for other in others]
        again = with_login(world, asked(image, slot=4))
        await ran(world, again)

        assert {one.error_code for one in refused} == {"image_unavailable"}
        await ended(world, mine)
        assert images(daemon) != [], "one still runs from it"
        await ended(world, again)
    assert images(daemon) == []


async def test_a_login_for_another_workload_opens_nothing(world: World, registry: TinyRegistry) -> None:
    registry.login = (LOGIN.username, LOGIN.password)
    stolen = with_login(world, asked(f"{registry.address}/private:1"))
    other = asked(f"{registry.address}/private:1")
    assert stolen.create is not None and other.create is not None
    other = replace(other, create=replace(other.create, registry_login=stolen.create.registry_login))
    async with world.running():
        status = await ran(world, other, CommandPhase.FAILED)

    assert "sealed for another" in status.error_detail
    assert not [shown for shown in registry.said if shown]


@pytest.mark.proves("a tag is resolved once: by its digest the same image runs again after the tag has moved")
async def test_a_digest_names_the_same_image_after_its_tag_has_moved(
    world: World, daemon: OwnDocker, registry: TinyRegistry
) -> None:
    image = f"{registry.address}/open:1"
    async with world.running():
        first = asked(image, await_members=False)
        pinned = (await ran(world, first)).result["image"]
        await ended(world, first)
        daemon.ask("rmi", "--force", *images(daemon))
        was = registry.digest
        registry.hold(2, Path(str(shutil.which("busybox"))).read_bytes())
        assert registry.digest != was, "control: the tag has moved"

        again, newest = asked(pinned, slot=1), asked(image, slot=2)
        status, other = await ran(world, again), await ran(world, newest)
        for one in (again, newest):
            await ended(world, one)

    assert (pinned, parsed(status.result["image"]).digest) == (f"{image}@{was}", was)
    assert other.result["image"] == f"{image}@{registry.digest}"


async def test_who_waits_for_others_says_which_image_it_has_before_they_come(
    world: World, registry: TinyRegistry
) -> None:
    image = f"{registry.address}/open:1"
    create = asked(image, await_members=True)
    async with world.running():
        await world.master.command(create)
        said = world.master.statuses
        status = await poll_async(lambda: [s for s in said(create.command_id) if s.step == "waiting_members"])

        assert status[-1].result == {"image": f"{image}@{registry.digest}"}
        await ended(world, create)
