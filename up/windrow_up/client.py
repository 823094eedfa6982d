"""Asks a Master over HTTP, on the standard library alone; each call has a deadline."""

import contextlib
import http.client
import json
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from windrow_proto.errors import Unavailable, WindrowError, from_code

CALL_S: Final = 15.0
QUIET_S: Final = 60.0
"""A followed log may be silent for this long before the connection counts as dead."""
CHUNK: Final = 16 * 1024


class MasterHttp:
    """A client of one Master with the token of its first account. authority: the file of who vouches for an https URL;
    nothing is sent to whom it does not vouch for. health_url: where the Master says how it fares, whoever else keeps
    its other listeners busy; it is asked without the token."""

    def __init__(self, url: str, token: str, authority: Path | None = None, health_url: str = "") -> None:
        self.place = url, token, authority, health_url
        self.url = url
        self._health_url = health_url or f"{url}/healthz"
        self._token = token
        try:
            self._trust = ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise Unavailable(f"The authority of the Master, {authority}, cannot be read: {error}") from error

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call; returns the JSON answer. Raises what the problem names, Unavailable without a whole answer: the
        Master may die at any byte of it."""
        with self._open(method, path, body, CALL_S) as answer:
            try:
                payload = answer.read()
                is_empty = answer.status == http.HTTPStatus.NO_CONTENT or answer.headers["Content-Length"] == "0"
                return None if is_empty else json.loads(payload)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Unavailable(f"The Master's answer at {self.url} broke off: {error}") from error

    def is_well(self) -> bool:
        """Return whether the Master can store what it acknowledges. Raises Unavailable, with the reason if there is
        one."""
        with self._send(urllib.request.Request(self._health_url), CALL_S) as answer:
            try:
                return bool(json.loads(answer.read())["status"] == "ok")
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                raise Unavailable(f"The Master's answer at {self._health_url} broke off: {error}") from error

    def items(self, path: str) -> list[dict[str, Any]]:
        """Every item of a list, page after page."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            joint = "&" if "?" in path else "?"
            page = self.call("GET", f"{path}{joint}limit=500{f'&cursor={cursor}' if cursor else ''}")
            found += page["items"]
            cursor = page.get("next_cursor") or ""
            if not cursor:
                return found

    def stream(self, path: str) -> Iterator[bytes]:
        """The bytes of an answer as they come."""
        with self._open("GET", path, None, QUIET_S) as answer:
            try:
                while chunk := answer.read1(CHUNK):
                    yield chunk
            except (TimeoutError, OSError, http.client.HTTPException) as error:
                raise Unavailable(f"The stream broke off: {error}") from error

    def _open(self, method: str, path: str, body: Any, timeout_s: float) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._token}"}
        if method == "POST":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        base = self.url if path.startswith("/healthz") else f"{self.url}/api/v1"
        return self._send(urllib.request.Request(base + path, data=data, headers=headers, method=method), timeout_s)

    def _send(self, request: urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
        # The Master is on this machine's loopback: a proxy from the environment must not come between.
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._trust)
        opener = urllib.request.build_opener(*handlers)
        try:
            answer: http.client.HTTPResponse = opener.open(request, timeout=timeout_s)
            return answer
        except urllib.error.HTTPError as error:
            with error, contextlib.suppress(OSError, http.client.HTTPException):
                raise _problem(error.code, error.read()) from None
            raise Unavailable(f"The Master's answer {error.code} at {request.full_url} broke off.") from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"The Master does not answer at {request.full_url}: {error}") from error


def _problem(status: int, payload: bytes) -> WindrowError:
    try:
        body = json.loads(payload)
        raised = from_code(str(body["code"]), str(body["detail"])[:1000], str(body.get("subject", "")))
    except (ValueError, KeyError, TypeError):
        return Unavailable(f"The Master answered {status} without saying why.")
    return raised
