"""The images of one container daemon: finds them, pulls them with progress, and names them by their digest.

The host's owner runs whatever his daemon has. A renter who does not own the host runs what this agent pulled without a
login, or what the registry gives him now: never what the owner built or pulled himself, by no name, id or digest. What
was pulled with a renter's login is that renter's: nobody else gets it from this host without asking its registry again,
and it goes with the last workload that runs from it. A login is opened for one pull and kept nowhere.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes import registries
from windrow_agent.runtimes.port import Progress
from windrow_agent.runtimes.pulled_images import Budget, PulledImage, Record, to_collect
from windrow_agent.runtimes.thread_pipe import ThreadPipe
from windrow_proto import image_names
from windrow_proto.errors import ImageUnavailable, NotFound, WindrowError
from windrow_proto.image_names import ImageName
from windrow_proto.model import WorkloadSpec
from windrow_proto.sealed import RegistryLogin, SealKey

T = TypeVar("T")

CALL_S: Final = 30.0
COLLECT_S: Final = 120.0
"""Removing an image of many gigabytes takes a while."""
PULL_SILENCE_S: Final = 120
"""Without a word of progress a pull is given up."""
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

    def __init__(
        self,
        folder: Path,
        allowed: tuple[str, ...],
        call: Call,
        seal_key: SealKey | None = None,
        budget: Budget | None = None,
    ) -> None:
        """folder: where it is remembered what was pulled. allowed: the owner's list of registries."""
        self.seal_key = seal_key
        self.is_podman: Callable[[], bool] = lambda: False
        self.root: Callable[[], str] = lambda: "/"
        self._allowed, self._call, self._budget = allowed, call, budget or Budget()
        self._pulled = Record(folder)
        self._pins: dict[tuple[str, str], str] = {}
        self._pulling = 0

    @property
    def are_all_open(self) -> bool:
        """True if nothing here was pulled with a login."""
        return not self._pulled.has_private

    async def find(self, spec: WorkloadSpec, progress: Progress) -> Image:
        """The image of this workload, pulled if it is not here or not everybody's. Raises ImageUnavailable."""
        name = image_names.parsed(spec.image)
        record = await (self._local(name.asked) if spec.may_use_local_image else self._open(spec, name))
        if record is None or (spec.may_use_local_image and self._pulled.is_private(str(record.get("Id")))):
            self._pulling += 1
            try:
                record = await self._fetched(spec, name, progress)
            finally:
                self._pulling -= 1
        await asyncio.to_thread(self._pulled.used, name.whole, time.time_ns())
        pinned = image_names.pinned(spec.image, record.get("RepoDigests") or ())
        if pinned:
            progress("preparing", 0, image=pinned)
        return Image(record, pinned)

    async def _local(self, asked: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotFound):
            return await self._call(lambda api: _dict(api.inspect_image(asked)), CALL_S)
        return None

    async def _open(self, spec: WorkloadSpec, name: ImageName) -> dict[str, Any] | None:
        """Returns the image that this agent pulled under this very name for everybody. Members of one cluster ask the
        registry anew."""
        if image_names.is_id(spec.image):
            words = f"The image {spec.image!r} is named by its id: name it as its registry does"
            raise ImageUnavailable(f"{words}, by a tag or by NAME@sha256:...", subject=spec.workload_id)
        known = self._pulled.open_one(name.whole)
        if known is None or (spec.await_members and not name.digest):
            return None
        return await self._local(known.image_id)

    async def _fetched(self, spec: WorkloadSpec, name: ImageName, progress: Progress) -> dict[str, Any]:
        """Pulled from its registry, and written down as what it is before anybody runs it."""
        await self.collect()
        try:
            login = self._login(spec)
            await asyncio.to_thread(registries.check, spec.image, self._allowed)
            record, pulled = await self._pull(name, login, progress, is_apart=not spec.may_use_local_image)
        except (WindrowError, TimeoutError) as error:
            why = error.detail if isinstance(error, WindrowError) else "no progress for two minutes"
            why = facts_of.without_body(why)
            here = "is not on this host and " if spec.may_use_local_image else ""  # else what is here does not count
            detail = f"The image {spec.image!r} {here}could not be pulled from its registry: {why}"
            raise ImageUnavailable(detail, subject=spec.workload_id) from error
        await asyncio.to_thread(self._pulled.keep, name.whole, pulled)
        return record

    async def _pull(
        self, name: ImageName, login: RegistryLogin | None, progress: Progress, *, is_apart: bool
    ) -> tuple[dict[str, Any], PulledImage]:
        """is_apart: the names that the host's owner has given stay what they are."""
        wanted = image_names.parsed(name.whole)
        was = await self._local(wanted.asked)
        if not self.is_podman() and (is_apart or was is not None):
            digest = await self._call(functools.partial(_ask, name=wanted, login=login), CALL_S)
            if is_apart:
                wanted = ImageName(wanted.repository, "", digest)
                was = await self._local(wanted.asked)
        client = await self._call(lambda api: api, CALL_S)
        pipe: ThreadPipe[int] = ThreadPipe(functools.partial(_pull, client, wanted, login), "windrow-docker-pull")
        async with asyncio.timeout(None) as patience:
            loop = asyncio.get_running_loop()
            patience.reschedule(loop.time() + PULL_SILENCE_S)
            async for permille in pipe.read():
                patience.reschedule(loop.time() + PULL_SILENCE_S)
                progress("pulling", permille)
        found = await self._call(lambda api: _dict(api.inspect_image(wanted.asked)), CALL_S)
        image_id, was_id = str(found.get("Id")), None if was is None else str(was.get("Id"))
        is_owners = was_id is not None and was_id != image_id and name.whole not in self._pulled.images
        if is_apart and is_owners and not wanted.digest:  # Podman has moved the owner's tag
            back = functools.partial(_tag, image_id=was_id or "", name=wanted)
            await self._call(back, CALL_S)
        is_new = was is None
        return found, PulledImage(image_id, wanted.asked, login is not None, is_new, time.time_ns())

    def _login(self, spec: WorkloadSpec) -> RegistryLogin | None:
        if not spec.registry_login:
            return None
        if self.seal_key is None:
            raise ImageUnavailable("this host has no key to open the registry's login with")
        return self.seal_key.open_login(spec.registry_login, spec.workload_id)

    def pin_of(self, api: Any, container: dict[str, Any]) -> str:
        """By which digest a container's image is known; empty where no registry knows it. Asked once for each."""
        import docker.errors

        config = container.get("Config") or {}
        key = str(container.get("Image", "")), facts_of.image_of(config)
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
        """Removes private images that no container uses any more, and the oldest ones when they take too much space."""
        if self._pulling:
            return
        private = [name for name, one in list(self._pulled.images.items()) if one.is_private]
        if private:
            await self._remove(private)
        await self.collect()

    async def collect(self) -> None:
        """Take away what this agent pulled and nobody used for longest, where images take more space than they may."""
        if not any(one.is_ours for one in list(self._pulled.images.values())):
            return
        images = dict(self._pulled.images)
        sizes = await self._call(functools.partial(_sizes, ids={one.image_id for one in images.values()}), CALL_S)
        excess = await asyncio.to_thread(self._budget.excess, self.root(), sum(sizes.values()))
        if chosen := to_collect(images, sizes, excess, time.time_ns() - self._budget.kept_ns):
            await self._remove(chosen)

    async def _remove(self, names: list[str]) -> None:
        images = {name: self._pulled.images[name] for name in names}
        gone = await self._call(functools.partial(_remove_unused, images=images), COLLECT_S)
        if gone:
            await asyncio.to_thread(self._pulled.forget, gone)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sizes(api: Any, ids: set[str]) -> dict[str, int]:
    return {str(one["Id"]): int(one.get("Size") or 0) for one in api.images() if one["Id"] in ids}


