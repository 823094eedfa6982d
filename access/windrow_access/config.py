"""The configuration of one Access process: built once from arguments and environment, validated whole, printable.

The only module of this process that reads the environment.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from windrow_proto.errors import InvalidInput
from windrow_proto.networks import host_and_port
from windrow_proto.service_names import LOCAL_DOMAIN, check_domain
from windrow_proto.version import VERSION

REGION_MAX = 32
WORKERS_MAX = 64
TUNNEL_PORT_ABOVE = 200
"""Tunnels are listened for so far above the port of agents, so that a firewall's rule can be written beforehand."""
SERVICE_PORT_ABOVE = 300
"""The same for services."""
PORT_TRIES = 50
"""A taken port is followed by the next free one, up to so many."""


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """`windrow-access join`."""

    data_dir: Path
    master_url: str
    token_file: Path
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """`windrow-access run`. advertise: what agents dial, when it differs from what is listened on.

    tunnel_port: of the first worker, each further worker has one of the next; None: 200 above the port of agents, or
    any on a loopback address, which no firewall sees. tunnel_advertise: what renters dial, where that is not the same.
    service_domain: services are found one label below it; empty: none are. service_port: as tunnel_port,
    300 above; workers share it. service_advertise: the port that browsers dial, where that is not the same.
    service_certificate, service_key: PEM files for *.service_domain; None: this Access's own certificate.
    """

    data_dir: Path
    host: str
    port: int
    region: str
    advertise: str | None
    workers: int
    worker: int | None
    trunks: tuple[str, ...]
    metrics_port: int | None = None
    """Of the first worker's figures, on loopback; each further worker has the next port. None: not served."""
    tunnel_port: int | None = None
    tunnel_advertise: str | None = None
    service_domain: str = ""
    service_port: int | None = None
    service_advertise: int | None = None
    service_certificate: Path | None = None
    service_key: Path | None = None
    speedtest_port: int | None = None
    """As metrics_port, for speedtest-cli, where agents dial. None: not served."""

    def first_tunnel_port(self, port: int) -> int:
        """The first port that this worker tries for tunnels, 0 for any. port: the one of agents."""
        chosen = 0 if is_loopback(self.host) else port + TUNNEL_PORT_ABOVE
        first = chosen if self.tunnel_port is None else self.tunnel_port
        return first + (self.worker or 0) if first else 0

    def first_service_port(self, port: int) -> int:
        """The first port that is tried for services, 0 for any. port: the one of agents."""
        chosen = 0 if is_loopback(self.host) else port + SERVICE_PORT_ABOVE
        return chosen if self.service_port is None else self.service_port

    def service_address(self, port: int) -> str:
        """The address at which browsers find the services of this port."""
        return f"{self.service_domain}:{self.service_advertise or port}" if self.service_domain else ""

    def tunnel_address(self, port: int) -> str:
        """The address at which hosts find the tunnels of this port: at the name by which they found the Access."""
        host = parse_address(self.advertise)[0] if self.advertise else self.host
        return host_and_port(host, port)


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(prog="windrow-access", description="A relay between Agents and the Master.")
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True)
    default_dir = os.environ.get("WINDROW_ACCESS_DIR", "/var/lib/windrow-access")

    join = commands.add_parser("join", help="become a relay of a Master")
    join.add_argument("master_url", help="https://host:port of the Master")
    join.add_argument("--token-file", type=Path, required=True, help="file that holds a join token of role access")
    join.add_argument("--data-dir", type=Path, default=Path(default_dir))
    join.add_argument("--name", action="append", default=[], help="DNS name or IP that agents dial; repeatable")

    run = commands.add_parser("run", help="relay")
    run.add_argument("--data-dir", type=Path, default=Path(default_dir))
    run.add_argument("--listen", default=os.environ.get("WINDROW_ACCESS_LISTEN", "127.0.0.1:7443"))
    run.add_argument("--region", default=os.environ.get("WINDROW_ACCESS_REGION", "local"))
    run.add_argument("--advertise", default=None, help="host:port that agents dial, if not the listening one")
    run.add_argument("--workers", type=int, default=int(os.environ.get("WINDROW_ACCESS_WORKERS", "1")))
    run.add_argument("--trunk", action="append", default=[], help="host:port of a Master's trunk; repeatable")
    run.add_argument("--tunnel-port", type=int, default=None, help="port for tunnels; default: 200 above --listen")
    run.add_argument("--tunnel-advertise", default=None, help="host:port that renters dial, if another")
    run.add_argument(
        "--service-domain",
        default=os.environ.get("WINDROW_ACCESS_SERVICE_DOMAIN"),
        help=f"serve machines of kind service over HTTPS under it; on loopback {LOCAL_DOMAIN}, else off",
    )
    run.add_argument("--service-port", type=int, default=None, help="port for HTTPS; default: 300 above --listen")
    run.add_argument("--service-advertise", type=int, default=None, help="port that browsers use, if another")
    run.add_argument(
        "--service-certificate", type=Path, default=None, help="PEM file for *.DOMAIN, read when it changes"
    )
    run.add_argument("--service-key", type=Path, default=None, help="PEM file of the certificate's key")
    run.add_argument(
        "--speedtest-port", type=int, default=None, help="port for speedtest-cli of connected hosts; default: off"
    )
    run.add_argument("--metrics-port", type=int, default=None, help="serve /metrics on this port of 127.0.0.1")
    run.add_argument("--worker", type=int, default=None, help=argparse.SUPPRESS)
    return parser


