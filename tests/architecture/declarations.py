"""Declarations of the distributions, read from their pyproject.toml and from the environment."""

import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

from tests.architecture.tree import MEMBERS, ROOT, Module, imports


@dataclass(frozen=True, slots=True)
class Declaration:
    """One [project] table, as far as the tests compare it."""

    name: str
    dependencies: frozenset[str]
    extras: dict[str, list[str]]
    scripts: dict[str, str]
    entry_points: dict[str, dict[str, str]]


def declared(folder: Path) -> Declaration:
    """Read the declaration of one distribution."""
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Declaration(
        name=project["name"],
        dependencies=frozenset(project["dependencies"]),
        extras=project.get("optional-dependencies", {}),
        scripts=project.get("scripts", {}),
        entry_points=project.get("entry-points", {}),
    )


def member_declarations() -> dict[str, Declaration]:
    """Folder -> declaration of each member."""
    return {folder: declared(ROOT / folder) for folder in MEMBERS}


def needed(folder: str) -> set[str]:
    """The folders of the members that this one needs, itself included."""
    parts = member_declarations()
    folders = {part.name: one for one, part in parts.items()}
    ours = [folders[text] for text in parts[folder].dependencies if text in folders]
    return {folder}.union(*map(needed, ours))


def normal(name: str) -> str:
    """A distribution's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements: frozenset[str]) -> dict[str, Distribution]:
    """Everything these requirements bring on this interpreter, as installed here, without our own members."""
    ours = {normal(declaration.name) for declaration in member_declarations().values()}
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        name = normal(requirement.name)
        if name in ours or not _applies(requirement, extra):
            continue
        found.setdefault(name, distribution(name))
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in asked:
                asked.add((name, wanted))
                waiting += [(Requirement(text), wanted) for text in found[name].requires or ()]
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    environment = {**default_environment(), "extra": extra}
    return requirement.marker is None or requirement.marker.evaluate(
        {key: str(item) for key, item in environment.items()}
    )


def undeclared(module: Module, declaration: Declaration) -> list[str]:
    """Other distributions, ours too, that a module imports and its member does not declare."""
    named = {normal(Requirement(text).name) for text in declaration.dependencies}
    named |= {normal(Requirement(text).name) for texts in declaration.extras.values() for text in texts}
    found = []
    for item in imports(module):
        library = item.name.split(".")[0]
        owners = _owners(library)
        if (
            library
            and library not in sys.stdlib_module_names
            and not owners & named
            and normal(library) != declaration.name
        ):
            found.append(f"{module.where}:{item.line} imports {library} of {' or '.join(owners) or 'nobody'}")
    return found


@cache
def _owners(library: str) -> frozenset[str]:
    if library in MEMBERS.values():
        return frozenset({normal(library)})
    return frozenset(map(normal, _packages().get(library, ())))


@cache
def _packages() -> dict[str, list[str]]:
    return {name: list(owners) for name, owners in packages_distributions().items()}
