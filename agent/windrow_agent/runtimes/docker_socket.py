"""Calls a container daemon with the standard library alone: the Docker SDK is loaded with the first container only."""

import http.client
import json
import socket
from typing import Any, Final
from urllib.parse import quote, urlsplit

from windrow_proto.errors import RuntimeUnavailable

ANSWER_BYTES_MAX: Final = 8 << 20
"""Above a list of thousands of containers."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def containers_path(label: str) -> str:
    """The question for all containers that carry a label."""
    return f"/containers/json?all=1&filters={_labelled(label)}"


def has_any(base_url: str, label: str, timeout_s: float, *, volumes: bool) -> bool:
    """True if a container carries this label, or, with volumes, a volume; raises RuntimeUnavailable with the reason.
    Blocking."""
    if ask(base_url, containers_path(label), timeout_s):
        return True
    return volumes and bool((ask(base_url, f"/volumes?filters={_labelled(label)}", timeout_s) or {}).get("Volumes"))


def _labelled(label: str) -> str:
    return quote(json.dumps({"label": [label]}))


def ask(base_url: str, path: str, timeout_s: float) -> Any:
    """GET and read JSON; raises RuntimeUnavailable with the reason. Blocking."""
    return _wanted(call(base_url, "GET", path, timeout_s))


def remove_network(base_url: str, name: str, timeout_s: float) -> None:
    """Take away a network that nobody uses; raises RuntimeUnavailable with the reason. Blocking."""
    _wanted(call(base_url, "DELETE", f"/networks/{quote(name)}", timeout_s))


def lines(base_url: str, path: str, timeout_s: float) -> list[Any]:
    """GET and read an answer that is JSON in each line; raises RuntimeUnavailable with the reason. Blocking."""
    status, told = _asked(base_url, "GET", path, timeout_s, None, every=True)
    found: list[Any] = _wanted((status, told))
    return found


def call(base_url: str, method: str, path: str, timeout_s: float, body: Any = None) -> tuple[int, Any]:
    """One request: its status and the last line of its answer, read as JSON. body: bytes as they are, else JSON.
    Raises RuntimeUnavailable with the reason. Blocking."""
    status, told = _asked(base_url, method, path, timeout_s, body)
    return status, told[-1] if told else None


def _asked(
    base_url: str, method: str, path: str, timeout_s: float, body: Any, *, every: bool = False
) -> tuple[int, list[Any]]:
    """every: all lines, and not only the last."""
    parts = urlsplit(base_url)
    if parts.scheme == "unix":
        connection: http.client.HTTPConnection = _UnixConnection(parts.path, timeout_s)
    else:
        connection = http.client.HTTPConnection(parts.hostname or "localhost", parts.port or 2375, timeout=timeout_s)
    kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
    try:
        connection.request(method, path, sent, {} if body is None else {"Content-Type": kind})
        answer = connection.getresponse()
        told = answer.read(ANSWER_BYTES_MAX).strip().splitlines()
        return answer.status, [json.loads(line) for line in (told if every else told[-1:])]
    except FileNotFoundError as error:
        raise RuntimeUnavailable(f"There is no container daemon at {base_url}.") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RuntimeUnavailable(f"The container daemon at {base_url} cannot be asked: {error}") from error
    finally:
        connection.close()


def _wanted(answer: tuple[int, Any]) -> Any:
    status, told = answer
    if status not in (200, 204):
        raise RuntimeUnavailable(f"The container daemon answered {status}.")
    return told


def is_here(address: str) -> bool:
    """True if this is an address of this very host."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return bool(address)
