"""The contracts between the distributions, as import-linter reads them from pyproject.toml."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import MEMBERS, ROOT

LINT_S = 120
LINTER = Path(sys.executable).with_name("lint-imports")


@pytest.mark.proves("processes never import each other; a planted import is caught", by="make test")
def test_the_import_contracts_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


APART = "Processes never import one another"
PLANTED = (
    ("agent/windrow_agent/planted.py", "windrow_master", APART),
    ("access/windrow_access/planted.py", "windrow_agent", APART),
    ("tunnel/windrow_tunnel/planted.py", "windrow_proto", "Tunnels import nothing else of ours"),
    ("proto/windrow_proto/planted.py", "windrow_agent", "The contract imports nobody but tunnels"),
    ("sdk/windrow/planted.py", "windrow_proto", "The SDK imports nothing of ours but tunnels"),
    ("up/windrow_up/planted.py", "windrow_master", APART),
    ("agent/windrow_agent/core/planted.py", "time", "Cores are pure"),
)
"""A file, what it imports, and the contract that this breaks."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> "subprocess.CompletedProcess[str]":
    """The linter's end on a copy of the tree with each of these files in it."""
    copy = tmp_path_factory.mktemp("planted")
    for folder, package in MEMBERS.items():
        # Compiled files come and go meanwhile: other tests start programs of these very folders.
        skipped = shutil.ignore_patterns("static", "__pycache__")
        shutil.copytree(ROOT / folder / package, copy / folder / package, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for where, imported, _ in PLANTED:
        (copy / where).write_text(f'"""Planted."""\n\nimport {imported}\n', encoding="utf-8")
    return lint(copy)


@pytest.mark.parametrize(("where", "imported", "contract"), PLANTED)
def test_a_planted_import_breaks_its_contract(
    where: str, imported: str, contract: str, planted: "subprocess.CompletedProcess[str]"
) -> None:
    importer = ".".join(Path(where).with_suffix("").parts[1:])
    assert planted.returncode == 1, planted.stdout
    assert any(contract in line and line.endswith("BROKEN") for line in planted.stdout.splitlines()), planted.stdout
    reasons = planted.stdout.partition("Broken contracts")[2].partition(f"\n{contract}")[2]
    assert f"{importer} -> {imported} (l.3)" in reasons, planted.stdout


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the packages below the root, before any that are installed."""
    path = os.pathsep.join(str(root / folder) for folder in MEMBERS)
    return subprocess.run(
        [LINTER, "--config", "pyproject.toml", "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=LINT_S,
        check=False,
    )
