"""Packs the code that a function needs on its host: a name to find it by, and the files of the folder it lives in."""

import functools
import hashlib
import os
import re
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from windrow.errors import CannotSend
from windrow.folder.sending import FILES_MAX, Left, Looks, is_home, is_of_system, walk
from windrow.telling import tell
from windrow.worker.trees import RUNNABLE, Manifest, manifest_digest

CODE_BYTES_MAX: Final = 256 << 20
"""Of one folder: code, and what small files it needs. Data belongs into a store."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The place of a function. root: the folder that is sent, None for what the environment has; name: empty where
    the function itself is sent; is_main: its module is this program's own; file: of it below the root, where it cannot
    be imported by a name, as a script without .py."""

    root: Path | None
    module: str
    name: str
    is_main: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """One state of a folder. files: each digest's path."""

    digest: str
    manifest: Manifest
    files: dict[str, Path]
    root: Path

    def paths(self) -> frozenset[Path]:
        """All files of it, links followed."""
        return frozenset((self.root / name).resolve() for name in self.manifest)

    def replaced(self, name: str, data: bytes | None) -> "Tree":
        """The same with this content in this file; None: without the file."""
        manifest = {known: entry for known, entry in self.manifest.items() if known != name or data is not None}
        if data is not None:
            mark = RUNNABLE if self.manifest[name].endswith(RUNNABLE) else ""
            manifest[name] = hashlib.sha256(data).hexdigest() + mark
        return tree_of(self.root, manifest)


def pointer_of(function: Callable[..., Any]) -> Pointer:
    """How to find it on the host; raises CannotSend."""
    if not callable(function):
        raise CannotSend(f"{function!r:.80} is no function.")
    origin = _origin(function)
    module_name, name = getattr(origin, "__module__", None), getattr(origin, "__qualname__", "")
    module = sys.modules.get(module_name or "")
    file = getattr(module, "__file__", None)
    if module is None or module_name is None or file is None:
        is_builtin = module is not None and module_name != "__main__"
        return Pointer(None, str(module_name), name) if is_builtin else Pointer(None, "", "")
    path = Path(file).resolve()
    if not path.is_file():
        return Pointer(None, "", "")
    spec = getattr(module, "__spec__", None)
    is_main = module_name == "__main__"
    is_script = is_main and spec is None
    is_odd = is_script and (path.suffix != ".py" or "." in path.stem or path.stem in sys.stdlib_module_names)
    found_as = spec.name if is_main and spec is not None else path.stem if is_script else module_name
    is_named = "<" not in name and _is_found(module, name, function)
    if is_installed(path):
        return Pointer(None, found_as, name) if is_named else Pointer(None, "", "")
    depth = 0 if is_script else found_as.count(".") + (path.stem == "__init__")
    root = path.parents[depth]
    if root == Path(tempfile.gettempdir()).resolve() or is_home(root) or is_of_system(root):
        raise CannotSend(
            f"{path} lies in {root} itself, and all of that would be sent. Move it to a folder of its own."
        )
    if not is_named:
        return Pointer(root, "", "")
    if is_odd:
        return Pointer(root, "script_" + re.sub(r"\W", "_", path.name), name, is_main, path.name)
    return Pointer(root, found_as, name, is_main)


def _origin(function: Any) -> Any:
    """The function that a partial one calls: its module says what has to be sent."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_found(module: Any, name: str, function: object) -> bool:
    """True if the module has it under its name; lambdas and inner functions go by value."""
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return getattr(found, "__windrow_local__", found) is function


def is_installed(path: Path) -> bool:
    """True if this Python brought it, or pip put it there."""
    return any(path.is_relative_to(one) for one in _installed())


def is_standard(path: Path) -> bool:
    """True if this file is of Python's own library."""
    found = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    packages = {"site-packages", "dist-packages"}
    return not packages & set(path.parts) and any(path.is_relative_to(Path(one).resolve()) for one in found if one)


@functools.cache
def _installed() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(Path(found).resolve() for name in names if (found := sysconfig.get_path(name)))


def tree_of(root: Path, manifest: Manifest) -> Tree:
    """The state of a folder that has these files."""
    files = {entry.removesuffix(RUNNABLE): root / name for name, entry in manifest.items()}
    return Tree(manifest_digest(manifest), manifest, files, root)


class Folders:
    """The states of folders; what did not change since the last look is not read again."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._last: dict[Path, Tree] = {}
        self._looks = Looks()
        self._told: dict[Path, set[str]] = {}

    def look(self, root: Path) -> Tree:
        """The folder as it is now; raises WindrowClientError where it is too large or cannot be read."""
        manifest: Manifest = {}
        total, base = 0, f"{root}{os.sep}"
        left = Left()
        try:
            for entry in walk(root, left, self._looks):
                try:
                    state = entry.facts if entry.target is None else os.stat(base + entry.name)
                    if not stat.S_ISREG(state.st_mode):
                        continue
                    total += state.st_size
                    if total > CODE_BYTES_MAX or len(manifest) >= FILES_MAX:
                        raise CannotSend(
                            f"{root} holds more than {CODE_BYTES_MAX >> 20} MiB or {FILES_MAX} files, and all of it "
                            "would be sent with a function. Name what it does not need in .windrowignore there."
                        )
                    digest = self._digest(base + entry.name, state)
                except FileNotFoundError:
                    continue  # gone since it was listed, as an editor's own files are
                manifest[entry.name] = digest + (RUNNABLE if state.st_mode & 0o100 else "")
        except OSError as error:
            raise CannotSend(f"{root} cannot be read: {error}") from error
        self._tell(root, left)
        last = self._last.get(root)
        if last is None or last.manifest != manifest:
            last = self._last[root] = tree_of(root, manifest)
        return last

    def _tell(self, root: Path, left: Left) -> None:
        """Say what stays here, once for each folder and list."""
        for line in left.lines():
            if line not in self._told.setdefault(root, set()):
                self._told[root].add(line)
                tell(f"windrow: {root}: {line}")

    def _digest(self, path: str, state: os.stat_result) -> str:
        look = (state.st_mtime_ns, state.st_size, state.st_ino)
        known = self._seen.get(path)
        if known is None or known[0] != look:
            with open(path, "rb") as file:
                known = self._seen[path] = (look, hashlib.sha256(file.read()).hexdigest())
        return known[1]