def _remove_unused(api: Any, images: dict[str, PulledImage]) -> set[str]:
    """Those of these names that are gone now; a name that means another image by now is no name of ours."""
    import docker.errors

    gone = set()
    for whole, one in images.items():
        try:
            is_same = api.inspect_image(one.name)["Id"] == one.image_id
            if is_same and api.containers(all=True, filters={"ancestor": one.image_id}):
                continue
            if is_same and one.is_ours:
                api.remove_image(one.name)
            gone.add(whole)
        except docker.errors.NotFound:
            gone.add(whole)
        except docker.errors.APIError:
            continue  # something of somebody's holds it
    return gone


def _ask(api: Any, name: ImageName, login: RegistryLogin | None) -> str:
    """Have the registry say which manifest this is, if who shows this may have it; raises what the daemon says else.

    Docker keeps manifests: what it has by digest it "pulls" without asking anybody. Podman asks with every pull.
    """
    found = _dict(api.inspect_distribution(name.asked, auth_config=_shown(login)))
    digest = str(_dict(found.get("Descriptor")).get("digest", ""))
    if image_names.DIGEST.fullmatch(digest) is None or name.digest not in ("", digest):
        raise ImageUnavailable("the registry does not say which image this is")
    return digest


def _tag(api: Any, image_id: str, name: ImageName) -> None:
    api.tag(image_id, name.repository, name.reference)


def _shown(login: RegistryLogin | None) -> dict[str, str]:
    """The login that the daemon is told to show: the renter's own or none, never one that the host's owner has logged
    in with."""
    return {} if login is None else {"username": login.username, "password": login.password}


def _pull(api: Any, name: ImageName, login: RegistryLogin | None, pipe: ThreadPipe[int]) -> None:
    """Pull in a thread, saying how far it is. Raises ImageUnavailable."""
    import docker.errors

    layers: dict[str, tuple[int, int]] = {}
    try:
        lines = api.pull(name.repository, tag=name.reference, stream=True, decode=True, auth_config=_shown(login))
        for line in lines:
            pipe.put(facts_of.progress_of(line, layers))
    except (docker.errors.DockerException, OSError) as error:
        raise ImageUnavailable(facts_of.without_body(facts_of.explained(error))) from error
