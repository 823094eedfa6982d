"""Forwarding: which cluster and which ports are meant, and where a forwarded port is listened on."""

import contextlib
import errno
import socket

import httpx2
import pytest

from windrow import forwarding
from windrow.cli.clusters import cluster_id, cluster_named
from windrow.cli.forward import ports_of
from windrow.client import Client
from windrow.config import Config
from windrow.errors import WindrowClientError

CLUSTERS = [
    {"id": "cluster_5", "name": "past", "phase": "Deleted", "created_at": "2026-11-02T00:00:00Z"},
    {"id": "cluster_6", "name": "past", "phase": "Failed", "created_at": "2026-11-03T00:00:00Z"},
    {"id": "cluster_1", "name": "lab", "phase": "Deleted"},
    {"id": "cluster_2", "name": "lab", "phase": "Running"},
    {"id": "cluster_3", "name": "twin", "phase": "Running"},
    {"id": "cluster_4", "name": "twin", "phase": "Degraded"},
]
CLUSTERS = [one | {"account_id": "account_1"} for one in CLUSTERS]


def client() -> Client:
    def answer(request: httpx2.Request) -> httpx2.Response:
        last = request.url.path.rsplit("/", 1)[-1]
        if last == "me":
            return httpx2.Response(200, json={"account": {"id": "account_1"}})
        if last == "clusters":
            return httpx2.Response(200, json={"items": CLUSTERS, "next_cursor": None})
        return httpx2.Response(200, json=next(c for c in CLUSTERS if c["id"] == last))

    return Client(Config("http://master", "wr_secret"), transport=httpx2.MockTransport(answer))


def test_a_cluster_is_meant_by_its_id_or_by_the_name_of_one_that_lives() -> None:
    with client() as api:
        assert cluster_named(api, "cluster_1")["id"] == "cluster_1"
        assert cluster_named(api, "lab")["id"] == "cluster_2"
        with pytest.raises(WindrowClientError, match=r"cluster_3 \(twin\), cluster_4"):
            cluster_named(api, "twin")
        with pytest.raises(WindrowClientError, match="windrow cluster ls"):
            cluster_named(api, "gone")


def test_what_is_only_read_may_have_ended_and_is_then_the_newest() -> None:
    with client() as api:
        assert cluster_id(api, "lab", ended=True) == "cluster_2"
        assert cluster_id(api, "past", ended=True) == "cluster_6"
        assert cluster_id(api, "cluster_9") == "cluster_9"
        with pytest.raises(WindrowClientError, match="no cluster 'past'"):
            cluster_id(api, "past")


@pytest.mark.parametrize(("text", "found"), [("8888", (8888, None)), ("80:9000", (80, 9000)), ("65535", (65535, None))])
def test_a_port_is_there_or_there_and_here(text: str, found: tuple[int, int | None]) -> None:
    assert ports_of(text) == found


@pytest.mark.parametrize("text", ["", "0", "65536", "ssh", "80:", ":80", "80:0", "80:90:100", "-1", "8 0", "٣"])
def test_what_is_no_port_is_said_to_be_none(text: str) -> None:
    with pytest.raises(WindrowClientError, match="is not a port"):
        ports_of(text)


def test_a_forwarded_port_is_listened_on_at_both_loopback_addresses_or_at_none() -> None:
    """A browser may try either for `lab.localhost`: whoever has one of them could answer in its place."""
    with contextlib.ExitStack() as opened:
        servers = [opened.enter_context(one) for one in forwarding.listening(0)]
        assert [server.getsockname()[0] for server in servers] == ["127.0.0.1", "::1"]
        (port,) = {server.getsockname()[1] for server in servers}

    for taken, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        with socket.create_server((taken, port), family=family), pytest.raises(OSError) as refused:
            forwarding.listening(port)
        assert refused.value.errno == errno.EADDRINUSE


def test_without_ipv6_one_address_is_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    make = socket.create_server

    def lacking(address: tuple[str, int], *, family: int = socket.AF_INET) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "no such address")
        return make(address)

    monkeypatch.setattr(socket, "create_server", lacking)
    (server,) = forwarding.listening(0)
    with server:
        assert server.getsockname()[0] == "127.0.0.1"
