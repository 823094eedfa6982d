"""The command lines of the Masters of `windrow up`, and where they listen.

PostgreSQL: each has ports of its own and answers while it waits. SQLite: who waits has none, but all that it needs to
start, and takes over the ports of who led.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_proto.data_directory import CliFile
from windrow_proto.master_process import HEALTH_PORT, HTTP_PORT, HTTPS_PORT, TRUNK_PORT
from windrow_proto.networks import host_and_port
from windrow_up.free_ports import at_hand, free_port

PORTS: Final = {"http": HTTP_PORT, "https": HTTPS_PORT, "trunk": TRUNK_PORT, "health": HEALTH_PORT}
"""The first ports that each of several Masters tries."""
APART: Final = 100


@dataclass(frozen=True, slots=True)
class MasterLines:
    """The settings of the Masters of one data directory. is_shared: several on one PostgreSQL."""

    data_dir: Path
    listen: str
    public: str
    trusted_proxies: tuple[str, ...]
    count: int
    is_shared: bool
    cli: CliFile

    def of(self, number: int) -> list[str]:
        """The arguments of one of them, counted from 0."""
        arguments = ["--data-dir", str(self.data_dir), "--listen", self.listen, "--trust-local-user"]
        arguments += ["--public", self.public] if self.public else []
        arguments += [word for proxy in self.trusted_proxies for word in ("--trusted-proxy", proxy)]
        if self.is_shared:
            return arguments + [word for kind, port in self._ports()[number].items() for word in _flag(kind, port)]
        return arguments + (["--wait"] if self.count > 1 else [])

    def trunks(self) -> tuple[str, ...]:
        """The addresses at which Accesses find the Master, or the one that leads of several."""
        ports = (
            [one["trunk"] for one in self._ports()] if self.is_shared else [self.cli.ports().get("trunk", TRUNK_PORT)]
        )
        return tuple(host_and_port(at_hand(self.listen), port) for port in ports)

    def _ports(self) -> list[dict[str, int]]:
        """The ports of each Master, found once and kept."""
        record = self.cli.read()
        known = [ports for ports in record.get("masters", []) if set(ports) == set(PORTS)]
        lasting = (port for kind in ("access", "service") for port in record.get("ports", {}).get(kind, []))
        taken = {port for ports in known for port in ports.values()} | {*lasting}
        while len(known) < self.count:
            found = {}
            for kind, first in PORTS.items():
                found[kind] = free_port(self.listen, first + APART * len(known), taken)
                taken.add(found[kind])
            known.append(found)
        if known != record.get("masters"):
            self.cli.write({**record, "masters": known})
        return known[: self.count]


def _flag(kind: str, port: int) -> tuple[str, str]:
    return f"--{kind}-port", str(port)
