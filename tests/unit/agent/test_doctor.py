"""Every check of `windrow-agent doctor`: facts in, level, words and repair out; and the gathering, on a made tree."""

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests import as_it_was
from windrow_agent.app import doctor_facts
from windrow_agent.app.config import parse
from windrow_agent.app.main import main
from windrow_agent.core.doctor import (
    TOOLKIT_ADVISORIES,
    Card,
    Daemon,
    Finding,
    Level,
    MachineFacts,
    Node,
    PathFacts,
    Speed,
    judge,
    judge_clock,
    judge_path,
    judge_speed,
    version_of,
)
from windrow_proto.units import GIB, MILLISECOND, SECOND

DAEMON = Daemon("Docker 28.3.0", "1.3.3", ("nvidia", "runc"), "systemd", "2", False, True, ("nvidia.com/gpu=0",))
GOOD = MachineFacts(
    kernel="6.1.0-18-amd64",
    cards=(Card("0000:17:00.0", "nvidia", "nvidia"),),
    driver_module="570.133.20",
    driver_library="570.133.20",
    nodes=(Node("/dev/nvidia0", True), Node("/dev/nvidiactl", True), Node("/dev/nvidia-uvm", True)),
    toolkit="NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80a9b9d0db00d9b1d73c0128c8962c55f4d\n",
    daemon=DAEMON,
    cgroup="v2",
    has_user_namespaces=True,
    has_bubblewrap=True,
    can_read_kernel_log=True,
    free_bytes=100 * GIB,
)
AMD = replace(
    GOOD,
    cards=(Card("0000:03:00.0", "amd", "amdgpu"),),
    driver_module=None,
    driver_library=None,
    nodes=(Node("/dev/kfd", True), Node("/dev/dri/renderD128", True)),
)


def wrong(facts: MachineFacts) -> list[tuple[str, str]]:
    """The failed checks, each with its level; every one of them has a repair."""
    found = [finding for finding in judge(facts) if finding.level is not Level.OK]
    assert all(finding.repair for finding in found)
    return [(finding.check, str(finding.level)) for finding in found]


def said(facts: MachineFacts, check: str) -> str:
    (found,) = (finding for finding in judge(facts) if finding.check == check and finding.level is not Level.OK)
    return f"{found.what} | {found.repair}"


