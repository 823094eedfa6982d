"""Refuses registries on this machine, its network or a cloud's metadata address, which a renter may not have this host
ask.

The container daemon looks the name up once more by itself, so a name that answers differently each time gets by, and
so does a registry that sends its client elsewhere. Who must be sure names the registries: then no other is asked.
"""

import socket
from collections.abc import Iterable
from typing import Final

from windrow_proto.errors import ImageUnavailable
from windrow_proto.networks import is_public

DEFAULT: Final = "default"
"""In the owner's list: the registry that the daemon asks for images which name none."""


def check(image: str, allowed: Iterable[str] = ()) -> None:
    """Let an image through whose registry may be asked; raises ImageUnavailable. Blocks while a name is looked up.

    allowed: the owner's list (`host[:port]` or DEFAULT), these and no others; empty: all that are public.
    """
    registry, listed = registry_of(image), frozenset(allowed)
    if listed:
        if registry in listed:
            return
        raise ImageUnavailable(f"this host asks only the registries that its owner listed, and not {registry}")
    if registry == DEFAULT:
        return
    host = _host(registry)
    try:
        found = {str(address[4][0]) for address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise ImageUnavailable(f"the registry {registry} cannot be looked up from this host") from error
    if not found or not all(is_public(address) for address in found):
        raise ImageUnavailable(f"the registry {registry} is not a public one; the host's owner has to list it")


def registry_of(image: str) -> str:
    """The registry in an image's name as container daemons read it: what stands before the first `/`, if it has a dot,
    a colon or a capital letter or is `localhost`; else DEFAULT."""
    first, slash, _ = image.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return first if slash and is_host else DEFAULT


def _host(registry: str) -> str:
    if registry.startswith("["):
        return registry[1:].partition("]")[0]
    return registry.partition(":")[0]
