"""A machine that joins tries again where the Master cuts it before its handshake."""

import socket
import struct
import threading

import pytest

from windrow_proto import enrol
from windrow_proto.errors import Unavailable

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset."""


def test_a_connection_that_is_reset_before_its_handshake_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrol, "AGAIN_S", 0.01)
    came = 0

    def serve() -> None:
        nonlocal came
        while came < 4:
            one, _ = listening.accept()
            came += 1
            with one:
                if came < 4:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                else:
                    one.recv(1)
                    one.sendall(b"this is no TLS, and the last of it")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        master = threading.Thread(target=serve)
        master.start()
        with pytest.raises(Unavailable, match="could not be reached"):
            enrol.fetch_authority(f"https://127.0.0.1:{listening.getsockname()[1]}", "0" * 64, 30)
        master.join()
    assert came == 4


def test_it_is_not_tried_longer_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrol, "AGAIN_S", 0.01)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            one, _ = listening.accept()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            one.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        master = threading.Thread(target=serve)
        master.start()
        address = listening.getsockname()
        with pytest.raises(Unavailable, match="reset"):
            enrol.fetch_authority(f"https://127.0.0.1:{address[1]}", "0" * 64, 0.2)
        stop.set()
        socket.create_connection(address).close()
        master.join()