def test_a_good_host_has_nothing_to_mend() -> None:
    assert wrong(GOOD) == []
    assert wrong(AMD) == []
    assert wrong(MachineFacts()) == []  # nothing known, nothing said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"free_bytes": GIB}, [("disk", "fix")]),
        ({"kernel": "4.14.336"}, [("kernel", "fix")]),
        ({"kernel": "4.19.0-27-amd64"}, [("kernel", "note")]),
        ({"cgroup": "v1"}, [("cgroup", "note")]),
        ({"cgroup": "hybrid"}, [("cgroup", "note")]),
        ({"driver_library": "575.57.08"}, [("driver", "fix")]),
        ({"driver_library": None}, [("driver", "fix")]),
        ({"nodes": GOOD.nodes[:2]}, [("nodes", "fix")]),
        ({"nodes": (Node("/dev/nvidia0", False), *GOOD.nodes[1:])}, [("nodes", "fix")]),
        ({"can_read_kernel_log": False}, [("kernel_log", "note")]),
        ({"cards": (Card("0000:17:00.0", "nvidia", "nouveau"),)}, [("gpu", "fix")]),
        ({"cards": (Card("0000:17:00.0", "nvidia", ""),)}, [("gpu", "fix")]),
        ({"toolkit": None}, [("toolkit", "fix")]),
        ({"toolkit": "no number"}, [("toolkit", "fix")]),
        ({"daemon": replace(DAEMON, runtimes=("runc",), cdi_devices=())}, [("toolkit", "fix")]),
        ({"daemon": replace(DAEMON, cdi_devices=None)}, [("toolkit", "note")]),
        ({"daemon": replace(DAEMON, cdi_devices=None, cgroup_driver="cgroupfs")}, []),
        ({"daemon": replace(DAEMON, is_rootless=True, gives_limits=False)}, [("containers", "fix")]),
        ({"daemon": None, "daemon_reason": "There is no container daemon."}, [("containers", "fix")]),
        ({"daemon": replace(DAEMON, runc="1.1.12")}, [("runc", "note")]),
        ({"daemon": replace(DAEMON, runc="1.2.7")}, [("runc", "note")]),
        ({"daemon": replace(DAEMON, runc="1.2.8")}, []),
        ({"daemon": replace(DAEMON, runc="1.4.0")}, []),
        ({"daemon": replace(DAEMON, runc="")}, []),
        ({"has_bubblewrap": False}, [("bubblewrap", "fix")]),
    ],
)
def test_each_thing_that_is_wrong_is_found_alone(change: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert wrong(replace(GOOD, **change)) == expected


def test_a_module_that_is_not_loaded_and_missing_files_of_amd_are_found() -> None:
    unloaded = replace(GOOD, driver_module=None, nodes=())
    assert wrong(unloaded) == [("driver", "fix")]
    assert wrong(replace(AMD, nodes=AMD.nodes[1:])) == [("nodes", "fix")]


@pytest.mark.parametrize(
    ("version", "open_to"),
    [
        ("1.16.1", "CVE-2024-0132, CVE-2025-23359, CVE-2025-23266, CVE-2025-23267"),
        ("1.16.2", "CVE-2025-23359, CVE-2025-23266, CVE-2025-23267"),
        ("1.17.3", "CVE-2025-23359, CVE-2025-23266, CVE-2025-23267"),
        ("1.17.7", "CVE-2025-23266, CVE-2025-23267"),
    ],
)
def test_a_toolkit_below_the_floor_is_named_with_the_flaws_that_it_has(version: str, open_to: str) -> None:
    facts = replace(GOOD, toolkit=f"NVIDIA Container Toolkit CLI version {version}")
    assert f"{version} is open to {open_to} | " in said(facts, "toolkit")


def test_every_advisory_says_where_it_was_read() -> None:
    assert all(advisory.source.startswith("https://") for advisory in TOOLKIT_ADVISORIES)


def test_the_repair_of_bubblewrap_follows_its_cause() -> None:
    assert "apt-get install bubblewrap" in said(replace(GOOD, has_bubblewrap=False), "bubblewrap")
    shut = replace(GOOD, has_bubblewrap=False, has_user_namespaces=False)
    assert "unprivileged_userns_clone" in said(shut, "bubblewrap")


@pytest.mark.parametrize(
    ("text", "version"),
    [("6.1.0-18-amd64", (6, 1, 0)), ("version 1.17.8", (1, 17, 8)), ("1.1.5+ds1", (1, 1, 5)), ("", None), ("7", None)],
)
def test_versions_are_read_from_what_programs_print(text: str, version: tuple[int, ...] | None) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("skew_ns", "level"),
    [(0, Level.OK), (5 * SECOND, Level.OK), (-5 * SECOND, Level.OK), (6 * SECOND, Level.FIX), (-6 * SECOND, Level.FIX)],
)
def test_a_clock_that_is_off_is_found_both_ways(skew_ns: int, level: Level) -> None:
    found = judge_clock(skew_ns)
    assert found.level is level
    assert ("ahead of" in found.what, "behind" in found.what) == (skew_ns > 5 * SECOND, skew_ns < -5 * SECOND)


PATH = PathFacts("Access eu", "a.org:7443", True, True, 12 * MILLISECOND, 1500, "192.168.1.7", "203.0.113.5")


@pytest.mark.parametrize(
    ("path", "checks", "words"),
    [
        (PATH, ["access ok", "nat ok"], "behind a NAT (it is 192.168.1.7, Access eu sees 203.0.113.5)"),
        (replace(PATH, own="203.0.113.5"), ["access ok", "nat ok"], "has its own address"),
        (replace(PATH, own="100.64.3.9"), ["access ok", "nat ok"], "a carrier's NAT"),
        (replace(PATH, seen="100.127.255.254"), ["access ok", "nat ok"], "a carrier's NAT"),
        (replace(PATH, own="100.128.0.1"), ["access ok", "nat ok"], "behind a NAT (it is"),
        (replace(PATH, seen="127.0.0.1"), ["access ok"], "answers in 12.0 ms"),
        (replace(PATH, seen=None), ["access ok"], "answers in 12.0 ms"),
        (replace(PATH, seen="an old Access"), ["access ok"], "answers in 12.0 ms"),
        (replace(PATH, mtu=1420, seen=None), ["access ok", "mtu note"], "packets of at most 1420 bytes"),
        (replace(PATH, is_answered=False, reason="nothing"), ["mtu fix"], "takes the connection, but does not answer"),
        (replace(PATH, is_connected=False, reason="refused"), ["access fix"], "cannot be reached: refused"),
    ],
)
def test_the_way_to_an_access_is_told(path: PathFacts, checks: list[str], words: str) -> None:
    found = list(judge_path(path))
    assert [f"{finding.check} {finding.level}" for finding in found] == checks
    assert words in " ".join(finding.what for finding in found)
    assert all(finding.repair for finding in found if finding.level is not Level.OK)


