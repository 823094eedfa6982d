"""The Python examples of docs/jobs.md, run as they stand, one after another on one market."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rental import Renter
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
SHOWN = ["Succeeded 0 True\nhello\n['out.txt']", "hello again\nTrue"]


@pytest.mark.proves("the Python examples of docs/jobs.md run as they stand")
def test_the_examples_run_and_show_what_they_should(renter: Renter, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = []
    cli = renter.stack.cli
    own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"]}
    for example in examples:
        (tmp_path / "example.py").write_text(example)
        done = subprocess.run(
            [sys.executable, "example.py"], cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
            timeout=PATIENCE_S * 2, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout.strip())
    assert (tmp_path / "results" / "out.txt").read_text() == "left\n"
    assert shown == SHOWN
