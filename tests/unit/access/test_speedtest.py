"""Rules for a measurement by speedtest-cli: decisions, then the listener on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.waiting import PATIENCE_S, poll_async
from windrow_access.core.speedtest import (
    DOWNLOADS,
    Download,
    Page,
    Run,
    Runs,
    SpeedtestLimits,
    Upload,
    asked_in,
    refusal,
)
from windrow_access.probes import AT_ONCE_MAX, Bandwidth
from windrow_access.speedtest import Speedtests
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.errors import InvalidInput, NotFound, TooLarge, TooMany
from windrow_proto.ids import AccessId, HostId
from windrow_proto.keys import SigningKey
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import services_pb2

LIMITS = SpeedtestLimits()
CONFIG = b"GET http://www.speedtest.net/speedtest-config.php?x=1.0 HTTP/1.1\r\nHost: www.speedtest.net"

# --- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "asked"),
    [
        (b"GET /speedtest/random350x350.jpg?x=1 HTTP/1.1", Download(245_000)),
        (b"GET http://access:9/speedtest/random4000x4000.jpg HTTP/1.1", Download(32_000_000)),
        (b"POST /speedtest/upload.php HTTP/1.1\r\ncontent-LENGTH: 7", Upload(7)),
    ],
)
def test_what_moves_bytes_says_how_many(head: bytes, asked: Download | Upload) -> None:
    assert asked_in(head, LIMITS) == asked


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1", b"GET http://access:9?x=1 HTTP/1.0", b"GET /speedtest/latency.txt HTTP/1.1", CONFIG]
)
def test_pages_are_found_by_their_path_whoever_is_named_before_it(head: bytes) -> None:
    assert isinstance(asked_in(head, LIMITS), Page)


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b"", InvalidInput),
        (b"GET /", InvalidInput),
        (b"CONNECT example.org:443 HTTP/1.1", InvalidInput),
        (b"GET http://[ HTTP/1.1", InvalidInput),
        (b"GET http://example.org/index.html HTTP/1.1", NotFound),
        (b"GET /speedtest/random9000x9000.jpg HTTP/1.1", NotFound),
        (b"POST /speedtest/latency.txt HTTP/1.1", NotFound),
        (b"POST /speedtest/upload.php HTTP/1.1", InvalidInput),
        (b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: -1", InvalidInput),
        (b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", InvalidInput),
        (b"POST /speedtest/upload.php HTTP/1.1\r\nTransfer-Encoding: chunked", InvalidInput),
        (b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 8388609", TooLarge),
        (b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: " + b"9" * 3000, TooLarge),
    ],
)
def test_what_speedtest_cli_never_asks_is_refused(head: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        asked_in(head, LIMITS)


def test_a_whole_measurement_fits_into_a_run() -> None:
    run = Run(0, LIMITS.run_bytes_max)
    for total_bytes in (*DOWNLOADS.values(), *DOWNLOADS.values()):
        run.take(Download(total_bytes))
    run.take(Upload(LIMITS.upload_bytes_max))
    with pytest.raises(TooLarge):
        run.take(Download(max(DOWNLOADS.values()) * 2))


def test_connections_are_bounded_by_network_and_in_all() -> None:
    runs = Runs(SpeedtestLimits(connections_max=3, connections_per_network_max=2))
    assert [runs.enter(network) for network in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    runs.leave("a")
    assert runs.enter("c")


def test_one_line_is_measured_at_a_time_and_then_it_rests() -> None:
    runs = Runs(LIMITS)
    runs.begin("a", 0, 0)
    assert runs.running(LIMITS.run_ns - 1) == 1
    with pytest.raises(TooMany, match="Another host's line") as refused:
        runs.begin("b", 0, 0)
    assert b"429 Another host" in refusal(refused.value) and b"Retry-After: 45" in refusal(refused.value)

    assert runs.of("a", LIMITS.run_ns) is None
    runs.begin("b", 0, LIMITS.run_ns)
    with pytest.raises(TooMany, match="a moment ago") as refused:
        runs.begin("a", 0, LIMITS.rest_ns - SECOND)
    assert refused.value.retry_after_ns == SECOND
    runs.begin("a", 0, LIMITS.rest_ns)


def test_none_begins_beside_a_measurement_that_counts() -> None:
    runs = Runs(LIMITS)
    with pytest.raises(TooMany):
        runs.begin("a", 1, 0)
    assert runs.begin("a", 0, 0).until_ns == LIMITS.run_ns


class Beginning:
    """A host that wants to be measured by what counts."""

    async def receive(self) -> services_pb2.BandwidthChunk:
        return services_pb2.BandwidthChunk(start=services_pb2.BandwidthStart(nonce="n"))

    async def send(self, chunk: services_pb2.BandwidthChunk) -> None:
        raise AssertionError("it is refused")

    async def close(self) -> None:
        pass


async def test_a_run_counts_among_the_measurements_that_may_be_made_at_once() -> None:
    bandwidth = Bandwidth(AccessId("access_1"), SigningKey.generate(), SystemClock(), SystemRng())
    bandwidth.others = lambda: AT_ONCE_MAX
    with pytest.raises(TooMany):
        await bandwidth.serve(HostId("host_1"), Beginning())


# --- the listener -----------------------------------------------------------------------------------------------------


class Place:
    """A listener, and what comes back from it."""

    def __init__(self, limits: SpeedtestLimits) -> None:
        self.hosts = {"127.0.0.1"}
        self.measuring = 0
        self.made = Speedtests(self.hosts.__contains__, lambda: self.measuring, SystemClock(), SystemRng(), limits, {})
        self.port = self.made.open("127.0.0.1", 0)

    async def ask(self, said: bytes) -> bytes:
        """All that comes until it ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(said)
            async with asyncio.timeout(PATIENCE_S):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    def figure(self, name: str) -> float:
        return next(figure.value for figure in self.made.figures() if figure.name == name)


