"""The image of a box, as deploy/images/box makes it, but from the Debian packages of this machine: nothing is fetched.

What a package holds is taken from where it is installed; what its scripts would have made is not there.
"""

import io
import os
import re
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.services import need

CALL_S: Final = 120
TOOLS: Final = ("bash", "coreutils", "dash", "grep", "sed", "openssh-client", "openssh-server", "openssh-sftp-server")
NOTEBOOK: Final = ("jupyter-notebook", "python3-ipykernel")
NOT_FOLLOWED: Final = frozenset({"gdb", "debconf", "init-system-helpers", "lsb-base", "adduser", "dpkg", "procps"})
"""The packages for installing and debugging: none of them runs in a box."""
LEFT_OUT: Final = re.compile(
    r"/usr/share/(doc|man|locale|info|lintian|bash-completion|icons|fonts)(/|$)|/usr/lib/systemd/"
)
MERGED: Final = ("bin", "sbin", "lib", "lib64")
"""Links into /usr."""
PASSWD: Final = """\
root:x:0:0::/root:/bin/bash
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
box:x:1000:1000::/workspace:/bin/bash
"""
GROUP: Final = "root:x:0:\ntty:x:5:\nbox:x:1000:\nnogroup:x:65534:\n"
MADE: Final = {"etc/passwd": PASSWD, "etc/group": GROUP}
FOLDERS: Final = dict.fromkeys(("run", "proc", "sys", "dev", "root"), (0, 493)) | {
    "workspace": (1000, 0o755),
    "tmp": (0, 0o1777),
}
"""The owners of the files, and their modes: what is mounted on /tmp later takes it over."""


def need_box() -> None:
    """Skip the calling test where OpenSSH's server and Jupyter are not installed, or fail where they have to be."""
    need("openssh")
    need("jupyter")


@contextmanager
def box_image(folder: Path, env: dict[str, str] | None = None) -> Iterator[str]:
    """The image's name on the daemon that `env` (DOCKER_HOST) or this process's environment names; gone at the end."""
    name = f"windrow-test-box-{uuid.uuid4().hex[:12]}:local"
    archive = folder / "box.tar"
    write_tree(archive, (*TOOLS, *NOTEBOOK))
    own = os.environ | (env or {})
    change = ["-c", "USER box", "-c", "WORKDIR /workspace", "-c", "ENV LANG=C.UTF-8"]
    subprocess.run(
        ["docker", "import", *change, str(archive), name], check=True, capture_output=True, timeout=CALL_S, env=own
    )
    archive.unlink()
    try:
        yield name
    finally:
        subprocess.run(["docker", "rmi", "-f", name], capture_output=True, timeout=CALL_S, check=False, env=own)


def write_tree(archive: Path, wanted: tuple[str, ...]) -> None:
    """A root file system of these packages and of all that they depend on."""
    names = "\n".join(path.lstrip("/") for path in _files(_closure(wanted)))
    packed = ["tar", "-C", "/", "--no-recursion", "-cf", str(archive), "-T", "-"]
    subprocess.run(packed, input=names, text=True, capture_output=True, timeout=CALL_S, check=True)
    with tarfile.open(archive, "a") as tar:
        for link in MERGED:
            member = tarfile.TarInfo(link)
            member.type, member.linkname, member.mode = tarfile.SYMTYPE, f"usr/{link}", 0o777
            tar.addfile(member)
        for name, text in MADE.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, (owner, mode) in FOLDERS.items():
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.gid = tarfile.DIRTYPE, mode, owner, owner
            tar.addfile(member)


def _files(packages: set[str]) -> list[str]:
    """Each once, its folder first, under its real place."""
    done = subprocess.run(
        ["dpkg-query", "-L", *sorted(packages)], capture_output=True, text=True, timeout=CALL_S, check=True
    )
    found: set[str] = set()
    for line in done.stdout.splitlines():
        if not line.startswith("/") or LEFT_OUT.search(line) or line in ("/.", *(f"/{name}" for name in MERGED)):
            continue
        first, _, rest = line[1:].partition("/")
        place = f"/usr/{first}/{rest}" if first in MERGED and rest else line
        if os.path.lexists(place) and place.lstrip("/") not in MADE and place.lstrip("/") not in FOLDERS:
            found.update((place, *_compiled(place)))
    return sorted(found)


def _compiled(place: str) -> list[str]:
    """Returns the compiled files that installing made of a module: without it each start of Jupyter would, and a box is
    read-only."""
    if not place.endswith(".py"):
        return []
    folder, name = Path(place).parent / "__pycache__", Path(place).stem
    return [str(one) for one in (folder, *folder.glob(f"{name}.cpython-*.pyc")) if one.exists()]


def _closure(wanted: tuple[str, ...]) -> set[str]:
    """These packages and what they depend on, as far as it is installed."""
    shown = "${binary:Package}\t${Status}\t${Depends}, ${Pre-Depends}\t${Provides}\n"
    done = subprocess.run(["dpkg-query", "-W", "-f", shown], capture_output=True, text=True, timeout=CALL_S, check=True)
    needs: dict[str, list[list[str]]] = {}
    provided: dict[str, str] = {}
    for line in done.stdout.splitlines():
        package, status, depends, provides = line.split("\t")
        if not status.endswith(" installed"):
            continue
        name = package.partition(":")[0]
        needs[name] = [[_name(one) for one in group.split("|")] for group in depends.split(",") if group.strip()]
        provided |= {_name(one): name for one in provides.split(",") if one.strip()}
    found: set[str] = set()
    todo = list(wanted)
    while todo:
        asked = todo.pop()
        name = asked if asked in needs else provided.get(asked, "")
        if name and name not in found | NOT_FOLLOWED:
            found.add(name)
            todo += [next((one for one in group if one in needs), group[0]) for group in needs[name]]
    missing = [name for name in wanted if name not in found]
    if missing:
        pytest.fail(f"no image of a box: {', '.join(missing)} are no packages of this machine", pytrace=False)
    return found


def _name(text: str) -> str:
    return re.split(r"[ :(]", text.strip(), maxsplit=1)[0]
