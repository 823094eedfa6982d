"""Both ends' pumps, over TLS in memory and over sealed records: every byte arrives in order, an end is none too early,
and a cut is one."""

import asyncio
import random
import socket
from functools import partial
from typing import Any

import pytest

from tests.waiting import PATIENCE_S
from windrow_proto.keys import lone_identity
from windrow_proto.tunnels import HOST_NAME
from windrow_tunnel.errors import Cut
from windrow_tunnel.pump import Pump
from windrow_tunnel.seal import SEED_BYTES, SealedEnd
from windrow_tunnel.sockets import client_context, server_context
from windrow_tunnel.tls import TLS_BESIDE_BYTES, TLS_BYTES, TunnelEnd, TunnelTls
from windrow_tunnel.wire import END, record

OWN = lone_identity(HOST_NAME)
SMALL_BYTES = 8 * 1024
MUCH = random.Random(1).randbytes(3_000_001)


def pair() -> tuple[socket.socket, socket.socket]:
    """Connected, and full soon."""
    both = socket.socketpair()
    for one in both:
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BYTES)
    return both


def ends() -> tuple[TunnelTls, TunnelTls]:
    """The renter's and the host's end, which have not greeted."""
    near, far = pair()
    host = TunnelTls(far, server_context(OWN.key_pem, OWN.certificate_pem))
    return TunnelTls(near, client_context(OWN.certificate_pem), HOST_NAME), host


async def greeted() -> tuple[TunnelTls, TunnelTls]:
    """The same, ready."""
    renter, host = ends()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(renter.greet())
        group.create_task(host.greet())
    return renter, host


@pytest.fixture(params=["tls", "sealed"])
def way(request: pytest.FixtureRequest) -> str:
    """The kind of way between the ends."""
    return str(request.param)


async def ready(way: str) -> tuple[TunnelEnd, TunnelEnd]:
    """The renter's and the host's end, for pumps."""
    if way == "tls":
        return await greeted()
    near, far = pair()
    seed = bytes(range(SEED_BYTES))
    return SealedEnd(near, seed, is_host=False), SealedEnd(far, seed, is_host=True)


async def heard(host: TunnelEnd) -> bytes:
    """Returns the next message."""
    room = memoryview(bytearray(host.buffer_bytes))
    while not (count := host.open_into(room)):
        await asyncio.sleep(0)
    return bytes(room[:count])


async def all_of(one: socket.socket) -> bytes:
    """Until it ends."""
    found = bytearray()
    while data := await asyncio.get_running_loop().sock_recv(one, 50_000):
        found += data
    return bytes(found)


async def said(one: socket.socket, data: bytes) -> None:
    """All of it, and the end."""
    await asyncio.get_running_loop().sock_sendall(one, data)
    one.shutdown(socket.SHUT_WR)


def nobody(sent: int, received: int) -> None:
    """Ignores the figures."""


async def test_both_directions_carry_all_at_once_through_buffers_that_are_always_full(way: str) -> None:
    renter, host = await ready(way)
    (local, person), (inside, workload) = pair(), pair()
    counted = {"renter": [0, 0], "host": [0, 0]}

    def count(end: str, sent: int, received: int) -> None:
        counted[end][0] += sent
        counted[end][1] += received

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        for work in (
            Pump(local, renter, partial(count, "renter")).run(),
            Pump(inside, host, partial(count, "host")).run(),
            said(person, MUCH),
            said(workload, MUCH[::-1]),
        ):
            group.create_task(work)
        came = [group.create_task(all_of(one)) for one in (workload, person)]
    assert came[0].result() == MUCH
    assert came[1].result() == MUCH[::-1]
    assert counted == {"renter": [len(MUCH)] * 2, "host": [len(MUCH)] * 2}
    for each in (local, person, inside, workload):
        each.close()


async def test_what_came_with_the_handshake_is_given_on_without_another_byte() -> None:
    renter, host = ends()
    inside, workload = pair()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        greeting = group.create_task(host.greet())
        await renter.greet()
        renter.write(memoryview(b"secret" + record(b"early")))
        await greeting
        assert await host.hear(6) == b"secret"
        pumping = group.create_task(Pump(inside, host, nobody).run())
        assert await asyncio.get_running_loop().sock_recv(workload, 100) == b"early"
        pumping.cancel()
    for each in (inside, workload, renter, host):
        each.close()


async def test_an_end_that_comes_together_with_the_connections_end_is_no_cut(way: str) -> None:
    renter, host = await ready(way)
    local, person = pair()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        pumping = group.create_task(Pump(local, renter, nobody).run())
        person.shutdown(socket.SHUT_WR)
        assert await heard(host) == END
        host.write(memoryview(record(b"last") + END))
        host.raw.shutdown(socket.SHUT_WR)
        assert await all_of(person) == b"last"
        host.close()
        await pumping
    local.close()
    person.close()


@pytest.mark.parametrize("said_before", [b"", record(b"half"), record(b"halves")[:-3]])
async def test_a_connection_that_goes_without_its_end_was_cut(way: str, said_before: bytes) -> None:
    renter, host = await ready(way)
    local, person = pair()
    if said_before:
        host.write(memoryview(said_before))
    host.close()
    with pytest.raises(Cut):
        async with asyncio.timeout(PATIENCE_S):
            await Pump(local, renter, nobody).run()
    for each in (local, person, renter):
        each.close()


async def test_a_changed_byte_ends_the_tunnel_and_reaches_nobody() -> None:
    renter, host = await greeted()
    inside, workload = pair()
    sealed: Any = renter._tls
    sealed.write(record(b"as it was said"))
    changed = bytearray(renter._made.read())
    changed[-1] ^= 1
    host.raw.setblocking(False)
    renter.raw.send(changed)
    with pytest.raises(Cut):
        async with asyncio.timeout(PATIENCE_S):
            await Pump(inside, host, nobody).run()
    inside.close()
    assert await all_of(workload) == b""
    for each in (workload, renter, host):
        each.close()


async def test_a_sealed_byte_that_was_changed_ends_the_tunnel_and_reaches_nobody() -> None:
    renter, host = await ready("sealed")
    (inside, workload), (apart, seen) = pair(), pair()
    sender, renter.raw = renter.raw, apart
    renter.write(memoryview(record(b"as it was said")))
    changed = bytearray(seen.recv(100))
    changed[-20] ^= 1
    sender.send(changed)
    with pytest.raises(Cut):
        async with asyncio.timeout(PATIENCE_S):
            await Pump(inside, host, nobody).run()
    inside.close()
    assert await all_of(workload) == b""
    for each in (workload, sender, apart, seen, host):
        each.close()


async def test_a_record_of_tls_takes_as_much_beside_its_content_as_is_read_with_it() -> None:
    renter, host = await greeted()
    for one in (renter, host):
        one.raw.close()
    sealed: Any = renter._tls
    sealed.write(bytes(TLS_BYTES))
    assert len(renter._made.read()) == TLS_BYTES + TLS_BESIDE_BYTES