@asynccontextmanager
async def listening(limits: SpeedtestLimits = LIMITS) -> AsyncIterator[Place]:
    place = Place(limits)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(place.made.run())
        try:
            yield place
        finally:
            serving.cancel()


async def test_a_run_gives_random_bytes_and_counts_what_comes() -> None:
    async with listening() as place:
        assert b'threadcount="4"' in await place.ask(CONFIG + b"\r\n\r\n")
        assert b'upload_extension: "php"' in await place.ask(b"GET / HTTP/1.1\r\n\r\n")
        head, _, body = (await place.ask(b"GET /speedtest/random350x350.jpg HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        sent = await place.ask(b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 9\r\n\r\ncontent1=")
        assert b"Content-Length: 245000" in head and len(body) == 245_000 and len(set(body)) == 256
        assert sent.endswith(b"size=9")
        assert place.figure("access_speedtest_bytes_total") == 245_009
        assert place.figure("access_speedtests_total") == 1


async def test_without_a_run_nothing_moves_and_a_second_one_has_to_wait() -> None:
    async with listening() as place:
        assert b" 403 " in await place.ask(b"GET /speedtest/random350x350.jpg HTTP/1.1\r\n\r\n")
        assert b" 200 " in await place.ask(CONFIG + b"\r\n\r\n")
        assert b" 429 " in await place.ask(CONFIG + b"\r\n\r\n")
        assert b" 404 " in await place.ask(b"GET /etc/passwd HTTP/1.1\r\n\r\n")
        assert b" 413 " in await place.ask(b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n")


async def test_who_has_no_host_here_is_closed_unread() -> None:
    async with listening() as place:
        place.hosts.clear()
        assert await place.ask(CONFIG + b"\r\n\r\n") == b""
        assert place.figure("access_speedtest_refused_total") == 1


async def test_a_head_without_an_end_is_waited_for_no_longer_than_it_may_take() -> None:
    async with listening(SpeedtestLimits(head_ns=20 * MILLISECOND)) as place:
        assert await place.ask(b"GET / HTTP/1.1\r\n") == b""
    async with listening() as place:
        assert await place.ask(b"GET /" + b"x" * LIMITS.head_bytes_max * 2) == b""


async def test_a_request_ends_with_its_run_however_slowly_it_goes_on() -> None:
    async with listening(SpeedtestLimits(run_ns=20 * MILLISECOND)) as place:
        await place.ask(CONFIG + b"\r\n\r\n")
        said = await place.ask(b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        assert b" 200 " not in said


async def test_more_than_an_upload_said_ends_it() -> None:
    async with listening() as place:
        await place.ask(CONFIG + b"\r\n\r\n")
        assert await place.ask(b"POST /speedtest/upload.php HTTP/1.1\r\nContent-Length: 2\r\n\r\nabc") == b""


async def test_places_are_free_again_when_connections_have_gone() -> None:
    async with listening(SpeedtestLimits(connections_per_network_max=1)) as place:
        _, writer = await asyncio.open_connection("127.0.0.1", place.port)
        await poll_async(lambda: place.made._runs._open.total() == 1)
        assert await place.ask(CONFIG + b"\r\n\r\n") == b""
        writer.close()
        await poll_async(lambda: not place.made._runs._open)
        assert b" 200 " in await place.ask(CONFIG + b"\r\n\r\n")
