"""Networks of a test's own: namespaces that have no name and end with this process, cables between them, rules in them.

A namespace is held by a file descriptor alone: nothing of it is left behind, not even by a test that is killed.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.services import all_required

CLONE_NEWNET = 0x40000000
CALL_S = 60
TUN = Path("/dev/net/tun")
TOOLS = ("ip", "nft")
TABLE = "inet faults"
_libc = ctypes.CDLL(None, use_errno=True)


def need_networks() -> None:
    """Skip the calling test where networks of its own cannot be made, or fail where all services are required."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    reason = "it needs root" if os.geteuid() != 0 else f"it needs {', '.join(missing)}" if missing else ""
    if not reason:
        reason = _refused() or ("" if TUN.exists() else f"it needs {TUN}")
    if not reason:
        return
    if all_required():
        pytest.fail(f"no networks of a test's own: {reason}", pytrace=False)
    pytest.skip(f"no networks of a test's own: {reason}")


def _refused() -> str:
    """Why the kernel makes none here, as in a container with few rights."""
    try:
        with namespace() as made:
            made.forbid()
    except (OSError, NetworkError) as error:
        return str(error)
    return ""


class NetworkError(Exception):
    """A command on a network failed; the message says what and why."""


class Namespace:
    """One network, with nothing but its loopback to begin with."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @property
    def path(self) -> str:
        """Names it for `ip ... netns`, for as long as this process lives."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Meanwhile this thread, and every process and thread that it starts, is in this network."""
        with _returning():
            _checked(_libc.setns(self.fd, CLONE_NEWNET))
            yield

    def call(self, *command: str, told: str | None = None) -> str:
        """Run a command there; raises NetworkError. told: its standard input."""
        with self.entered():
            done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=CALL_S, check=False)
        if done.returncode != 0:
            raise NetworkError(f"`{' '.join(command)}`: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def address(self, device: str, address: str) -> None:
        """Give a device an address such as 10.1.2.3/24, and raise it."""
        self.call("ip", "address", "add", address, "dev", device)
        self.call("ip", "link", "set", device, "up")

    def forbid(self, incoming: str = "", outgoing: str = "") -> None:
        """Put these rules of nftables, one a line, in the place of all before them; without any, all may pass.

        incoming, outgoing: for packets that arrive here or leave here, such as `tcp dport 7443 counter drop`.
        """
        chains = "".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; policy accept;\n{rules}\n}}\n"
            for hook, rules in (("input", incoming), ("output", outgoing))
            if rules
        )
        self.call("nft", "-f", "-", told=f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{chains}}}\n")

    def hits(self) -> int:
        """How many packets met a rule with a `counter` since it was put."""
        words = self.call("nft", "list", "table", *TABLE.split()).split()
        return sum(int(words[at + 1]) for at, word in enumerate(words) if word == "packets")


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A new network with its loopback up. Whoever is still in it at the end keeps it alive; we let go of it."""
    with _returning():
        _checked(_libc.unshare(CLONE_NEWNET))
        made = Namespace(_here())
    try:
        made.call("ip", "link", "set", "lo", "up")
        yield made
    finally:
        os.close(made.fd)


def cable(left: Namespace, left_device: str, right: Namespace, right_device: str) -> None:
    """Two devices, one in each network, that are the ends of one cable (veth). It ends with either network."""
    peer = ("peer", "name", right_device, "netns", right.path)
    left.call("ip", "link", "add", left_device, "type", "veth", *peer)


@contextmanager
def switched(count: int, network: str = "10.98.0") -> Iterator[list[tuple[Namespace, str]]]:
    """So many networks on one switch without delay, each with its address on it (at most 200)."""
    with ExitStack() as cleanup:
        switch = cleanup.enter_context(namespace())
        switch.call("ip", "link", "add", "switch", "type", "bridge")
        switch.call("ip", "link", "set", "switch", "up")
        made = []
        for number in range(1, count + 1):
            one = cleanup.enter_context(namespace())
            cable(one, "cable", switch, f"port{number}")
            switch.call("ip", "link", "set", f"port{number}", "master", "switch", "up")
            one.address("cable", f"{network}.{number}/24")
            made.append((one, f"{network}.{number}"))
        yield made


@contextmanager
def _returning() -> Iterator[None]:
    """Come back to the network in which this thread is now."""
    before = _here()
    try:
        yield
    finally:
        _checked(_libc.setns(before, CLONE_NEWNET))
        os.close(before)


def _here() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _checked(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
