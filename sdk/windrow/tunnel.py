"""The renter's end of a tunnel, until bytes can go: an Access that is shown the Master's grant, then the host itself.

Asynchronous. TLS with the Access is only for the grant: when the host is there, it is taken off, and another begins
that ends at the host, which shows the key that the Master named. Both agree in it to go on in sealed records (seal.py);
with an older host it stays. The Access can read none of it.

 ticket ─▶ its Access: connected ─▶ joined ─▶ the host greets
              │ no answer   │ refuses what another may do     (a final refusal, or a wrong host: that is the end)
              └──────┬──────┘
                     ▼
           without it, a ticket for another ─▶ ... each at most once, REACH_S in all
"""

import asyncio
import json
import secrets
import socket
import ssl
from collections.abc import Callable, Container
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from windrow.errors import AccessRefused, ApiProblem, TunnelRefused
from windrow.nearest import KEPT_S, REFUSED_S, Nearest
from windrow.tls import HostEnd, HostTls

PATH = "/tunnel"
PROTOCOL = "windrow-tunnel/2"
ANSWER_BYTES_MAX = 8 * 1024
DIAL_S = 15.0
OTHERWISE_S = 5.0
"""The same where another Access may be asked for: three round trips, however long the line."""
REACH_S = 60.0
"""For all of them, with the Master's word between them: as long as the first ticket would be good."""
JOIN_S = 20.0
"""For the Access to join us with the host, and for the host to shake hands, each; the Access gives up after ten
itself."""
FLUSH_S = 10.0
"""For the other side to take what is under way when the tunnel ends."""
REST_BYTES = 64 * 1024
HEAD_ENDS = b"\r\n\r\n"
ELSEWHERE = frozenset({"unavailable", "host_unreachable", "too_many", "deadline_exceeded", "forbidden"})
"""What an Access refuses with where another may do better: the host or the Master is not connected to it (older ones:
forbidden), it is full, the host did not come. A grant that is over, used or wrong is so everywhere."""

Found = TypeVar("Found")
Ask = Callable[[dict[str, Any]], dict[str, Any]]


async def meet(ask: Ask, nearest: Nearest) -> HostEnd:
    """Ask the Master for a tunnel, and meet the host; for `Pump`. Raises TunnelRefused, ApiProblem, MasterUnreachable.

    ask: of the Master, with what `nearest` wishes; blocking.
    """
    return (await reach(ask, nearest, await asyncio.to_thread(ask, nearest.wish())))[1]


async def reach(
    ask: Ask, nearest: Nearest, ticket: dict[str, Any], access: ssl.SSLSocket | None = None
) -> tuple[dict[str, Any], HostEnd]:
    """The host by the Access of this ticket, or, where that one does not answer or refuses what another may do, by the
    others of the market, each by a ticket of its own; with the ticket by which it was met. access: where it was
    approached already; it is used up. Raises as `meet`."""
    nearest.learn(ticket)
    said: dict[str, str] = {}
    try:
        async with asyncio.timeout(REACH_S):
            while True:
                try:
                    within_s = OTHERWISE_S if _has_others(ticket, said) else DIAL_S
                    return ticket, await dial(ticket, access or await approach(ticket, within_s))
                except (TunnelRefused, ApiProblem) as refused:
                    said[str(ticket.get("access_id"))] = _words(ticket, refused)
                    again = await _another(ask, nearest, ticket, refused, said)
                    if again is None and len(said) == 1:
                        raise
                    if again is None:
                        words = f"None of {len(said)} Accesses took the tunnel."
                        raise TunnelRefused(" ".join((words, *said.values()))) from refused
                ticket, access = again, None
    except TimeoutError:
        words = f"No Access took the tunnel within {REACH_S:.0f} s."
        raise TunnelRefused(" ".join((words, *said.values()))) from None


async def _another(
    ask: Ask, nearest: Nearest, ticket: dict[str, Any], refused: Exception, tried: Container[str]
) -> dict[str, Any] | None:
    """A ticket for an Access that was not tried; None where there is none, or where it would do the same. What the
    Master says to it stands: that the lease has ended, say."""
    is_deaf = isinstance(refused, AccessRefused)
    if not (is_deaf or (isinstance(refused, ApiProblem) and refused.code in ELSEWHERE)):
        return None
    if len(ticket.get("accesses") or ()) > 1:
        nearest.away(str(ticket["access_id"]), KEPT_S if is_deaf else REFUSED_S)
    if not _has_others(ticket, tried):
        return None
    again = await asyncio.to_thread(ask, nearest.wish())
    return None if again["access_id"] in tried else again  # there may be no other for this host


def _has_others(ticket: dict[str, Any], tried: Container[str]) -> bool:
    named = {str(one["id"]) for one in ticket.get("accesses") or ()}
    return any(one not in tried and one != ticket["access_id"] for one in named)


def _words(ticket: dict[str, Any], refused: Exception) -> str:
    words, address = str(refused), str(ticket["address"])
    return words if address in words else f"The Access at {address} says: {words}"


async def approach(where: dict[str, Any], within_s: float = DIAL_S) -> ssl.SSLSocket:
    """Connect to the Access of a ticket, before there is a grant to show. Raises TunnelRefused."""
    host, _, port = str(where["address"]).rpartition(":")
    try:
        async with asyncio.timeout(within_s):
            raw = await _connected(host.strip("[]"), int(port))
            return await _secured(raw, where["ca_pem"], where["server_name"])
    except (OSError, TimeoutError, ValueError) as error:  # ssl.SSLError is an OSError
        raise AccessRefused(
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
    raw = await _through(ticket, access or await approach(ticket))
    try:
        async with asyncio.timeout(JOIN_S):
            try:
                return await _greeted(raw, ticket)
            except BaseException:
                raw.close()
                raise
    except TimeoutError:
        raise TunnelRefused("The host did not greet in time. Try again.") from None
    except (OSError, ValueError) as error:
        raise TunnelRefused(f"The host could not be reached through its Access: {error}. Try again.") from error


async def _through(ticket: dict[str, Any], access: ssl.SSLSocket) -> socket.socket:
    """The bare connection to the host, once its Access has joined both; raises AccessRefused, and ApiProblem with what
    the Access says."""
    lines = (f"GET {PATH} HTTP/1.1", f"Host: {ticket['server_name']}", "Connection: Upgrade")
    shown = (f"Upgrade: {PROTOCOL}", f"Authorization: Bearer {ticket['grant']}", "", "")
    try:
        async with asyncio.timeout(JOIN_S):
            with access:
                await _say(access, "\r\n".join((*lines, *shown)).encode())
                return await _joined(access)
    except (OSError, TimeoutError, ValueError) as error:
        words = f"The Access at {ticket['address']} did not join the tunnel ({error or 'no answer in time'})."
        raise AccessRefused(f"{words} Try again.") from error


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
        return AccessRefused(f"The Access refused the tunnel: {words or 'no answer'}.")
