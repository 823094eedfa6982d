"""Anybody reaches a service over HTTPS by its address, on a host without an open port, through the shipped daemons."""

import contextlib
import hashlib
import http.client
import os
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.ports import own_ports
from tests.support.rental import Renter
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

BODY_BYTES = 5 << 20
SERVER = r"""
import hashlib, http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, body):
        self.send_response(200); self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Connection", str(self.client_address[1])); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if self.path == "/upgrade":
            self.send_response(101); self.send_header("Upgrade", "echo"); self.send_header("Connection", "Upgrade")
            self.end_headers()
            while data := self.connection.recv(65536): self.connection.sendall(data[::-1])
            self.close_connection = True
        elif self.path.startswith("/zeros/"): self.answer(bytes(int(self.path[7:])))
        elif self.path == "/quiet":
            self.send_response(200); self.send_header("Content-Type", "text/event-stream"); self.end_headers()
            self.wfile.write(b"data: first\n\n"); self.wfile.flush(); threading.Event().wait()
        else: self.answer(b"NAME was asked as " + self.headers["Host"].encode())
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(data).hexdigest().encode())
def serve(port):
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
threading.Thread(target=serve(FIRST + 1).serve_forever, daemon=True).start()
server = serve(FIRST)
print("serving", flush=True)
server.serve_forever()
"""


class Market:
    """A renter, and one service at a time on two ports, of which the first is published."""

    def __init__(self, renter: Renter) -> None:
        self.renter = renter
        self.first = own_ports()[0]
        self.trust = ssl.create_default_context()
        with urllib.request.urlopen(f"{renter.stack.cli['url']}/api/v1/ca", timeout=PATIENCE_S) as answer:
            self.trust.load_verify_locations(cadata=answer.read().decode())
        self.cluster: dict[str, Any] = {}

    def serve(self, name: str) -> dict[str, Any]:
        """A service of this name; the one before has ended."""
        if self.cluster:
            self.renter.delete(self.cluster["id"])
        program = SERVER.replace("FIRST", str(self.first)).replace("NAME", name)
        made = self.renter.create("python3", "-u", "-c", program, kind="service", ports=[self.first])
        wait_for(lambda: b"serving" in self.renter.log(made["id"]))
        self.cluster = made
        return made

    @property
    def url(self) -> str:
        """Of the service that runs."""
        (found,) = self.cluster["urls"].values()
        return str(found)

    def dial(self, url: str) -> "Visit":
        """A TLS connection to this address that trusts the market's authority alone."""
        return Visit(url, self.trust)


