"""The agent may read the kernel's log; the programs that it starts may not."""

import os
import shutil
import subprocess
import sys

import pytest

CODE = """
import subprocess
from windrow_agent.app.capabilities import drop_ambient_capabilities
def rights(text):
    return [line.split()[1] for line in text.splitlines() if line.startswith(("CapPrm", "CapEff", "CapAmb"))]
drop_ambient_capabilities()
own = rights(open("/proc/self/status").read())
child = rights(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout)
print([int(text, 16) >> 34 & 1 for text in own], [int(text, 16) for text in child])
"""


def test_it_keeps_the_right_that_it_was_given_and_a_child_has_none() -> None:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("to give a capability to another user needs root and setpriv (util-linux)")
    as_any = ["setpriv", "--securebits=+noroot,+noroot_locked"]  # root without its powers: it reads the same files
    give = ["--inh-caps=-all,+syslog", "--ambient-caps=+syslog", "--bounding-set=-all,+syslog"]
    command = [*as_any, *give, sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("] ") == ["[1, 1, 0", "[0, 0, 0]\n"]