def test_a_measured_line_is_told_and_an_unmeasured_one_says_why() -> None:
    assert judge_speed(Speed(941_000_000, 870_400_000)) == Finding(
        "bandwidth", Level.OK, "941 Mbit/s up, 870 Mbit/s down"
    )
    assert judge_speed(Speed(reason="busy")).what == "not measured: busy"


# --- gathering ----------------------------------------------------------------------------------------------------


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine with an H100 and an RX 7900 under its own root."""
    root = tmp_path / "root"
    for address, vendor, driver in (("0000:17:00.0", "0x10de", "nvidia"), ("0000:03:00.0", "0x1002", "")):
        device = root / "sys/bus/pci/devices" / address
        write(device / "vendor", f"{vendor}\n")
        write(device / "class", "0x030000\n")
        if driver:
            (device / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
    write(root / "sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n")
    write(root / "sys/bus/pci/devices/0000:00:1f.0/class", "0x060100\n")
    write(
        root / "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Mon Mar 24 2025\nGCC version:  gcc 12.2.0\n",
    )
    library = root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.133.20"
    write(library)
    (library.parent / "libnvidia-ml.so.1").symlink_to(library.name)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD128", "dri/card0", "kmsg", "nvidia-caps/x"):
        write(root / "dev" / name)
    write(root / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    write(root / "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
    write(root / "proc/sys/user/max_user_namespaces", "0\n")
    return root


@contextmanager
def daemon_at(path: Path, answers: dict[str, Any]) -> Iterator[str]:
    """A container daemon that knows these two answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

        def address_string(self) -> str:
            return "local"

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            serving.join()


ANSWERS = {
    "/version": {
        "Version": "28.3.0",
        "Components": [{"Name": "Engine", "Version": "28.3.0"}, {"Name": "runc", "Version": "1.2.5"}],
    },
    "/info": {
        "Runtimes": {"runc": {}, "nvidia": {}},
        "CgroupDriver": "systemd",
        "CgroupVersion": "2",
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}, {"Source": "cdi", "ID": "x.org/y=1"}],
    },
}


def test_a_machine_is_read_from_its_files(tree: Path, tmp_path: Path) -> None:
    with daemon_at(tmp_path / "d.sock", ANSWERS) as url:
        facts = doctor_facts.machine(tmp_path, url, tree)
    assert facts.cards == (Card("0000:03:00.0", "amd", ""), Card("0000:17:00.0", "nvidia", "nvidia"))
    assert (facts.driver_module, facts.driver_library) == ("570.133.20", "570.133.20")
    assert [node.path for node in facts.nodes] == [
        *("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kfd", "/dev/dri/renderD128")
    ]
    assert (facts.kernel, facts.cgroup, facts.has_user_namespaces) == ("6.1.0-18-amd64", "v2", False)
    assert facts.can_read_kernel_log is True
    assert facts.daemon == Daemon(
        "Docker 28.3.0", "1.2.5", ("nvidia", "runc"), "systemd", "2", True, True, ("nvidia.com/gpu=0",)
    )


def test_an_empty_machine_says_nothing(tmp_path: Path) -> None:
    facts = doctor_facts.machine(tmp_path, f"unix://{tmp_path}/none", tmp_path / "nothing")
    assert (facts.cards, facts.driver_module, facts.driver_library, facts.nodes) == (None, None, None, ())
    assert (facts.cgroup, facts.has_user_namespaces, facts.can_read_kernel_log, facts.daemon) == (None,) * 4
    assert "no container daemon" in facts.daemon_reason


def test_doctor_prints_json_and_fails_where_something_needs_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("windrow_agent.app.memory_trim.keep_small", lambda: None)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with as_it_was.contained():
        assert main(["doctor", "--json", "--data-dir", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {"check": "identity", "level": "fix"} in [{key: one[key] for key in ("check", "level")} for one in found]
    assert all(one["repair"] for one in found if one["level"] != "ok")
    assert parse(["doctor", "--bandwidth"]).is_speed_wanted


def test_the_mtu_is_the_connections_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        assert (doctor_facts._mtu(one) or 0) >= 1280
