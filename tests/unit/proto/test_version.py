"""One version: of every distribution, of what the daemons say, and of what `windrow` says."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import windrow
from windrow_proto.version import VERSION

ROOT = Path(__file__).parents[3]


def test_every_distribution_has_it() -> None:
    declared = {path: tomllib.loads(path.read_text())["project"]["version"] for path in ROOT.glob("*/pyproject.toml")}
    assert len(declared) == 7
    assert {*declared.values(), windrow.__version__} == {VERSION}


@pytest.mark.parametrize("module", ["windrow_master", "windrow_access", "windrow_agent", "windrow.cli"])
def test_each_program_says_it(module: str) -> None:
    code = "import sys; from windrow.cli.main import main; main()" if module == "windrow.cli" else ""
    words = [sys.executable, *(["-c", code] if code else ["-m", module]), "--version"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")
