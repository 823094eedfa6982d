"""Volumes: named folders of an account that go wherever its work runs. Their names and their paths.

Host, Master and clients agree on this. Pure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput

MOUNTS_MAX: Final = 8
"""Volumes of one workload."""
NAME_MAX: Final = 40
PATH_MAX: Final = 200
VOLUMES: Final = "volumes"
"""The statement in a host's inventory that it can have volumes."""
INDEX_NAME: Final = ".windrow-volume.json"
"""Beside its files in each version: what these do not say by themselves, such as links."""
WORKSPACE: Final = "/workspace"
"""The working folder in a container. A path below it is one in the working folder of a process, too."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]*")
_PATH: Final = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_AS_VARIABLE: Final = str.maketrans(".-", "__")
_SYSTEM: Final = frozenset(
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "tmp", "usr"]
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, and where a workload finds it. read_only: what it changes there is not kept, or not possible."""

    name: str
    path: str
    read_only: bool = False

    @property
    def text(self) -> str:
        """As `parse_mount` reads it."""
        return f"{self.name}:{self.path}" + (":ro" if self.read_only else "")


def volume_name(text: str) -> str:
    """The name, if it is one. Raises InvalidInput."""
    if not _NAME.fullmatch(text) or len(text) > NAME_MAX:
        said = (
            f"A volume's name is 1 to {NAME_MAX} lower-case letters, digits, '.' and '-', the first a letter or digit"
        )
        raise InvalidInput(f"{said}: {text[:64]!r} is not.", subject="volumes")
    return text


def variable(name: str) -> str:
    """The variable of the environment that says where a volume is."""
    return f"WINDROW_VOLUME_{name.upper().translate(_AS_VARIABLE)}"


def parse_mount(text: str) -> Mount:
    """`NAME:/path` or `NAME:/path:ro`. Raises InvalidInput."""
    name, colon, rest = text.partition(":")
    path, second, mode = rest.partition(":")
    if not colon or not path or (second and mode not in ("ro", "rw")):
        raise InvalidInput(f"{text[:64]!r} is no volume: write NAME:/path or NAME:/path:ro.", subject="volumes")
    mount = Mount(name, path.rstrip("/") or path, mode == "ro")
    check_mounts((mount,))
    return mount


def check_mounts(mounts: Iterable[Mount]) -> None:
    """True if one workload can have these together. Raises InvalidInput."""
    seen: list[Mount] = []
    for mount in mounts:
        _check_path(mount.path)
        for other in seen:
            if variable(volume_name(mount.name)) == variable(other.name):
                raise InvalidInput(f"The volume {mount.name} is named twice.", subject="volumes")
            if f"{mount.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{mount.path}/"):
                raise InvalidInput(f"{mount.path} and {other.path} lie in each other.", subject="volumes")
        volume_name(mount.name)
        seen.append(mount)
    if len(seen) > MOUNTS_MAX:
        raise InvalidInput(f"At most {MOUNTS_MAX} volumes go with one machine or job.", subject="volumes")


def _check_path(path: str) -> None:
    if not _PATH.fullmatch(path) or len(path) > PATH_MAX:
        said = f"A volume's path is absolute, of at most {PATH_MAX} letters, digits and . _ -"
        raise InvalidInput(f"{said}, no part beginning with '.': {path[:64]!r} is not.", subject="volumes")
    if path.split("/")[1] in _SYSTEM or path == WORKSPACE or f"{path}/".startswith(f"{WORKSPACE}/ckpt/"):
        raise InvalidInput(
            f"{path} is a place of the system's. Take one such as /data or {WORKSPACE}/data.", subject="volumes"
        )
