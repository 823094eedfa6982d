"""Names and addresses of Accesses to try when no Access of the map answers: from the configuration and from DNS. Pure.

A name is only a hint. Whatever DNS says, an agent stays with no server but one that its own authority named an Access.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from windrow_agent.core.access_choice import turn
from windrow_agent.core.dns import Service
from windrow_proto.dns_names import DEFAULT_PORT, SERVICE, check_name
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId

SCHEME: Final = "dns:"
TARGETS_MAX: Final = 8
"""Names of one answer whose addresses are asked for."""
ADDRESSES_PER_NAME_MAX: Final = 4
URL_CHARS_MAX: Final = 255
ADDRESSES_MAX: Final = 16
"""Tried at most; each costs a handshake."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A domain to ask DNS about. port: of its own addresses, where it has no service records."""

    domain: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"{SCHEME}{self.domain}" + (f":{self.port}" if self.port != DEFAULT_PORT else "")


@dataclass(frozen=True, slots=True)
class MapCopy:
    """The place of a copy of the Master's signed map; anybody may keep one, and nobody can change it."""

    url: str

    def __str__(self) -> str:
        return self.url


Place = Seed | MapCopy


def parse_place(text: str) -> Place:
    """Read what `--access` says: `dns:DOMAIN[:PORT]` or `https://HOST[:PORT][/PATH]`; raises InvalidInput."""
    return parse_copy(text) if text.startswith("https:") else parse_seed(text)


def parse_copy(text: str) -> MapCopy:
    """Read an address of a copy of the map; raises InvalidInput."""
    try:
        parts = urlsplit(text)
        is_good = bool(parts.hostname) and parts.port != 0 and not (parts.username or parts.query or parts.fragment)
    except ValueError:
        is_good = False
    if not is_good or len(text) > URL_CHARS_MAX or not (text.isascii() and text.isprintable()) or " " in text:
        raise InvalidInput(f"{text[:260]!r} is not an address of a map: write https://HOST[:PORT][/PATH].")
    return MapCopy(text)


def parse_seed(text: str) -> Seed:
    """Read `dns:DOMAIN` or `dns:DOMAIN:PORT`; raises InvalidInput."""
    if not text.startswith(SCHEME):
        raise InvalidInput(f"{text[:260]!r} does not say where to look for a relay: write dns:DOMAIN or https://HOST.")
    domain, colon, port = text.removeprefix(SCHEME).partition(":")
    if colon and not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise InvalidInput(f"{port[:20]!r} is not a port (1 to 65535).")
    name = check_name(domain)
    check_name(f"{SERVICE}.{name}")
    return Seed(name, int(port) if colon else DEFAULT_PORT)


def targets(host_id: HostId, services: Iterable[Service]) -> tuple[Service, ...]:
    """The services to try, lower priorities first; at most TARGETS_MAX.

    Of one priority each host has an order of its own, in which a service leads in proportion to its weight over all
    hosts (weighted rendezvous hashing), so that hosts without a map spread as the operator wished.
    """
    able = {service for service in services if service.port and service.target}
    ordered = sorted(able, key=lambda service: (service.priority, _turn(host_id, service), service.target))
    return tuple(ordered[:TARGETS_MAX])


def candidates(found: Iterable[tuple[Service, tuple[str, ...]]]) -> tuple[str, ...]:
    """Addresses to dial as `host:port`, each once, in the order found; at most ADDRESSES_MAX.

    found: services with the addresses of their targets. Addresses that nobody can serve at (0.0.0.0, multicast) are
    left out.
    """
    dialled: dict[str, None] = {}
    for service, addresses in found:
        for address in addresses[:ADDRESSES_PER_NAME_MAX]:
            host = ipaddress.ip_address(address)
            if not (host.is_unspecified or host.is_multicast):
                dialled[f"[{host}]:{service.port}" if host.version == 6 else f"{host}:{service.port}"] = None
    return tuple(dialled)[:ADDRESSES_MAX]


def name_servers(resolver_file: str) -> tuple[str, ...]:
    """The addresses of up to three name servers in a resolv.conf(5); this machine's own where it names none."""
    found = [
        words[1]
        for line in resolver_file.splitlines()
        if len(words := line.split()) >= 2 and words[0] == "nameserver" and _is_address(words[1])
    ]
    return tuple(found[:3]) or ("127.0.0.1",)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _turn(host_id: HostId, service: Service) -> float:
    return turn(f"{host_id}|{service.target}|{service.port}", max(1, 10 * service.weight))
