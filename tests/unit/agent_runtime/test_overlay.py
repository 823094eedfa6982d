"""Links between two agents, over sockets of this process, and the firewall of an overlay network."""

import asyncio
import socket
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from tests.waiting import poll_async
from windrow_agent.core.listeners import Socket, answering, dialling, parse_all
from windrow_agent.overlay import firewall as gates
from windrow_agent.overlay.firewall import Firewall
from windrow_agent.overlay.peer_link import QUEUE_BYTES_MAX, PeerLink
from windrow_agent.overlay.self_test import begun
from windrow_proto.clock import SystemClock
from windrow_proto.errors import LinkClosed
from windrow_proto.keys import lone_identity
from windrow_proto.overlay_packets import ends, opening, packed
from windrow_proto.tunnels import HOST_NAME
from windrow_tunnel import sockets
from windrow_tunnel.tls import TunnelTls

ONE, OTHER = "198.19.7.1", "198.19.7.2"


def pair(server, client, server_trusts=None, client_trusts=None):
    """Both ends' TLS, each with its key and trusting the other's alone, unless another one is named."""
    raws = socket.socketpair()
    for raw in raws:
        raw.setblocking(False)
    trusted = (server_trusts or client).certificate_pem, (client_trusts or server).certificate_pem
    ends = zip(raws, (server, client), trusted, (True, False), strict=True)
    made = []
    for raw, own, peer_pem, is_server in ends:
        context = sockets.mutual_context(own.key_pem, own.certificate_pem, peer_pem, is_server)
        made.append(TunnelTls(raw, context, None if is_server else HOST_NAME))
    return made


def taking(came):
    return lambda packet: came.append(bytes(packet))


@asynccontextmanager
async def joined():
    """Two ends of a link that run, and what came to each."""
    server, client = pair(lone_identity(HOST_NAME), lone_identity(HOST_NAME))
    await asyncio.gather(server.greet(), client.greet())
    came: tuple[list[bytes], list[bytes]] = ([], [])
    over: tuple[list[str], list[str]] = ([], [])
    links = [PeerLink(tls, taking(came[n]), SystemClock()) for n, tls in enumerate((server, client))]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(ending(link, said)) for link, said in zip(links, over, strict=True)]
        await asyncio.sleep(0)
        try:
            yield links, came, over
        finally:
            for task in running:
                task.cancel()
            server.close()
            client.close()


async def ending(link, said):
    """Run it to its end, and keep why that was."""
    try:
        await link.run()
    except LinkClosed as error:
        said.append(error.detail)


async def test_packets_come_out_in_order_and_are_counted_both_ways():
    async with joined() as (links, came, _):
        sent = [bytes([n % 256]) * (1 + n * 37 % 32_000) for n in range(1, 400)]
        for packet in sent:
            links[0].send(packet)
        links[0].flush()
        links[1].send(b"back")
        links[1].flush()
        await poll_async(lambda: len(came[1]) == len(sent) and came[0] == [b"back"])
        assert came[1] == sent
        assert (links[0].sent_bytes, links[1].received_bytes, links[0].lost) == (sum(map(len, sent)),) * 2 + (0,)


async def test_what_the_line_does_not_take_is_lost_beyond_the_limit():
    async with joined() as (links, _, _):
        for _ in range(QUEUE_BYTES_MAX // 32_000 + 10):
            links[0].send(bytes(32_000))
        assert links[0].lost >= 10
        assert links[0].sent_bytes <= QUEUE_BYTES_MAX


async def test_an_end_that_goes_ends_the_other_with_the_reason():
    async with joined() as (links, _, over):
        links[0].end("its member is gone")
        await poll_async(lambda: over[0] == ["Its member is gone."])
        links[0]._tls.close()
        await poll_async(lambda: over[1] == ["The line to it was cut."])


@pytest.mark.parametrize("side", ["server_trusts", "client_trusts"])
async def test_nobody_without_the_key_that_the_master_told_is_the_other_end(side):
    server, client = pair(lone_identity(HOST_NAME), lone_identity(HOST_NAME), **{side: lone_identity(HOST_NAME)})
    try:
        found = await asyncio.gather(server.greet(), client.greet(), return_exceptions=True)
        assert isinstance(found[0 if side == "server_trusts" else 1], OSError)
    finally:
        server.close()
        client.close()


# --- who opens connections -------------------------------------------------------------------------------------------

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 010713C6:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1
   2: 010713C6:9C40 020713C6:4E20 02 00000000:00000000 00:00000000 00000000     0        0 33 1
"""


def test_the_sockets_that_answer_and_that_dial_are_found():
    sockets = tuple(parse_all(TABLE, {20_000, 22, 40_000}))
    assert sockets[0] == Socket(ip_address(ONE), 20_000, 0, 11, True)
    assert answering(sockets, ONE, 20_000) == {11}
    assert answering(sockets, ONE, 22) == {22}
    assert answering(sockets, ONE, 80) == dialling(sockets, ONE, 40_000, 80) == frozenset()
    assert dialling(sockets, ONE, 40_000, 20_000) == {33}
    assert dialling(sockets, OTHER, 40_000, 20_000) == frozenset()


@pytest.mark.parametrize(
    ("is_outward", "packet", "owned", "passes"),
    [
        (False, begun(OTHER, ONE, 50_000, 20_000), {11}, True),
        (False, begun(OTHER, ONE, 50_000, 20_000), {99}, False),
        (False, begun(OTHER, ONE, 50_000, 22), {11, 33}, False),
        (False, begun(OTHER, ONE, 50_000, 80), {11, 33}, False),
        (True, begun(ONE, OTHER, 40_000, 20_000), {33}, True),
        (True, begun(ONE, OTHER, 40_000, 20_000), {11}, False),
    ],
    ids=["own", "of another", "of the host", "nobody's", "own outward", "another's outward"],
)
async def test_only_the_workloads_own_sockets_open_and_take_connections(monkeypatch, is_outward, packet, owned, passes):
    monkeypatch.setattr(gates, "_sockets", lambda ports: tuple(parse_all(TABLE, ports)))

    async def own():
        return frozenset(owned)

    went: list[bytes] = []
    gate = Firewall(ONE, own)
    assert not gate.pass_through(packet, is_outward, went.append), "it waits to be judged"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(gate.run())
        await poll_async(lambda: bool(went or gate.refused))
        task.cancel()
    assert went == ([packet] if passes else [])


async def test_what_opens_nothing_passes_at_once_and_a_flood_of_openings_is_lost():
    async def own():
        return frozenset()

    gate = Firewall(ONE, own)
    first = bytearray(begun(OTHER, ONE, 1, 2))
    first[33] = 0x10
    assert gate.pass_through(bytes(first), False, lambda packet: None)
    for port in range(1, gates.WAITING_MAX + 50):
        gate.pass_through(begun(OTHER, ONE, port, 2), False, lambda packet: None)
    assert len(gate._waiting) == gates.WAITING_MAX


def test_the_trial_begins_a_connection():
    packet = begun(OTHER, ONE, 5, 6)
    assert ends(packet) == (packed(OTHER), packed(ONE)) and opening(packet) == (5, 6)