class Visit(http.client.HTTPConnection):
    """Resolves names under localhost to this machine as browsers do, whatever the system's resolver says."""

    def __init__(self, url: str, trust: ssl.SSLContext, alpn: tuple[str, ...] = ("h2", "http/1.1")) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None and parts.port is not None
        super().__init__(parts.hostname, parts.port, timeout=PATIENCE_S)
        plain = socket.create_connection(("127.0.0.1", parts.port), PATIENCE_S)
        trust.set_alpn_protocols(list(alpn))
        self.secured = trust.wrap_socket(plain, server_hostname=parts.hostname)
        self.sock = self.secured

    def get(self, path: str = "/", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """One request on this connection."""
        self.request("GET", path, headers=headers)
        answer = self.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.fixture(scope="module")
def market(renter: Renter) -> Iterator[Market]:
    found = Market(renter)
    yield found
    if found.cluster:
        renter.delete(found.cluster["id"])


@pytest.fixture
def served(market: Market) -> Market:
    if not market.cluster:
        market.serve("first")
    return market


def get(market: Market, url: str, path: str = "/", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    with contextlib.closing(market.dial(url)) as visit:
        return visit.get(path, **headers)


@pytest.mark.proves("anybody reaches a service over HTTPS on a host without an open port, through an Access")
def test_the_address_in_the_api_leads_to_the_service_over_https_and_a_connection_serves_many_requests(
    served: Market,
) -> None:
    host = urlsplit(served.url).netloc
    with contextlib.closing(served.dial(served.url)) as visit:
        first, second = visit.get(), visit.get("/again")
        assert visit.secured.selected_alpn_protocol() == "http/1.1"

    assert [one[0] for one in (first, second)] == [200, 200]
    assert first[2] == second[2] == f"first was asked as {host}".encode()
    assert first[1]["X-Connection"] == second[1]["X-Connection"]
    shown = served.renter.windrow("cluster", "show", served.cluster["id"])
    assert served.url in shown.stdout, shown.stderr


def test_bytes_flow_both_ways_after_an_upgrade_as_a_websocket_needs(served: Market) -> None:
    with contextlib.closing(served.dial(served.url)) as visit:
        visit.secured.sendall(b"GET /upgrade HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += visit.secured.recv(1024)
        assert head.startswith(b"HTTP/1.1 101 ")
        for said in (b"there", b"and back"):
            visit.secured.sendall(said)
            back = b""
            while len(back) < len(said):
                back += visit.secured.recv(1024)
            assert back == said[::-1]


def test_large_bodies_cross_both_ways_whole_and_are_counted_without_a_row_for_each(served: Market) -> None:
    body, rows = os.urandom(BODY_BYTES), _rows_of_tunnels(served)
    with contextlib.closing(served.dial(served.url)) as visit:
        visit.request("POST", "/", body)
        assert visit.getresponse().read() == hashlib.sha256(body).hexdigest().encode()
        assert visit.get(f"/zeros/{BODY_BYTES}")[2] == bytes(BODY_BYTES)

    cluster = f"/clusters/{served.cluster['id']}"
    counted = wait_for(lambda: (t := served.renter.ask("GET", cluster)["traffic"]) and t["bytes_in"] > BODY_BYTES and t)
    assert counted["connections"] >= 1
    assert counted["bytes_out"] > BODY_BYTES
    assert "tunnel.ended" not in served.renter.events(served.cluster["id"])
    assert _rows_of_tunnels(served) == rows


def _rows_of_tunnels(served: Market) -> list[int]:
    return [row["number"] for row in served.renter.all("/audit") if row["action"].startswith("tunnel.")]


def test_an_address_of_nothing_is_a_page_that_says_so(served: Market) -> None:
    own = f"p{served.first}-"
    unpublished = served.url.replace(own, f"p{served.first + 1}-")
    strange = (served.url.replace(own, "www-"), served.url.replace(own, "p0-"), served.url.replace(own, "p080-"))
    for url in (unpublished, _with_id(served.url, "0" * 32), *strange):
        status, headers, body = get(served, url)
        assert (status, headers["Content-Type"]) == (404, "text/plain; charset=utf-8"), url
        assert b"There is no service at this address." in body
    status, headers, body = get(served, unpublished, Accept="text/html,*/*")
    assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert b"<h1>There is no service at this address.</h1>" in body


def _with_id(url: str, digits: str) -> str:
    parts = urlsplit(url)
    assert parts.hostname is not None
    label = parts.hostname.partition(".")[0]
    return url.replace(label, f"{label.partition('-')[0]}-{digits}")


def test_a_name_that_is_not_of_services_gets_no_handshake(served: Market) -> None:
    served.trust.check_hostname = False  # a certificate for another name is not what refuses it
    for name in ("localhost", "access.windrow", "a.b.svc.localhost", "svc.localhost"):
        port = urlsplit(served.url).port
        with pytest.raises((ssl.SSLError, ConnectionError)):
            served.dial(f"https://{name}:{port}/")
    served.trust.check_hostname = True


def test_the_end_of_a_cluster_ends_its_address_and_its_connections_and_the_next_ones_is_its_own(served: Market) -> None:
    before = served.url
    with contextlib.closing(served.dial(before)) as visit:
        visit.request("GET", "/quiet")
        answer = visit.getresponse()
        assert answer.readline() == b"data: first\n"
        served.serve("second")
        with contextlib.suppress(ConnectionError, ssl.SSLError, http.client.IncompleteRead):
            while answer.read1(1024):
                pass

    assert served.url != before
    assert get(served, before)[0] == 404
    assert get(served, before, Host=urlsplit(served.url).netloc)[0] == 404
    status, _, body = get(served, served.url, Host=urlsplit(before).netloc)
    assert (status, body) == (200, f"second was asked as {urlsplit(before).netloc}".encode())
    assert served.renter.ask("GET", "/clusters")["items"][1]["urls"] == {}


def test_a_box_has_no_address(served: Market) -> None:
    service = served.cluster
    served.renter.delete(service["id"])
    served.cluster = {}
    box = served.renter.create("sleep", "600", ports=[served.first])
    assert box["urls"] == {}
    status, _, _ = get(served, _with_id(next(iter(service["urls"].values())), box["id"].removeprefix("cluster_")))
    assert status == 404
    served.renter.delete(box["id"])
