"""Each distribution works with what it declares and nothing else, and the agent stays small.

A clean environment gets the member's wheel, the wheels of ours it needs, and exactly the closure of what they declare,
copied from this environment, so that no network is needed.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import Distribution
from importlib.util import cache_from_source
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.architecture.declarations import closure, member_declarations, needed
from tests.architecture.tree import MEMBERS, ROOT, members

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STEP_S = 120
SHORT = ("agent", "sdk")
"""The members that go alone to machines of others; `make long` tries all."""
AGENT_BYTES_MAX = 50 << 20
"""The size that a GPU host has to download and keep over a bare Python, from design.md section 16."""

IMPORT_ALL = """
import importlib, json, sys
failed = {}
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One wheel per member, as hatchling builds it; the console is another test's matter."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in MEMBERS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out / folder)]
        subprocess.run(
            command,
            cwd=ROOT / folder,
            env={**os.environ, "WINDROW_SKIP_CONSOLE": "1"},
            check=True,
            timeout=STEP_S,
            capture_output=True,
        )
    return {folder: next((out / folder).glob("*.whl")) for folder in MEMBERS}


@pytest.fixture(scope="module")
def alone(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the clean environment of a member, made once."""

    @functools.cache
    def made(folder: str) -> Path:
        target = tmp_path_factory.mktemp(folder)
        install(folder, wheels, target)
        return target

    return made


def install(folder: str, wheels: dict[str, Path], target: Path) -> Path:
    """A clean environment with one member and its declared closure; returns its site-packages."""
    venv.create(target, with_pip=False, symlinks=True)
    site = site_of(target)
    parts = member_declarations()
    ours = needed(folder)
    pip(target, "install", "--no-deps", "--no-index", *(str(wheels[one]) for one in ours))
    for found in closure(frozenset().union(*(parts[one].dependencies for one in ours))).values():
        copy(found, site)
    return site


def site_of(target: Path) -> Path:
    """Where an environment keeps what is installed in it."""
    return target / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def copy(found: Distribution, site: Path) -> None:
    """Put the files of an installed distribution into another environment, scripts left out.

    What Python has compiled here goes along: it knows its source by size and time, and is not made a second time.
    """
    for file in found.files or ():
        source = Path(str(found.locate_file(file)))
        if ".." in file.parts or not source.is_file():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        compiled = Path(cache_from_source(str(source))) if source.suffix == ".py" else source
        if compiled != source and compiled.is_file():
            (target.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(compiled, target.parent / "__pycache__" / compiled.name)


def pip(target: Path, *arguments: str) -> None:
    """Run this environment's pip on another environment."""
    command = [sys.executable, "-m", "pip", "--python", str(target), "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def import_all(target: Path, names: list[str]) -> dict[str, str]:
    """Import each module there; returns what failed."""
    done = subprocess.run(
        [target / "bin" / "python", "-I", "-c", IMPORT_ALL],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        timeout=STEP_S,
        check=True,
        cwd=target,
    )
    failed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return failed


@pytest.mark.proves("each distribution installs and imports alone", by="make test")
@pytest.mark.parametrize(
    "folder", [one if one in SHORT else pytest.param(one, marks=pytest.mark.long) for one in MEMBERS]
)
def test_a_member_installs_alone_and_all_of_it_can_be_imported(
    folder: str, wheels: dict[str, Path], alone: Callable[[str], Path]
) -> None:
    pip(alone(folder), "check")
    shipped = {f"{folder}/{name}" for name in ZipFile(wheels[folder]).namelist()}
    names = [module.name for module in members(ROOT) if module.where in shipped]
    assert len(names) > 5
    runnable = [name for name in names if not name.endswith("__main__") and ".migrations." not in name]
    assert import_all(alone(folder), runnable) == {}


@pytest.mark.proves("the agent installs in 50 MB", by="make test")
def test_the_agent_takes_at_most_fifty_megabytes(alone: Callable[[str], Path]) -> None:
    site = site_of(alone("agent"))
    compiled = [sys.executable, "-m", "compileall", "-q", str(site)]
    subprocess.run(compiled, check=True, timeout=STEP_S, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    sizes = {path.relative_to(site).parts[0]: 0 for path in site.rglob("*")}
    for path in site.rglob("*"):
        sizes[path.relative_to(site).parts[0]] += path.stat().st_size if path.is_file() else 0
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    print("agent installed:", sum(sizes.values()), "bytes;", largest)
    assert sum(sizes.values()) <= AGENT_BYTES_MAX, largest


@pytest.mark.long
def test_a_member_that_imports_what_it_does_not_declare_is_caught(wheels: dict[str, Path], tmp_path: Path) -> None:
    site = install("sdk", wheels, tmp_path)
    (site / "windrow" / "planted.py").write_text("import grpc\n", encoding="utf-8")
    assert "grpc" in import_all(tmp_path, ["windrow.planted"])["windrow.planted"]
