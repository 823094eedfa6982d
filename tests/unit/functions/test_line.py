"""The line to a worker: who is let in, what garbage does, and what too much of something does."""

import socket
import struct
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.worker import Worker
from tests.unit.functions.conftest import CODE, Code
from tests.waiting import PATIENCE_S
from windrow.errors import CannotSend, WorkerRefused, WrongSecret
from windrow.remote import loop
from windrow.worker import frames
from windrow.worker.serving import CONNECTIONS_MAX, NEED_FILES, VARIABLES_BYTES_MAX


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
    """Returns the answers to a client that knows the secret after these frames, until it is turned away or the last is
    done."""
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


def test_many_files_are_asked_for_in_several_frames(worker: Worker, code: Code) -> None:
    for number in range(2 * NEED_FILES + 1):
        (code.folder / f"{number}.txt").write_text(f"{number} {code.name}")
    code.write(CODE + "\ndef files():\n    return len(os.listdir(os.path.dirname(__file__)))\n")
    assert code.on(worker, "files")() >= 2 * NEED_FILES + 2


def test_more_programs_than_a_worker_serves_at_once_take_the_places_of_idle_ones(worker: Worker, code: Code) -> None:
    sessions = [worker.session() for _ in range(CONNECTIONS_MAX + 3)]
    for session in [*sessions, sessions[0]]:
        assert code.on(worker, "number", session=session)() == 1


def test_a_program_without_a_place_is_told_so_and_served_once_there_is_one(
    worker: Worker, code: Code, there: Path
) -> None:
    runs = [code.on(worker, "together").remote(str(there), CONNECTIONS_MAX + 1) for _ in range(CONNECTIONS_MAX)]
    assert b"too_many" in _said(worker)
    (there / "one more").touch()
    assert len({run.result(PATIENCE_S) for run in runs}) == CONNECTIONS_MAX
    assert code.on(worker, "number")() == 1


def test_too_much_for_the_environment_of_a_call_is_refused_and_the_line_goes_on(worker: Worker, code: Code) -> None:
    session = worker.session()
    for size, error in ((VARIABLES_BYTES_MAX, WorkerRefused), (frames.FRAME_BYTES_MAX, CannotSend)):
        function = code.on(worker, "number", session=session, env=windrow.env(variables={"LONG": "x" * size}))
        with pytest.raises(error, match="argument"):
            function()
    assert code.on(worker, "number", session=session)() == 1
