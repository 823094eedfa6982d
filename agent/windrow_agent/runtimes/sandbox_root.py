"""Builds the root folder of a process workload: the parts of this host that it sees, and stand-ins for the rest.

It is made of what is named here. Nothing is hidden by covering it: what is not named was never there, so that nothing
appears when something is taken away.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from windrow_agent.core import devices, egress
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.model import GpuFacts, WorkloadSpec

PROGRAMS: Final = ("/usr", "/opt")
"""Programs and their data, for anybody to read on every host."""
LINKED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr, or folders of programs where a system still has them apart."""
SYSTEM: Final = tuple(f"/sys/{name}" for name in ("block", "bus", "class", "dev", "devices", "module"))
"""Files of the kernel about the hardware; none about its security, its firmware or its control groups."""
SETTINGS: Final = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "fonts", "glvnd", "ld.so.cache"),
        *("ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "magic", "mime.types"),
        *("OpenCL", "os-release", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "protocols", "rpc", "services"),
        *("ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone", "vulkan"),
    )
)
"""Settings without secrets that programs look for."""
NVIDIA: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""Files that every program for NVIDIA's cards opens, beside the cards that it uses."""
OF_SLICES: Final = "/dev/nvidia-caps"
"""The files of all slices by MIG; the driver does not say which are whose without being asked for each."""
USER: Final = 1000
"""The user of a workload inside, whichever user it is on the host."""
NAME: Final = "windrow"
NSSWITCH: Final = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"


def refusal(hidden: Iterable[Path], shown: Sequence[Path]) -> str:
    """Why this host can give no workload such a root: it would see what is hidden. Empty where it can."""
    for folder in hidden:
        for seen in (*PROGRAMS, *LINKED, *map(str, shown)):
            place = os.path.realpath(seen)
            if os.path.commonpath([os.path.realpath(folder), place]) == place:
                return f"{folder} lies in {seen}, which workloads may read; keep the data in another folder"
    return ""


def programs(shown: Sequence[tuple[str, Path]]) -> list[str]:
    """Bubblewrap's flags for programs, settings and the hardware. shown: further folders, and where each is found."""
    flags: list[str] = []
    for folder in (*PROGRAMS, *SYSTEM, *SETTINGS):
        flags += ["--ro-bind-try", folder, folder]
    for folder in LINKED:
        if os.path.islink(folder):
            flags += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            flags += ["--ro-bind", folder, folder]
    for source, place in shown:
        flags += ["--ro-bind", source, str(place)]
    flags += ["--dir", "/run", "--dir", "/var"]
    return [*flags, *("--symlink", "../run", "/var/run"), *("--symlink", "../tmp", "/var/tmp")]


def write_settings(folder: Path, host_name: str, address: str, home: Path) -> tuple[str, ...]:
    """Make the files of /etc that are the workload's own; returns their names. address: of this workload."""
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    made = {
        "passwd": f"{NAME}:x:{USER}:{USER}::{home}:{shell}\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "group": f"{NAME}:x:{USER}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1 localhost\n::1 localhost\n{address or '127.0.0.1'} {host_name}\n",
        "hostname": f"{host_name}\n",
        "resolv.conf": f"nameserver {egress.GATEWAY}\n",
        "nsswitch.conf": NSSWITCH,
    }
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    for name, text in made.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return tuple(made)


def nodes(spec: WorkloadSpec, cards: Iterable[GpuFacts]) -> tuple[str, ...]:
    """The files in /dev of the cards that a workload was granted, and of no other. Raises RuntimeUnavailable where that
    of a card is not known."""
    known = tuple(cards)
    given = devices.of(spec, known)
    if not given.nvidia:
        return given.nodes
    minors: dict[str, int | None] = {}
    for card in known:
        minors |= dict.fromkeys((str(card.uuid), *(str(one.uuid) for one in card.slices)), card.device_minor)
    found = []
    for uuid in given.nvidia:
        if uuid not in minors:
            raise RuntimeUnavailable(f"GPU {uuid} is not known here now. Try again in a minute.", subject=uuid)
        minor = minors[uuid]
        found += [f"/dev/nvidia{minor}"] if minor is not None else []
    sliced = [OF_SLICES] if any(uuid.startswith("MIG-") for uuid in given.nvidia) else []
    return (*given.nodes, *NVIDIA, *sliced, *dict.fromkeys(found))


def groups_of(paths: Iterable[str]) -> list[int]:
    """The groups that may use these files where not everybody may."""
    found: set[int] = set()
    for path in paths:
        try:
            facts = os.stat(path)
        except OSError:
            continue
        if facts.st_mode & stat.S_IWGRP and not facts.st_mode & stat.S_IWOTH:
            found.add(facts.st_gid)
    return sorted(found)


def is_seen(program: str, folders: Iterable[Path]) -> bool:
    """True if a workload can run the program at this path. folders: further folders of the host shown to it."""
    return any(program.startswith(f"{folder}/") for folder in (*PROGRAMS, *LINKED, *map(str, folders)))
