"""Promises of ports, the file for the command line, and the names in the Master's certificate."""

import socket
import stat
from pathlib import Path

import pytest

from windrow_master.app import serving
from windrow_proto.data_directory import CliFile
from windrow_proto.errors import Conflict


def test_a_taken_port_is_followed_by_the_next_free_one_unless_it_was_asked_for() -> None:
    first = serving.bind("127.0.0.1", 0, 0)
    taken = serving.port_of(first)

    second = serving.bind("127.0.0.1", None, taken)
    with pytest.raises(Conflict, match=str(taken)):
        serving.bind("127.0.0.1", taken, taken)

    assert serving.port_of(second) != taken
    first.close()
    second.close()


def test_what_is_accepted_sends_the_rest_of_an_answer_at_once() -> None:
    """Without waiting for its beginning to be acknowledged, which whoever asks again and again puts off by 40 ms."""
    listening = serving.bind("127.0.0.1", 0, 0)
    asking = socket.create_connection(listening.getsockname())
    listening.setblocking(True)
    accepted, _ = listening.accept()
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    for one in (accepted, asking, listening):
        one.close()


def test_the_command_lines_file_is_private_and_survives_damage(tmp_path: Path) -> None:
    cli = CliFile(tmp_path / "cli.json")
    assert cli.read() == {}
    cli.write({"token": "wt_x", "ports": {"http": 8001, "https": 8443, "access": [7443], "odd": 99999}})

    assert stat.S_IMODE(cli.path.stat().st_mode) == 0o600
    assert cli.ports() == {"http": 8001, "https": 8443}
    cli.path.write_text("{")
    assert cli.read() == {}


def test_the_masters_certificate_holds_the_names_people_use() -> None:
    names = serving.own_names("0.0.0.0", "master.example")

    assert {"localhost", "127.0.0.1", "::1", "master.example"} <= set(names)
    assert "0.0.0.0" not in names
