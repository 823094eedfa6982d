"""Admission to services over HTTPS: who may come, how often, and what is answered when there is none. Pure: times are
values.

accepted ─handshake (10 s), first bytes (10 s)─▶ asks the Master ─▶ tunnel ─▶ either ends, or two minutes of silence
   counted by network, all along                   counted and paced by network; what was refused is remembered
"""

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Final

from windrow_access.core.admission import Bucket
from windrow_proto.errors import TooMany
from windrow_proto.ids import ClusterId
from windrow_proto.units import KIB, MINUTE, SECOND

Asked = tuple[ClusterId, int]
"""A port of a cluster."""
HEAD_ENDS: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """How many, how long, how much; of one worker.

    greet_ns: TLS handshake, then the first bytes, each. head_ns: for the rest of a request that is answered here.
    asks_per_s: a page takes six connections, many people share an
    address. dials_max: handshakes with other Accesses at once, which take 32 of one address. idle_ns: neither way a
    byte; twice what most proxies grant. refused_ns: an address that leads nowhere is not asked for again so soon.
    """

    connections_max: int = 1_024
    per_network_max: int = 128
    asks_max: int = 128
    asks_per_network_max: int = 16
    asks_per_s: int = 20
    asks_burst: int = 100
    networks_max: int = 10_000
    dials_max: int = 8
    greet_ns: int = 10 * SECOND
    head_ns: int = 10 * SECOND
    idle_ns: int = 2 * MINUTE
    refused_ns: int = 5 * SECOND
    refused_max: int = 4_096
    head_bytes_max: int = 16 * KIB


class Visits:
    """Counts connections and questions, in all and by network."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self._asking: Counter[str] = Counter()
        self._buckets: dict[str, Bucket] = {}

    @property
    def open(self) -> int:
        """Connections, in all."""
        return self._open.total()

    def enter(self, network: str) -> bool:
        """A connection was accepted: may it stay? If so, `leave` follows once."""
        limits = self._limits
        if self._open.total() >= limits.connections_max or self._open[network] >= limits.per_network_max:
            return False
        self._open[network] += 1
        return True

    def leave(self, network: str) -> None:
        """It has gone."""
        _less(self._open, network)

    def ask(self, network: str, now_ns: int) -> None:
        """The Master is to be asked for this network; `asked` follows once. Raises TooMany."""
        limits = self._limits
        if self._asking.total() >= limits.asks_max or self._asking[network] >= limits.asks_per_network_max:
            raise TooMany("Too many addresses are being opened at once.", retry_after_ns=SECOND)
        if len(self._buckets) >= limits.networks_max:
            self._buckets.clear()  # a bounded memory: everybody starts with a full bucket again
        bucket = self._buckets.get(network) or Bucket(
            limits.asks_per_s, limits.asks_burst, limits.asks_burst * 1000, now_ns
        )
        self._buckets[network], wait_ns = bucket.take(now_ns)
        if wait_ns:
            raise TooMany("Too many connections within a second.", retry_after_ns=wait_ns)
        self._asking[network] += 1

    def asked(self, network: str) -> None:
        """The Master has answered, or nobody waits for it any more."""
        _less(self._asking, network)


def _less(counts: "Counter[str]", key: str) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]


REMEMBERED: Final = frozenset({"not_found", "conflict", "host_unreachable"})
"""Refusals that may be answered from memory for a moment, to every visitor; the others depend on the visitor or on the
moment."""


class Refused:
    """Remembers what the Master refused a moment ago, so that a flood for one address asks it once in a while only."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._known: dict[Asked, tuple[int, str]] = {}

    def note(self, asked: Asked, code: str, now_ns: int) -> None:
        """It was refused with this code. What may change by itself soon is kept for a fifth of the time only."""
        if code not in REMEMBERED:
            return
        self._known.pop(asked, None)
        kept_ns = self._limits.refused_ns // (1 if code == "not_found" else 5)
        self._known[asked] = now_ns + kept_ns, code
        if len(self._known) > self._limits.refused_max:
            del self._known[next(iter(self._known))]

    def code(self, asked: Asked, now_ns: int) -> str:
        """With what it was refused, while that is remembered; empty: ask."""
        until_ns, code = self._known.get(asked, (0, ""))
        return code if now_ns < until_ns else ""


@dataclass(frozen=True, slots=True)
class _Words:
    status: str
    title: str
    more: str
    retry_s: int = 0


_NOBODY: Final = _Words(
    "404 Not Found",
    "There is no service at this address.",
    "The address may be mistyped, or its machine has ended. Ask whoever gave it to you.",
)
_STILL: Final = _Words(
    "503 Service Unavailable",
    "This service is not running.",
    "It may be starting, or nothing listens on its port yet. A browser tries again by itself.",
    1,
)
_AWAY: Final = _Words(
    "503 Service Unavailable",
    "This service cannot be reached now.",
    "The host it runs on, or the way to it, is away. It may come back by itself: try again in a while.",
    10,
)
_BUSY: Final = _Words(
    "429 Too Many Requests",
    "This service has too many visitors now.",
    "Try again in a moment.",
    5,
)
_PAGES: Final = {"not_found": _NOBODY, "conflict": _STILL, "too_many": _BUSY}


def page(code: str, head: bytes, retry_after_ns: int = 0) -> bytes:
    """The whole answer to this request where a service cannot be had. code: of errors.py; head: the request's, maybe a
    part of it. Says nothing of the cluster or its host: anybody may read it."""
    words = _PAGES.get(code, _AWAY)
    lines = head.split(b"\r\n")
    is_html = any(line.lower().startswith(b"accept:") and b"text/html" in line.lower() for line in lines[1:])
    retry_s = max(words.retry_s, -(-retry_after_ns // SECOND))
    body = _html(words) if is_html else f"{words.title}\n{words.more}\n"
    shown = body.encode()
    headers = [
        f"HTTP/1.1 {words.status}",
        f"Content-Type: text/{'html' if is_html else 'plain'}; charset=utf-8",
        f"Content-Length: {len(shown)}",
        "Cache-Control: no-store",
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
        "X-Content-Type-Options: nosniff",
        *([f"Retry-After: {retry_s}"] if retry_s else []),
        # A browser that is shown a page does not look at Retry-After.
        *([f"Refresh: {retry_s}"] if retry_s and is_html and lines[0].startswith(b"GET ") else []),
        "Connection: close",
    ]
    is_head = lines[0].startswith(b"HEAD ")
    return "\r\n".join((*headers, "", "")).encode() + (b"" if is_head else shown)


def _html(words: _Words) -> str:
    style = "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:20vh auto;padding:0 1rem}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(words.title)}</title><style>{style}</style></head>"
        f"<body><h1>{escape(words.title)}</h1><p>{escape(words.more)}</p></body></html>\n"
    )
