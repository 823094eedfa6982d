"""Admission to an Access for a tunnel: decisions, then real TLS."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.support.pki import issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_access.core.tunnels import ConnectionCounts, JoinTable, TunnelLimits, grant_in
from windrow_access.tunnels import Tunnels
from windrow_proto import tunnel_dial
from windrow_proto.clock import SystemClock
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany, Unauthenticated
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.tunnels import TunnelGrant, TunnelSide, worker_name
from windrow_proto.units import MILLISECOND, MINUTE, SECOND
from windrow_proto.wire_tunnel import sign_grant
from windrow_tunnel.wire import ACCEPTED, PROTOCOL, request

MASTER = SigningKey.generate()
WORKER = worker_name("access_a", 0)
HOST, OTHER_HOST = HostId("host_here"), HostId("host_elsewhere")


def granted(
    number: int, side: TunnelSide, host_id: HostId = HOST, life_ns: int = MINUTE, worker: str = ""
) -> TunnelGrant:
    not_after_ns = SystemClock().wall_ns() + life_ns
    named = f"tunnel_{number}", side, host_id, WorkloadId("workload_a"), ClusterId("cluster_a"), 80
    return TunnelGrant(*named, not_after_ns, worker)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_counts_bound_strangers_of_one_network_all_strangers_and_all_connections() -> None:
    counts = ConnectionCounts(TunnelLimits(connections_max=4, strangers_max=3, strangers_per_network_max=2))

    assert [counts.enter(network) for network in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    counts.known("a", HOST)
    assert [counts.enter(network) for network in ("c", "d")] == [True, False]
    counts.known("a", HOST)
    assert not counts.enter("d")  # three strangers' places are free again, and all connections' are not
    counts.leave("b")
    counts.gone(HOST)
    assert (counts.open, counts.strangers) == (2, 1)


def test_a_host_has_two_ends_for_each_of_its_tunnels() -> None:
    counts = ConnectionCounts(TunnelLimits(per_host_max=1))
    assert all(counts.enter(network) for network in "abcd")
    counts.known("a", HOST)
    counts.known("b", HOST)
    with pytest.raises(TooMany):
        counts.known("c", HOST)
    counts.known("d", OTHER_HOST)
    assert counts.strangers == 1  # who was refused is a stranger still, and leaves as one


def test_only_a_get_with_the_upgrade_and_one_grant_is_a_request() -> None:
    head = request("the-grant", "access.windrow").removesuffix(b"\r\n\r\n")
    assert grant_in(head) == "the-grant"
    for wrong, kind in (
        (head.replace(b"GET", b"POST"), NotFound),
        (head.replace(b"/tunnel ", b"/ "), NotFound),
        (head.replace(PROTOCOL.encode(), b"websocket"), InvalidInput),
        (head.replace(b"Bearer the-grant", b"Basic eA"), Unauthenticated),
        (head.partition(b"\r\nAuthorization")[0], Unauthenticated),
        (head + b"\r\nAuthorization: Bearer another", InvalidInput),
        (head + b"\r\nContent-Length: 5", InvalidInput),
        (head + b"\r\n folded: x", InvalidInput),
        (b"\x16\x03\x01", InvalidInput),
        (b"GET /tunnel HTTP/1.1\xff", InvalidInput),
    ):
        with pytest.raises(kind):
            grant_in(wrong)


def test_two_ends_of_one_tunnel_meet_and_a_grant_is_good_once() -> None:
    table: JoinTable[str] = JoinTable()
    host, renter = granted(1, TunnelSide.HOST), granted(1, TunnelSide.RENTER)

    assert table.meet(host, "host's", 0) is None
    assert table.meet(granted(2, TunnelSide.RENTER), "somebody else's", 0) is None
    assert table.meet(renter, "renter's", 0) == "host's"
    for grant in (host, renter):
        with pytest.raises(Conflict):
            table.meet(grant, "again", 0)
    assert len(table) == 1


def test_a_grant_stays_used_when_its_end_went_before_the_other_came() -> None:
    table: JoinTable[str] = JoinTable()
    host = granted(1, TunnelSide.HOST)
    table.meet(host, "host's", 0)
    table.withdraw(host.tunnel_id, "host's")

    with pytest.raises(Conflict):
        table.meet(host, "again", 0)
    assert table.meet(granted(1, TunnelSide.RENTER), "renter's", 0) is None


def test_used_grants_are_forgotten_when_they_are_over_and_never_before() -> None:
    table: JoinTable[str] = JoinTable(used_max=2)
    for number in (1, 2):
        table.meet(replace(granted(number, TunnelSide.HOST), not_after_ns=10), "end", 0)

    with pytest.raises(TooMany):
        table.meet(granted(3, TunnelSide.HOST), "end", 9)
    assert table.meet(granted(3, TunnelSide.HOST), "end", 10) is None


# --- the listener -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Place:
    """A listener, and what comes to it. taken: the hosts for which it takes grants that name it."""

    port: int
    tunnels: Tunnels
    hosts: set[str]
    trust: ssl.SSLContext
    ca_pem: bytes
    taken: set[str] = field(default_factory=set)

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trust, server_hostname="access.windrow", limit=1 << 16
        )

    async def show(self, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Come with this grant, to hear that it does not hold."""
        reader, writer = await self.dial()
        writer.write(request(text, "access.windrow"))
        return reader, writer

    async def come(self, grant: TunnelGrant) -> ssl.SSLSocket:
        return await tunnel_dial.come(f"127.0.0.1:{self.port}", self.ca_pem, sign_grant(grant, MASTER))

    async def refusal(self, text: str) -> tuple[int, str]:
        """Status and code of what is answered to this grant; the connection ends with it."""
        reader, writer = await self.show(text)
        async with asyncio.timeout(PATIENCE_S):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)["code"]

    async def pair(
        self, number: int, host_id: HostId = HOST, worker: str = ""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamWriter]:
        """A joined tunnel: the host's end, then the renter's."""
        host = await self.come(granted(number, TunnelSide.HOST, host_id, worker=worker))
        renter = await self.come(granted(number, TunnelSide.RENTER, host_id, worker=worker))
        return (*await joined(host), *await joined(renter))

    def figure(self, name: str) -> float:
        return next(one.value for one in self.tunnels.figures() if one.name == name)


