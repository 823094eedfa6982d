"""The images of one container daemon: found here or pulled with progress, and named by their digest.

What was pulled with a renter's login is that renter's: nobody else gets it from this host without asking its registry
again, and it goes with the last workload that runs from it. A login is opened for one pull and kept nowhere.
"""

import asyncio
import contextlib
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes import registries
from windrow_agent.runtimes.port import Progress
from windrow_agent.runtimes.shim import write_whole
from windrow_agent.runtimes.streams import ThreadPipe
from windrow_proto import image_names
from windrow_proto.errors import ImageUnavailable, NotFound, WindrowError
from windrow_proto.model import WorkloadSpec
from windrow_proto.sealed import RegistryLogin, SealKey

T = TypeVar("T")

CALL_S: Final = 30.0
PULL_SILENCE_S: Final = 120
"""Without a word of progress a pull is given up."""
PRIVATE_FILE: Final = "private-images.json"
PINS_MAX: Final = 256
"""Images whose digest is remembered; looking one up again costs a question to the daemon."""


class Call(Protocol):
    """Runs one call of the SDK in a thread of the runtime's, and raises our errors for its."""

    async def __call__(self, work: Callable[[Any], T], within_s: float, /) -> T: ...


@dataclass(frozen=True, slots=True)
class Image:
    """One that is here. record: as inspected; pinned: its name by digest, empty where no registry knows it."""

    record: dict[str, Any]
    pinned: str