def is_loopback(host: str) -> bool:
    """True if nobody but this machine reaches it."""
    return host in ("localhost", "::1") or host.startswith("127.")


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`; raises InvalidInput."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise InvalidInput(f"{text!r} is not host:port.")
    if host[:1] + host[-1:] != "[]" and ":" in host:
        raise InvalidInput(f"{text!r} is not host:port: write an IPv6 address in brackets, [::1]:7443.")
    return host.strip("[]"), int(port)


def parse(arguments: list[str]) -> JoinConfig | RunConfig:
    """Read the command line over the environment; raises InvalidInput with the flag's name."""
    read = command_line().parse_args(arguments)
    if read.command == "join":
        return JoinConfig(read.data_dir, read.master_url, read.token_file, tuple(read.name))
    host, port = parse_address(read.listen)
    if not 1 <= len(read.region) <= REGION_MAX or not read.region.replace("-", "").isalnum():
        raise InvalidInput(f"--region {read.region!r}: letters, digits and dashes, at most {REGION_MAX}.")
    if not 1 <= read.workers <= WORKERS_MAX:
        raise InvalidInput(f"--workers {read.workers}: from 1 to {WORKERS_MAX}.")
    for address in (*read.trunk, *filter(None, (read.advertise, read.tunnel_advertise))):
        parse_address(address)
    if read.tunnel_port is not None and not 0 <= read.tunnel_port <= 65535 - WORKERS_MAX:
        raise InvalidInput(f"--tunnel-port {read.tunnel_port}: a port is from 0 to {65535 - WORKERS_MAX}.")
    if read.tunnel_advertise and read.workers > 1:
        raise InvalidInput("--tunnel-advertise names one worker's port; with more --workers each has its own.")
    for flag, number in (("service-port", read.service_port), ("service-advertise", read.service_advertise)):
        if number is not None and not 0 <= number <= 65535:
            raise InvalidInput(f"--{flag} {number}: a port is from 0 to 65535.")
    if (read.service_certificate is None) != (read.service_key is None):
        raise InvalidInput("--service-certificate and --service-key go together.")
    if read.service_domain is None:
        read.service_domain = LOCAL_DOMAIN if is_loopback(host) else ""
    for flag, number in (("metrics-port", read.metrics_port), ("speedtest-port", read.speedtest_port)):
        if number is not None and not 0 <= number <= 65535 - WORKERS_MAX:
            raise InvalidInput(f"--{flag} {number}: a port is from 0 to {65535 - WORKERS_MAX}.")
    return RunConfig(
        read.data_dir,
        host,
        port,
        read.region,
        read.advertise,
        read.workers,
        read.worker,
        tuple(read.trunk),
        read.metrics_port,
        read.tunnel_port,
        read.tunnel_advertise,
        check_domain(read.service_domain) if read.service_domain else "",
        read.service_port,
        read.service_advertise,
        read.service_certificate,
        read.service_key,
        read.speedtest_port,
    )
