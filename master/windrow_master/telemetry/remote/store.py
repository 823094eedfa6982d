"""The adapter of a Prometheus-compatible store over HTTP: two connections' worth of plain, bounded, blocking requests.

A store that hangs costs its caller the timeout and nobody else anything; `abort` ends what hangs at once.
"""

import base64
import contextlib
import http.client
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from windrow_master.telemetry.remote.promql import Question
from windrow_proto.errors import InvalidInput, Unavailable

WRITE_TIMEOUT_S: Final = 10.0
READ_TIMEOUT_S: Final = 4.0
ANSWER_BYTES_MAX: Final = 64 << 20
ERROR_BYTES_MAX: Final = 400
RETRY_AFTER_MAX_S: Final = 300.0
API_PATH: Final = "/api/v1"
"""Where a store is asked, below its own address."""


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The address of the store. prefix: its path up to /api/v1 (or the whole path of writes)."""

    is_tls: bool
    host: str
    port: int | None
    prefix: str
    authorization: str

    @property
    def shown(self) -> str:
        """The URL without its secrets."""
        scheme = "https" if self.is_tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}{f':{self.port}' if self.port else ''}{self.prefix}"


def parse_url(text: str, token: str = "", *, without: str = "") -> StoreUrl:
    """Read the URL of a store; a user and password in it become Basic, a token Bearer. without: an end of the path that
    may be written and is added again by each call. Raises InvalidInput."""
    try:
        parts: SplitResult = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidInput("The URL of the metrics store is malformed.") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput("The URL of the metrics store must be http(s)://host[:port][/path], without a query.")
    authorization = f"Bearer {token}" if token else ""
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    prefix = parts.path.rstrip("/").removesuffix(without)
    return StoreUrl(parts.scheme == "https", parts.hostname, port, prefix, authorization)


@dataclass(frozen=True, slots=True)
class Answered:
    """The store's answer to a write: its status, the pause it asks for, the beginning of its words."""

    status: int
    retry_after_s: float
    said: str


@dataclass(slots=True)
class MetricsStore:
    """One store: where to write (a whole URL) and where to ask (the URL up to /api/v1); the latter may be None."""

    write_url: StoreUrl
    read_url: StoreUrl | None
    _writing: http.client.HTTPConnection | None = None
    _open: set[http.client.HTTPConnection] = field(default_factory=set)

    def write(self, request: bytes) -> Answered:
        """Send one WriteRequest on the connection that stays open; raises Unavailable where there is no answer."""
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "User-Agent": "windrow-master",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
            **_authorized(self.write_url),
        }
        connection = self._writing or self._connect(self.write_url, WRITE_TIMEOUT_S)
        self._writing = connection
        try:
            connection.request("POST", self.write_url.prefix or "/", body=request, headers=headers)
            answer = connection.getresponse()
            said = answer.read(ERROR_BYTES_MAX)
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._writing = None
            self._close(connection)
            raise Unavailable(f"The metrics store at {self.write_url.shown} does not answer: {_why(error)}") from error
        return Answered(answer.status, _retry_after(answer.getheader("Retry-After")), _plain(said))

    def ask(self, question: Question) -> bytes:
        """The answer's body; raises Unavailable with the reason."""
        url = self.read_url
        if url is None:
            raise Unavailable("The metrics store is only written to.")
        headers = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "windrow-master"}
        connection = self._connect(url, READ_TIMEOUT_S)
        try:
            body = urlencode(question.form).encode()
            connection.request(
                "POST", f"{url.prefix}{API_PATH}/{question.path}", body=body, headers=headers | _authorized(url)
            )
            answer = connection.getresponse()
            data = answer.read(ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"The metrics store at {url.shown} does not answer: {_why(error)}") from error
        finally:
            self._close(connection)
        if len(data) > ANSWER_BYTES_MAX:
            raise Unavailable("The metrics store answered with more than a chart can show.")
        if answer.status >= 400 and not data.startswith(b"{"):
            raise Unavailable(f"The metrics store at {url.shown} answered {answer.status}: {_plain(data)}")
        return data

    def abort(self) -> None:
        """End what is under way, from another thread: what waits fails at once."""
        for connection in tuple(self._open):
            sock = connection.sock
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(2)

    def close(self) -> None:
        """Close every connection; call when nobody waits on one any more."""
        for connection in tuple(self._open):
            self._close(connection)
        self._writing = None

    def _connect(self, url: StoreUrl, timeout_s: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if url.is_tls else http.client.HTTPConnection
        connection = kind(url.host, url.port, timeout=timeout_s)
        self._open.add(connection)
        return connection

    def _close(self, connection: http.client.HTTPConnection) -> None:
        self._open.discard(connection)
        connection.close()


def _authorized(url: StoreUrl) -> dict[str, str]:
    return {"Authorization": url.authorization} if url.authorization else {}


def _retry_after(header: str | None) -> float:
    """Seconds; a date is not read, the ordinary pause serves."""
    try:
        return min(RETRY_AFTER_MAX_S, max(0.0, float(header or "0")))
    except ValueError:
        return 0.0


def _plain(said: bytes) -> str:
    """The store's words, harmless in a log."""
    text = said[:ERROR_BYTES_MAX].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text).strip()


def _why(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
