"""Tells who asks where a reverse proxy stands between. Pure.

`X-Forwarded-For` is believed from the right, as far as trusted proxies wrote it; what others say there is ignored.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from windrow_proto.errors import InvalidInput

Network = IPv4Network | IPv6Network


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


def is_among(address: str, networks: Sequence[Network]) -> bool:
    """Whether a socket's or a proxy's address is of one of these networks."""
    found = _address(address)
    return found is not None and any(found in network for network in networks)


def client_of(peer: str, reported: str, proxies: Sequence[Network]) -> str:
    """The address of whoever asks: the first that is no proxy, from the peer back through what proxies reported.

    reported: all `X-Forwarded-For` of the request, in order, joined by commas; a part that is no address ends the way.
    """
    client = peer
    for text in reversed(reported.split(",")):
        if not is_among(client, proxies) or (found := _address(text)) is None:
            return client
        client = str(found)
    return client


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Also with the port that some proxies add: 192.0.2.1:8000, [2001:db8::1]:8000."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
