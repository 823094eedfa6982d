"""A web server whose page tries to act as the console (thief.js), and which writes down all that it is sent."""

import datetime
import http.server
import ipaddress
import socket
import ssl
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SCRIPT = (Path(__file__).parent / "thief.js").read_text()
PAGE = f"<!doctype html><meta charset=utf-8><title>thief</title><body><script>{SCRIPT}</script>"
WORKER = "self.addEventListener('fetch', (event) => event.respondWith(fetch(event.request)));"
TOSSED = ("windrow_session=tossed; Path=/", "windrow_session=tossed; Path=/api/v1", "windrow.session=tossed; Path=/")
"""Cookies that the page sets for whoever shares its name, or the domain above it."""


@dataclass(slots=True)
class Loot:
    """Each request that came, whole: its line, headers and body."""

    requests: list[str] = field(default_factory=list)

    def holds(self, text: str) -> bool:
        """True if this text came in any part of any request."""
        return any(text in one for one in self.requests)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every path with the page."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_GET(self) -> None:
        """The page, or its worker."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Takes what the page sends home."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        self.server.loot.requests.append(f"{self.requestline}\n{self.headers}{body.decode(errors='replace')}")
        is_worker = self.path == "/worker.js"
        page = (WORKER if is_worker else PAGE).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_worker else "text/html")
        self.send_header("Content-Length", str(len(page)))
        for cookie in self.server.cookies:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], cookies: Sequence[str]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)
        self.loot, self.cookies = Loot(), tuple(cookies)


class ThievingPage:
    """The server on both loopback addresses of one port, as a forwarded port is. Use it as a context manager."""

    def __init__(self, port: int, cookies: Sequence[str] = TOSSED, tls_names: Sequence[str] = ()) -> None:
        self.port = port
        self._servers = [_Server((address, port), cookies) for address in ("127.0.0.1", "::1")]
        self.loot = self._servers[0].loot
        self._servers[1].loot = self.loot
        if tls_names:
            context = _context(tls_names)
            for server in self._servers:
                server.socket = context.wrap_socket(server.socket, server_side=True)

    def __enter__(self) -> "ThievingPage":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


def _context(names: Sequence[str]) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "thief")])
    now = datetime.datetime.now(datetime.UTC)
    known = [x509.DNSName(one) for one in names]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([*known, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        file.flush()
        context.load_cert_chain(file.name)
    return context
