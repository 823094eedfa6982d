"""A command beside a process workload: what makes its sandbox can be seen from inside before it is the command, and is
worth nothing to whoever catches it then."""

import asyncio
import os
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.services import need
from windrow_agent.core import seccomp_filter
from windrow_agent.core.seccomp_filter import AARCH64, X86_64
from windrow_agent.runtimes import process_network, sandbox, shim
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import WorkloadSpec

SPEC = WorkloadSpec(WorkloadId("caught"), ClusterId("caught"), (), "process")
ALLOWED, CLONE3 = 0x7FFF0000, 435
SAYS = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; ls -d /proc/[0-9]* | wc -l"


@pytest.mark.row("F1", "F2")
async def test_what_makes_a_sandbox_has_a_filter_and_sees_nobody(tmp_path: Path) -> None:
    """In bubblewrap's place a program that says what it may do, as bubblewrap may when it is caught."""
    need("bubblewrap")
    found = await asyncio.to_thread(sandbox.find_sandbox, tmp_path / "hidden")
    assert found.bwrap is not None, found.why
    sandbox.make_folders(tmp_path, SPEC, found.user)
    network = await asyncio.to_thread(process_network.ensure, tmp_path, b"WINDROW_TRIAL=1", found.user, found.outward)
    try:
        inside = sandbox.SandboxContents(SPEC, tmp_path, sandbox.interpreter_folder(tmp_path / "bin"), network.pid)
        record = sandbox.launch_record(found, inside, ("true",), ())
        record["argv"] = ["/bin/sh", "-c", SAYS]
        shim.write_whole(str(tmp_path), "launch.json", record)
        command = [sys.executable, "-I", "-S", str(shim.__file__), "exec", str(tmp_path / "launch.json")]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, cwd="/")
    finally:
        process_network.end(tmp_path)
    assert done.returncode == 0, done.stderr
    *says, seen = done.stdout.split("\n")[:3]
    assert [one.split() for one in says] == [["NoNewPrivs:", "1"], ["Seccomp:", "2"]]
    if found.user is not None:
        others = sum(name.isdigit() for name in os.listdir("/proc"))
        assert int(seen) < min(10, others), "its own and its network's, and no others"


@pytest.mark.row("F1", "F2")
@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_until_then_all_is_refused_but_what_makes_a_sandbox(machine: str) -> None:
    first, last = (seccomp_filter.program(machine, is_making=one) for one in (True, False))
    assert first is not None and last is not None
    column = machine == AARCH64

    def refused(program: bytes) -> set[int]:
        lines = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
        lines = lines[: [line[3] for line in lines].index(CLONE3)]
        return {line[3] for line, then in pairwise(lines) if line[0] == 0x15 and then[0] == 0x06 and then[3] != ALLOWED}

    for name, numbers in seccomp_filter.REFUSED.items():
        number = numbers[column]
        assert number is None or number in refused(last)
        assert number is None or (number in refused(first)) != (name in seccomp_filter.MAKING), name
    assert set(seccomp_filter.MAKING) < set(seccomp_filter.REFUSED)
