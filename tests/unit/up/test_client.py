"""A supervisor whose Master dies at any byte of an answer is told that the Master is unavailable, and lives on."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pki import TestAuthority, issue, make_ca
from windrow_proto.errors import NotFound, Unavailable, WindrowError
from windrow_up.client import MasterHttp

HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
HOST = b'{"id": "host_1"}'
PROBLEM = b'{"code": "not_found", "detail": "There is no such host. List hosts: windrow host ls"}'


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


@contextlib.contextmanager
def secured(ca: TestAuthority, folder: Path) -> Iterator[tuple[str, list[bytes]]]:
    """Listens with a certificate of this authority; what it was sent, once, is kept."""
    identity, heard = issue(ca, "master", "master_1"), list[bytes]()
    (folder / "chain.pem").write_bytes(identity.certificate_pem + identity.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "chain.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with contextlib.suppress(OSError), context.wrap_socket(caller, server_side=True) as line:
                heard.append(line.recv(1 << 16))
                line.sendall(HEAD % (b"200 OK", len(HOST)) + HOST)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join(10)


def test_who_the_markets_authority_vouches_for_is_the_master_and_nobody_else_is_told_the_token(tmp_path: Path) -> None:
    ours, theirs, authority = make_ca(), make_ca(), tmp_path / "ca.pem"
    authority.write_bytes(ours.certificate_pem)

    with secured(ours, tmp_path) as (url, heard):
        assert MasterHttp(url, "the-token", authority).call("GET", "/hosts/host_1") == {"id": "host_1"}
    assert b"Bearer the-token" in heard[0]

    with secured(theirs, tmp_path) as (url, heard), pytest.raises(Unavailable, match="does not answer"):
        MasterHttp(url, "the-token", authority).call("GET", "/hosts/host_1")
    assert heard == []


def test_without_its_authority_the_master_is_not_asked(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"ca\.pem, cannot be read"):
        MasterHttp("https://127.0.0.1:1", "token", tmp_path / "ca.pem")
