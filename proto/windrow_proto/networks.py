"""IP networks and addresses as people write them in settings. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network

from windrow_proto.errors import InvalidInput

Network = IPv4Network | IPv6Network


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
            raise InvalidInput(f"{what} {text} would let everybody claim any address. Name the proxies' own addresses.")
        found.append(network)
    return tuple(dict.fromkeys(found))
