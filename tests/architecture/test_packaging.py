"""The root repeats what its members declare, members declare what they import, and the locks hold it all."""

import json
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture import locks
from tests.architecture.declarations import declared, member_declarations, needed, normal, undeclared
from tests.architecture.tree import MEMBERS, ROOT, Module, members

NPM_LOCKS = [Path("console/package-lock.json"), Path("tests/browser/package-lock.json")]


def test_the_root_depends_on_the_union_of_its_members() -> None:
    parts = member_declarations().values()
    ours = {part.name for part in parts}
    union = {text for part in parts for text in part.dependencies if Requirement(text).name not in ours}
    assert declared(ROOT).dependencies == union


def test_the_root_offers_every_extra_script_and_entry_point_of_its_members() -> None:
    root = declared(ROOT)
    extras: dict[str, list[str]] = {}
    scripts: dict[str, str] = {}
    points: dict[str, dict[str, str]] = {}
    for part in member_declarations().values():
        extras |= part.extras
        scripts |= part.scripts
        for group, entries in part.entry_points.items():
            points.setdefault(group, {}).update(entries)
    assert (root.extras, root.scripts, root.entry_points) == (extras, scripts, points)


def test_members_declare_every_library_they_import() -> None:
    parts = member_declarations()
    found = [line for module in members(ROOT) for line in undeclared(module, parts[module.where.split("/")[0]])]
    assert found == []


def test_an_undeclared_import_is_seen() -> None:
    import ast

    text = "import sqlalchemy\n"
    module = Module("agent/windrow_agent/x.py", "windrow_agent.x", text, ast.parse(text))
    assert len(undeclared(module, member_declarations()["agent"])) == 1


def test_members_may_use_ours_only_where_they_declare_it() -> None:
    found = {folder: needed(folder) - {folder} for folder in MEMBERS}
    assert found.pop("tunnel") == set()
    assert found.pop("proto") == found.pop("sdk") == {"tunnel"}
    assert found.pop("up") == set(MEMBERS) - {"up"}
    assert found == {folder: {"proto", "tunnel"} for folder in ("agent", "access", "master")}


@pytest.mark.parametrize("lock", [locks.RUN, locks.BUILD, locks.TEST])
def test_a_lock_holds_hashes_and_names_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall(r"^(?!#)\s*-(?!-hash=sha256:).*$|https?:|file:|@ ", text, re.MULTILINE) == []
    assert [name for name, pins in locks.pins(text).items() for _, hashes in pins if hashes == 0] == []


def test_the_locks_pin_what_is_declared() -> None:
    run, build, test = _all_pins()
    assert _unmet(declared(ROOT).dependencies, run) == []
    assert _unmet(_group("build"), build) == []
    assert _unmet(_group("test"), test) == []


def test_the_locks_agree_where_they_meet() -> None:
    versions: dict[str, set[frozenset[str]]] = {}
    for lock in _all_pins():
        for name, pins in lock.items():
            versions.setdefault(name, set()).add(frozenset(version for version, _ in pins))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("lock", NPM_LOCKS, ids=str)
def test_an_npm_lock_holds_hashes_and_names_no_host(lock: Path) -> None:
    packages = json.loads((ROOT / lock).read_text(encoding="utf-8"))["packages"]
    foreign = {name: entry for name, entry in packages.items() if name and not entry.get("link")}
    assert [name for name, entry in foreign.items() if "resolved" in entry] == []
    assert [name for name, entry in foreign.items() if "integrity" not in entry and not entry.get("inBundle")] == []


def test_the_generator_of_stubs_is_as_old_as_the_oldest_grpc_we_accept() -> None:
    (generator,) = (Requirement(text) for text in _group("test") if text.startswith("grpcio-tools"))
    (runtime,) = (Requirement(text) for text in declared(ROOT / "proto").dependencies if text.startswith("grpcio"))
    assert str(generator.specifier).removeprefix("==") == str(runtime.specifier).removeprefix(">=")


def test_every_folder_of_code_has_a_readme_and_every_package_its_types() -> None:
    folders = [ROOT / folder for folder in MEMBERS]
    assert [str(folder) for folder in folders if not (folder / "README.md").is_file()] == []
    assert [name for folder, name in MEMBERS.items() if not (ROOT / folder / name / "py.typed").is_file()] == []


def _group(name: str) -> list[str]:
    import tomllib

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return [str(text) for text in groups[name]]


def _unmet(requirements: frozenset[str] | list[str], pins: dict[str, list[tuple[str, int]]]) -> list[str]:
    unmet = []
    for requirement in map(Requirement, requirements):
        versions = [version for version, _ in pins.get(normal(requirement.name), [])]
        if not versions or not all(requirement.specifier.contains(version) for version in versions):
            unmet.append(f"{requirement} against {versions or 'nothing'}")
    return unmet


def _all_pins() -> list[dict[str, list[tuple[str, int]]]]:
    return [locks.pins((ROOT / name).read_text(encoding="utf-8")) for name in (locks.RUN, locks.BUILD, locks.TEST)]
