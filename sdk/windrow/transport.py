"""Calls and streams over HTTP to one Master: problems as exceptions, a lost answer asked for again.

The one adapter of the HTTP library.
"""

import json
import math
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Final, Self

import httpx2

from windrow.authority import OWN_NAME, is_own
from windrow.config import DEADLINE_S, Config, find, proxies
from windrow.errors import ApiProblem, InvalidInput, MasterUnreachable, WindrowClientError

Json = dict[str, Any]

TAR: Final = "application/x-tar"
PAGE: Final = 200
CHUNK: Final = 64 * 1024
FILES_S: Final = 600.0
"""For a file or a folder that is moved, without a byte."""
LONG_S: Final = 7200.0
QUIET_S: Final = 45.0
"""A live stream sends a comment every 15 s; three of them missing means that the connection is dead."""


class Transport:
    """A connection to one Master. Use as a context manager, or close it."""

    def __init__(self, config: Config | None = None, transport: httpx2.BaseTransport | None = None) -> None:
        self.config = config or find()
        options: dict[str, Any] = {"transport": transport}
        if transport is None:
            trust = _trust(self.config)
            by_own_name = self.config.ca_file is not None and is_own(trust)
            options = {"verify": trust, "event_hooks": {"request": [_ask_by_own_name] if by_own_name else []}}
        self._http = httpx2.Client(
            base_url=self.config.url + "/api/v1",
            headers={"User-Agent": "windrow-sdk/0.1"} | _bearer(self.config.token),
            timeout=DEADLINE_S,
            trust_env=bool(proxies(self.config.url)),
            **options,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def request(self, method: str, path: str, *, body: Any = None, params: Any = None, key: str | None = None) -> Any:
        """One call; returns the JSON answer (None for 204).

        POSTs carry an Idempotency-Key, so a call repeated after a lost answer happens once. Raises ApiProblem,
        MasterUnreachable.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex} if method == "POST" else {}
        for attempt in (1, 2):
            try:
                answer = self._http.request(method, path, json=_sendable(body), params=params, headers=headers)
                break
            except httpx2.TransportError as error:
                if attempt == 2 or method not in ("GET", "POST", "DELETE"):
                    raise self._unreachable(error) from error
        return self._read(answer)

    def get(self, path: str, **params: Any) -> Any:
        """GET one object."""
        return self.request("GET", path, params={k: v for k, v in params.items() if v is not None})

    def text(self, path: str, **params: Any) -> str:
        """GET a text that is no JSON. Raises as `request`."""
        try:
            answer = self._http.request("GET", path, params=params)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        return str(answer.text) if answer.status_code < 300 else str(self._read(answer))

    def items(self, path: str, **params: Any) -> Iterator[Json]:
        """Every item of a list, page after page."""
        cursor: str | None = None
        while True:
            page = self.get(path, limit=PAGE, cursor=cursor, **params)
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _put(self, path: str, content: IO[bytes], params: Mapping[str, Any], media_type: str) -> Json:
        """Send what `content` reads."""

        def chunks() -> Iterator[bytes]:
            while data := content.read(CHUNK):
                yield data

        try:
            answer = self._http.request(
                "PUT",
                path,
                params=params,
                content=chunks(),
                headers={"Content-Type": media_type},
                timeout=httpx2.Timeout(DEADLINE_S, read=FILES_S, write=FILES_S),
            )
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        result: Json = self._read(answer)
        return result

    def tar(self, path: str, params: Mapping[str, Any], began: Callable[[bool, str], object]) -> Iterator[bytes]:
        """A tar stream as it comes; `began` is told first whether the Master says that it is not all there was, and
        which version it is."""
        with self._stream("GET", path, params=params, read_s=FILES_S) as answer:
            is_cut = answer.headers.get("X-Files-Truncated", "false") == "true"
            began(is_cut, answer.headers.get("X-Files-Version", ""))
            yield from answer.iter_bytes()

    def _long(self, method: str, path: str, body: Any) -> Any:
        """One call that moves files before it answers."""
        try:
            answer = self._http.request(method, path, json=body, timeout=httpx2.Timeout(DEADLINE_S, read=LONG_S))
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        return self._read(answer)

    def events(self, path: str, last_id: str | None = None, read_s: float = QUIET_S) -> Iterator[tuple[str, str, Json]]:
        """Server-sent events of `path` as (id, name, data); ends when the connection does.

        Raises MasterUnreachable when nothing came for `read_s` seconds.
        """
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        with self._stream("GET", path, headers=headers, read_s=read_s) as answer:
            identifier, name, data = "", "message", ""
            for line in answer.iter_lines():
                if line == "" and data:
                    yield identifier, name, json.loads(data)
                    name, data = "message", ""
                elif line.startswith("id:"):
                    identifier = line[3:].strip()
                elif line.startswith("event:"):
                    name = line[6:].strip()
                elif line.startswith("data:"):
                    data += line[5:].strip()

    @contextmanager
    def _stream(self, method: str, path: str, *, read_s: float | None, **options: Any) -> Iterator[httpx2.Response]:
        try:
            with self._http.stream(method, path, timeout=httpx2.Timeout(DEADLINE_S, read=read_s), **options) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    self._read(answer)
                yield answer
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> MasterUnreachable:
        # A library's words about what was sent may hold the token; those about the way to the Master cannot.
        words = f": {error}" if isinstance(error, httpx2.NetworkError | httpx2.TimeoutException) else ""
        if "CERTIFICATE_VERIFY_FAILED" in words:
            return MasterUnreachable(
                f"This machine does not trust the certificate of the Master at {self.config.url}{words}. Take its "
                f"authority's file from an operator: windrow login --ca-file FILE {self.config.url}"
            )
        between = proxies(self.config.url)
        way = f" It was asked through the proxy of {' or '.join(between)}." if between else ""
        return MasterUnreachable(
            f"The Master at {self.config.url} does not answer ({type(error).__name__}{words}). Is it running?{way}"
        )

    @staticmethod
    def _read(answer: httpx2.Response) -> Any:
        if answer.status_code == 204:
            return None
        try:
            document = answer.json()
        except ValueError:
            raise WindrowClientError(f"HTTP {answer.status_code} without JSON from {answer.url}") from None
        if answer.status_code >= 300:
            said = document if isinstance(document, dict) else {"detail": str(document)[:200]}
            again_s = answer.headers.get("Retry-After", "")
            raise ApiProblem(answer.status_code, said, int(again_s) if again_s.isdecimal() else 0)
        return document


class Archive:
    """A tar archive that a Master gives out from any byte on (folder/archive.py reads it)."""

    def __init__(self, api: Transport, path: str, params: Mapping[str, Any]) -> None:
        self.is_cut = self.is_resumed = False
        self.version = ""
        self._api, self._path, self._params = api, path, params

    def pieces(self, offset: int) -> Iterator[bytes]:
        """Returns the bytes from this one on. Raises MasterUnreachable, ApiProblem."""
        self.is_resumed = self.is_resumed or offset > 0
        yield from self._api.tar(self._path, {**self._params, **({"offset": offset} if offset else {})}, self._began)

    def _began(self, is_cut: bool, version: str) -> None:
        self.is_cut, self.version = is_cut, version


def _sendable(body: Any) -> Any:
    """The body of a request as it is. Raises InvalidInput that names the field of a number that is none."""
    todo: list[tuple[str, Any]] = [("", body)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{name or 'A number'}: {value} is no number that can be sent.")
        if isinstance(value, Mapping):
            todo += [(str(key), one) for key, one in value.items()]
        elif isinstance(value, list | tuple):
            todo += [(name, one) for one in value]
    return body


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def fetch_authority(url: str) -> bytes:
    """The certificate by which a Master's own authority is known, from whoever answers there: check it before use."""
    try:
        is_far = bool(proxies(url))
        with httpx2.Client(base_url=url + "/api/v1", verify=_nobody(), timeout=DEADLINE_S, trust_env=is_far) as http:
            return http.get("/ca").read()
    except httpx2.TransportError as error:
        raise MasterUnreachable(f"The Master at {url} does not answer ({type(error).__name__}).") from error


def _nobody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _ask_by_own_name(request: httpx2.Request) -> None:
    """Ask for the certificate of the Master's own authority."""
    request.extensions = {**request.extensions, "sni_hostname": OWN_NAME}


def _trust(config: Config) -> ssl.SSLContext:
    """Returns the authorities that may vouch for the Master: its own authority's file, else this machine's authorities.
    They are not read for a plain URL, where nobody is asked: reading them takes tens of milliseconds of each
    command."""
    if config.ca_file:
        try:
            return ssl.create_default_context(cafile=config.ca_file)
        except OSError as error:
            raise WindrowClientError(f"The authority {config.ca_file} cannot be read: {error.strerror}.") from error
    if config.url.lower().startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it has no authority, so that it trusts nobody
    return httpx2.create_ssl_context()
