"""The listener for speedtest-cli, plain HTTP: a mini server for the networks of hosts that have a stream here.

It tells an owner what his line carries to this Access by a tool that he knows, and nothing else is made of it: what the
market counts is what probes.py measures and signs. It fetches nothing for anybody and keeps nothing. Off by default.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from windrow_access.core.speedtest import Asked, Download, Page, Place, Runs, SpeedtestLimits, answer, asked_in, refusal
from windrow_access.listening import listen, port_of, serve_connections
from windrow_proto.errors import Forbidden, LinkClosed, WindrowError
from windrow_proto.ports import Clock, Rng
from windrow_proto.scrape import Figure
from windrow_proto.units import KIB, MIB, seconds

log = structlog.get_logger()

POOL_BYTES: Final = 4 * MIB
"""Random bytes drawn once per run; chunks start at random places in them, so that nothing compresses them."""
CHUNK_BYTES: Final = 64 * KIB
HEAD_ENDS: Final = b"\r\n\r\n"
OK: Final = "200 OK"


class Speedtests:
    """The listener of one worker. `open`, then `run`.

    is_here: whether a host of this network has a stream here; others: measurements of hosts that go on here.
    """

    def __init__(
        self,
        is_here: Callable[[str], bool],
        others: Callable[[], int],
        clock: Clock,
        rng: Rng,
        limits: SpeedtestLimits,
        labels: dict[str, str],
    ) -> None:
        self._is_here, self._others = is_here, others
        self._clock, self._rng, self._limits, self._labels = clock, rng, limits, labels
        self._runs = Runs(limits)
        self._pool = b""
        self._count = self._moved_bytes = self._refused = 0
        self._listener: socket.socket | None = None

    def open(self, host: str, port: int) -> int:
        """Listen on this port or the next free one, 0 for any; returns which. Raises Unavailable."""
        self._listener = listen(host, port, "speedtest-cli", "--speedtest-port")
        return port_of(self._listener)

    def running(self) -> int:
        """Runs that go on."""
        return self._runs.running(self._clock.monotonic_ns())

    def figures(self) -> Iterable[Figure]:
        """Returns this listener's counts, for Prometheus."""
        yield Figure("access_speedtests_total", "Runs of speedtest-cli that began", self._count, self._labels)
        yield Figure("access_speedtest_bytes_total", "Bytes that they moved", self._moved_bytes, self._labels)
        yield Figure("access_speedtest_refused_total", "Connections for them refused", self._refused, self._labels)

    async def run(self) -> None:
        """Accept and serve, until cancelled."""
        await serve_connections(self._listener, "speedtest", self._admits, self._serve)

    def _admits(self, network: str) -> bool:
        is_admitted = self._is_here(network) and self._runs.enter(network)
        self._refused += not is_admitted
        return is_admitted

    async def _serve(self, connection: socket.socket, network: str) -> None:
        """One request, one answer."""
        try:
            async with asyncio.timeout(seconds(self._limits.head_ns)) as patience:
                head, rest = await self._head(connection)
                try:
                    asked = asked_in(head, self._limits)
                    until_ns = self._allow(asked, network)
                except WindrowError as error:
                    self._refused += 1
                    await _say(connection, refusal(error))
                    return
                left_ns = until_ns - self._clock.monotonic_ns()
                patience.reschedule(asyncio.get_running_loop().time() + seconds(left_ns))
                await self._answer(connection, asked, rest)
        except (OSError, TimeoutError, LinkClosed):
            pass  # it went, or took too long: whoever is there sees the connection end
        finally:
            self._runs.leave(network)
            connection.close()

    async def _head(self, connection: socket.socket) -> tuple[bytes, int]:
        """A request's head, and how many bytes of its body came with it; raises OSError, LinkClosed."""
        said = b""
        while HEAD_ENDS not in said:
            if len(said) > self._limits.head_bytes_max:
                raise LinkClosed("A request's head is longer than any of speedtest-cli's.")
            said += await _read(connection, self._limits.head_bytes_max)
        head, _, rest = said.partition(HEAD_ENDS)
        return head, len(rest)

    def _allow(self, asked: Asked, network: str) -> int:
        """Until when this may take (monotonic); raises WindrowError."""
        now_ns = self._clock.monotonic_ns()
        place = asked.place if isinstance(asked, Page) else Place.WITHIN
        run = self._runs.of(network, now_ns)
        if place is Place.FIRST or (place is Place.EARLY and run is None):
            run = self._runs.begin(network, self._others(), now_ns)
            self._count += 1
            self._pool = self._rng.random_bytes(POOL_BYTES)
            log.info("speedtest_began", network=network)
        if run is None:
            raise Forbidden("A run begins with its configuration.")
        if not isinstance(asked, Page):
            run.take(asked)
        return run.until_ns

    async def _answer(self, connection: socket.socket, asked: Asked, rest: int) -> None:
        match asked:
            case Page(text, _):
                await _say(connection, answer(OK, len(text)) + text.encode())
            case Download(total_bytes):
                await self._send(connection, total_bytes)
            case _:
                await self._receive(connection, asked.total_bytes, rest)
                text = f"size={asked.total_bytes}"
                await _say(connection, answer(OK, len(text)) + text.encode())

    async def _send(self, connection: socket.socket, total_bytes: int) -> None:
        await _say(connection, answer(OK, total_bytes))
        pool = memoryview(self._pool)
        while total_bytes > 0:
            offset = int(self._rng.uniform() * (POOL_BYTES - CHUNK_BYTES))
            chunk = pool[offset : offset + min(CHUNK_BYTES, total_bytes)]
            await _say(connection, chunk)
            total_bytes -= len(chunk)
            self._moved_bytes += len(chunk)

    async def _receive(self, connection: socket.socket, total_bytes: int, came: int) -> None:
        while True:
            self._moved_bytes += came
            total_bytes -= came
            if total_bytes < 0:
                raise LinkClosed("More came than the upload said.")
            if total_bytes == 0:
                return
            came = len(await _read(connection, CHUNK_BYTES))


async def _say(connection: socket.socket, said: bytes | memoryview) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, said)
    await asyncio.sleep(0)  # what the kernel takes at once is sent without a turn of the loop, which others wait for


async def _read(connection: socket.socket, most: int) -> bytes:
    """Some bytes; raises OSError, LinkClosed at the end."""
    said = await asyncio.get_running_loop().sock_recv(connection, most)
    await asyncio.sleep(0)
    if not said:
        raise LinkClosed("It went.")
    return said
