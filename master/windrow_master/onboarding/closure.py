"""Finds the locked distributions that a program needs, and which of their wheels fit a Python: walks what is declared,
keeps the lock's own lines, hashes included."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.onboarding.model import Manifest

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA: Final = re.compile(r"\bextra\s*==")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    """One distribution of the lock. text: its lines as they are. sha256: the files that may stand for it."""

    name: str
    text: str
    sha256: frozenset[str]


def normal(name: str) -> str:
    """A distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> dict[str, tuple[Pin, ...]]:
    """The pins of a lock by normal name; a name may have several, told apart by their markers."""
    found: dict[str, tuple[Pin, ...]] = {}
    for entry in re.split(r"\n(?=\S)", text):
        named = _NAME.match(entry)
        if named is not None:
            name = normal(named[0])
            pin = Pin(name, entry.rstrip("\n"), frozenset(_HASH.findall(entry)))
            found[name] = (*found.get(name, ()), pin)
    return found


def needed(roots: Iterable[str], requires: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """The normal names that these requirements bring, whatever the platform; extras are left out.

    requires: what one distribution declares. Conditions on the platform are the lock's to know: pip reads them there.
    """
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        requirement = waiting.pop()
        named = _NAME.match(requirement)
        if named is None or _EXTRA.search(requirement):
            continue
        name = normal(named[0])
        if name not in found:
            found.add(name)
            waiting += requires(name)
    return frozenset(found)


def locked(names: frozenset[str], lock: dict[str, tuple[Pin, ...]]) -> tuple[Pin, ...]:
    """The pins of these names, in order. A name that the lock lacks is one that no platform of ours needs."""
    return tuple(pin for name in sorted(names) for pin in lock.get(name, ()))


def requirements_text(pins: Sequence[Pin]) -> str:
    """A requirements file that asks for exactly these."""
    return "".join(f"{pin.text}\n" for pin in pins)


def compiled(pins: Sequence[Pin], wheels: Iterable[str]) -> tuple[Pin, ...]:
    """The pins whose wheels, of these names, are for one platform."""
    found = {normal(name.split("-", 1)[0]) for name in wheels if not name.endswith("-any.whl")}
    return tuple(pin for pin in pins if normal(pin.name) in found)


def fits(wheel: str, minor: str) -> bool:
    """True if CPython of this version takes the wheel, its platform aside. wheel: a file name. minor: `3.12`."""
    pythons, abis, _ = wheel.removesuffix(".whl").rsplit("-", 3)[1:]
    mine = int(minor.partition(".")[2])
    if abis == "none":
        return not {"py3", f"py3{mine}"}.isdisjoint(pythons.split("."))
    numbers = [int(one.removeprefix("cp3")) for one in pythons.split(".") if re.fullmatch(r"cp3\d+", one)]
    if "abi3" in abis.split("."):
        return any(number <= mine for number in numbers)
    return mine in numbers and f"cp3{mine}" in abis.split(".")


def list_text(manifest: Manifest, minors: Sequence[str]) -> str:
    """The wheels as lines for a shell. A Python version for which one is missing stands in no line."""
    names = [file.name for file in manifest.files]
    every = {normal(name.split("-", 1)[0]) for name in names}
    whole = [
        minor for minor in minors if {normal(name.split("-", 1)[0]) for name in names if fits(name, minor)} == every
    ]
    lines = [f"{manifest.release} {manifest.platform} {','.join(whole)}"]
    for file in manifest.files:
        lines.append(f"{','.join(one for one in whole if fits(file.name, one)) or '-'} {file.sha256} {file.name}")
    return "\n".join(lines) + "\n"
