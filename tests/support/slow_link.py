"""Long and bad lines between networks of this machine: packets wait, are lost or queue in a process of our own.

Each network has a TUN device; one process moves every packet from device to device, by what is set for this direction:

    eu ──TUN──▶ ┌ queue at kbit_s ─▶ lost? ─▶ delay_ms + up to jitter_ms ┐ ──TUN──▶ us       set("eu", "us", Line(...))
       ◀──TUN── └ ...................................................... ┘ ◀──TUN──          set("us", "eu", Line(...))

What is promised of time is a lower bound: on a busy machine packets come later, never sooner. Those of one direction
keep their order.
"""

import fcntl
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.forwarder import MTU, Line
from tests.support.namespaces import TUN, Namespace

NETWORK = "10.99.0"
PROGRAM = Path(__file__).with_name("forwarder.py")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class Lines:
    """The lines between named networks, as their test sees them."""

    def __init__(self, process: "subprocess.Popen[str]", names: Sequence[str]) -> None:
        self._process = process
        self._numbers = {name: number for number, name in enumerate(names, start=1)}

    def address(self, name: str) -> str:
        """Returns the address at which a network is reached over these lines."""
        return f"{NETWORK}.{self._numbers[name]}"

    def set(self, source: str, target: str, line: Line) -> None:
        """From here on packets from source to target travel like this; those on their way arrive as they would have."""
        self._ask({"way": self._way(source, target), "line": asdict(line)})

    def both(self, one: str, other: str, line: Line) -> None:
        """Set both directions."""
        self.set(one, other, line)
        self.set(other, one, line)

    def counts(self, source: str, target: str) -> dict[str, int]:
        """Packets of this direction so far: passed, lost (by chance) and refused (by a full queue)."""
        found: dict[str, int] = self._ask({"way": self._way(source, target)})
        return found

    def _way(self, source: str, target: str) -> list[int]:
        return [self._numbers[source], self._numbers[target]]

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def lines(networks: Mapping[str, Namespace], seed: int = 1) -> Iterator[Lines]:
    """Connect these networks, each with each, without delay until something is set. seed: of loss and jitter."""
    devices: list[int] = []
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(seed)]
    try:
        for number, network in enumerate(networks.values(), start=1):
            devices.append(_device(network))
            network.call("ip", "link", "set", "far", "mtu", str(MTU))
            network.address("far", f"{NETWORK}.{number}/24")
        process = subprocess.Popen(
            [*command, *map(str, devices)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=devices,
        )  # fmt: skip
    finally:
        for device in devices:
            os.close(device)  # the process has its own
    with process:
        try:
            yield Lines(process, list(networks))
        finally:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def _device(network: Namespace) -> int:
    """A TUN device `far` of this network, which is there for as long as somebody holds its descriptor."""
    with network.entered():
        device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"far", IFF_TUN | IFF_NO_PI))
    return device
