"""Renters reach ports of their clusters, on a host without an open port, through the shipped daemons."""

import contextlib
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import own_port
from tests.support.rental import Renter
from tests.support.stack import WINDROW, wait_for
from tests.waiting import PATIENCE_S, poll
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

BODY_BYTES = 24 << 20
SERVER = r"""
import hashlib, http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Digest", hashlib.sha256(data).hexdigest()); self.end_headers()
        self.wfile.write(data[::-1])
def turned(one):  # answers only when all has come: half-close
    with one:
        data = b""
        while piece := one.recv(65536): data += piece
        one.sendall(hashlib.sha256(data).hexdigest().encode())
def endless(one):
    with one:
        try:
            while True: one.sendall(bytes(65536))
        except OSError: pass
def kept(one):
    with one: one.sendall(b"here"); one.recv(1)
def serve(port, answer):
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()
for number, answer in enumerate((turned, endless, kept), 1):
    threading.Thread(target=serve, args=(FIRST + number, answer), daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", FIRST), Handler)
print("serving", flush=True)
server.serve_forever()
"""
HTTP, TURNED, ENDLESS, KEPT = range(4)


class Served:
    """A cluster that serves on four ports of its own, from `first` on."""

    def __init__(self, renter: Renter) -> None:
        self.renter = renter
        ports = sorted(own_port() for _ in range(20))
        self.first = next(p for p in ports if {p + n for n in range(4)} <= set(ports))
        self.cluster = self._create()
        self.id: str = self.cluster["id"]

    def revive(self) -> None:
        """Have it run again, if it was ended."""
        if self.renter.ask("GET", f"/clusters/{self.id}")["phase"] != "Running":
            self.cluster = self._create()
            self.id = self.cluster["id"]

    def _create(self) -> dict[str, Any]:
        made = self.renter.create("python3", "-u", "-c", SERVER.replace("FIRST", str(self.first)))
        wait_for(lambda: b"serving" in self.renter.log(made["id"]))
        return made

    @contextlib.contextmanager
    def forwarded(
        self, number: int, *words: str, token: str | None = None
    ) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
        """`windrow cluster forward`, and the local port it said."""
        found = self.renter.stack.cli
        environment = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": token or found["token"]}
        command = [WINDROW, "cluster", "forward", self.id, str(self.first + number), "--json", *words]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                said = json.loads(process.stdout.readline())
                yield int(said["local_address"].rpartition(":")[2]), process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                process.wait(PATIENCE_S)

    def ask(self, number: int) -> dict[str, Any]:
        """Returns the Master's answer to a request for a tunnel."""
        answer: dict[str, Any] = self.renter.ask("POST", f"/clusters/{self.id}/tunnels", {"port": self.first + number})
        return answer

    def ended(self) -> list[dict[str, Any]]:
        """The events of tunnels that ended."""
        return [e for e in self.renter.all("/events", subject=self.id) if e["kind"] == "tunnel.ended"]


@pytest.fixture(scope="module")
def market(renter: Renter) -> Iterator[Served]:
    found = Served(renter)
    yield found
    renter.delete(found.id)


@pytest.fixture
def served(market: Served) -> Served:
    """It runs, also after a test that has ended it; this host has place for one."""
    market.revive()
    return market


def dialled(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S)


def read_all(one: socket.socket) -> bytes:
    found = b""
    while piece := one.recv(65536):
        found += piece
    return found


@pytest.mark.proves("a renter reaches a port of a cluster on a host without an open port, through an Access")
def test_large_bodies_cross_both_ways_whole_and_are_counted(served: Served) -> None:
    body = os.urandom(BODY_BYTES)
    with served.forwarded(HTTP) as (port, process):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("POST", "/", body)
        answer = connection.getresponse()
        back = answer.read()
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        figures = json.loads(process.stdout.readline())
        process.wait(PATIENCE_S)

    assert answer.headers["X-Digest"] == hashlib.sha256(body).hexdigest()
    assert hashlib.sha256(back[::-1]).digest() == hashlib.sha256(body).digest()
    assert (figures["connections"], process.returncode) == (1, 0)
    assert figures["sent_bytes"] > BODY_BYTES and figures["received_bytes"] > BODY_BYTES
    (event,) = wait_for(lambda: [e for e in served.ended() if int(e["fields"]["bytes_in"]) > BODY_BYTES])
    counted = {name: int(event["fields"][name]) for name in ("bytes_in", "bytes_out")}
    assert counted == {"bytes_in": figures["sent_bytes"], "bytes_out": figures["received_bytes"]}
    audited = [row for row in served.renter.all("/audit") if row["subject"] == event["fields"]["tunnel"]]
    assert sorted(row["action"] for row in audited) == ["tunnel.end", "tunnel.open"]


