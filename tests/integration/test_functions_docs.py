"""Every example of docs/functions.md, run as it stands, one after another on one market."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rental import Renter
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
WORK = """
import os, time

def add(a, b):
    return a + b

LOADED = str(time.monotonic_ns())

def loads_once(_):
    return len(LOADED) > 0
"""
SHOWN = ["3", "[11, 22, 33]\n[True]", "3", "[3, 7]\n[2, 3]"]


@pytest.mark.proves("every example of docs/functions.md runs as it stands")
def test_the_examples_run_and_show_what_they_should(renter: Renter, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "work.py").write_text(WORK)
    shown = []
    before = {one["id"] for one in renter.all("/clusters")}
    cli = renter.stack.cli
    own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"], "XDG_STATE_HOME": str(tmp_path / ".venv")}
    for example in examples:
        (tmp_path / "example.py").write_text(example)
        done = subprocess.run(
            [sys.executable, "example.py"], cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
            timeout=PATIENCE_S * 2, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout.strip())
    assert [one["phase"] for one in renter.all("/clusters") if one["id"] not in before] == ["Deleted"]
    assert shown == SHOWN
