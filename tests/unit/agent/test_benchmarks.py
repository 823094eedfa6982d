"""Benchmarks of a host: named figures, from a child process, in bounded time and space."""

import sys
from pathlib import Path

import pytest

from windrow_agent.host import benchmarks
from windrow_proto.clock import SystemClock

NAMES = ["cpu.sha256_bytes_per_s", "disk.write_bytes_per_s", "memory.copy_bytes_per_s"]


@pytest.mark.proves("processors, memory and disk of this host are measured")
async def test_a_real_host_is_measured_in_a_child(tmp_path: Path):
    measured = await benchmarks.measure(tmp_path, SystemClock())
    assert [one.name for one in measured] == NAMES
    assert all(one.value > 1e6 and one.unit == "By/s" and one.subject == "" for one in measured)
    assert all(one.measured_wall_ns > 0 for one in measured)
    assert list(tmp_path.iterdir()) == []


async def test_a_child_past_its_deadline_is_killed_and_gives_nothing(tmp_path: Path):
    assert await benchmarks.measure(tmp_path, SystemClock(), deadline_s=0.01) == ()


async def test_a_data_directory_that_is_not_there_only_costs_the_disk_figure(tmp_path: Path):
    measured = await benchmarks.measure(tmp_path / "absent", SystemClock())
    assert [one.name for one in measured] == [NAMES[0], NAMES[2]]


async def test_a_child_that_cannot_start_gives_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert await benchmarks.measure(tmp_path, SystemClock()) == ()


@pytest.mark.parametrize(
    "output",
    [b"", b"nonsense", b"[]", b'{"other": 1}', b'{"cpu.sha256_bytes_per_s": -1}', b'{"cpu.sha256_bytes_per_s": "x"}'],
)
def test_what_is_no_figure_is_left_out(output: bytes):
    assert benchmarks.parse(output, 1) == ()


def test_a_nearly_full_disk_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmarks, "DISK_FREE_MIN", 1 << 62)
    assert benchmarks.write_rate(tmp_path) is None
