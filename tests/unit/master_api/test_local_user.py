"""The Master's own user is recognised by the owner of a real loopback socket, not by what a request says."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from windrow_master.api.local_user import LocalUser

HOST = {"host": "localhost:8000"}


@pytest.fixture(params=["127.0.0.1", "::1"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """The address of a client that is connected over loopback, and of its server."""
    family = socket.AF_INET if "." in request.param else socket.AF_INET6
    try:
        listening = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {request.param}")
    with (
        closing(listening),
        closing(socket.create_connection(listening.getsockname()[:2])) as client,
        closing(listening.accept()[0]) as served,
    ):
        yield client.getsockname()[:2], served.getsockname()[:2]


def scope(ends: tuple[Any, Any], headers: Mapping[str, str] = HOST) -> dict[str, Any]:
    written = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": ends[0], "server": ends[1], "headers": written}


def test_the_owner_of_the_socket_is_this_user(ends: tuple[Any, Any]) -> None:
    assert LocalUser(os.getuid()).sends(scope(ends))
    assert not LocalUser(os.getuid() + 1).sends(scope(ends))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
def test_any_name_of_loopback_will_do(ends: tuple[Any, Any], host: str) -> None:
    assert LocalUser(os.getuid()).sends(scope(ends, {"host": host}))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "evil.example"},
        {"host": "localhost.evil.example"},
        {"host": "localhost@evil.example"},
        HOST | {"origin": "http://localhost:8000"},
        HOST | {"sec-fetch-site": "none"},
        HOST | {"x-forwarded-for": "203.0.113.9"},
        HOST | {"forwarded": "for=203.0.113.9"},
        HOST | {"via": "1.1 proxy"},
    ],
)
def test_a_browser_a_proxy_and_another_name_are_strangers(ends: tuple[Any, Any], headers: Mapping[str, str]) -> None:
    assert not LocalUser(os.getuid()).sends(scope(ends, headers))


def test_a_socket_that_is_gone_or_was_made_up_is_nobodys(ends: tuple[Any, Any]) -> None:
    (address, port), server = ends
    assert not LocalUser(os.getuid()).sends(scope(((address, 9), server)))
    assert not LocalUser(os.getuid()).sends(scope(((address, port), (server[0], 9))))


@pytest.mark.parametrize("address", ["192.0.2.1", "not an address", ""])
def test_only_loopback_counts(ends: tuple[Any, Any], address: str) -> None:
    assert not LocalUser(os.getuid()).sends(scope(((address, ends[0][1]), ends[1])))


def test_without_the_kernels_table_nobody_is_known(ends: tuple[Any, Any], tmp_path: Path) -> None:
    assert not LocalUser(os.getuid(), [tmp_path / "none"]).sends(scope(ends))


def test_a_scope_without_addresses_is_nobodys() -> None:
    assert not LocalUser(os.getuid()).sends({"type": "http", "headers": [(b"host", b"localhost")]})
