"""The renter's end of a tunnel, until bytes can go: an Access that is shown the Master's grant, then the host itself.

Asynchronous. TLS with the Access is only for the grant: when the host is there, it is taken off, and another begins
that ends at the host, which shows the key that the Master named. Both agree in it to go on in sealed records (seal.py);
with an older host it stays. The Access can read none of it.
"""

import asyncio
import json
import secrets
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from windrow.errors import ApiProblem, TunnelRefused
from windrow.nearest import Nearest
from windrow.tls import HostEnd, HostTls

PATH = "/tunnel"
PROTOCOL = "windrow-tunnel/2"
ANSWER_BYTES_MAX = 8 * 1024
DIAL_S = 15.0
OTHERWISE_S = 5.0
"""The same where another Access may be asked for: three round trips, however long the line."""
JOIN_S = 20.0
"""For the Access to join us with the host, and for the host to shake hands; the Access gives up after ten itself."""
FLUSH_S = 10.0
"""For the other side to take what is under way when the tunnel ends."""
REST_BYTES = 64 * 1024
HEAD_ENDS = b"\r\n\r\n"

Found = TypeVar("Found")
Ask = Callable[[dict[str, Any]], dict[str, Any]]


async def meet(ask: Ask, nearest: Nearest) -> HostEnd:
    """Ask the Master for a tunnel, and meet the host; for `Pump`. Raises TunnelRefused, ApiProblem, MasterUnreachable.

    ask: of the Master, with what `nearest` wishes; blocking.
    """
    return await dial(*await answering(ask, nearest, await asyncio.to_thread(ask, nearest.wish())))


async def answering(
    ask: Ask, nearest: Nearest, ticket: dict[str, Any], access: ssl.SSLSocket | None = None
) -> tuple[dict[str, Any], ssl.SSLSocket]:
    """A connection to the Access of this ticket, or, where it does not answer and there are others, once to another by
    a ticket of its own. access: where it was approached already. Raises as `meet`."""
    nearest.learn(ticket)
    has_others = len(ticket.get("accesses") or ()) > 1
    try:
        return ticket, access or await approach(ticket, OTHERWISE_S if has_others else DIAL_S)
    except TunnelRefused as refused:
        if not has_others:
            raise
        nearest.away(str(ticket["access_id"]))
        again = await asyncio.to_thread(ask, nearest.wish())
        if again["access_id"] == ticket["access_id"]:  # there is no other for this host
            raise
        try:
            return again, await approach(again)
        except TunnelRefused as error:
            nearest.away(str(again["access_id"]))
            raise TunnelRefused(f"No Access of two answers. {refused} {error}") from error


async def approach(where: dict[str, Any], within_s: float = DIAL_S) -> ssl.SSLSocket:
    """Connect to the Access of a ticket, before there is a grant to show. Raises TunnelRefused."""
    host, _, port = str(where["address"]).rpartition(":")
    try:
        async with asyncio.timeout(within_s):
            raw = await _connected(host.strip("[]"), int(port))
            return await _secured(raw, where["ca_pem"], where["server_name"])
    except (OSError, TimeoutError, ValueError) as error:  # ssl.SSLError is an OSError
        raise TunnelRefused(
            f"The Access at {where['address']} does not answer ({error or 'no answer in time'}). Its port for "
            "tunnels must be open from here; ask who runs this market, or try again."
        ) from error


async def dial(ticket: dict[str, Any], access: ssl.SSLSocket | None = None) -> HostEnd:
    """Meet the host with what the Master answered; for `Pump`. access: where its Access was approached already; it is
    used up. Raises TunnelRefused, ApiProblem."""
    if ticket["protocol"] != PROTOCOL:
        if access is not None:
            access.close()
        raise TunnelRefused(f"This market's tunnels are {ticket['protocol']}, and these {PROTOCOL}: update `windrow`.")
    if access is None:
        access = await approach(ticket)
    try:
        async with asyncio.timeout(JOIN_S):
            with access:
                lines = (f"GET {PATH} HTTP/1.1", f"Host: {ticket['server_name']}", "Connection: Upgrade")
                shown = (f"Upgrade: {PROTOCOL}", f"Authorization: Bearer {ticket['grant']}", "", "")
                await _say(access, "\r\n".join((*lines, *shown)).encode())
                raw = await _joined(access)
            try:
                return await _greeted(raw, ticket)
            except BaseException:
                raw.close()
                raise
    except TimeoutError:
        raise TunnelRefused("The Access did not join the tunnel in time. Try again.") from None
    except (OSError, ValueError) as error:
        raise TunnelRefused(f"The host could not be reached through its Access: {error}. Try again.") from error


async def _greeted(raw: socket.socket, ticket: dict[str, Any]) -> HostEnd:
    from windrow.seal import SEALED, SEED_BYTES, SealedHost  # only tunnels wait for its library to be loaded

    context = _context(ticket["host_pem"])
    context.set_alpn_protocols([SEALED])
    found = HostTls(raw, context, ticket["host_server_name"])
    await found.greet()
    secret = bytes.fromhex(ticket["secret"])
    if not found.agreed(SEALED):  # an older host
        await found.say(secret)
        return found
    seed = secrets.token_bytes(SEED_BYTES)
    await found.say(secret + seed)
    return SealedHost(raw, seed)


async def end(connection: socket.socket) -> None:
    """End it in order: what was sent arrives, what still comes is thrown away. `connection` is used up."""
    loop = asyncio.get_running_loop()
    room = bytearray(REST_BYTES)
    with _detached(connection) as raw, suppress(OSError):  # TimeoutError is one
        raw.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(FLUSH_S):
            while await loop.sock_recv_into(raw, room):
                pass


async def _connected(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        raw = socket.socket(family, kind, protocol)
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


async def _secured(raw: socket.socket, trusted_pem: str, name: str) -> ssl.SSLSocket:
    """Shake hands with whoever has this name by one of these certificates."""
    with raw:  # which is empty once it is wrapped
        found = _context(trusted_pem).wrap_socket(raw, server_hostname=name, do_handshake_on_connect=False)
    try:
        await _until(found, found.do_handshake)
    except BaseException:
        found.close()
        raise
    return found


def _context(trusted_pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=trusted_pem)
    return context


async def _joined(access: ssl.SSLSocket) -> socket.socket:
    """The bare connection, once the host is at its other end."""
    said = b""
    while HEAD_ENDS not in said or not said.startswith(b"HTTP/1.1 101 "):
        data = await _until(access, lambda: access.recv(ANSWER_BYTES_MAX))
        said += data
        if not data or len(said) > ANSWER_BYTES_MAX:
            raise _refusal(*said.partition(HEAD_ENDS)[::2])
    await _until(access, access.unwrap)
    return _detached(access)


async def _say(connection: ssl.SSLSocket, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[await _until(connection, partial(connection.send, rest)) :]


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


def _refusal(head: bytes, body: bytes) -> Exception:
    words = head.split(b"\r\n", 1)[0][:100].decode("ascii", "replace")
    try:
        document = json.loads(body)
        return ApiProblem(int(document["status"]), document)
    except (ValueError, KeyError, TypeError):
        return TunnelRefused(f"The Access refused the tunnel: {words}.")
