"""Reachability between hosts: what the Master asks two or more of them at once, in a channel to each. Pure.

 host ─▶ Master    Listening: its port, where it listens for a while; the token that it shows to each caller
 Master ─▶ host    the addresses and ports of the other hosts
 host ─▶ Master    Seen: for each of them the token that it was shown, or the reason for which it was shown none

A token proves that it was this host: an address of a private network may be another machine's elsewhere.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

TOKEN_BYTES: Final = 16
PLACES_MAX: Final = 64
"""Other hosts that one host tries to reach at once."""
WHY_MAX: Final = 200
DIAL_NS: Final = 3 * SECOND
"""For another host to show its token. Who drops what comes never answers, and a lost SYN is sent again after a second
and after three."""
LISTEN_NS: Final = 15 * SECOND
"""How long a host listens for the others."""
OLD: Final = "its agent is of an older release"
_TEXT_MAX: Final = 32_768


@dataclass(frozen=True, slots=True)
class Listening:
    """The addresses at which a host listens. cannot: why it can be in no private network; empty: it can.
    cannot_contained: why its containers can be in none."""

    port: int
    token: str
    cannot: str = ""
    cannot_contained: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The address at which another host listens."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The finding of a host about a place: the token that it was shown there, or why it was shown none."""

    token: str = ""
    why: str = ""


def encode_listening(listening: Listening) -> bytes:
    """As one message."""
    told = {"port": listening.port, "token": listening.token}
    cannot = {"cannot": listening.cannot[:WHY_MAX], "cannot_contained": listening.cannot_contained[:WHY_MAX]}
    return json.dumps(told | cannot).encode()


def decode_listening(data: bytes) -> Listening:
    """Raises InvalidInput."""
    found = _loaded(data)
    if not isinstance(found, dict):
        raise InvalidInput("The report of a host on where it listens is a JSON object.")
    contained = _text(found.get("cannot_contained", OLD))
    return Listening(_port(found.get("port")), _text(found.get("token")), _text(found.get("cannot")), contained)


def encode_places(places: Sequence[Place]) -> bytes:
    """As one message."""
    return json.dumps([[one.address, one.port] for one in places]).encode()


def decode_places(data: bytes) -> tuple[Place, ...]:
    """Raises InvalidInput."""
    return tuple(Place(_text(address), _port(port)) for address, port in _pairs(data))


def encode_seen(seen: Sequence[Seen]) -> bytes:
    """As one message."""
    return json.dumps([[one.token, one.why[:WHY_MAX]] for one in seen]).encode()


def decode_seen(data: bytes) -> tuple[Seen, ...]:
    """Raises InvalidInput."""
    return tuple(Seen(_text(token), _text(why)) for token, why in _pairs(data))


def _pairs(data: bytes) -> list[tuple[object, object]]:
    found = _loaded(data)
    if not isinstance(found, list) or len(found) > PLACES_MAX:
        raise InvalidInput(f"A reachability request names at most {PLACES_MAX} places.")
    if not all(isinstance(one, list) and len(one) == 2 for one in found):
        raise InvalidInput("Each entry of a reachability message is a pair.")
    return [(one[0], one[1]) for one in found]


def _loaded(data: bytes) -> object:
    if len(data) > _TEXT_MAX:
        raise InvalidInput(f"A reachability message has at most {_TEXT_MAX} bytes.")
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("A reachability message is JSON.") from error
    return found


def _text(found: object) -> str:
    if not isinstance(found, str) or len(found) > WHY_MAX:
        raise InvalidInput(f"A text of a reachability message has at most {WHY_MAX} characters.")
    return found


def _port(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 65_536:
        raise InvalidInput("There is no such port.")
    return found
