"""The memory of a worker that a program keeps for the next: nothing of it is believed where it is not so any more."""

import asyncio
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.worker import Worker
from tests.waiting import PATIENCE_S
from windrow import tunnel
from windrow.config import Config
from windrow.errors import ApiProblem, MasterUnreachable, TunnelRefused, WindrowClientError
from windrow.remote import cluster, line, memory, tunnel_request

CONFIG = Config("http://127.0.0.1:1", "token")
RECORD = {"python": [3, 11, 2], "port": 5, "secret": "00ff", "shape": {"hosts": 2, "cpus": 4, "gpus": 0}}
TICKET = {"address": "127.0.0.1:9", "ca_pem": "PEM", "server_name": "access.windrow", "grant": "g"}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_what_is_kept_is_found_again_by_its_owner_alone(tmp_path: Path) -> None:
    made = memory.Memory("cluster_a", RECORD)
    made.know({"b", "a"})
    made.reached(TICKET)
    memory.keep_name(CONFIG, "box", "cluster_a")

    found = memory.of_worker("cluster_a")
    assert found is not None
    assert (found.python, found.port, found.secret, found.known) == ([3, 11, 2], 5, b"\x00\xff", ["a", "b"])
    assert found.access == {name: TICKET[name] for name in ("address", "ca_pem", "server_name")}
    assert memory.named(CONFIG, "box") == "cluster_a"
    assert memory.named(Config(CONFIG.url, "another"), "box") is None
    assert memory.named(CONFIG, "other") is None
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.json")} == {0o600}
    memory.Memory("cluster_a", {**RECORD, "port": 6}, rank=1).keep()
    other = memory.of_worker("cluster_a", 1)
    assert other is not None and (found.port, other.port, other.shape["hosts"]) == (5, 6, 2)
    memory.forget("cluster_a")
    assert [memory.of_worker("cluster_a", rank) for rank in (0, 1)] == [None, None]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"python": 3, "port": "x", "secret": "zz"}'])
def test_a_memory_that_cannot_be_read_is_none(text: str, tmp_path: Path) -> None:
    memory.Memory("cluster_a", RECORD).keep()
    (written,) = tmp_path.rglob("*.json")
    written.write_text(text)
    assert memory.of_worker("cluster_a") is None


@contextmanager
def _master(status: int, said: bytes) -> Iterator[tuple[Config, list[tuple[str, str, Any]]]]:
    """Answers every request with this; also what it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Config(f"http://127.0.0.1:{server.server_port}/m", "token"), asked
        server.shutdown()


def test_the_master_is_asked_for_a_tunnel_without_the_client() -> None:
    with _master(201, json.dumps(TICKET).encode()) as (config, asked):
        assert tunnel_request.open_tunnel(config, "cluster_a/..", 8888) == TICKET
    assert asked == [("/m/api/v1/clusters/cluster_a%2F../tunnels", "Bearer token", {"port": 8888})]


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (404, b'{"code": "not_found", "detail": "no such cluster"}', ApiProblem),
        (200, b"<html>", MasterUnreachable),
        (502, b"[]", MasterUnreachable),
    ],
)
def test_what_is_no_ticket_is_an_error(status: int, said: bytes, error: type[WindrowClientError]) -> None:
    with _master(status, said) as (config, _), pytest.raises(error):
        tunnel_request.open_tunnel(config, "cluster_a", 1)


def test_no_master_is_an_error() -> None:
    with pytest.raises(MasterUnreachable, match="does not answer"):
        tunnel_request.open_tunnel(CONFIG, "cluster_a", 1)


@pytest.mark.parametrize("change", [{}, {"address": "127.0.0.1:10"}, {"ca_pem": "OTHER"}, {"server_name": "other"}])
async def test_the_access_of_last_time_is_taken_only_where_the_ticket_names_it(
    change: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = memory.Memory("cluster_a", RECORD)
    known.reached(TICKET)
    near, far = socket.socketpair()
    here = asyncio.Event()

    async def approach(where: dict[str, Any]) -> socket.socket:
        here.set()
        return near

    monkeypatch.setattr(tunnel, "approach", approach)
    loop = asyncio.get_running_loop()

    def open_tunnel() -> dict[str, Any]:
        asyncio.run_coroutine_threadsafe(here.wait(), loop).result(PATIENCE_S)
        return TICKET | change

    with near, far:
        ticket, found = await line._asked(open_tunnel, known)
        assert ticket == TICKET | change
        assert (found is near) is (not change)
        assert bool(change) is (near.fileno() == -1)


async def test_an_access_of_last_time_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    known = memory.Memory("cluster_a", RECORD)
    known.reached({**TICKET, "address": "127.0.0.1:1"})
    assert await line._asked(lambda: TICKET | {"address": "127.0.0.1:1"}, known) == (
        TICKET | {"address": "127.0.0.1:1"}, None,
    )  # fmt: skip
    with pytest.raises(TunnelRefused):
        await tunnel.approach({**TICKET, "address": "127.0.0.1:1"})


def test_a_master_that_does_not_answer_is_an_error_and_the_worker_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.keep_name(CONFIG, "box", "cluster_a")
    memory.Memory("cluster_a", RECORD).keep()
    monkeypatch.setattr(cluster, "find", lambda: CONFIG)
    with pytest.raises(MasterUnreachable, match="does not answer"):
        cluster.cluster("box").up_if_not()
    assert memory.of_worker("cluster_a") is not None
    assert not [known for known in cluster._sessions if known[0] == "cluster_a"]


def test_a_worker_that_is_remembered_and_gone_is_asked_for_anew(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name leads to a cluster whose tunnel is refused; the Master's list then says which it is now."""
    memory.keep_name(CONFIG, "box", "cluster_old")
    memory.Memory("cluster_old", RECORD).keep()
    memory.Memory("cluster_new", RECORD).keep()
    monkeypatch.setattr(cluster, "find", lambda: CONFIG)

    def refused(*_: object) -> None:
        raise ApiProblem(404, {"code": "not_found"})

    monkeypatch.setattr(tunnel_request, "open_tunnel", refused)

    class Api:
        config = CONFIG

        def own(self, path: str, name: str) -> list[dict[str, str]]:
            return [{"id": "cluster_new", "name": "box", "phase": "Running"}]

    monkeypatch.setattr(cluster, "connect", Api)
    monkeypatch.setattr(cluster, "session_of", lambda api, found: worker.session())
    box = cluster.cluster("box").up_if_not()
    assert box.id == "cluster_new"
    assert memory.named(CONFIG, "box") == "cluster_new"
    assert not [known for known in cluster._sessions if known[0] == "cluster_old"]
    assert (memory.of_worker("cluster_old"), box.shape) == (None, RECORD["shape"])
    with pytest.raises(WindrowClientError, match=r"'box' has 2 hosts, and hosts=3 was asked for"):
        cluster.cluster("box", hosts=3).up_if_not()
