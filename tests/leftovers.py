"""The pytest plugin that says what a run leaves on the machine, and fails it for that with LEFTOVERS=1.

Containers, volumes, networks, interfaces, named namespaces, mounts, rules, shared memory, control groups, files named
after us, and the processes of tests and of workloads. Where another run of these tests is at work, nobody can say whose
something is, and nothing is judged.
"""

import contextlib
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from windrow_agent.core import egress
from windrow_agent.runtimes import cgroups

ASK_S: Final = 20
PATIENCE_S: Final = 20.0
"""For what is just going: the kernel takes a network apart after its last process."""
LOOK_S: Final = 0.5
MARK: Final = "WINDROW_TEST_RUN"
WORKLOADS: Final = ("work_", "workload_")
"""How a workload's id begins, a test's or a Master's; it stands for that mark: none has it, whoever's it is."""
RUNS: Final = re.compile(r"\S*python\S* (-\S+ )*(-m (pytest|tests\.again)|\S*/pytest)\b")
"""The command line of a run that carries no mark."""
OURS: Final = ("windrow", "wr-", "wrp-", "wrd-")
"""How the folders begin that tests and daemons make outside of pytest's own."""
KEPT: Final = frozenset({egress.NETWORK, egress.BRIDGE, f"table inet {egress.TABLE}", "/tmp/windrow-test-ports"})
"""The things that the next run uses again: an agent's network for all of its containers, and the locks of our ports."""
Found = set[tuple[str, str]]

os.environ.setdefault(MARK, uuid.uuid4().hex)


class Leftovers:
    """Of one run, looked at by the process that began it."""

    def __init__(self) -> None:
        self.before = here()
        self.was_alone = not others()
        self.left: Found = set()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Wait for what is going, and note what stays."""
        end = time.monotonic() + PATIENCE_S
        while (left := here() - self.before) and self._is_alone() and time.monotonic() < end:
            time.sleep(LOOK_S)
        if left and self._is_alone():
            self.left = left
            if os.environ.get("LEFTOVERS") == "1":
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _is_alone(self) -> bool:
        self.was_alone = self.was_alone and not others()
        return self.was_alone

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what."""
        if not self.was_alone:
            terminalreporter.line("left behind: not judged, another run of these tests is at work on this machine")
        for kind, name in sorted(self.left):
            terminalreporter.line(f"left behind: {kind} {name}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """In the one process that is no worker of another."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Leftovers(), "windrow-leftovers")


def here() -> Found:
    """Returns the things that are there now, by kind and name."""
    found: Found = {("interface", name) for name in os.listdir("/sys/class/net")}
    found |= {("mount", line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()}
    for kind, folder in (
        ("namespace", "/run/netns"),
        ("shared memory", "/dev/shm"),
        ("file", "/tmp"),
        ("file", "/run"),
    ):
        with contextlib.suppress(OSError):
            found |= {(kind, f"{folder}/{name}") for name in os.listdir(folder) if kind != "file" or _is_ours(name)}
    for parent in cgroups.find().folders.values():
        found |= {("control group", str(path)) for path in parent.glob("windrow-work*")}
    found |= {("container", one) for one in _said("docker", "ps", "--all", "--format={{.Names}}")}
    found |= {("volume", one) for one in _said("docker", "volume", "ls", "--format={{.Name}}")}
    found |= {("network", one) for one in _said("docker", "network", "ls", "--format={{.Name}}")}
    found |= {("rules", one) for one in _said("nft", "list", "tables")}
    for pid, words, run in _processes():
        if run == os.environ[MARK]:
            found.add(("process", f"{pid} {words}"))
        elif run.startswith(WORKLOADS):  # by its id: it begins processes all the time
            found.add(("workload", run))
    return {one for one in found if one[1] not in KEPT}


def others() -> list[int]:
    """The processes of other runs."""
    found = [
        (pid, words, run) for pid, words, run in _processes() if not run.startswith((os.environ[MARK], *WORKLOADS))
    ]
    return [pid for pid, words, run in found if run or RUNS.match(words)]


def _processes() -> Iterator[tuple[int, str, str]]:
    """All but this one and those above it: number, command line, and of which run it is, empty where of none."""
    above = set(_line_of(os.getpid()))
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (pid := int(entry.name)) not in above:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                pairs = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
                known = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
                yield pid, words[:120], known.get(MARK) or known.get("WINDROW_WORKLOAD_ID", "")


def _line_of(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _is_ours(name: str) -> bool:
    return name.startswith(OURS)


def _said(*words: str) -> list[str]:
    """A tool's lines; none where it is missing or its daemon is."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
