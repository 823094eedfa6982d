"""Facts of a host: this one really, others from a folder that looks like their root."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from windrow_agent.host.psutil_reader import PsutilHost
from windrow_proto.metrics import METRICS, Scope

WORKLOADS = 110
HOST_NUMBERS = {metric.number for metric in METRICS if metric.scope is Scope.HOST} - {WORKLOADS}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.proves("this host's processors, memory, disk and network are read")
def test_this_host_tells_its_facts_and_every_metric(tmp_path: Path):
    host = PsutilHost(tmp_path)
    facts, first, second = host.facts(), host.sample(), host.sample()
    assert facts.hostname
    assert facts.kernel.startswith("Linux ")
    assert facts.cpu_model
    assert 0 < facts.cpu_physical <= facts.cpu_count
    assert min(facts.memory_bytes, facts.disk_bytes) > 1 << 28
    assert set(first) == set(second) == HOST_NUMBERS
    assert first[101] is None
    assert all(value is None or value >= 0 for value in second.values())
    assert second[102] is not None


def test_facts_come_from_the_files_of_the_root(tmp_path: Path):
    root = write(
        tmp_path,
        {
            "etc/os-release": 'NAME=x\nPRETTY_NAME="Some Linux 5"\n',
            "etc/machine-id": "abc\n",
            "proc/cpuinfo": "processor : 0\nmodel name\t: Fast CPU (R)\n",
            "sys/fs/cgroup/memory.max": "1048576\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
        },
    )
    facts = PsutilHost(tmp_path, root).facts()
    assert (facts.os, facts.machine_id, facts.cpu_model) == ("Some Linux 5", "abc", "Fast CPU (R)")
    assert (facts.memory_bytes, facts.cpu_count, facts.cpu_physical) == (1 << 20, 1, 1)


def test_a_host_whose_files_are_missing_still_answers(tmp_path: Path):
    facts = PsutilHost(tmp_path, tmp_path).facts()
    assert (facts.machine_id, facts.cpu_count > 0, facts.memory_bytes > 0) == ("", True, True)


def test_unlimited_cgroups_leave_the_machine_as_it_is(tmp_path: Path):
    root = write(tmp_path, {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/cpu.max": "max 100000\n"})
    limited, plain = PsutilHost(tmp_path, root).facts(), PsutilHost(tmp_path, tmp_path / "none").facts()
    assert replace(limited, more={}) == replace(plain, more={})


def test_a_figure_the_system_refuses_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no")

    for name in ("disk_io_counters", "net_io_counters", "swap_memory", "disk_usage"):
        monkeypatch.setattr(psutil, name, refuse)
    values = PsutilHost(tmp_path).sample()
    assert [values[metric] for metric in (104, 105, 106, 107, 108, 109)] == [None] * 6
    assert PsutilHost(tmp_path).facts().disk_bytes == 0


def test_pressure_is_the_share_of_ten_seconds_in_which_something_waited(tmp_path: Path):
    line = "some avg10=12.34 avg60=1.00 avg300=0.00 total=1\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n"
    root = write(tmp_path, {"proc/pressure/cpu": line, "proc/pressure/io": "not counted here\n"})
    values = PsutilHost(tmp_path, root).sample()
    assert (values[111], values[112], values[113]) == (123, None, None)
