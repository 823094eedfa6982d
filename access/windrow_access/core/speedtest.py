"""Rules for speedtest-cli: who may measure a line here, how long and how much, and what its requests ask for. Pure.

accepted ─a host of this network has a stream here─▶ head (10 s) ─▶ config or index: a run ─▶ latency, download, upload
   anybody else is closed unread                                     one at a time, 45 s, 256 MiB each way; then a rest
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from windrow_proto.errors import InvalidInput, NotFound, TooLarge, TooMany, WindrowError
from windrow_proto.units import KIB, MIB, MINUTE, SECOND

DOWNLOAD_SIDES: Final = (350, 500, 750, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
"""The pictures that speedtest-cli asks for, by their side; it knows no others."""
BYTES_PER_DOT: Final = 2
"""So large are the vendor's own pictures, so that figures compare: 245 kB to 32 MB."""
CONFIG_PATH: Final = "/speedtest-config.php"
"""speedtest-cli asks a server of its vendor's for this, whatever it measures, unless this listener is its proxy."""
CONFIG: Final = """<?xml version="1.0" encoding="UTF-8"?>
<settings><client ip="" lat="0" lon="0" isp=""/><server-config threadcount="4" ignoreids=""/>
<download testlength="5" threadsperurl="2"/><upload testlength="5" ratio="6" maxchunkcount="32" threads="8"/></settings>
"""
"""Five seconds each way, on eight connections; 207 MB down at most, 128 MiB up, which it keeps in memory."""
INDEX: Final = 'upload_extension: "php"\n'
"""The answer that makes this a mini server to speedtest-cli."""
LATENCY: Final = "test=test\n"


@dataclass(frozen=True, slots=True)
class SpeedtestLimits:
    """Of one worker. run_ns: over a line of 0.8 s there and back it takes 20 s. rest_ns: from one run's beginning to
    the next of its network. run_bytes_max: each way, a little more than the whole of a run. upload_bytes_max: one
    request, of which it makes none above 7 MiB. connections_per_network_max: it holds eight, beside those that end."""

    connections_max: int = 64
    connections_per_network_max: int = 16
    head_bytes_max: int = 4 * KIB
    head_ns: int = 10 * SECOND
    runs_max: int = 1
    run_ns: int = 45 * SECOND
    rest_ns: int = 2 * MINUTE
    run_bytes_max: int = 256 * MIB
    upload_bytes_max: int = 8 * MIB


class Place(StrEnum):
    """The place of a page in a run. Only speedtest-cli that has another proxy, or none, comes without the first."""

    FIRST = "it begins a run, and none may go on"
    EARLY = "it begins a run where none goes on"
    WITHIN = "a run has to go on"


@dataclass(frozen=True, slots=True)
class Page:
    """A few words."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Download:
    """So many random bytes."""

    total_bytes: int


@dataclass(frozen=True, slots=True)
class Upload:
    """So many bytes follow."""

    total_bytes: int


Asked = Page | Download | Upload
PAGES: Final = {
    CONFIG_PATH: Page(CONFIG, Place.FIRST),
    "/": Page(INDEX, Place.EARLY),
    "/speedtest/latency.txt": Page(LATENCY, Place.WITHIN),
}
DOWNLOADS: Final = {f"/speedtest/random{side}x{side}.jpg": BYTES_PER_DOT * side * side for side in DOWNLOAD_SIDES}
UPLOAD_PATH: Final = "/speedtest/upload.php"


def asked_in(head: bytes, limits: SpeedtestLimits) -> Asked:
    """Returns the page that a request's head asks for, by path alone: nothing is ever fetched for anybody. Raises
    InvalidInput, NotFound, TooLarge."""
    lines = head.decode("latin-1").split("\r\n")
    match lines[0].split(" "):
        case ["GET" | "POST" as method, target, "HTTP/1.1" | "HTTP/1.0"]:
            path = _path(target)
        case _:
            raise InvalidInput("This is not a request of speedtest-cli.")
    if method == "GET" and path in PAGES:
        return PAGES[path]
    if method == "GET" and path in DOWNLOADS:
        return Download(DOWNLOADS[path])
    if method == "POST" and path == UPLOAD_PATH:
        return Upload(_length(lines[1:], limits))
    raise NotFound("This port serves only what speedtest-cli asks a mini server for.")


def _path(target: str) -> str:
    try:
        return urlsplit(target).path or "/"
    except ValueError:
        raise InvalidInput("That is no address.") from None


def _length(headers: list[str], limits: SpeedtestLimits) -> int:
    told = [value.strip() for name, _, value in (line.partition(":") for line in headers) if _is_length(name)]
    if len(told) != 1 or not (told[0].isascii() and told[0].isdigit()):
        raise InvalidInput("An upload says its length, once.")
    if len(told[0]) > len(str(limits.upload_bytes_max)) or int(told[0]) > limits.upload_bytes_max:
        raise TooLarge(f"An upload is of {limits.upload_bytes_max} bytes at most.")
    return int(told[0])


def _is_length(name: str) -> bool:
    return name.lower() == "content-length"


def answer(status: str, length: int, retry_after_ns: int = 0) -> bytes:
    """The head of an answer, after which so many bytes follow and the connection ends."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/octet-stream", f"Content-Length: {length}"]
    lines += ["Cache-Control: no-store", "Connection: close"]
    lines += [f"Retry-After: {-(-retry_after_ns // SECOND)}"] if retry_after_ns else []
    return "\r\n".join((*lines, "", "")).encode()


