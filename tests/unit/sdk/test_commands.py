"""The `windrow` command loads what it is asked for."""

import json
import subprocess
import sys

import pytest

LOADS = """
import json, sys
from windrow.cli import main
main.load_commands(json.loads(sys.argv[1]))
print("windrow_master" in sys.modules, "up" in {one.name for one in main.app.registered_commands})
"""


@pytest.mark.parametrize(
    ("words", "is_loaded"),
    [
        (["host", "ls"], False),
        (["--url", "http://up", "run", "--", "up"], False),
        (["--url=http://up", "version"], False),
        (["up", "--once"], True),
        (["--url", "host", "up"], True),
        (["--help"], True),
        ([], True),
    ],
)
def test_what_the_master_brings_is_loaded_only_where_no_command_of_ours_is_asked_for(
    words: list[str], is_loaded: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS, json.dumps(words)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == [str(is_loaded)] * 2
