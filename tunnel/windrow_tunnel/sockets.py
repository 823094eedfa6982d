"""Connects an end of a tunnel to an Access by TLS on the socket itself, which both take off once the ends are joined.

The loop says when a socket is ready, and nothing lies between it and OpenSSL: asyncio's TLS does not give a socket
back, and whoever reads ahead takes what follows TLS. TLS between the two ends is in tls.py.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from windrow_tunnel.errors import Cut, Malformed
from windrow_tunnel.wire import HEAD_BYTES_MAX, HEAD_ENDS, JOINED, refusal, request

Found = TypeVar("Found")

BYE_S: Final = 10.0
"""For the other side to end its direction too, when a connection is ended in order."""
REST_BYTES: Final = 64 * 1024
"""One reading of bytes that nobody wants any more."""


def client_context(trusted_pem: bytes) -> ssl.SSLContext:
    """TLS 1.3 alone, with whoever has a certificate of these or under these, and the name that is asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=trusted_pem.decode())
    return context


def server_context(key_pem: bytes, certificate_pem: bytes) -> ssl.SSLContext:
    """TLS 1.3 alone, showing this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    _show(context, key_pem, certificate_pem)
    return context


def mutual_context(key_pem: bytes, certificate_pem: bytes, peer_pem: bytes, is_server: bool) -> ssl.SSLContext:
    """TLS 1.3 alone, each side showing its certificate and trusting the other's alone. Raises OSError for none."""
    if not is_server:
        context = client_context(peer_pem)
        _show(context, key_pem, certificate_pem)
        return context
    context = server_context(key_pem, certificate_pem)
    context.load_verify_locations(cadata=peer_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _show(context: ssl.SSLContext, key_pem: bytes, certificate_pem: bytes) -> None:
    # OpenSSL's Python reads keys from files only; this one has no name and is gone when it is closed.
    with os.fdopen(os.memfd_create("windrow-tls"), "wb") as file:
        file.write(key_pem + b"\n" + certificate_pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


async def dial(host: str, port: int) -> socket.socket:
    """A connection, not blocking and without Nagle's delay; raises OSError."""
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        raw = socket.socket(family, kind, protocol)
        try:
            prepare(raw)
            await loop.sock_connect(raw, address)
        except OSError as error:
            raw.close()
            failure = error
        except BaseException:
            raw.close()
            raise
        else:
            return raw
    raise failure


def prepare(raw: socket.socket) -> None:
    """As every socket of a tunnel is."""
    raw.setblocking(False)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def secure(raw: socket.socket, context: ssl.SSLContext, server_name: str | None = None) -> ssl.SSLSocket:
    """The handshake, as the client of this server or, without a name, as the server; raises OSError.

    `raw` is used up, and closed if it fails.
    """
    try:
        wrapped = context.wrap_socket(
            raw, server_side=server_name is None, server_hostname=server_name, do_handshake_on_connect=False
        )
    except BaseException:
        raw.close()
        raise
    try:
        await _until(wrapped, wrapped.do_handshake)
    except BaseException:
        wrapped.close()
        raise
    return wrapped


async def say(connection: ssl.SSLSocket, data: bytes) -> None:
    """Send all of it; raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[await _until(connection, partial(connection.send, rest)) :]


async def head_of(connection: ssl.SSLSocket) -> tuple[bytes, bytes]:
    """Return the bytes up to the first empty line, and those after it; raises Malformed, Cut, OSError."""
    said = b""
    while HEAD_ENDS not in said:
        data = await hear(connection, HEAD_BYTES_MAX)
        if not data:
            raise Cut("The connection ended before its request was whole.")
        said += data
        if len(said) > HEAD_BYTES_MAX:
            raise Malformed(f"A head has at most {HEAD_BYTES_MAX} bytes.")
    head, _, rest = said.partition(HEAD_ENDS)
    return head, rest


async def hear(connection: ssl.SSLSocket, most: int) -> bytes:
    """Wait for bytes, from one to so many; none: it has ended. Raises OSError."""
    return await _until(connection, lambda: connection.recv(most))


async def bare(connection: ssl.SSLSocket) -> socket.socket:
    """Take TLS off: each side says that it ends, and what comes after that is the socket's; raises OSError.

    `connection` is used up, if it does not fail.
    """
    await _until(connection, connection.unwrap)
    return _detached(connection)


async def approach(address: str, ca_pem: bytes, server_name: str) -> ssl.SSLSocket:
    """Connect to an Access; raises ValueError for a malformed address, OSError."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"{address!r} has no port")
    return await secure(await dial(host.strip("[]"), int(port)), client_context(ca_pem), server_name)


async def ask(access: ssl.SSLSocket, grant: str, server_name: str) -> None:
    """Show an Access a grant; raises OSError. `access` is closed if it fails."""
    try:
        await say(access, request(grant, server_name))
    except BaseException:
        access.close()
        raise


async def joined(access: ssl.SSLSocket) -> socket.socket:
    """Wait for an Access to join this end with the other, and take its TLS off; raises Refused, OSError.

    `access` is used up.
    """
    said = b""
    try:
        while HEAD_ENDS not in said or not said.startswith(JOINED):
            more = await hear(access, HEAD_BYTES_MAX)
            said += more
            if not more or len(said) > HEAD_BYTES_MAX:
                raise refusal(said)
        return await bare(access)
    except BaseException:
        access.close()
        raise


async def end(connection: socket.socket) -> None:
    """End it in order: what was sent arrives, what still comes is thrown away; closed after BYE_S at the latest.

    `connection` is used up.
    """
    loop = asyncio.get_running_loop()
    buffer = bytearray(REST_BYTES)
    with _detached(connection) as raw, suppress(OSError):  # TimeoutError is one
        raw.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(BYE_S):
            while await loop.sock_recv_into(raw, buffer):
                pass


def _detached(connection: socket.socket) -> socket.socket:
    raw = socket.socket(fileno=connection.detach())
    raw.setblocking(False)
    return raw


async def _until(connection: ssl.SSLSocket, call: Callable[[], Found]) -> Found:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return call()
        except ssl.SSLWantReadError:
            await _ready(connection, loop.add_reader, loop.remove_reader)
        except ssl.SSLWantWriteError:
            await _ready(connection, loop.add_writer, loop.remove_writer)


async def _ready(connection: ssl.SSLSocket, add: Callable[..., Any], remove: Callable[..., Any]) -> None:
    ready = asyncio.Event()
    add(connection, ready.set)
    try:
        await ready.wait()
    finally:
        remove(connection)
