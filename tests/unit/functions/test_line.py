"""The line to a worker: who is let in, and what garbage does."""

import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.worker import Worker
from tests.unit.functions.conftest import Code
from tests.waiting import PATIENCE_S
from windrow.errors import (
    WrongSecret,
)
from windrow.remote import loop
from windrow.worker import frames


def test_whoever_does_not_know_the_secret_is_turned_away(worker: Worker, code: Code) -> None:
    with pytest.raises(WrongSecret):
        code.on(worker, "number", session=worker.session(b"x" * 32))()


def test_an_impostor_on_the_port_gets_no_code(code: Code) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        impostor = Worker(None, Path(), server.getsockname()[1], b"s" * 32)  # type: ignore[arg-type]
        run = loop.start(impostor.session().make_env([], lambda _line: None))
        one, _ = server.accept()
        with one:
            one.sendall(frames.GREETING + bytes(32))
            shown = one.recv(4096)
            one.sendall(frames.encode_record(frames.Kind.WELCOME, 0, {"proof": "0" * 64}))
            with pytest.raises(WrongSecret, match="nothing was sent"):
                run.result(PATIENCE_S)
            assert b"s" * 32 not in shown
            assert one.recv(4096) == b""


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\xff" * 64, struct.pack(">IBI", 5, 99, 1) + b"hello", b""],
    ids=["http", "zeros", "ones", "kind", "nothing"],
)
def test_garbage_ends_its_connection_and_nothing_else(worker: Worker, code: Code, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), PATIENCE_S) as one:
        one.sendall(garbage)
        one.shutdown(socket.SHUT_WR)
        while one.recv(4096):
            pass
    assert code.on(worker, "number")() == 1


def _said(worker: Worker, *sent: bytes) -> bytes:
    """What a client that knows the secret is told after these frames, until it is turned away or the last is done."""
    with socket.create_connection(("127.0.0.1", worker.port), PATIENCE_S) as one:
        greeting = one.recv(len(frames.GREETING) + 32, socket.MSG_WAITALL)
        proof = frames.proof(worker.secret, b"client", greeting[-32:])
        hello = frames.encode_record(frames.Kind.HELLO, 0, {"nonce": "n"})
        one.sendall(hello + frames.encode_record(frames.Kind.PROOF, 0, {"proof": proof}) + b"".join(sent))
        one.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: one.recv(65536), b""))


@pytest.mark.parametrize(
    ("kind", "record", "text"),
    [
        (frames.Kind.CALL, {"run": "../../x"}, b"32 hexadecimal"),
        (frames.Kind.CALL, {"run": "0" * 32, "module": "os", "name": "system;"}, b"bad_call"),
        (frames.Kind.CALL, {"run": "0" * 32, "pool": -1}, b"bad_call"),
        (frames.Kind.CALL, {"run": "0" * 32, "timeout_s": "soon"}, b"bad_call"),
        (frames.Kind.CALL, {"run": "0" * 32, "variables": {"A": 1}}, b"bad_call"),
        (frames.Kind.CALL, {"run": "0" * 32, "env": "../../bin"}, b"need_env"),
        (frames.Kind.CALL, {"run": "0" * 32, "tree": "../../etc"}, b"need_code"),
        (frames.Kind.ATTACH, {"run": "1" * 32}, b"unknown_run"),
        (frames.Kind.FILE, {"digest": "../../x"}, b"bad_code"),
        (frames.Kind.TREE, {"digest": "0" * 64}, b"bad_code"),
        (frames.Kind.ENV, {"requirements": ["--index-url=http://x"]}, b"no requirement"),
        (frames.Kind.DONE, {}, b"bad_frame"),
    ],
)
def test_bad_requests_are_refused(worker: Worker, kind: frames.Kind, record: dict[str, Any], text: bytes) -> None:
    assert text in _said(worker, frames.encode_record(kind, 1, record))


def test_the_worker_welcomes_nobody_without_the_secret(worker: Worker) -> None:
    stranger = Worker(worker.process, worker.place, worker.port, b"x" * 32)
    said = _said(stranger, frames.encode_record(frames.Kind.ATTACH, 1, {"run": "1" * 32}))
    assert b"wrong_secret" in said
    assert b"unknown_run" not in said
