"""Finds the locked distributions that the agent needs: walks what is declared, keeps the lock's own lines, hashes
included."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

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
