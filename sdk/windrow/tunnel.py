"""The renter's end of a tunnel: shows an Access the Master's grant, greets the host, and carries bytes.

Asynchronous. TLS with the Access is only for the grant: when the host is there, it is taken off, and another begins
that ends at the host, which shows the key that the Master named. Both agree in it to go on in sealed records; with an
older host it stays. The Access can read none of it.

 ticket ─▶ its Access: connected ─▶ joined ─▶ the host greets
              │ no answer   │ refuses what another may do     (a final refusal, or a wrong host: that is the end)
              └──────┬──────┘
                     ▼
           without it, a ticket for another ─▶ ... each at most once, REACH_S in all
"""

import asyncio
import secrets
import socket
import ssl
from collections.abc import Callable, Container
from typing import Any

from windrow.errors import AccessRefused, ApiProblem, LocalCut, TunnelBroken, TunnelRefused, WindrowClientError
from windrow.nearest import KEPT_S, REFUSED_S, Nearest
from windrow_tunnel import errors, sockets
from windrow_tunnel.pump import Pump
from windrow_tunnel.tls import TunnelEnd, TunnelTls
from windrow_tunnel.wire import PROTOCOL

DIAL_S = 15.0
OTHERWISE_S = 5.0
"""The same where another Access may be asked for: three round trips, however long the line."""
REACH_S = 60.0
"""For all of them, with the Master's word between them: as long as the first ticket would be good."""
JOIN_S = 20.0
"""For the Access to join us with the host, and for the host to shake hands, each; the Access gives up after ten
itself."""
ELSEWHERE = frozenset({"unavailable", "host_unreachable", "too_many", "deadline_exceeded", "forbidden"})
"""The codes of refusals where another Access may do better: the host or the Master is not connected to it (older ones:
forbidden), it is full, the host did not come. A grant that is over, used or wrong is so everywhere."""
CUT = "The tunnel was cut: the machine or your right to it has ended, or its host has lost its connection."

Ask = Callable[[dict[str, Any]], dict[str, Any]]


async def meet(ask: Ask, nearest: Nearest) -> TunnelEnd:
    """Ask the Master for a tunnel, and meet the host; for `carry`. Raises TunnelRefused, ApiProblem, MasterUnreachable.

    ask: of the Master, with what `nearest` wishes; blocking.
    """
    return (await reach(ask, nearest, await asyncio.to_thread(ask, nearest.wish())))[1]


async def reach(
    ask: Ask, nearest: Nearest, ticket: dict[str, Any], access: ssl.SSLSocket | None = None
) -> tuple[dict[str, Any], TunnelEnd]:
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
                        words = f"None of {len(said)} relays took the tunnel."
                        raise TunnelRefused(" ".join((words, *said.values()))) from refused
                ticket, access = again, None
    except TimeoutError:
        words = f"No relay took the tunnel within {REACH_S:.0f} s."
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
    return words if address in words else f"The relay at {address} says: {words}"


async def approach(where: dict[str, Any], within_s: float = DIAL_S) -> ssl.SSLSocket:
    """Connect to the Access of a ticket, before there is a grant to show. Raises TunnelRefused."""
    try:
        async with asyncio.timeout(within_s):
            return await sockets.approach(str(where["address"]), str(where["ca_pem"]).encode(), where["server_name"])
    except (OSError, TimeoutError, ValueError) as error:  # ssl.SSLError is an OSError
        raise AccessRefused(
            f"The relay at {where['address']} does not answer ({error or 'no answer in time'}). Its port for "
            "tunnels must be open from here; ask who runs this market, or try again."
        ) from error


async def dial(ticket: dict[str, Any], access: ssl.SSLSocket | None = None) -> TunnelEnd:
    """Meet the host with what the Master answered; for `carry`. access: where its Access was approached already; it is
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
        raise TunnelRefused(f"The host could not be reached through its relay: {error}. Try again.") from error


async def _through(ticket: dict[str, Any], access: ssl.SSLSocket) -> socket.socket:
    """The bare connection to the host, once its Access has joined both; raises AccessRefused, and ApiProblem with what
    the Access says."""
    try:
        async with asyncio.timeout(JOIN_S):
            await sockets.ask(access, ticket["grant"], ticket["server_name"])
            return await sockets.joined(access)
    except errors.Refused as refused:
        raise _refusal(refused) from refused
    except (OSError, TimeoutError, ValueError) as error:
        words = f"The relay at {ticket['address']} did not join the tunnel ({error or 'no answer in time'})."
        raise AccessRefused(f"{words} Try again.") from error


async def _greeted(raw: socket.socket, ticket: dict[str, Any]) -> TunnelEnd:
    from windrow_tunnel.seal import SEALED, SEED_BYTES, SealedEnd  # only tunnels wait for its library to be loaded

    context = sockets.client_context(ticket["host_pem"].encode())
    context.set_alpn_protocols([SEALED])
    found = TunnelTls(raw, context, ticket["host_server_name"])
    await found.greet()
    secret = bytes.fromhex(ticket["secret"])
    if not found.agreed(SEALED):  # an older host
        await found.say(secret)
        return found
    seed = secrets.token_bytes(SEED_BYTES)
    await found.say(secret + seed)
    return SealedEnd(raw, seed, is_host=False)


async def carry(local: socket.socket, host: TunnelEnd, on_bytes: Callable[[int, int], None]) -> None:
    """Move bytes until both directions have ended; raises LocalCut, TunnelBroken. Neither connection blocks.

    local: a connection of this machine. on_bytes: called with how many more bytes were sent and received.
    """
    try:
        await Pump(local, host, on_bytes).run()
    except errors.LocalCut as error:
        raise LocalCut(str(error)) from error
    except errors.Malformed as error:
        raise TunnelBroken(str(error)) from error
    except errors.TunnelError as error:
        raise TunnelBroken(CUT) from error


def _refusal(refused: errors.Refused) -> WindrowClientError:
    status = refused.problem.get("status")
    return ApiProblem(status, refused.problem) if isinstance(status, int) else AccessRefused(str(refused))
