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


@pytest.mark.parametrize(
    ("where", "code", "contract"),
    [
        ("agent/windrow_agent/planted.py", "import windrow_master", "Processes never import one another"),
        ("access/windrow_access/planted.py", "import windrow_agent", "Processes never import one another"),
        ("tunnel/windrow_tunnel/planted.py", "import windrow_proto", "Tunnels import nothing else of ours"),
        ("proto/windrow_proto/planted.py", "import windrow_agent", "The contract imports nobody but tunnels"),
        ("sdk/windrow/planted.py", "import windrow_proto", "The SDK imports nothing of ours but tunnels"),
        ("up/windrow_up/planted.py", "import windrow_master", "Processes never import one another"),
        ("agent/windrow_agent/core/planted.py", "import time", "Cores are pure"),
    ],
)
def test_a_planted_import_breaks_its_contract(where: str, code: str, contract: str, tmp_path: Path) -> None:
    for folder, package in MEMBERS.items():
        # Compiled files come and go meanwhile: other tests start programs of these very folders.
        skipped = shutil.ignore_patterns("static", "__pycache__")
        shutil.copytree(ROOT / folder / package, tmp_path / folder / package, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / where).write_text(f'"""Planted."""\n\n{code}\n', encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout
    assert any(contract in line and line.endswith("BROKEN") for line in done.stdout.splitlines()), done.stdout


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
