"""Images for tests of the command line, imported here without a registry, each made when it is first asked for."""

import os
import subprocess
import tarfile
import uuid
from pathlib import Path

from tests.services import need
from tests.support import clean_debian
from tests.support.rental import import_image

CALL_S = 300


class Images:
    """They carry names of their own, so that other runs on this machine do not meet them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._run = folder, uuid.uuid4().hex[:8]
        self._made: dict[tuple[str, str], str] = {}
        self._archives: dict[tuple[str, ...], Path] = {}

    def busybox(self, *change: str) -> str:
        """Programs of busybox, and lines of a Dockerfile, such as `USER 1000`."""
        key = ("busybox", "\n".join(change))
        if key not in self._made:
            need("docker")
            need("busybox")
            name = self._name()
            import_image(self._folder / name.partition(":")[0], name, change=key[1])
            self._made[key] = name
        return self._made[key]

    def python(self, *change: str, packages: tuple[str, ...] = ()) -> str:
        """Debian's Python, as `python:3.12-slim` is made, with more of Debian's packages; as slow as 20 s at first."""
        archive = self._archives.get(packages)
        if archive is None:
            clean_debian.need_debian()
            root = clean_debian.make(self._folder / f"root-{len(self._archives)}", "python3", *packages)
            archive = root.with_suffix(".tar")
            subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True, timeout=CALL_S)
            self._archives[packages] = archive
        return self.imported(archive, *change)

    def of_files(self, *change: str, **files: bytes) -> str:
        """Programs alone, each at the root under its name: no shell, no folder."""
        need("docker")
        archive = self._folder / f"files-{len(self._made)}.tar"
        source = self._folder / f"files-{len(self._made)}"
        source.mkdir()
        with tarfile.open(archive, "w") as tar:
            for name, data in files.items():
                (source / name).write_bytes(data)
                (source / name).chmod(0o755)
                tar.add(source / name, name)
        return self.imported(archive, *change)

    def imported(self, archive: Path, *change: str) -> str:
        """A root folder that was packed."""
        key = (str(archive), "\n".join(change))
        if key not in self._made:
            need("docker")
            name = self._name()
            changes = [f"--change={line}" for line in change]
            docker("import", *changes, str(archive), name)
            self._made[key] = name
        return self._made[key]

    def remove(self) -> None:
        """Take all of them away."""
        for name in self._made.values():
            subprocess.run(["docker", "rmi", "-f", name], capture_output=True, timeout=CALL_S, check=False)
        for archive in self._archives.values():
            archive.unlink()

    def _name(self) -> str:
        return f"windrow-case-{self._run}-{len(self._made)}:local"


def docker(*words: str) -> str:
    """Ask this machine's Docker; returns what it prints."""
    done = subprocess.run(
        ["docker", *words], check=True, capture_output=True, text=True, timeout=CALL_S, env=dict(os.environ)
    )
    return done.stdout