async def joined(connection: ssl.SSLSocket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The bare connection, once the other end is there; of two, whoever came first asks first."""
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.open_connection(sock=await tunnel_dial.joined(connection), limit=1 << 16)


@asynccontextmanager
async def listening(limits: TunnelLimits | None = None) -> AsyncIterator[Place]:
    ca = make_ca()
    identity = issue(ca, "access", "access_a")
    hosts: set[str] = {HOST}
    has: Callable[[str], bool] = hosts.__contains__
    taken: set[str] = set()
    takes: Callable[[str], bool] = taken.__contains__
    known = MASTER.public, has, SystemClock(), limits or TunnelLimits()
    tunnels = Tunnels(lambda: identity, *known, {}, WORKER, takes)
    port = tunnels.open("127.0.0.1", 0)
    trust = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(tunnels.run())
        yield Place(port, tunnels, hosts, trust, ca.certificate_pem, taken)
        running.cancel()


async def ended(reader: asyncio.StreamReader) -> bool:
    """Wait for its end, cut or in order."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            while await reader.read(1 << 16):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
    return True


async def test_bytes_cross_both_ways_and_either_may_come_first() -> None:
    async with listening() as place:
        for number, first in enumerate((TunnelSide.RENTER, TunnelSide.HOST)):
            second = TunnelSide.HOST if first is TunnelSide.RENTER else TunnelSide.RENTER
            ends = [await place.come(granted(number, s)) for s in (first, second)]
            (one_reader, one), (two_reader, two) = [await joined(end) for end in ends]
            async with asyncio.timeout(PATIENCE_S):
                one.write(b"there" * 100_000)
                assert await two_reader.readexactly(500_000) == b"there" * 100_000
                two.write(b"back" * 100_000)
                assert await one_reader.readexactly(400_000) == b"back" * 100_000
            for writer in (one, two):
                writer.close()
        assert place.figure("access_tunnel_bytes_total") == 2 * 900_000


async def test_a_grant_that_names_this_worker_is_good_for_a_host_elsewhere_until_the_master_ends_that() -> None:
    """Its trunk is gone, or the host is banned; one that names another worker is good for nobody here."""
    async with listening() as place:
        place.taken.add(OTHER_HOST)
        for host_id, worker in ((OTHER_HOST, worker_name("access_a", 1)), (HOST, "access_b/0"), (HOST, WORKER)):
            text = sign_grant(granted(1, TunnelSide.RENTER, host_id, worker=worker), MASTER)
            assert await place.refusal(text) == (503, "unavailable")
        host_reader, host, renter_reader, renter = await place.pair(2, OTHER_HOST, WORKER)
        async with asyncio.timeout(PATIENCE_S):
            host.write(b"there")
            assert await renter_reader.readexactly(5) == b"there"
        place.taken.clear()
        assert await ended(host_reader) and await ended(renter_reader)
        for one in (host, renter):
            one.close()


@pytest.mark.parametrize(
    ("make", "status", "code"),
    [
        (lambda: sign_grant(granted(1, TunnelSide.RENTER), SigningKey.generate()), 401, "bad_proof"),
        (lambda: sign_grant(granted(1, TunnelSide.RENTER, life_ns=-1), MASTER), 409, "expired"),
        (lambda: sign_grant(granted(1, TunnelSide.RENTER, OTHER_HOST), MASTER), 503, "unavailable"),
        (lambda: sign_grant(granted(1, TunnelSide.UNSPECIFIED), MASTER), 422, "invalid_input"),
        (lambda: "rubbish!", 422, "invalid_input"),
    ],
    ids=["forged", "expired", "another host's", "of neither side", "no grant"],
)
async def test_a_grant_that_does_not_hold_is_refused_with_its_reason(
    make: Callable[[], str], status: int, code: str
) -> None:
    async with listening() as place:
        assert await place.refusal(make()) == (status, code)
        assert place.figure("access_tunnel_refused_total") == 1


async def test_a_grant_is_refused_the_second_time_while_its_tunnel_lives_and_after_it() -> None:
    async with listening() as place:
        grant = granted(1, TunnelSide.RENTER)
        text = sign_grant(grant, MASTER)
        ends = [await place.come(one) for one in (granted(1, TunnelSide.HOST), grant)]
        (_, host), (reader, renter) = [await joined(end) for end in ends]

        assert await place.refusal(text) == (409, "conflict")
        host.close()
        assert await ended(reader)
        assert await place.refusal(text) == (409, "conflict")
        renter.close()


async def test_who_says_nothing_is_cut_and_who_says_too_much_is_told() -> None:
    async with listening(TunnelLimits(greet_ns=300 * MILLISECOND)) as place:
        silent, writer = await place.dial()
        assert await ended(silent)
        bare, mute = await asyncio.open_connection("127.0.0.1", place.port)  # begins no handshake
        assert await ended(bare)
        long, loud = await place.dial()
        loud.write(b"GET /tunnel HTTP/1.1\r\nX: " + b"a" * 9_000)
        async with asyncio.timeout(PATIENCE_S):
            assert (await long.read()).startswith(b"HTTP/1.1 422 ")
        await poll_async(lambda: place.figure("access_tunnel_strangers") == 0)
        for one in (writer, mute, loud):
            one.close()


async def test_strangers_above_their_number_are_closed_at_once_and_others_still_come() -> None:
    async with listening(TunnelLimits(strangers_per_network_max=2)) as place:
        first = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(2)]
        await poll_async(lambda: place.figure("access_tunnel_strangers") == 2)
        one_more, writer = await asyncio.open_connection("127.0.0.1", place.port)
        assert await ended(one_more)
        for _, stranger in first:
            stranger.close()
        await poll_async(lambda: place.figure("access_tunnel_strangers") == 0)
        _, host, _, renter = await place.pair(1)
        for one in (host, renter, writer):
            one.close()


