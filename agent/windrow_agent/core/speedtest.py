"""The arguments of speedtest-cli and the meaning of its answer. Pure; the tool itself is never imported, only run.

Its figures are what this host claims: an owner reads them, and no tier, placement or bill is made of them.
"""

import json
import math
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from windrow_proto.errors import InvalidInput, Unavailable
from windrow_proto.units import MILLISECOND

INTERNET: Final = "internet"
MODULE: Final = "speedtest"
HTTP_TIMEOUT_S: Final = 10
FIGURE_MAX: Final = 1e15
"""Of bits a second, milliseconds or bytes; beyond it something is wrong."""
UNREACHED_MS: Final = 1_800_000
"""speedtest-cli counts a ping that fails as an hour, and two of them are as one round trip to it."""
NAME_MAX: Final = 200
WORDS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class SpeedClaim:
    """The figures of speedtest-cli. path: the internet, or the Access's mini server; server: the one that was measured
    against."""

    path: str
    server: str
    down_bits_per_s: int
    up_bits_per_s: int
    rtt_ns: int
    down_bytes: int
    up_bytes: int


def check_mini(url: str) -> str:
    """The address of an Access's mini server as `http://HOST:PORT`; raises InvalidInput."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"--mini {url!r}: {error}.") from None
    is_plain = not any((parts.query, parts.fragment, parts.username, parts.password)) and parts.path in ("", "/")
    if parts.scheme != "http" or not parts.hostname or not port or not is_plain or any(one <= " " for one in url):
        raise InvalidInput(f"--mini {url!r}: it is http://HOST:PORT, the port being the relay's --speedtest-port.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"http://{host}:{port}"


def arguments(mini: str) -> tuple[str, ...]:
    """The arguments after Python's own name. mini: as of `check_mini`; empty: the internet.

    -P: nothing is imported from wherever this is called. --secure: the vendor's servers refuse plain HTTP; ours speaks
    that alone. --no-pre-allocate: what is sent up is made when it is sent.
    """
    way = ("--mini", f"{mini}/") if mini else ("--secure",)
    return "-P", "-m", MODULE, "--json", "--no-pre-allocate", "--timeout", str(HTTP_TIMEOUT_S), *way


def environment(mini: str) -> dict[str, str]:
    """Its proxy is the mini server, too: it asks its vendor for a configuration first, and the Access answers that."""
    return {"http_proxy": mini, "no_proxy": ""}


def read_claim(said: bytes, path: str) -> SpeedClaim:
    """Its JSON; raises Unavailable for anything but the whole figures of a run that moved bytes both ways."""
    try:
        found = json.loads(said, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unavailable("speedtest-cli printed no results.") from None
    server = found.get("server") if isinstance(found, dict) else None
    if not isinstance(server, dict):
        raise Unavailable("speedtest-cli printed something other than results.")
    ping_ms = _figure(found, "ping")
    if ping_ms >= UNREACHED_MS:
        raise Unavailable("speedtest-cli reached no server.")
    return SpeedClaim(
        path=path,
        server=" ".join(_name(server.get(key)) for key in ("sponsor", "name")).strip(),
        down_bits_per_s=int(_figure(found, "download")),
        up_bits_per_s=int(_figure(found, "upload")),
        rtt_ns=int(ping_ms * MILLISECOND),
        down_bytes=int(_figure(found, "bytes_received")),
        up_bytes=int(_figure(found, "bytes_sent")),
    )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no figure")


def _figure(found: dict[str, object], key: str) -> float:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unavailable(f"speedtest-cli did not say {key}.")
    if not 0 < value < FIGURE_MAX:
        raise Unavailable(f"speedtest-cli says {key} {value:g}: the line broke, or nothing was let through.")
    return value


def _name(value: object) -> str:
    return "".join(one for one in str(value or "")[:NAME_MAX] if one.isprintable())


def failure(complaint: bytes, mini: str) -> str:
    """A sentence from what it said on its standard error."""
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
    words = "".join(one for one in (lines[-1] if lines else "nothing")[:WORDS_MAX] if one.isprintable())
    if mini:
        more = (
            f"The relay at {mini} serves it only to addresses from which a host is connected to that worker (further "
            "workers listen on the next ports), one host at a time and each address every two minutes."
        )
    else:
        more = "The way to its vendor's servers may be closed, or they refuse this address for a while."
    return f"speedtest-cli failed: {words.removeprefix('ERROR: ').rstrip('.')}. {more}"


def sentence(claim: SpeedClaim) -> str:
    """For a person; rates and time rounded down to a tenth."""
    up, down = (rate // 100_000 / 10 for rate in (claim.up_bits_per_s, claim.down_bits_per_s))
    rtt_ms, server = claim.rtt_ns * 10 // MILLISECOND / 10, claim.server or "a server without a name"
    return f"{claim.path}: {up:,} Mbit/s up, {down:,} Mbit/s down, {rtt_ms:,} ms there and back ({server})"
