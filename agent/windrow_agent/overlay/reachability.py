"""Tests which other hosts this host reaches: it listens for a moment, and dials the places where the Master says that
others listen."""

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from windrow_proto import reachability
from windrow_proto.errors import RuntimeUnavailable, WindrowError
from windrow_proto.reachability import Listening, Place, Seen
from windrow_proto.units import seconds
from windrow_tunnel import sockets

log = structlog.get_logger()

CALLERS_MAX: Final = 64
"""Hosts that may come to this host in one look; later ones are not answered."""


async def serve(
    hear: Callable[[], Awaitable[bytes | None]],
    say: Callable[[bytes], Awaitable[None]],
    refusals: Callable[[], Awaitable[tuple[str, str]]],
) -> None:
    """One look: listen, look for the others, and listen until the Master has heard from all of them. refusals: why
    processes of this host can be in no private network, and containers.

    Raises InvalidInput for words that are none, RuntimeUnavailable where nothing can listen.
    """
    token = secrets.token_hex(reachability.TOKEN_BYTES)
    try:
        listener = socket.create_server(("0.0.0.0", 0), backlog=CALLERS_MAX)
    except OSError as error:
        raise RuntimeUnavailable(f"This host can listen nowhere: {error.strerror}.") from error
    with listener:
        listener.setblocking(False)
        failure: WindrowError | None = None
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(_show(listener, token.encode()))
            try:
                async with asyncio.timeout(seconds(reachability.LISTEN_NS)):
                    await say(
                        reachability.encode_listening(Listening(listener.getsockname()[1], token, *await refusals()))
                    )
                    while (words := await hear()) is not None:
                        await say(reachability.encode_seen(await _look(reachability.decode_places(words))))
            except TimeoutError:
                log.info("sight_over", reason="the Master did not end it")
            except WindrowError as error:
                failure = error
            showing.cancel()
    if failure is not None:
        raise failure


async def _show(listener: socket.socket, token: bytes) -> None:
    """Tell the token to whoever comes; it means nothing to anybody but the Master."""
    loop = asyncio.get_running_loop()
    for _ in range(CALLERS_MAX):
        caller, _ = await loop.sock_accept(listener)
        with caller:
            caller.setblocking(False)
            try:
                async with asyncio.timeout(1):
                    await loop.sock_sendall(caller, token)
            except (OSError, TimeoutError):
                continue


async def _look(places: Sequence[Place]) -> list[Seen]:
    return list(await asyncio.gather(*(_look_at(one) for one in places)))


async def _look_at(place: Place) -> Seen:
    loop, said = asyncio.get_running_loop(), b""
    try:
        async with asyncio.timeout(seconds(reachability.DIAL_NS)):
            with await sockets.dial(place.address, place.port) as raw:
                while len(said) < 2 * reachability.TOKEN_BYTES and (more := await loop.sock_recv(raw, 64)):
                    said += more
    except TimeoutError:
        return Seen(why=f"no answer within {seconds(reachability.DIAL_NS):.0f} s")
    except OSError as error:
        return Seen(why=error.strerror or str(error))
    return Seen(token=said.decode("ascii", "replace")[: 2 * reachability.TOKEN_BYTES])
