"""The record of images that this agent pulled: their names, whose they are, and when they were last used.

It is also what the agent may take away again: nothing else.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Final

from windrow_agent.runtimes.shim import write_whole
from windrow_proto.units import GIB, MINUTE

FILE: Final = "pulled-images.json"
NOTED_EVERY_NS: Final = 10 * MINUTE
"""A use is written down this often at most."""


@dataclass(frozen=True, slots=True)
class PulledImage:
    """One image. name: by which it was pulled, and is removed; is_private: with a renter's login; is_ours: the daemon
    had nothing of this name before; used_ns: wall time."""

    image_id: str
    name: str
    is_private: bool
    is_ours: bool
    used_ns: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The part of the daemon's disk that pulled images may take."""

    share: int = 4
    """A quarter of it."""
    least_bytes: int = 20 * GIB
    """A few images for training, whatever the disk's size."""
    free_share: int = 10
    """A tenth of it stays free of them."""
    kept_ns: int = 10 * MINUTE
    """An image that was used a moment ago is about to be used: its container may not be there yet."""

    def excess(self, root: str, used_bytes: int) -> int:
        """The bytes of images above the budget; root: the daemon's folder."""
        try:
            disk = os.statvfs(root)
        except OSError:
            return used_bytes - self.least_bytes  # a daemon on another machine, or one that hides its folder
        whole, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
        return max(used_bytes - max(self.least_bytes, whole // self.share), whole // self.free_share - free)


class Record:
    """The images that were pulled, by the whole name that was asked for; on the disk before anybody runs one. Writes
    block, and come from the threads of all containers that are being prepared."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = Lock()
        self.images = _read(self._path)

    @property
    def has_private(self) -> bool:
        """True if any image was pulled with a login."""
        return any(one.is_private for one in list(self.images.values()))

    def is_private(self, image_id: str) -> bool:
        """True if the image is on this host only since a renter's login brought it."""
        found = [one for one in list(self.images.values()) if one.image_id == image_id]
        return any(one.is_ours for one in found) and all(one.is_private for one in found)

    def open_one(self, whole: str) -> PulledImage | None:
        """Returns the image that everybody may run under this name."""
        found = self.images.get(whole)
        return None if found is None or found.is_private else found

    def keep(self, whole: str, one: PulledImage) -> None:
        """Write an image down. One that was not here before was gone for all that are written down of it."""
        with self._lock:
            before = [(name, known) for name, known in self.images.items() if known.name == one.name]
            if one.is_ours:
                for name, _ in before:
                    del self.images[name]
            else:
                one = replace(one, is_ours=any(known.is_ours for _, known in before))
            self.images[whole] = one
            self._write()

    def used(self, whole: str, now_ns: int) -> None:
        """Notes that the image is used now."""
        with self._lock:
            one = self.images.get(whole)
            if one is not None and now_ns - one.used_ns >= NOTED_EVERY_NS:
                self.images[whole] = replace(one, used_ns=now_ns)
                self._write()

    def forget(self, names: Iterable[str]) -> None:
        """These are gone."""
        with self._lock:
            for whole in names:
                self.images.pop(whole, None)
            self._write()

    def _write(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(str(self._path.parent), self._path.name, {n: asdict(one) for n, one in self.images.items()})


def _read(path: Path) -> dict[str, PulledImage]:
    try:
        return {str(name): PulledImage(**one) for name, one in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def to_collect(images: Mapping[str, PulledImage], sizes: Mapping[str, int], excess: int, before_ns: int) -> list[str]:
    """The names to take away, the longest unused first, until so many bytes are gone. sizes: of each image's id.
    before_ns: what was used later stays."""
    chosen: list[str] = []
    for name, one in sorted(images.items(), key=lambda item: item[1].used_ns):
        if excess <= 0:
            break
        if one.is_ours and one.used_ns < before_ns:
            chosen.append(name)
            excess -= sizes.get(one.image_id, 0)
    return chosen
