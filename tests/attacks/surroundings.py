"""The host that is attacked: a network of the test's own with everything in it that a workload must not reach, and the
probes, which try to.

Each suite enters a network of its own, so that suites which run at the same time share no name, address or port.
"""

import asyncio
import contextlib
import ctypes
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.namespaces import Namespace, namespace
from windrow_agent.core.seccomp_filter import AARCH64, REFUSED

PROBES_MIN = 120
HOME = "10.77.0.1"
"""This host's own address."""
NEIGHBOUR = "10.77.0.2"
FAR = (f"{NEIGHBOUR}/24", "172.31.9.2/32", "192.168.77.2/32", "100.64.7.2/32", "169.254.169.254/32", "169.254.170.2/32")
OUTSIDE = "11.22.33.2/32"
"""Stands for an address of the internet."""
MAY = frozenset({"outside"})
"""The probe that every workload may pass: reach that."""
ABSTRACT = "\0windrow-attacked"
IPC_CREAT, IPC_RMID = 0o1000, 0
OF_USER, UNLINK = -4, 9
"""KEY_SPEC_USER_KEYRING and KEYCTL_UNLINK of Linux's keyctl.h."""
READY_S = 30
SERVER = """
import select, socket, sys
lines = {}
for port in map(int, sys.argv[1].split(",")):
    for address in sys.argv[2:]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            line = socket.socket(socket.AF_INET, kind)
            line.bind((address, port))
            if kind == socket.SOCK_STREAM:
                line.listen()
            lines[line] = kind
print("up", flush=True)
while True:
    for line in select.select(list(lines), [], [])[0]:
        if lines[line] == socket.SOCK_STREAM:
            line.accept()[0].close()
        else:
            line.sendto(b"here", line.recvfrom(64)[1])
"""
NEIGHBOURS = {
    *("metadata", "metadata of tasks", "metadata by datagram", "the host by its other address", "a mail server"),
    *("a neighbour in 10/8", "a neighbour in 192.168/16", "a neighbour in 172.16/12", "a neighbour in 100.64/10"),
    "a neighbour's names",
}
"""The results that the probes reach where nothing keeps them away."""
SIGHTS = {
    "keys of others",
    *("an abstract socket", "the host's shared memory", "the agent's file"),
    *("others' processes", "effective capabilities", "new privileges", "system calls without a filter"),
}
"""The results that they see on the host itself."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """secret: a file of the agent's; key: of the host's shared memory."""

    network: Namespace
    secret: Path
    key: int

    def words(self, what: str, host: str, peer: str) -> tuple[str, ...]:
        """Returns the arguments of the probes. host: an address of this host that is near; peer: of another renter's
        workload."""
        return what, host, peer, str(self.secret), hex(self.key)


@contextmanager
def surroundings(folder: Path) -> Iterator[Surroundings]:
    """Meanwhile this thread, and all that it starts, is on that host. folder: for the agent's file."""
    with ExitStack() as cleanup:
        own, far = cleanup.enter_context(namespace()), cleanup.enter_context(namespace())
        cleanup.callback(_with_new_threads)
        cleanup.enter_context(own.entered())
        _with_new_threads()
        told("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "cable", "netns", far.path)
        own.address("eth0", f"{HOME}/24")
        for address in (*FAR, OUTSIDE):
            far.call("ip", "address", "add", address, "dev", "cable")
        far.call("ip", "link", "set", "cable", "up")
        far.call("ip", "route", "add", "default", "via", HOME)
        told("ip", "route", "add", "default", "via", NEIGHBOUR)
        for address in (*FAR[1:], OUTSIDE):
            told("ip", "route", "replace", address, "via", NEIGHBOUR)
        with far.entered():
            cleanup.enter_context(served("80,25,587,53", *(one.split("/")[0] for one in (*FAR, OUTSIDE))))
        abstract = cleanup.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(ABSTRACT)
        abstract.listen()
        secret = folder / "sign.key"
        secret.write_text("PLANTED")
        cleanup.enter_context(_kept_key())
        yield Surroundings(own, secret, cleanup.enter_context(_shared_memory()))


def _with_new_threads() -> None:
    """Threads stay where they were started: those of the loop are to be here."""
    with contextlib.suppress(RuntimeError):  # there is no loop
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


@contextmanager
def _shared_memory() -> Iterator[int]:
    """A piece of System V memory that anybody on this host may have; its key."""
    key, libc = 0x57000000 | os.getpid(), ctypes.CDLL(None, use_errno=True)
    made = libc.shmget(key, 4096, IPC_CREAT | 0o666)
    assert made >= 0, os.strerror(ctypes.get_errno())
    try:
        yield key
    finally:
        libc.shmctl(made, IPC_RMID, None)


@contextmanager
def _kept_key() -> Iterator[None]:
    """A key that the kernel keeps for this user."""
    number = {name: numbers[platform.machine() == AARCH64] for name, numbers in REFUSED.items()}
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(number["add_key"], b"user", b"windrow-planted", b"PLANTED", 7, OF_USER)
    assert made >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.syscall(number["keyctl"], UNLINK, made, OF_USER)


@contextmanager
def served(ports: str, *addresses: str) -> Iterator[None]:
    """Somebody answers there, on each port of each address."""
    command = [sys.executable, "-c", SERVER, ports, *addresses]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            if process.stdout.readline() != b"up\n":
                raise AssertionError(f"nobody answers at {ports} of {addresses}: {process.stderr.read().decode()}")
            yield
        finally:
            process.kill()


def compiled(folder: Path) -> Path:
    """The probes as a program."""
    made = folder / "probes"
    source = Path(__file__).parent / "probes.c"
    subprocess.run(["gcc", "-static", "-O1", "-o", str(made), str(source)], check=True, timeout=60)
    return made


def results(text: str) -> dict[str, str]:
    """Returns the outcome of each try."""
    return {name: said for name, _, said in (line.partition(": ") for line in text.splitlines())}


def passed(text: str) -> set[str]:
    """The tries that came through."""
    return {name for name, said in results(text).items() if said == "passed"}


def told(*words: str, **more: str) -> str:
    """Returns the output of a command. more: of its environment."""
    env = os.environ | more
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120, env=env).stdout


def gateway(bridge: str) -> str:
    """Its address, by the link: a daemon that has just made its first bridge does not say it."""
    return told("ip", "-4", "-o", "address", "show", "dev", bridge).split("inet ")[1].split("/")[0]
