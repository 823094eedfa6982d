"""Checks the names under which this Master answers HTTP. Any other `Host` is refused with 421.

A page of another site can have its own name resolve to this machine (DNS rebinding) and then reads answers as its own.
Such a request carries that page's name in `Host`; it reaches neither the console nor the API. The port is not compared:
a tunnel or a proxy may listen on another one.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Scope

from windrow_proto.errors import Misdirected

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
NAME_CHARS_SHOWN: Final = 80


def name_of(host: str) -> str:
    """The name in a `Host` header, in lower case and without its port; empty where it is malformed."""
    try:
        found = urlsplit(f"//{host}")
        _ = found.port  # raises for a port that is no number
    except ValueError:
        return ""
    is_plain = not (found.path or found.query or found.fragment or "@" in host or "\\" in host)
    return (found.hostname or "") if is_plain else ""


class OwnNames:
    """Decides whether a request was meant for this Master."""

    def __init__(self, names: Iterable[str]) -> None:
        """names: DNS names and IP addresses, beside those of loopback."""
        self._names = frozenset(_canonical(name) for name in (*LOOPBACK_NAMES, *names))

    def check(self, scope: Scope) -> None:
        """Raise Misdirected unless every `Host` header names this Master, or the address at which it was reached."""
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        reached = (scope.get("server") or ("",))[0]
        for host in hosts or [""]:
            name = _canonical(name_of(host))
            if name not in self._names and not (name == _canonical(reached) and _is_address(name)):
                shown = host.encode("ascii", "replace").decode()[:NAME_CHARS_SHOWN]
                raise Misdirected(
                    f"This Master does not answer under the name {shown!r}. Open it by the address that `windrow up` "
                    "prints. To allow a further name, start the Master with it in WINDROW_NAMES."
                )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _canonical(name: str) -> str:
    """An IP address in its one usual form; a DNS name in lower case."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()
