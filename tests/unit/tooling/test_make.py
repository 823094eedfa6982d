"""The verbs: each explains itself, passes its variables on, and says plainly what is missing."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAKE_S = 60
VERBS = ("up", "test", "check", "bench", "sim", "chaos", "mission", "proto", "setup", "lock", "clean")


def make(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run make there, without the variables of a make that runs these tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment = kept | ({"PATH": path} if path else {})
    for name in ("DATA_DIR", "LISTEN", "PUBLIC", "SIMULATE", "ONCE", "B"):
        environment.pop(name, None)
    program = shutil.which("make") or "make"
    return subprocess.run(
        [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=MAKE_S, check=False
    )


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_every_verb(verb: str) -> None:
    assert re.search(rf"^  make {verb} +\w", make(ROOT, "help").stdout, re.MULTILINE)


def test_up_passes_its_variables_on() -> None:
    told = make(ROOT, "-n", "up", "DATA_DIR=/d", "LISTEN=0.0.0.0", "PUBLIC=p", "SIMULATE=5", "ONCE=1").stdout
    assert "windrow up --data-dir '/d' --listen '0.0.0.0' --public 'p' --simulate '5' --once" in told


def test_up_without_variables_has_no_flags() -> None:
    assert re.search(r"windrow up *$", make(ROOT, "-n", "up").stdout, re.MULTILINE)


def test_a_missing_venv_module_is_a_sentence(tmp_path: Path) -> None:
    fakes = bare_machine(tmp_path, python='case "$*" in *ensurepip*) exit 1;; *version_info*) echo True;; esac')
    done = make(tmp_path, "up", path=str(fakes))
    assert done.returncode != 0
    assert "apt-get install python3-venv" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_python_is_a_sentence(tmp_path: Path) -> None:
    done = make(tmp_path, "up", path=str(bare_machine(tmp_path, python="exit 1")))
    assert done.returncode != 0
    assert "Windrow needs Python 3.11 or newer" in done.stdout


def test_a_missing_compiler_is_a_sentence_before_anything_is_installed(tmp_path: Path) -> None:
    done = make(tmp_path, "test", path=str(bare_machine(tmp_path, python="echo True")))
    assert done.returncode != 0
    assert done.stdout.startswith("gcc is missing")


def test_ci_runs_what_a_person_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert script.read_text().splitlines()[1:] == ["PROVISION=1 REQUIRE_SERVICES=1 make test"]
    assert os.access(script, os.X_OK)


def bare_machine(folder: Path, python: str) -> Path:
    """A checkout with a Makefile only, and a PATH with few tools and this Python."""
    for name in ("Makefile", "pyproject.toml", *(path.name for path in ROOT.glob("requirements*.lock"))):
        shutil.copy(ROOT / name, folder)
    (folder / "master").mkdir()
    (folder / "master" / "hatch_build.py").touch()
    fakes = folder / "bin"
    fakes.mkdir()
    for tool in ("bash", "find", "grep", "rm", "touch", "sh", "sed"):
        (fakes / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (fakes / name).write_text(f"#!/bin/sh\n{python}\n")
        (fakes / name).chmod(0o755)
    return fakes
