"""The program of the container that holds a network, byte by byte."""

import io
import os
import platform
import signal
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest

from windrow_agent.runtimes import docker_pause


@pytest.mark.parametrize("machine", docker_pause.PROGRAMS)
def test_the_image_is_one_program_whose_header_says_what_it_is(machine: str) -> None:
    number, code = docker_pause.PROGRAMS[machine]
    with tarfile.open(fileobj=io.BytesIO(docker_pause.image_archive(machine))) as tar:
        (member,) = tar.getmembers()
        found = tar.extractfile(member)
        assert found is not None
        program = found.read()

    kind, made_for, _, entry, table = struct.unpack_from("<HHIQQ", program, 16)
    segment, _, offset, address, _, size, in_memory, _ = struct.unpack_from("<IIQQQQQQ", program, table)
    assert (member.name, member.mode, program[:5]) == ("pause", 0o755, b"\x7fELF\x02")
    assert (kind, made_for, segment, offset) == (2, number, 1, 0)
    assert program[entry - address :] == code and size == in_memory == len(program)


@pytest.mark.skipif(platform.machine() not in docker_pause.PROGRAMS, reason="no program for this machine")
def test_the_program_waits_until_it_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(docker_pause.elf(*docker_pause.PROGRAMS[platform.machine()]))
    program.chmod(0o755)
    with subprocess.Popen([program]) as waiting:
        os.kill(waiting.pid, signal.SIGCONT)  # a signal that is let go by wakes it, and it waits again
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.3)
        waiting.kill()
    assert waiting.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("mode", "holder"), [("container:abc", "abc"), ("windrow", ""), ("container", ""), (None, "")])
def test_whose_network_a_container_has_is_read_from_its_inspection(mode: str | None, holder: str) -> None:
    assert docker_pause.holder_of({"HostConfig": {"NetworkMode": mode}}) == holder
    assert docker_pause.holder_of({}) == ""
