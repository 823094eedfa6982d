"""Checks of the console's parts: its lock names no registry, its page no script. `make check` runs its own tests."""

import json
import re
from pathlib import Path

import pytest

from tests.browser.pretend_master import built_console

CONSOLE = Path(__file__).parents[2] / "console"


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
