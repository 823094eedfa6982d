"""The console is built when the distribution is, once, and an install never fails for want of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "master" / "hatch_build.py"
BUILD_S = 100
GOOD = "import { mkdirSync, writeFileSync } from 'fs'; mkdirSync('dist', { recursive: true }); "
GOOD += "writeFileSync('dist/index.html', 'built')"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A member folder with a copy of the hook and an empty package, beside a console without dependencies."""
    (tmp_path / "master" / "windrow_master").mkdir(parents=True)
    (tmp_path / "master" / "hatch_build.py").write_text(HOOK.read_text(encoding="utf-8"), encoding="utf-8")
    console = tmp_path / "console"
    console.mkdir()
    package = {"name": "console", "version": "0.1.0", "type": "module", "scripts": {"build": "node build.mjs"}}
    (console / "package.json").write_text(json.dumps(package))
    lock = {"name": "console", "version": "0.1.0", "lockfileVersion": 3, "packages": {"": package}}
    (console / "package-lock.json").write_text(json.dumps(lock))
    (console / "build.mjs").write_text(GOOD)
    return tmp_path


def build(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the hook by hand, as `make check` does."""
    command = [sys.executable, str(root / "master" / "hatch_build.py"), "build"]
    return subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)


def static(root: Path) -> Path:
    """The folder from which the Master serves the console."""
    return root / "master" / "windrow_master" / "static"


@pytest.mark.proves("the console is built with the Node.js of a Python wheel", by="make test")
def test_the_console_is_built_into_the_master(root: Path) -> None:
    done = build(root)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in static(root).iterdir()] == ["index.html"]


def test_what_was_built_after_its_sources_is_not_built_again(root: Path) -> None:
    build(root)
    before = (static(root) / "index.html").stat().st_mtime_ns
    build(root)
    assert (static(root) / "index.html").stat().st_mtime_ns == before


def test_changed_sources_are_built_again(root: Path) -> None:
    build(root)
    (root / "console" / "build.mjs").write_text(GOOD.replace("built", "again"))
    later_ns = (static(root) / "index.html").stat().st_mtime_ns + 1_000_000_000
    os.utime(root / "console" / "build.mjs", ns=(later_ns, later_ns))
    build(root)
    assert (static(root) / "index.html").read_text() == "again"


def test_a_failed_build_leaves_its_reason_and_a_later_one_takes_it_away(root: Path) -> None:
    (root / "console" / "build.mjs").write_text("console.error('no such router'); process.exit(3)")
    done = build(root)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "no such router" in (static(root) / "NOT_BUILT.txt").read_text()
    (root / "console" / "build.mjs").write_text(GOOD)
    assert build(root).returncode == 0
    assert [path.name for path in static(root).iterdir()] == ["index.html"]


def test_without_a_console_there_is_nothing_to_build(root: Path) -> None:
    (root / "console" / "package.json").unlink()
    assert build(root).returncode == 0
    assert not static(root).exists()
