"""Services on real TLS: from the name in the handshake, through a tunnels' listener, to what plays the host."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.pki import issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_access.certificates import FileCertificate, OwnCertificate
from windrow_access.core.services import ServiceLimits
from windrow_access.core.tunnels import TunnelLimits
from windrow_access.services import Services
from windrow_access.tunnels import Tunnels
from windrow_proto import tunnel_dial
from windrow_proto.clock import SystemClock
from windrow_proto.connection import Connection
from windrow_proto.errors import Conflict, InvalidInput, NotFound, Unavailable, WindrowError
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey, lone_identity
from windrow_proto.service_names import LOCAL_DOMAIN
from windrow_proto.tunnels import HOST_NAME, SECRET_BYTES, TunnelGrant, TunnelSide
from windrow_proto.units import MILLISECOND, MINUTE, SECOND
from windrow_proto.v1 import services_pb2
from windrow_proto.wire_tunnel import sign_grant
from windrow_tunnel import sockets
from windrow_tunnel.wire import END, RecordReader, record

MASTER = SigningKey.generate()
HOST = HostId("host_here")
SECRET = bytes(range(SECRET_BYTES))
DIGITS = "0123456789abcdef" * 2
CLUSTER = ClusterId(f"cluster_{DIGITS}")
NAME = f"p80-{DIGITS}.{LOCAL_DOMAIN}"
ASKED = CLUSTER, 80


class HostEnd(Connection):
    """The host's end of a tunnel: says what came back, in capitals."""

    def __init__(self) -> None:
        super().__init__()
        self.came = bytearray()
        self.is_answering = True
        self.own = lone_identity(HOST_NAME)
        self._secret, self._reader = b"", RecordReader()

    async def serve(self, access: ssl.SSLSocket) -> None:
        """Meet the renter."""
        raw = await tunnel_dial.joined(access)
        shown = sockets.server_context(self.own.key_pem, self.own.certificate_pem)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: self, raw, ssl=shown)

    def data_received(self, data: bytes) -> None:
        """The secret, then records."""
        missing = len(SECRET) - len(self._secret)
        self._secret += data[:missing]
        assert SECRET.startswith(self._secret)
        for piece in self._reader.feed(data[missing:]):
            self.came += piece
            if self.is_answering:
                self.write(record(bytes(piece).upper()))
        if self._reader.is_ended:
            self.write(END)


@dataclass(slots=True)
class Place:
    """An Access with both listeners, a Master that is a function, and hosts that dial."""

    port: int
    tunnel_port: int
    trust: ssl.SSLContext
    services: Services
    ca_pem: bytes
    group: asyncio.TaskGroup
    asked: list[tuple[ClusterId, int]] = field(default_factory=list)
    hosts: list[HostEnd] = field(default_factory=list)
    refusal: WindrowError | None = None
    is_silent: bool = False

    async def answer(self, cluster_id: ClusterId, port: int) -> services_pb2.ServiceAnswer:
        """As the Master does: the host has dialled when it is answered."""
        self.asked.append((cluster_id, port))
        if self.refusal is not None:
            raise self.refusal
        if self.is_silent:
            await asyncio.Event().wait()
        number, not_after_ns = len(self.asked), SystemClock().wall_ns() + MINUTE

        def granted(side: TunnelSide) -> str:
            named = f"tunnel_{number}", side, HOST, WorkloadId("workload_a"), cluster_id, port
            return sign_grant(TunnelGrant(*named, not_after_ns), MASTER)

        end, address = HostEnd(), f"127.0.0.1:{self.tunnel_port}"
        self.group.create_task(end.serve(await tunnel_dial.come(address, self.ca_pem, granted(TunnelSide.HOST))))
        self.hosts.append(end)
        return services_pb2.ServiceAnswer(
            ask=number,
            tunnel_address=address,
            grant=granted(TunnelSide.RENTER),
            host_pem=end.own.certificate_pem.decode(),
            secret=SECRET,
        )

    async def dial(self, name: str = NAME) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust, server_hostname=name)

    async def get(self, text: bytes = b"GET / HTTP/1.1\r\n\r\n", name: str = NAME) -> bytes:
        """All that is answered to this."""
        reader, writer = await self.dial(name)
        writer.write(text)
        async with asyncio.timeout(PATIENCE_S):
            found = await reader.read()
        writer.close()
        return found

    def figure(self, name: str) -> float:
        return next(one.value for one in self.services.figures() if one.name == name)