async def test_a_renter_whose_host_does_not_come_is_told_so() -> None:
    async with listening(TunnelLimits(renter_wait_ns=200 * MILLISECOND)) as place:
        text = sign_grant(granted(1, TunnelSide.RENTER), MASTER)
        assert await place.refusal(text) == (504, "deadline_exceeded")


async def test_an_end_that_goes_takes_its_other_with_it_and_what_it_said_arrives_first() -> None:
    async with listening() as place:
        _, host, renter_reader, renter = await place.pair(1)
        host.write(b"last words" * 100_000)
        host.close()
        async with asyncio.timeout(PATIENCE_S):
            assert await renter_reader.read(-1) == b"last words" * 100_000
        renter.close()
        await poll_async(lambda: place.figure("access_tunnels") == 0)


async def test_an_end_that_speaks_before_the_other_is_there_is_refused_and_its_grant_used() -> None:
    async with listening() as place:
        reader, writer = await place.show(sign_grant(granted(1, TunnelSide.HOST), MASTER))
        await poll_async(lambda: place.figure("access_tunnel_strangers") == 0 and len(place.tunnels._table) == 1)
        writer.write(b"too early")
        async with asyncio.timeout(PATIENCE_S):
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        assert len(place.tunnels._table) == 0
        writer.close()


