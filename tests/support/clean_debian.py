"""A clean Debian under a folder: the essential packages of this machine and those asked for, file by file, no more.

It has no Python, no agent and no keys of ours. Its package database says what lies there, so that dpkg works inside.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.services import all_required

QUERY_S: Final = 60
STATUS: Final = Path("/var/lib/dpkg/status")
ALWAYS: Final = ("passwd", "apt", "mount")
EMPTY: Final = (
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "root",
    "home",
    "opt",
    "mnt",
    "srv",
    "var/tmp",
    "var/log",
    "var/cache",
    "etc/ssl",
)
COPIED: Final = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/nsswitch.conf", "etc/login.defs")
MERGED: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
LEFT_OUT: Final = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/")


def need_debian() -> None:
    """Skip the calling test on what is no Debian of root's own, or fail where all services are required."""
    reason = "it needs root" if os.geteuid() != 0 else "" if STATUS.is_file() else "this machine is no Debian"
    if reason and all_required():
        pytest.fail(f"no clean Debian: {reason}", pytrace=False)
    if reason:
        pytest.skip(f"no clean Debian: {reason}")


def stanzas() -> dict[str, dict[str, str]]:
    """The installed packages of this machine with their fields; `whole` is the entry as it stands."""
    found: dict[str, dict[str, str]] = {}
    for text in STATUS.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"(?m)^([A-Za-z-]+): ?(.*)$", text))
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = {**fields, "whole": text}
    return found


def closure(wanted: Iterable[str], known: dict[str, dict[str, str]]) -> set[str]:
    """These packages and all that they depend on; of alternatives the first that is here."""
    provides = {
        name.split("(")[0].strip(): package
        for package, fields in known.items()
        for name in fields.get("Provides", "").split(",")
        if name.strip()
    }
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        name = name if name in known else provides.get(name, "")
        if not name or name in found:
            continue
        found.add(name)
        for field in ("Depends", "Pre-Depends"):
            for group in filter(None, known[name].get(field, "").split(",")):
                choices = [re.split(r"[ (:]", choice.strip())[0] for choice in group.split("|")]
                waiting += [choice for choice in choices if choice in known or choice in provides][:1]
    return found


def make(root: Path, *more: str) -> Path:
    """Lay a clean Debian out under `root`, which is made. more: packages of this machine that it has besides."""
    known = stanzas()
    missing = [name for name in more if name not in known]
    if missing:
        pytest.skip(f"a clean Debian with {', '.join(missing)} needs it installed here (apt-get install)")
    essential = [name for name, fields in known.items() if fields.get("Essential") == "yes"]
    names = sorted(closure([*essential, *ALWAYS, *more], known))
    root.mkdir(parents=True)
    for name in MERGED:
        if Path("/", name).is_symlink():
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
    for path in _files(names):
        _copy(path, root)
    for name in EMPTY:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    _accounts(root)
    _links(root)
    base = root / "var/lib/dpkg"
    (base / "info").mkdir(parents=True, exist_ok=True)
    (base / "status").write_text("\n\n".join(known[name]["whole"].strip() for name in names) + "\n\n")
    for name in names:
        for listed in _lists(name):
            shutil.copy2(listed, base / "info" / listed.name)
    subprocess.run(["ldconfig", "-r", str(root)], check=True, timeout=QUERY_S)
    return root


def _lists(name: str) -> list[Path]:
    """Returns dpkg's records of a package's files; for some with the architecture in its name."""
    return [*STATUS.parent.glob(f"info/{name}.list"), *STATUS.parent.glob(f"info/{name}:*.list")]


def _files(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for line in (line for path in _lists(name) for line in path.read_text().splitlines()):
            if line != "/." and not line.startswith(LEFT_OUT):
                yield line


def _copy(path: str, root: Path) -> None:
    source = Path(path)
    first, _, rest = path.lstrip("/").partition("/")
    target = root / ("usr" if first in MERGED and (root / first).is_symlink() else "") / first / rest
    if not os.path.lexists(source) or os.path.lexists(target):
        return
    if source.is_dir() and not source.is_symlink():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_file():
        shutil.copy2(source, target)


def _accounts(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    base = root / "usr/share/base-passwd"
    for name in ("passwd", "group"):
        shutil.copy2(base / f"{name}.master", root / "etc" / name)
    for name in COPIED:
        if not (root / name).exists() and Path("/", name).exists():
            shutil.copy2(Path("/", name), root / name)
    for name in ("shadow", "gshadow"):
        lines = (root / "etc" / ("passwd" if name == "shadow" else "group")).read_text().splitlines()
        rest = ":*:19000:0:99999:7:::" if name == "shadow" else ":*::"
        (root / "etc" / name).write_text("".join(f"{line.split(':')[0]}{rest}\n" for line in lines))


def _links(root: Path) -> None:
    """Makes the links of update-alternatives, where their target went along; such as awk."""
    for link in filter(Path.is_symlink, Path("/etc/alternatives").iterdir()):
        target = os.readlink(link)
        if (root / target.lstrip("/")).exists():
            (root / "etc/alternatives").mkdir(exist_ok=True)
            if not os.path.lexists(root / "etc/alternatives" / link.name):
                (root / "etc/alternatives" / link.name).symlink_to(target)
            for folder in ("usr/bin", "usr/sbin"):
                here = Path("/", folder, link.name)
                if here.is_symlink() and not os.path.lexists(root / folder / link.name):
                    (root / folder / link.name).symlink_to(os.readlink(here))
