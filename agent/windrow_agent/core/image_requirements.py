"""Compares the GPU driver that an image requires with the host's driver, before anything starts. Pure.

NVIDIA's images say it in their environment, as the toolkit that starts containers reads it: NVIDIA_REQUIRE_CUDA and
its like, `cuda>=12.4 brand=tesla,driver>=535`, where a blank means or and a comma means and. Older images say
CUDA_VERSION alone, and some only the label. What a host does not know of itself (a card's brand) refuses no image: the
toolkit has the last word.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from windrow_agent.core.gpu_port import GpuInventory

REQUIRE: Final = "NVIDIA_REQUIRE_"
DISABLE: Final = "NVIDIA_DISABLE_REQUIRE"
LABEL: Final = "com.nvidia.cuda.version"
CLAUSES_MAX: Final = 256
"""Of one image; the largest images have some forty."""
SHOWN_MAX: Final = 200
"""Of an image's own words in an answer."""
_CLAUSE: Final = re.compile(r"([a-z]+)(>=|<=|!=|=|<|>)(.+)")
_NUMBERS: Final = re.compile(r"\d+(\.\d+)*")
_TRUE: Final = frozenset({"1", "t", "true", "y", "yes", "on"})

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Driver:
    """The host's driver, as it describes itself; empty where it does not. capabilities: `8.0`, of the cards given."""

    version: str = ""
    cuda: str = ""
    capabilities: tuple[str, ...] = ()


def driver_of(uuids: frozenset[str], found: GpuInventory) -> Driver:
    """The known facts of the driver of these cards, or slices of them."""
    cards = [one for one in found.gpus if one.uuid in uuids or any(part.uuid in uuids for part in one.slices)]
    numbers = [(one.compute_capability_major, one.compute_capability_minor) for one in cards]
    known = tuple(f"{major}.{minor or 0}" for major, minor in numbers if major is not None)
    return Driver(found.driver_version, found.cuda_version, known)


def refusal(image: Mapping[str, object], given: Mapping[str, str], driver: Driver) -> str:
    """Why an image cannot run on this driver, in words; empty: nothing is known against it.

    image: its `Config` as the daemon inspects it. given: the renter's own environment, which has the last word.
    """
    environment = _environment(image) | dict(given)
    if environment.get(DISABLE, "").strip().lower() in _TRUE:
        return ""
    for asked in _asked(environment, image):
        if not _holds(asked, driver):
            return f"the image asks for {asked[:SHOWN_MAX]}, and this host has {_words(driver)}"
    return ""


def _environment(image: Mapping[str, object]) -> dict[str, str]:
    lines = image.get("Env")
    pairs = (str(line).partition("=") for line in lines) if isinstance(lines, list) else ()
    return {name: value for name, _, value in pairs}


def _asked(environment: Mapping[str, str], image: Mapping[str, object]) -> list[str]:
    """Each of them has to hold."""
    found = [value.strip() for name, value in sorted(environment.items()) if name.startswith(REQUIRE)]
    if f"{REQUIRE}CUDA" in environment:
        return [one for one in found if one]
    labels = image.get("Labels")
    label = str(labels.get(LABEL) or "") if isinstance(labels, dict) else ""
    numbers = _version(environment.get("CUDA_VERSION") or label)
    if numbers is not None:
        found.append(f"cuda>={numbers[0]}.{numbers[1] if len(numbers) > 1 else 0}")
    return [one for one in found if one]


def _holds(asked: str, driver: Driver) -> bool:
    """True if any of the clauses holds; a clause that cannot be parsed refuses nothing."""
    clauses = asked.split()[:CLAUSES_MAX]
    return any(all(_is_met(one, driver) for one in clause.split(",") if one) for clause in clauses)


def _is_met(one: str, driver: Driver) -> bool:
    match = _CLAUSE.fullmatch(one)
    if match is None:
        return True
    name, sign, wanted = match.groups()
    had = {"cuda": [driver.cuda], "driver": [driver.version], "arch": list(driver.capabilities)}.get(name, [])
    numbers, known = _version(wanted), [found for text in had if (found := _version(text)) is not None]
    if numbers is None or not known:
        return True  # a brand, or what this host does not say of itself
    return all(_compares(found, sign, numbers) for found in known)


def _compares(had: Version, sign: str, wanted: Version) -> bool:
    size = max(len(had), len(wanted))
    left, right = had + (0,) * (size - len(had)), wanted + (0,) * (size - len(wanted))
    return {
        ">=": left >= right,
        "<=": left <= right,
        ">": left > right,
        "<": left < right,
        "=": left == right,
        "!=": left != right,
    }[sign]


def _version(text: str) -> Version | None:
    match = _NUMBERS.match(text)
    return None if match is None else tuple(int(part) for part in match[0].split(".") if len(part) < 10)


def _words(driver: Driver) -> str:
    parts = [f"driver {driver.version}" if driver.version else "", f"CUDA {driver.cuda}" if driver.cuda else ""]
    return " with ".join(part for part in parts if part) or "no driver that says its version"
