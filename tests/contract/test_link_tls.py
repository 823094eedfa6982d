"""Promises of the links that only real certificates can show: who is let in, and who is not."""

import asyncio

import pytest

from tests.support.links import ACCESS, HOST, Acceptor, frame, grpc_world
from tests.support.pki import issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto import link_grpc
from windrow_proto.errors import LinkClosed, Unavailable
from windrow_proto.keys import TlsIdentity, certificate_facts
from windrow_proto.units import SECOND


async def test_the_certificates_facts_come_from_the_handshake():
    async with grpc_world() as world:
        acceptor = Acceptor()
        link = await world.dialer().connect(await world.agents(acceptor), 30 * SECOND)
        facts = certificate_facts(world.host.certificate_pem)
        await poll_async(lambda: acceptor.peers)

        assert acceptor.peers[0].not_after_ns == facts.not_after_ns
        assert acceptor.peers[0].certificate_sha256 == facts.sha256
        assert "127.0.0.1" in acceptor.peers[0].address
        await link.close()


@pytest.mark.parametrize("who", ["foreign client", "foreign server", "expired client", "host as server", "no name"])
async def test_a_handshake_with_the_wrong_certificate_fails_within_the_deadline(who):
    async with grpc_world() as world:
        other = make_ca()
        host, access = world.host, world.access
        if who == "foreign client":
            stranger = issue(other, "host", HOST)
            host = TlsIdentity(stranger.key_pem, stranger.certificate_pem, world.ca.certificate_pem)
        elif who == "foreign server":
            stranger = issue(other, "access", ACCESS)
            access = TlsIdentity(stranger.key_pem, stranger.certificate_pem, world.ca.certificate_pem)
        elif who == "expired client":
            host = issue(world.ca, "host", HOST, lifetime_s=-60)
        elif who == "host as server":
            access = issue(world.ca, "host", HOST)
        else:
            access = world.master
        acceptor = Acceptor()
        server = await link_grpc.serve_agents(acceptor, access)
        world.servers.append(server)

        with pytest.raises(LinkClosed):
            async with asyncio.timeout(PATIENCE_S):
                await link_grpc.GrpcDialer(host).connect(server.address, 4 * SECOND)
        assert acceptor.peers == []


async def test_a_renewed_certificate_is_shown_to_the_next_caller():
    async with grpc_world() as world:
        present = [world.access]
        server = await link_grpc.serve_agents(Acceptor(), lambda: present[0])
        world.servers.append(server)
        first = await world.dialer().connect(server.address, 30 * SECOND)
        present[0] = issue(make_ca(), "access", ACCESS)

        with pytest.raises(LinkClosed):
            await world.dialer().connect(server.address, 3 * SECOND)
        await first.send(frame(1))
        assert (await first.receive()).sequence == 1
        await first.close()


async def test_several_workers_share_one_port():
    async with grpc_world() as world:
        acceptors = [Acceptor(), Acceptor()]
        first = await link_grpc.serve_agents(acceptors[0], world.access)
        second = await link_grpc.serve_agents(acceptors[1], world.access, first.address)
        world.servers += [first, second]
        assert first.port == second.port

        dialer = world.dialer()
        links = [await dialer.connect(first.address, 30 * SECOND) for _ in range(24)]

        await poll_async(lambda: len(acceptors[0].peers) + len(acceptors[1].peers) == 24)
        assert acceptors[0].peers
        assert acceptors[1].peers
        for link in links:
            await link.close()


async def test_an_address_that_is_not_ours_to_listen_on_is_said():
    async with grpc_world() as world:
        with pytest.raises(Unavailable):
            await link_grpc.serve_agents(Acceptor(), world.access, "192.0.2.1:1")
