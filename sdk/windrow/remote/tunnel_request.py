"""Asks the Master for a tunnel by the standard library alone: `Client` needs longer to import than its answer takes."""

import http.client
import json
import secrets
import socket
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

from windrow.authority import OWN_NAME, is_own
from windrow.config import DEADLINE_S, Config
from windrow.errors import ApiProblem, MasterUnreachable


class _ByOwnName(http.client.HTTPSConnection):
    """A connection to a Master that shows the certificate of its own authority, as `Transport` asks for it."""

    def __init__(self, host: str, port: int | None, trust: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=DEADLINE_S, context=trust)
        self._trust = trust

    def connect(self) -> None:
        found = socket.create_connection((self.host, self.port), DEADLINE_S)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._trust.wrap_socket(found, server_hostname=OWN_NAME)


def _secure(host: str, port: int | None, ca_file: str | None) -> http.client.HTTPSConnection:
    trust = ssl.create_default_context(cafile=ca_file)
    if ca_file is not None and is_own(trust):
        return _ByOwnName(host, port, trust)
    return http.client.HTTPSConnection(host, port, timeout=DEADLINE_S, context=trust)


def open_tunnel(
    config: Config, cluster_id: str, port: int, wish: dict[str, Any] | None = None, *, rank: int = 0
) -> dict[str, Any]:
    """As `Client.open_tunnel`, without a proxy. Raises ApiProblem, MasterUnreachable."""
    url = urlsplit(config.url)
    headers = {
        "Authorization": f"Bearer {config.token}",
        "Content-Type": "application/json",
        "Idempotency-Key": secrets.token_hex(16),
    }
    path = f"{url.path}/api/v1/clusters/{quote(cluster_id, safe='')}/tunnels"
    path += f"?rank={rank}" if rank else ""
    try:
        host = str(url.hostname)
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            connection = _secure(host, url.port, config.ca_file)
        else:
            connection = http.client.HTTPConnection(host, url.port, timeout=DEADLINE_S)
        try:
            connection.request("POST", path, json.dumps({"port": port, **(wish or {})}), headers)
            answer = connection.getresponse()
            document = json.loads(answer.read())
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise MasterUnreachable(f"The Master at {config.url} does not answer ({error}). Is it running?") from error
    if not isinstance(document, dict):
        raise MasterUnreachable(f"The server at {config.url} is not a Master.")
    if answer.status >= 300:
        raise ApiProblem(answer.status, document)
    return document
