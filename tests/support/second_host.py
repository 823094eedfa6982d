"""Another machine made of namespaces: own network, processes, mounts and name; what it changes is gone with it.

Its /etc is a copy, its /opt, /var/lib, /run and /tmp are empty, its only route leads to this machine by a bridge. A
clean host has a root of its own instead, and may have systemd as its first process.
"""

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services import all_required
from tests.waiting import poll

STEP_S = 120
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
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
CLEAN = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir={root},upperdir=/mnt/upper,workdir=/mnt/work none /mnt/root
cd /mnt/root
mount -t proc none proc
mount -t tmpfs -o mode=0755 none dev
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    set -- $node
    mknod -m 666 dev/$1 c $2 $3
done
ln -s /proc/self/fd dev/fd
mkdir -p dev/shm dev/net mnt
mknod -m 666 dev/net/tun c 10 200
hostname second-host
ip link set lo up
"""
BARE = """
pivot_root . mnt
umount -l /mnt
echo ready
exec sleep infinity
"""
WITH_SYSTEMD = """
mount -t tmpfs -o mode=0755 none run
mount -t tmpfs none tmp
mount -t sysfs none sys
mount -t tmpfs -o mode=0755 none sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd none sys/fs/cgroup/systemd
: >etc/machine-id
pivot_root . mnt
umount -l /mnt
echo ready
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
"""
"""In a folder of the hierarchy that systemd keeps for itself; it confines devices only where it has that controller."""
NOT_COMPARED = ("/proc", "/dev", "/sys", "/run", "/tmp", "/var/log", "/var/cache", "/var/lib/systemd", "/var/lib/dbus")
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
    is_clean: bool = False

    def run(
        self, command: str, deadline_s: float = STEP_S, more: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell there, without a terminal."""
        how: dict[str, Any] = {**self._how(command), "env": ENVIRONMENT | dict(more or {})}
        return subprocess.run(**how, capture_output=True, text=True, timeout=deadline_s, check=False)

    @contextmanager
    def begun(self, command: str) -> Iterator["subprocess.Popen[bytes]"]:
        """The same, meanwhile; what still runs at the end is killed."""
        with subprocess.Popen(**self._how(command)) as running:
            try:
                yield running
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)

    def _how(self, command: str) -> dict[str, Any]:
        enter = ["nsenter", f"--target={self.holder}", "--net", "--pid", "--mount", "--uts", "--"]
        words = [*enter, "env", "--chdir=/", "sh", "-c", command]
        return {"args": words, "env": ENVIRONMENT, "stdin": subprocess.DEVNULL, "start_new_session": True}

    def processes(self) -> list[str]:
        """Command lines of all that runs there, without the first process and the asking one."""
        listed = self.run("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; echo; done").stdout
        own = ("sleep infinity", "sh -c for f in", "tr ", "/lib/systemd/")
        return sorted(line.strip() for line in listed.splitlines() if line.strip() and not line.startswith(own))

    def files(self) -> dict[str, str]:
        """Every path of the folders that are its own, with the text of its lists of accounts.

        Left out are copies and locks that useradd and userdel make for themselves.
        """
        where, but = f"/etc {' '.join(FOLDERS)}", ""
        if self.is_clean:
            where, but = "/", " -o ".join(f"-path {folder}" for folder in NOT_COMPARED)
            but = f"\\( {but} \\) -prune -o"
        listed = self.run(f"find {where} {but} -printf '%p %y %m %U\\n'").stdout.splitlines()
        found = {line: "" for line in listed if not line.split()[0].endswith(("-", "/.pwd.lock"))}
        for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid"):
            found[name] = self.run(f"cat /etc/{name} 2>/dev/null").stdout
        return found


@contextmanager
def second_host(bridge_name: str, master_address: str) -> Iterator[SecondHost]:
    """A machine on the bridge; ended with all that runs there."""
    with _held(bridge_name, master_address, PREPARE) as holder:
        yield SecondHost(holder)


@contextmanager
def clean_host(bridge_name: str, master_address: str, root: Path, has_systemd: bool) -> Iterator[SecondHost]:
    """The same on a root of its own; what it changes lies over it in memory. has_systemd: its first process is systemd,
    and has started."""
    script = CLEAN.format(root=root) + (WITH_SYSTEMD if has_systemd else BARE)
    with _held(bridge_name, master_address, script, *(["--ipc", "--cgroup"] if has_systemd else [])) as holder:
        found = SecondHost(holder, is_clean=True)
        if has_systemd:
            poll(lambda: found.run("systemctl is-active multi-user.target").returncode == 0, STEP_S, "systemd is up")
        yield found


@contextmanager
def _held(bridge_name: str, master_address: str, script: str, *more: str) -> Iterator[int]:
    number = next(_numbers)
    command = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", *more]
    with subprocess.Popen(
        [*command, "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise NotPossible("the namespaces could not be prepared")
            holder = int(_call("pgrep", "-P", str(process.pid)).split()[0])
            ours, theirs = f"wra{os.getpid() % 10_000}x{number}", f"wrh{os.getpid() % 10_000}x{number}"
            _call("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", str(holder))
            _call("ip", "link", "set", ours, "master", bridge_name, "up")
            address = f"{master_address.rsplit('.', 1)[0]}.{number}/24"
            inside = ["nsenter", f"--target={holder}", "--net", "ip"]  # this machine's program: a clean one has none
            _call(*inside, "address", "add", address, "dev", theirs)
            _call(*inside, "link", "set", theirs, "up")
            poll(lambda: _is_routed(inside, master_address), STEP_S, "a route to the Master")
            yield holder
        finally:
            process.kill()
            process.wait()


def _is_routed(inside: Sequence[str], address: str) -> bool:
    command = [*inside, "route", "get", address]
    return subprocess.run(command, capture_output=True, timeout=STEP_S, check=False).returncode == 0
