"""The adapter of uvicorn, and the sockets, files and addresses that a Master serves under."""

import asyncio
import base64
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from windrow_master.app.admission import Admission, AdmissionLimits, Patience
from windrow_master.app.connection_guard import GuardedConfig, GuardedSocket, GuardedWebSocket
from windrow_proto.errors import Conflict
from windrow_proto.keys import TlsIdentity, TlsKey, public_key_sha256, save_private
from windrow_proto.networks import Network

Chooser = Callable[[ssl.SSLObject | ssl.SSLSocket, str | None, ssl.SSLContext], None]
"""Gives a connection another certificate by the name that its client asked for."""
Application = ASGIApp
"""The application that a server serves."""
PORT_TRIES: Final = 50
"""A taken port is followed by the next free one, up to so many."""
BACKLOG: Final = 1_024
HEALTHZ: Final = "/healthz"
LIMITS: Final = AdmissionLimits()
HEALTH_LIMITS: Final = AdmissionLimits(in_all=64, per_network=64, reserve=32)
"""Of the listener that answers only how the Master fares."""
PATIENCE: Final = Patience()
STOP_S: Final = 3
"""The time that open requests may go on when the Master stops; streams were ended before."""
KEEP_ALIVE_S: Final = 75
SOCKET_MESSAGE_MAX: Final = 64 << 10
"""Bytes of one message of a WebSocket, all its frames together."""
SOCKET_PING_S: Final = 20.0
"""Between two pings of a WebSocket, and for the answer to one; proxies close what is silent for a minute."""


def bind(host: str, port: int | None, usual: int) -> socket.socket:
    """A listening socket on the given port, or on the usual one or the next that is free.

    What it accepts sends at once: asyncio says so only to sockets that name TCP as their protocol, and an answer's body
    waited for the head to be acknowledged, 40 ms for whoever asks again and again.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [port] if port is not None else [*range(usual, usual + PORT_TRIES), 0]
    for candidate in candidates:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            found.bind((host, candidate))
            found.listen(BACKLOG)
            found.setblocking(False)
            return found
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                raise Conflict(f"{host}:{candidate} cannot be opened: {error.strerror}.") from error
    raise Conflict(f"Port {port} on {host} is taken. Stop what uses it, or give another.")


def port_of(listening: socket.socket) -> int:
    """The port a socket listens on."""
    return int(listening.getsockname()[1])


class HttpServer(uvicorn.Server):
    """uvicorn on a socket of ours, guarded; signals are the Master's business, not its."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        tls_files: tuple[Path, Path] | None,
        limits: AdmissionLimits = LIMITS,
        patience: Patience = PATIENCE,
        proxies: Sequence[Network] = (),
        chooser: Chooser | None = None,
        *,
        has_sockets: bool = False,
    ) -> None:
        """proxies: trusted ones, through which everybody may come. chooser: of TLS; None: its one certificate serves
        all. has_sockets: it serves WebSockets."""
        certificate, key = tls_files or (None, None)
        self._listening = GuardedSocket(listening, Admission(limits, proxies), patience, is_plain=tls_files is None)
        super().__init__(
            GuardedConfig(
                app,
                self._listening,
                patience,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                ws=GuardedWebSocket if has_sockets else "none",
                ws_max_size=SOCKET_MESSAGE_MAX,
                ws_ping_interval=SOCKET_PING_S,
                ws_ping_timeout=SOCKET_PING_S,
                ws_per_message_deflate=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=STOP_S,
                ssl_certfile=certificate,
                ssl_keyfile=key,
                ssl_context_factory=partial(_with_chooser, chooser) if chooser else None,
            )
        )

    def figures(self, name: str) -> Iterable[tuple[str, str, float, dict[str, str]]]:
        """Connections that are open, and those that were ended. name: of this listener."""
        yield "http_connections", "Open connections", self._listening.count, {"listener": name}
        for reason, count in sorted(self._listening.cut.items()):
            labels = {"listener": name, "reason": reason}
            yield "http_connections_ended_total", "Connections refused or ended, by reason", count, labels

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then let open requests finish for a moment."""
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self.serve(sockets=[self._listening]))
            stopping = group.create_task(stop.wait())
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            self.should_exit = True
            stopping.cancel()


def _with_chooser(chooser: Chooser, _: uvicorn.Config, usual: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    context = usual()
    context.sni_callback = chooser
    return context


class OnlyHealth:
    """An application of which only /healthz can be asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] == HEALTHZ:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"Only /healthz is answered here."})


def tls_key(directory: Path) -> TlsKey:
    """The key of the Master's certificate, made at the first start and kept, since lines that people paste pin it."""
    path = directory / "master.key"
    if not path.exists():
        save_private(path, TlsKey.generate().pem)
    return TlsKey.from_pem(path.read_bytes())


def pin_of(certificate_pem: bytes) -> str:
    """The pin of a certificate's public key as `curl --pinnedpubkey` takes it."""
    return "sha256//" + base64.b64encode(public_key_sha256(certificate_pem)).decode()


def write_tls(directory: Path, identity: TlsIdentity) -> tuple[Path, Path]:
    """The files that TLS reads (0600): certificate chain and key."""
    certificate, key = directory / "master.pem", directory / "master.key"
    save_private(certificate, identity.certificate_pem)
    save_private(key, identity.key_pem)
    return certificate, key


def present_tls(directory: Path) -> tuple[Path, Path] | None:
    """The same files as an earlier start left them; None before the first."""
    certificate, key = directory / "master.pem", directory / "master.key"
    return (certificate, key) if certificate.exists() and key.exists() else None


def own_names(listen: str, public: str, further: Iterable[str] = ()) -> tuple[str, ...]:
    """The names and addresses under which the Master answers; its certificate holds them all."""
    names = ["localhost", "127.0.0.1", "::1", public, os.uname().nodename, *further]
    if listen not in {"0.0.0.0", "::"}:
        names.append(listen)
    legal = [n for n in names if n and len(n) <= 253 and all(c.isascii() and (c.isalnum() or c in ".-:") for c in n)]
    return tuple(dict.fromkeys(legal))