def test_one_direction_ends_before_the_other_and_many_connections_go_at_once(served: Served) -> None:
    bodies = [os.urandom(300_000 + n) for n in range(4)]
    found: dict[int, bytes] = {}

    def one(number: int, port: int) -> None:
        with dialled(port) as connection:
            connection.sendall(bodies[number])
            connection.shutdown(socket.SHUT_WR)
            found[number] = read_all(connection)

    with served.forwarded(TURNED) as (port, _):
        threads = [threading.Thread(target=one, args=(n, port)) for n in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)

    assert found == {n: hashlib.sha256(body).hexdigest().encode() for n, body in enumerate(bodies)}


def test_standard_input_and_output_are_a_connection_as_ssh_wants_it(served: Served) -> None:
    body = os.urandom(500_000)
    found = served.renter.stack.cli
    environment = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
    command = [WINDROW, "cluster", "forward", served.cluster["name"], str(served.first + TURNED), "--stdio"]

    done = subprocess.run(command, env=environment, input=body, capture_output=True, timeout=120, check=False)

    assert (done.returncode, done.stdout) == (0, hashlib.sha256(body).hexdigest().encode()), done.stderr


def test_a_reader_that_does_not_read_holds_up_the_workload_and_not_memory(served: Served) -> None:
    daemons = served.renter.stack.daemons()
    with served.forwarded(ENDLESS) as (port, process), dialled(port) as connection:
        assert connection.recv(1)
        pids = [process.pid, *daemons["access"], *daemons["agent"]]
        before = {pid: resident_bytes(pid) for pid in pids}
        poll(lambda: _is_still(connection))
        assert before[process.pid]
        grown = max(resident_bytes(pid) - before[pid] for pid in pids)
        connection.recv(1 << 20)  # and it goes on when it is read

    assert grown < 32 << 20


def _is_still(connection: socket.socket) -> bool:
    """True if nothing more comes: what the kernel holds for us does not grow."""
    waiting = -1
    for _ in range(3):
        seen, waiting = waiting, len(connection.recv(8 << 20, socket.MSG_PEEK))
        if seen >= 0 and seen != waiting:
            return False
        time.sleep(0.5)
    return True


