"""A WebSocket's client for tests, which may also say what no browser says."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto import events as ws

from tests.waiting import PATIENCE_S

PIECE = 65_536


class WebSocket:
    """One connection. Blocking; each wait has an end."""

    def __init__(self, url: str, path: str, protocols: list[str], origin: str | None) -> None:
        """url: of the Master. origin: None: that of the Master's own pages."""
        found = urlsplit(url)
        self.socket = socket.create_connection((found.hostname or "", found.port or 0), PATIENCE_S)
        if found.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket, server_hostname=found.hostname)
        self.connection = WSConnection(ConnectionType.CLIENT)
        self.status = 0
        self.heard: list[ws.Event] = []
        self.closed: int | None = None
        headers = [(b"Origin", (f"{found.scheme}://{found.netloc}" if origin is None else origin).encode())]
        asked = ws.Request(host=found.netloc, target=path, subprotocols=protocols, extra_headers=headers)
        self.socket.sendall(self.connection.send(asked))
        while not self.status:
            self._more()

    def type(self, text: str) -> None:
        """Send keys."""
        self.say(ws.BytesMessage(text.encode()))

    def size(self, columns: int, rows: int) -> None:
        """Tell the size."""
        self.say(ws.TextMessage(json.dumps({"columns": columns, "rows": rows})))

    def say(self, event: ws.Event) -> None:
        """Send anything."""
        self.socket.sendall(self.connection.send(event))

    @property
    def printed(self) -> bytes:
        """All that was printed."""
        return b"".join(bytes(one.data) for one in self.heard if isinstance(one, ws.BytesMessage))

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the Master itself said."""
        return [json.loads(one.data) for one in self.heard if isinstance(one, ws.TextMessage)]

    def until(self, text: bytes) -> None:
        """Wait until this was printed."""
        ends = time.monotonic() + PATIENCE_S
        while text not in self.printed:
            assert self.closed is None and time.monotonic() < ends, (self.printed, self.told)
            self._more()

    def over(self) -> dict[str, Any]:
        """Wait for its end; the last that the Master said."""
        while self.closed is None:
            self._more()
        return self.told[-1] if self.told else {}

    def _more(self) -> None:
        data = self.socket.recv(PIECE)
        if not data and self.closed is None:
            self.closed = 1006
        self.connection.receive_data(data or None)
        for event in self.connection.events():
            if isinstance(event, ws.AcceptConnection):
                self.status = 101
            elif isinstance(event, ws.RejectConnection):
                self.status = event.status_code
            elif isinstance(event, ws.CloseConnection):
                self.closed = event.code
            elif isinstance(event, ws.Ping):
                self.say(event.response())
            self.heard.append(event)


@contextmanager
def web_socket(url: str, path: str, protocols: list[str], origin: str | None = None) -> Iterator[WebSocket]:
    """Open one; its `status` is 101 where it was accepted."""
    found = WebSocket(url, path, protocols, origin)
    with found.socket:
        yield found
