"""IP networks and addresses as people write them in settings. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from windrow_proto.errors import InvalidInput

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
NAT64: Final = IPv6Network("64:ff9b::/96")
GLOBAL: Final = IPv6Network("2000::/3")
"""All of IPv6 that is routed on the open internet; the rest is local, reserved, or another way to write IPv4."""
ISATAP: Final = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
"""How the last half of an address begins that carries an IPv4 address through a site."""
SUBSCRIBER_PREFIX: Final = 64
"""The IPv6 prefix that one subscriber gets: a limit per address would be no limit."""


def host_and_port(host: str, port: int | str) -> str:
    """Both together, as URLs and gRPC want them: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_networks(texts: Iterable[str], what: str) -> tuple[Network, ...]:
    """Addresses and networks (10.0.0.5, 10.0.0.0/24, fd00::/8), without repeats; raises InvalidInput that names `what`
    for anything else, and for a network of everybody."""
    found = []
    for text in texts:
        try:
            network = ip_network(text)
        except ValueError:
            raise InvalidInput(f"{what} {text[:60]!r} is neither an IP address nor a network (10.0.0.0/24).") from None
        if network.prefixlen == 0:
            raise InvalidInput(f"{what} {text} is the network of everybody. Name smaller networks, or addresses.")
        found.append(network)
    return tuple(dict.fromkeys(found))


def network_of(address: str) -> str:
    """The network that counts as one caller: an IPv4 address, also one inside IPv6, or the IPv6 network of one
    subscriber. A zone is left out; text that is no address is itself."""
    try:
        found: Address = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, SUBSCRIBER_PREFIX), strict=False))
    return str(found)


def is_public(text: str) -> bool:
    """True if an address lies on the open internet, whatever address of the older kind it hides."""
    try:
        address: Address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    hidden = _hidden(address) if isinstance(address, IPv6Address) else []
    is_known = isinstance(address, IPv4Address) or address in GLOBAL or address in NAT64 or address.ipv4_mapped
    return bool(is_known) and all(one.is_global and not one.is_multicast for one in (address, *hidden))


def _hidden(address: IPv6Address) -> list[IPv4Address]:
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64 or address.packed[8:12] in ISATAP:
        found.append(IPv4Address(address.packed[-4:]))
    return [one for one in found if one is not None]