def resident_bytes(pid: int) -> int:
    """0 once it has ended: some of what an agent starts is short."""
    if not Path(f"/proc/{pid}/statm").exists():
        return 0
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_port_that_is_not_the_workloads_is_refused_with_words(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hosts_own:
        port = hosts_own.getsockname()[1]
        with pytest.raises(ApiProblem, match=f"No process of this workload listens on port {port}") as refused:
            served.renter.ask("POST", f"/clusters/{served.id}/tunnels", {"port": port})
    assert refused.value.status == 409
    for wrong in (0, 65_536, "ssh"):
        with pytest.raises(ApiProblem) as refused:
            served.renter.ask("POST", f"/clusters/{served.id}/tunnels", {"port": wrong})
        assert refused.value.status == 422


def test_somebody_elses_cluster_is_not_there(served: Served) -> None:
    with served.renter.stack.client() as api:
        with pytest.raises(ApiProblem) as refused:
            api.open_tunnel("cluster_" + "0" * 32, 80)
        assert refused.value.status == 404
    nobody = Client(Config(served.renter.stack.cli["url"], "wt_nobody"))
    with nobody, pytest.raises(ApiProblem) as refused:
        nobody.open_tunnel(served.id, served.first)
    assert refused.value.status == 401


def test_an_end_of_the_cluster_ends_its_tunnels(served: Served) -> None:
    with served.forwarded(KEPT) as (local, _), dialled(local) as connection:
        assert connection.recv(4) == b"here"
        served.renter.delete(served.id)
        with contextlib.suppress(ConnectionError):
            assert read_all(connection) == b""
        port = str(served.first + KEPT)
        (event,) = wait_for(lambda: [e for e in served.ended() if e["fields"]["port"] == port])
        assert event["fields"]["bytes_out"] == "4"
        with pytest.raises(ApiProblem) as refused:
            served.ask(KEPT)
        assert refused.value.status == 409


def test_tunnels_that_end_in_the_moment_their_cluster_does_take_nothing_with_them(served: Served) -> None:
    with served.forwarded(KEPT) as (local, _), contextlib.ExitStack() as opened:
        connections = [opened.enter_context(dialled(local)) for _ in range(24)]
        assert {one.recv(4) for one in connections} == {b"here"}
        served.renter.ask("DELETE", f"/clusters/{served.id}")
        for one in connections:
            with contextlib.suppress(OSError):
                one.close()
        # One whose opening took too long was opened again: it has ended too.
        poll(lambda: len(served.ended()) >= len(connections), what=f"{len(connections)} ends of tunnels")
        assert len({event["fields"]["tunnel"] for event in served.ended()}) >= len(connections)
    assert served.renter.stack.deaths() == []


def test_a_token_that_is_revoked_ends_what_was_opened_with_it(served: Served) -> None:
    made = served.renter.ask("POST", "/tokens", {"name": "short-lived"})
    with served.forwarded(KEPT, token=made["token"]) as (local, _), dialled(local) as connection:
        assert connection.recv(4) == b"here"
        served.renter.ask("DELETE", f"/tokens/{made['id']}")
        with contextlib.suppress(ConnectionError):
            assert read_all(connection) == b""


@pytest.mark.case("B-F20")
def test_the_command_says_what_is_wrong(served: Served) -> None:
    renter = served.renter
    for words, said in (
        (("forward", "no-such-name", "80"), "windrow cluster ls"),
        (("forward", served.id, "http"), "is not a port"),
        (("forward", served.id, str(served.first), "--local", str(_taken(renter))), "Name another --local"),
    ):
        done = renter.windrow("cluster", *words)
        assert done.returncode != 0
        assert said in " ".join(done.stderr.split()), done.stderr


SSH = """#!{python}
import subprocess, sys
given = dict(word.split("=", 1) for name, word in zip(sys.argv, sys.argv[1:]) if name == "-o")
proxy = given["ProxyCommand"].replace("%%", "%")
done = subprocess.run(["sh", "-c", proxy], input=b"by ssh", stdout=subprocess.PIPE, timeout=100)
print(given["User"], given["HostKeyAlias"], sys.argv[-2:], done.stdout.decode())
sys.exit(done.returncode)
"""


@pytest.mark.case("B-F20")
def test_ssh_is_led_through_a_tunnel_and_missing_said(served: Served, tmp_path: Path) -> None:
    """A stand-in for OpenSSH's client: it does with the ProxyCommand what ssh does, and shows what it was given."""
    (tmp_path / "bin").mkdir()
    found = served.renter.stack.cli
    environment = {
        "WINDROW_URL": found["url"],
        "WINDROW_TOKEN": found["token"],
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
    }

    def ssh(port: int) -> "subprocess.CompletedProcess[str]":
        command = [WINDROW, "cluster", "ssh", "--port", str(port), served.cluster["name"], "--", "uname", "-a"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    missing = ssh(served.first + TURNED)
    assert missing.returncode == 1 and "openssh-client" in missing.stderr

    (tmp_path / "bin" / "ssh").write_text(SSH.format(python=sys.executable))
    (tmp_path / "bin" / "ssh").chmod(0o755)
    (tmp_path / "bin" / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    done = ssh(served.first + TURNED)
    assert done.returncode == 0, done.stderr
    said = f"root {served.id} {['uname', '-a']} {hashlib.sha256(b'by ssh').hexdigest()}"
    assert done.stdout.strip() == said

    nothing = ssh(own_port())
    assert nothing.returncode != 0
    assert "No process of this workload listens" in " ".join(nothing.stderr.split())


def _taken(renter: Renter) -> int:
    return int(renter.stack.cli["url"].rpartition(":")[2])


def test_a_local_port_that_is_taken_is_replaced_by_a_free_one(served: Served) -> None:
    with socket.create_server(("127.0.0.1", served.first)), served.forwarded(HTTP) as (port, _):
        assert port != served.first
        with pytest.raises(urllib.error.HTTPError):  # 501: it answers
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S)