def refusal(error: WindrowError) -> bytes:
    """The whole answer to who is refused; its status line says why, which is all that speedtest-cli shows."""
    text = error.detail.encode("ascii", "replace")
    return answer(f"{error.http} {text.decode()}", len(text), error.retry_after_ns or 0) + text


class Run:
    """One measurement that goes on: until when, and how many bytes it may still move each way."""

    def __init__(self, until_ns: int, bytes_max: int) -> None:
        self.until_ns = until_ns
        self._left = {Download: bytes_max, Upload: bytes_max}

    def take(self, asked: Download | Upload) -> None:
        """It is about to move so much; raises TooLarge above what it may."""
        kind = type(asked)
        if asked.total_bytes > self._left[kind]:
            raise TooLarge("This run has reached its limit of bytes; the next one may begin in two minutes.")
        self._left[kind] -= asked.total_bytes


class Runs:
    """Counts connections by network, and says which network measures its line now."""

    def __init__(self, limits: SpeedtestLimits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self._runs: dict[str, Run] = {}
        self._began_ns: dict[str, int] = {}

    def enter(self, network: str) -> bool:
        """A connection of a host's network was accepted: may it stay? If so, `leave` follows once."""
        limits = self._limits
        if self._open.total() >= limits.connections_max or self._open[network] >= limits.connections_per_network_max:
            return False
        self._open[network] += 1
        return True

    def leave(self, network: str) -> None:
        """It has gone."""
        self._open[network] -= 1
        if self._open[network] <= 0:
            del self._open[network]

    def running(self, now_ns: int) -> int:
        """Measurements that go on."""
        self._runs = {network: run for network, run in self._runs.items() if now_ns < run.until_ns}
        return len(self._runs)

    def begin(self, network: str, others: int, now_ns: int) -> Run:
        """A new run of this network; raises TooMany. others: measurements of other kinds that go on, beside which none
        begins."""
        limits = self._limits
        self._began_ns = {one: at_ns for one, at_ns in self._began_ns.items() if now_ns - at_ns < limits.rest_ns}
        if network in self._began_ns:
            wait_ns = self._began_ns[network] + limits.rest_ns - now_ns
            raise TooMany("This line was measured a moment ago; come back in two minutes.", retry_after_ns=wait_ns)
        if others or self.running(now_ns) >= limits.runs_max:
            raise TooMany("Another host's line is being measured; come back in a minute.", retry_after_ns=limits.run_ns)
        self._began_ns[network] = now_ns
        self._runs[network] = Run(now_ns + limits.run_ns, limits.run_bytes_max)
        return self._runs[network]

    def of(self, network: str, now_ns: int) -> Run | None:
        """The run of this network that goes on."""
        self.running(now_ns)
        return self._runs.get(network)
