"""Finds the address of whoever asks where a reverse proxy stands between. Pure.

`X-Forwarded-For` is believed from the right, as far as trusted proxies wrote it; what others say there is ignored.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from windrow_proto.networks import Network


def is_among(address: str, networks: Sequence[Network]) -> bool:
    """Return whether a socket's or a proxy's address is of one of these networks."""
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