async def test_an_end_that_does_not_take_its_tls_off_ends_both() -> None:
    async with listening(TunnelLimits(greet_ns=SECOND)) as place:
        host = await place.come(granted(1, TunnelSide.HOST))
        reader, stubborn = await place.show(sign_grant(granted(1, TunnelSide.RENTER), MASTER))
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.readexactly(len(ACCEPTED)) == ACCEPTED
        stubborn.write(b"in this TLS still")
        host_reader, writer = await joined(host)
        assert await ended(host_reader) and await ended(reader)
        await poll_async(lambda: place.figure("access_tunnel_refused_total") == 1)
        for one in (stubborn, writer):
            one.close()


async def test_a_tunnel_ends_when_its_host_is_here_no_more() -> None:
    async with listening() as place:
        host_reader, host, renter_reader, renter = await place.pair(1)
        place.hosts.clear()
        assert await ended(renter_reader) and await ended(host_reader)
        for writer in (host, renter):
            writer.close()


async def test_an_idle_tunnel_is_cut() -> None:
    async with listening(TunnelLimits(idle_ns=SECOND // 2)) as place:
        _, host, renter_reader, renter = await place.pair(1)
        assert await ended(renter_reader)
        for writer in (host, renter):
            writer.close()


async def test_an_end_that_does_not_read_stops_the_other_and_little_waits_between() -> None:
    """Bytes between the ends are in the kernel's buffers and in a pipe of it, and not in the Access's own memory."""
    async with listening() as place:
        _, host, renter_reader, renter = await place.pair(1)
        (splice,) = place.tunnels._joined
        renter.transport.pause_reading()  # type: ignore[attr-defined]
        piece, pushed = bytes(1 << 16), 0
        try:
            while pushed < 256 << 20:
                host.write(piece)
                async with asyncio.timeout(3):
                    await host.drain()
                pushed += len(piece)
        except TimeoutError:
            pass  # nothing more is taken

        assert pushed < 64 << 20
        assert 0 < splice.held_bytes <= TunnelLimits().buffer_bytes
        renter.transport.abort()
        host.transport.abort()
        assert renter_reader is not None
