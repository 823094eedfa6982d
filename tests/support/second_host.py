"""Another machine made of namespaces: own network, processes, mounts and name; what it changes is gone with it.

Its /etc is a copy, its /opt, /var/lib, /run and /tmp are empty, its only route leads to this machine by a bridge.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.services import all_required
from tests.waiting import poll

STEP_S = 120
TOOLS = ("ip", "unshare", "nsenter", "curl", "setsid", "useradd", "pgrep")
FOLDERS = ("/opt", "/var/lib", "/run", "/tmp")
PREPARE = """
set -e
mount --make-rprivate /
mount -t tmpfs none /mnt
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc
for folder in /opt /var/lib /run /tmp; do mount -t tmpfs -o mode=0755 none "$folder"; done
chmod 1777 /tmp
hostname second-host
ip link set lo up
echo ready
exec sleep infinity
"""
_numbers = itertools.count(2)


class NotPossible(Exception):
    """Namespaces cannot be made here; the message says why."""


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_S, check=False)
    if done.returncode != 0:
        raise NotPossible(f"`{' '.join(command)}`: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def need_namespaces() -> None:
    """Skip the calling test where namespaces cannot be made, or fail where all services are required."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    reason = "it needs root" if os.geteuid() != 0 else f"it needs {', '.join(missing)}" if missing else ""
    if not reason:
        return
    if all_required():
        pytest.fail(f"no second host in a namespace: {reason}", pytrace=False)
    pytest.skip(f"no second host in a namespace: {reason}")


@contextmanager
def bridge() -> Iterator[tuple[str, str]]:
    """A bridge of this machine and the address that second hosts reach it by."""
    name = f"wrb{os.getpid() % 100_000}"
    network = f"10.213.{os.getpid() % 250}"
    _call("ip", "link", "add", name, "type", "bridge")
    try:
        _call("ip", "address", "add", f"{network}.1/24", "dev", name)
        _call("ip", "link", "set", name, "up")
        yield name, f"{network}.1"
    finally:
        _call("ip", "link", "del", name)


@dataclass(frozen=True, slots=True)
class SecondHost:
    """A running set of namespaces. holder: the process that is their first, as this machine numbers it."""

    holder: int

    def run(
        self, command: str, deadline_s: float = STEP_S, more: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell there, without a terminal."""
        enter = ["nsenter", f"--target={self.holder}", "--net", "--pid", "--mount", "--uts", "--wd=/", "--"]
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            [*enter, "sh", "-c", command],
            env={"PATH": path, "HOME": "/root", **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            start_new_session=True,
            check=False,
        )

    def processes(self) -> list[str]:
        """Command lines of all that runs there, without the first process and the asking one."""
        listed = self.run("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; echo; done").stdout
        own = ("sleep infinity", "sh -c for f in", "tr ")
        return sorted(line.strip() for line in listed.splitlines() if line.strip() and not line.startswith(own))

    def files(self) -> dict[str, str]:
        """Every path of the folders that are its own, with the text of its lists of accounts.

        Left out are copies and locks that useradd and userdel make for themselves.
        """
        listed = self.run(f"find /etc {' '.join(FOLDERS)} -printf '%p %y %m %U\\n'").stdout.splitlines()
        found = {line: "" for line in listed if not line.split()[0].endswith(("-", "/.pwd.lock"))}
        for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid"):
            found[name] = self.run(f"cat /etc/{name} 2>/dev/null").stdout
        return found


@contextmanager
def second_host(bridge_name: str, master_address: str) -> Iterator[SecondHost]:
    """A machine on the bridge; ended with all that runs there."""
    number = next(_numbers)
    command = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with subprocess.Popen(
        [*command, "sh", "-c", PREPARE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise NotPossible("the namespaces could not be prepared")
            holder = int(_call("pgrep", "-P", str(process.pid)).split()[0])
            ours, theirs = f"wra{os.getpid() % 10_000}x{number}", f"wrh{os.getpid() % 10_000}x{number}"
            _call("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", str(holder))
            _call("ip", "link", "set", ours, "master", bridge_name, "up")
            found = SecondHost(holder)
            address = f"{master_address.rsplit('.', 1)[0]}.{number}/24"
            done = found.run(f"ip address add {address} dev {theirs} && ip link set {theirs} up")
            if done.returncode != 0:
                raise NotPossible(done.stderr)
            poll(lambda: found.run(f"ip route get {master_address}").returncode == 0, STEP_S, "a route to the Master")
            yield found
        finally:
            process.kill()
            process.wait()
