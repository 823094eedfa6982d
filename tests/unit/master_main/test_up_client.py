"""Whatever byte of an answer the Master dies at, its supervisor is told that it is unavailable, and lives on."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from windrow_master.up_client import MasterHttp
from windrow_proto.errors import NotFound, Unavailable, WindrowError

HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
HOST = b'{"id": "host_1"}'
PROBLEM = b'{"code": "not_found", "detail": "There is no such host."}'


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[MasterHttp]:
    """A Master that sends these bytes to whoever calls once, and is gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(1 << 16)
                caller.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield MasterHttp(f"http://127.0.0.1:{server.getsockname()[1]}", "token")
        thread.join(10)


def test_a_whole_answer_is_read() -> None:
    with answering(HEAD % (b"200 OK", len(HOST)) + HOST) as client:
        assert client.call("GET", "/hosts/host_1") == {"id": "host_1"}
    with answering(HEAD % (b"404 Not Found", len(PROBLEM)) + PROBLEM) as client, pytest.raises(NotFound):
        client.call("GET", "/hosts/host_1")


@pytest.mark.parametrize(
    "whole", [HEAD % (b"200 OK", len(HOST)) + HOST, HEAD % (b"404 Not Found", len(PROBLEM)) + PROBLEM]
)
def test_an_answer_that_breaks_off_anywhere_is_a_master_that_is_unavailable(whole: bytes) -> None:
    for end in range(0, len(whole), 5):
        with answering(whole[:end]) as client, pytest.raises(WindrowError) as raised:
            client.call("GET", "/hosts/host_1")
        assert isinstance(raised.value, Unavailable), whole[:end]