class Images:
    """Used on the loop, but for `pin_of`, which is called where the SDK is."""

    def __init__(self, folder: Path, allowed: tuple[str, ...], call: Call, seal_key: SealKey | None = None) -> None:
        """folder: where it is remembered which images are private. allowed: the owner's list of registries."""
        self.seal_key = seal_key
        self.is_podman: Callable[[], bool] = lambda: False
        self._file, self._allowed, self._call = folder / PRIVATE_FILE, allowed, call
        self._private = _read(self._file)
        self._pins: dict[tuple[str, str], str] = {}
        self._pulling = 0

    @property
    def are_all_open(self) -> bool:
        """Whether nothing here was pulled with a login."""
        return not self._private

    async def find(self, spec: WorkloadSpec, progress: Progress) -> Image:
        """The image of this workload, pulled if it is not here or not everybody's. Raises ImageUnavailable."""
        name = image_names.parsed(spec.image)
        record = await self._local(name.asked)
        if record is None or record.get("Id") in self._private:
            self._pulling += 1
            try:
                record = await self._pulled(spec, name, record, progress)
            finally:
                self._pulling -= 1
        pinned = image_names.pinned(spec.image, record.get("RepoDigests") or ())
        if pinned:
            progress("preparing", 0, image=pinned)
        return Image(record, pinned)

    async def _local(self, asked: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotFound):
            return await self._call(lambda api: _dict(api.inspect_image(asked)), CALL_S)
        return None

    async def _pulled(
        self, spec: WorkloadSpec, name: image_names.ImageName, was: dict[str, Any] | None, progress: Progress
    ) -> dict[str, Any]:
        try:
            login = self._login(spec)
            await asyncio.to_thread(registries.check, spec.image, self._allowed)
            if was is not None and not self.is_podman():
                await self._call(functools.partial(_ask, name=name, login=login), CALL_S)
            client = await self._call(lambda api: api, CALL_S)
            pull = functools.partial(_pull, client, name, login)
            pipe: ThreadPipe[int] = ThreadPipe(pull, "windrow-docker-pull")
            async with asyncio.timeout(None) as patience:
                loop = asyncio.get_running_loop()
                patience.reschedule(loop.time() + PULL_SILENCE_S)
                async for permille in pipe.read():
                    patience.reschedule(loop.time() + PULL_SILENCE_S)
                    progress("pulling", permille)
            found = await self._call(lambda api: _dict(api.inspect_image(name.asked)), CALL_S)
        except (WindrowError, TimeoutError) as error:
            why = error.detail if isinstance(error, WindrowError) else "no progress for two minutes"
            detail = f"The image {spec.image!r} is not on this host and could not be pulled: {why}"
            raise ImageUnavailable(detail, subject=spec.workload_id) from error
        image_id = str(found.get("Id"))
        if login is None or was is None or was.get("Id") != image_id:
            await self._mark(image_id, is_private=login is not None)
        return found

    def _login(self, spec: WorkloadSpec) -> RegistryLogin | None:
        if not spec.registry_login:
            return None
        if self.seal_key is None:
            raise ImageUnavailable("this host has no key to open the registry's login with")
        return self.seal_key.open_login(spec.registry_login, spec.workload_id)

    async def _mark(self, image_id: str, *, is_private: bool) -> None:
        """Remember whose it is, before anybody runs it; what was pulled without a login is everybody's."""
        if is_private == (image_id in self._private):
            return
        self._private ^= {image_id}
        await asyncio.to_thread(_write, self._file, self._private)

    def pin_of(self, api: Any, container: dict[str, Any]) -> str:
        """By which digest a container's image is known; empty where no registry knows it. Asked once for each."""
        import docker.errors

        key = str(container.get("Image", "")), str((container.get("Config") or {}).get("Image", ""))
        if key not in self._pins:
            while len(self._pins) >= PINS_MAX:
                self._pins.pop(next(iter(self._pins)))
            try:
                known = () if image_names.is_pinned(key[1]) else api.inspect_image(key[0]).get("RepoDigests") or ()
            except docker.errors.APIError:
                return ""  # taken away meanwhile: what runs goes on
            self._pins[key] = image_names.pinned(key[1], known)
        return self._pins[key]

    async def clear(self) -> None:
        """Take away private images that nothing runs from any more; one that is in use stays for the next time."""
        if not self._private or self._pulling:
            return
        gone = await self._call(functools.partial(_remove_unused, ids=frozenset(self._private)), CALL_S)
        if gone:
            self._private -= gone
            await asyncio.to_thread(_write, self._file, self._private)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read(path: Path) -> set[str]:
    try:
        return {str(one) for one in json.loads(path.read_bytes())["images"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _write(path: Path, images: set[str]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(str(path.parent), path.name, {"images": sorted(images)})


def _remove_unused(api: Any, ids: frozenset[str]) -> set[str]:
    """Those of these images that are gone now."""
    import docker.errors

    gone = set()
    for image_id in ids:
        try:
            record = api.inspect_image(image_id)
            if api.containers(all=True, filters={"ancestor": image_id}):
                continue
            for name in (*(record.get("RepoTags") or ()), *(record.get("RepoDigests") or ())):
                with contextlib.suppress(docker.errors.NotFound):
                    api.remove_image(name)
            with contextlib.suppress(docker.errors.NotFound):
                api.remove_image(image_id)
            gone.add(image_id)
        except docker.errors.NotFound:
            gone.add(image_id)
        except docker.errors.APIError:
            continue  # something of somebody's holds it
    return gone


def _ask(api: Any, name: image_names.ImageName, login: RegistryLogin | None) -> None:
    """Have the registry say whether who shows this may have the image; raises what the daemon says otherwise.

    Docker keeps manifests: what it has by digest it "pulls" without asking anybody. Podman asks with every pull.
    """
    api.inspect_distribution(name.asked, auth_config=_shown(login))


def _shown(login: RegistryLogin | None) -> dict[str, str]:
    """What the daemon is told to show: the renter's own or nothing, never what the host's owner has logged in with."""
    return {} if login is None else {"username": login.username, "password": login.password}


def _pull(api: Any, name: image_names.ImageName, login: RegistryLogin | None, pipe: ThreadPipe[int]) -> None:
    """Pull in a thread, saying how far it is. Raises ImageUnavailable."""
    import docker.errors

    layers: dict[str, tuple[int, int]] = {}
    try:
        lines = api.pull(name.repository, tag=name.reference, stream=True, decode=True, auth_config=_shown(login))
        for line in lines:
            pipe.put(facts_of.progress_of(line, layers))
    except (docker.errors.DockerException, OSError) as error:
        raise ImageUnavailable(facts_of.without_body(facts_of.explained(error))) from error