@asynccontextmanager
async def serving(limits: ServiceLimits | None = None) -> AsyncIterator[Place]:
    ca = make_ca()
    identity = issue(ca, "access", "access_a", names=(f"*.{LOCAL_DOMAIN}",))
    trust = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    tunnels = Tunnels(lambda: identity, MASTER.public, {HOST}.__contains__, SystemClock(), TunnelLimits(), {})

    async def ask(cluster_id: ClusterId, port: int) -> services_pb2.ServiceAnswer:
        return await place.answer(cluster_id, port)

    services = Services(
        LOCAL_DOMAIN,
        lambda prepare: OwnCertificate(lambda: identity, prepare),
        ask,
        lambda: ca.certificate_pem,
        SystemClock(),
        limits or ServiceLimits(),
        {},
    )
    port = services.open("127.0.0.1", 0, is_shared=False)
    async with asyncio.TaskGroup() as group:
        place = Place(port, tunnels.open("127.0.0.1", 0), trust, services, ca.certificate_pem, group)
        running = [group.create_task(one.run()) for one in (tunnels, services)]
        yield place
        for end in place.hosts:
            end.abort()
        for task in running:
            task.cancel()


async def read_exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.readexactly(count)


async def ended(reader: asyncio.StreamReader) -> bool:
    """Wait for its end, cut or in order."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            while await reader.read(1 << 16):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
    return True


async def test_a_connection_is_led_to_the_port_that_its_name_means_and_carries_whatever_is_said() -> None:
    async with serving() as place:
        reader, writer = await place.dial()
        writer.write(b"first ")
        assert await read_exactly(reader, 6) == b"FIRST "
        body = os.urandom(1 << 20).hex().encode()
        writer.write(body)
        assert await read_exactly(reader, len(body)) == body.upper()
        assert place.asked == [ASKED]
        assert place.figure("access_service_visits_total") == 1
        writer.close()
        (host,) = place.hosts
        async with asyncio.timeout(PATIENCE_S):
            await host.gone()
        await poll_async(lambda: place.figure("access_service_visitors") == 0)
        assert place.figure("access_service_bytes_total") == 2 * (6 + len(body))


async def test_http_1_alone_is_offered() -> None:
    async with serving() as place:
        place.trust.set_alpn_protocols(["h2", "http/1.1"])
        reader, writer = await place.dial()
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()
        assert reader is not None


async def test_nothing_is_asked_before_the_first_byte_and_who_says_none_is_cut() -> None:
    async with serving(ServiceLimits(greet_ns=2 * SECOND)) as place:
        reader, writer = await place.dial()
        bare, mute = await asyncio.open_connection("127.0.0.1", place.port)  # begins no handshake
        assert await ended(reader) and await ended(bare)
        assert place.asked == []
        for one in (writer, mute):
            one.close()


async def test_a_name_of_another_domain_and_no_name_get_no_handshake() -> None:
    async with serving() as place:
        place.trust.check_hostname = False
        for name in ("localhost", "access.windrow", f"a.{NAME}", LOCAL_DOMAIN, ""):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await place.dial(name)
        assert place.asked == []


async def test_a_name_that_means_nothing_is_a_page_without_a_question() -> None:
    async with serving() as place:
        assert (await place.get(name=f"www.{LOCAL_DOMAIN}")).startswith(b"HTTP/1.1 404 ")
        assert place.asked == []


async def test_what_the_master_refuses_is_a_page_and_is_not_asked_again_at_once() -> None:
    async with serving() as place:
        place.refusal = NotFound()
        assert (await place.get()).startswith(b"HTTP/1.1 404 ")
        assert (await place.get()).startswith(b"HTTP/1.1 404 ")
        assert place.asked == [ASKED]
        place.refusal = Unavailable("Not now.")
        for _ in range(2):
            assert (await place.get(name=NAME.replace("p80", "p81"))).startswith(b"HTTP/1.1 503 ")
        assert len(place.asked) == 3
        assert b"Not now" not in await place.get(name=NAME.replace("p80", "p82"))


async def test_a_refusal_waits_for_the_end_of_the_head_and_not_longer_than_it_may() -> None:
    async with serving(ServiceLimits(head_ns=300 * MILLISECOND, head_bytes_max=1024)) as place:
        place.refusal = Conflict()
        slow = await place.get(b"GET / HTTP/1.1\r\nAccept: text/html\r\nX: and no")
        long = await place.get(b"GET / HTTP/1.1\r\n" + b"X: and no end" * 2_000)
        body = await place.get(b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + bytes(99_999))
        assert all(one.startswith(b"HTTP/1.1 503 ") for one in (slow, long, body))


async def test_a_visitor_that_goes_does_not_wait_for_the_master() -> None:
    async with serving() as place:
        place.is_silent = True
        _, writer = await place.dial()
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await poll_async(lambda: place.asked)
        writer.close()
        await poll_async(lambda: place.figure("access_service_visitors") == 0)


async def test_a_tunnel_that_is_cut_cuts_the_visitor_without_an_orderly_end() -> None:
    async with serving() as place:
        reader, writer = await place.dial()
        writer.write(b"a")
        assert await read_exactly(reader, 1) == b"A"
        place.hosts[0].abort()
        assert await ended(reader)
        await poll_async(lambda: place.figure("access_service_visitors") == 0)
        writer.close()


async def test_the_end_of_what_the_service_says_is_the_end_of_the_connection() -> None:
    async with serving() as place:
        reader, writer = await place.dial()
        writer.write(b"a" * 100_000)
        assert await read_exactly(reader, 100_000) == b"A" * 100_000
        place.hosts[0].write(record(b"last words") + END)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b"last words"
        writer.close()


async def test_an_idle_connection_is_cut() -> None:
    async with serving(ServiceLimits(idle_ns=2 * SECOND)) as place:
        reader, writer = await place.dial()
        writer.write(b"a")
        assert await read_exactly(reader, 1) == b"A"
        assert await ended(reader)
        writer.close()


async def test_connections_above_their_number_are_closed_at_once() -> None:
    async with serving(ServiceLimits(per_network_max=1)) as place:
        _, first = await place.dial()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await place.dial()
        first.close()
        await poll_async(lambda: place.figure("access_service_visitors") == 0)
        _, again = await place.dial()
        again.close()


async def test_a_visitor_that_does_not_read_holds_up_the_host_and_little_waits_between() -> None:
    async with serving() as place:
        reader, writer = await place.dial()
        writer.write(b"a")
        assert await read_exactly(reader, 1) == b"A"
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        (host,) = place.hosts
        (visitor,) = place.services._joined
        transport = host._transport
        assert transport is not None
        pushed = 0
        for _ in range(4096):
            if transport.get_write_buffer_size() > 1 << 20:
                break
            host.write(record(bytes(1 << 16)))
            pushed += 1 << 16
            await asyncio.sleep(0)
        assert transport.get_write_buffer_size() > 1 << 20
        assert visitor._transport is not None and visitor._transport.get_write_buffer_size() <= 2 << 20
        assert pushed < 128 << 20
        writer.transport.abort()


async def test_a_certificate_in_files_is_read_again_when_it_changes_and_kept_while_damaged(tmp_path: Path) -> None:
    ca = make_ca()
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    prepared: list[ssl.SSLContext] = []

    def write(subject: str) -> None:
        identity = issue(ca, "access", subject)
        files[0].write_bytes(identity.certificate_pem)
        files[1].write_bytes(identity.key_pem)

    with pytest.raises(InvalidInput):
        FileCertificate(*files, prepared.append)
    write("access_a")
    certificate = FileCertificate(*files, prepared.append)
    first = certificate.context()
    assert certificate.context() is first and prepared == [first]
    files[1].write_bytes(b"half a key")
    assert certificate.context() is first
    write("access_b")
    assert certificate.context() is not first and len(prepared) == 2
