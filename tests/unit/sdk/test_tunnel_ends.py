"""The renter's and the host's end of a tunnel, with a hostile Access between them that joins whom it likes."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import PATIENCE_S
from windrow import tunnel
from windrow.errors import TunnelRefused
from windrow_agent.link import tunnels
from windrow_agent.link.tunnels import Tunnel
from windrow_proto.errors import BadProof
from windrow_proto.ids import WorkloadId
from windrow_proto.keys import lone_identity
from windrow_proto.messages import ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.tunnels import HOST_NAME, secret_digest
from windrow_tunnel import seal, sockets
from windrow_tunnel.seal import SealedEnd
from windrow_tunnel.tls import TunnelEnd, TunnelTls
from windrow_tunnel.wire import ACCEPTED, PROTOCOL, record

SECRET = b"s" * 32


class Place:
    """A workload that echoes, an agent's end, and an Access that accepts whoever comes."""

    def __init__(self, ca: TestAuthority) -> None:
        self.ca = ca
        identity = issue(ca, "access", "access_a")
        self.shown = sockets.server_context(identity.key_pem, identity.certificate_pem)
        self.access, self.workload = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        for one in (self.access, self.workload):
            one.setblocking(False)
        self.host_pem: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        """The agent's end, from dialling to its end."""
        address = f"127.0.0.1:{self.access.getsockname()[1]}"
        asked = ChannelOpen(
            WorkloadId("w"), ChannelPurpose.TUNNEL, tunnel_address=address, tunnel_digest=secret_digest(SECRET)
        )

        async def reach(workload_id: str, port: int) -> tuple[tuple[str, int], ...]:
            return (self.workload.getsockname(),)

        async def ready(pem: bytes) -> None:
            self.host_pem.set_result(pem)

        async def dial(workload_id: str, address: str, port: int) -> socket.socket:
            return await sockets.dial(address, port)

        runtime: Any = SimpleNamespace(reach=reach, dial=dial)
        await Tunnel().serve(runtime, asked, issue(self.ca, "host", "host_a"), ready)

    async def joined(self) -> socket.socket:
        """The next connection to this Access, bare."""
        raw, _ = await asyncio.get_running_loop().sock_accept(self.access)
        end = await sockets.secure(raw, self.shown)
        await sockets.head_of(end)
        await sockets.say(end, ACCEPTED)
        return await sockets.bare(end)

    async def come(self, host_pem: bytes) -> TunnelEnd:
        """The renter's end."""
        address, ca_pem = self.access.getsockname(), self.ca.certificate_pem.decode()
        ticket = {"address": f"127.0.0.1:{address[1]}", "ca_pem": ca_pem, "server_name": "access.windrow", "grant": "g"}
        met = {"protocol": PROTOCOL, "host_pem": host_pem.decode(), "host_server_name": HOST_NAME}
        return await tunnel.dial({**ticket, **met, "secret": SECRET.hex()})

    def close(self) -> None:
        self.access.close()
        self.workload.close()


async def test_whoever_comes_without_the_secret_never_reaches_the_workload() -> None:
    place = Place(make_ca())
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        serving = group.create_task(_outcome(place.serve()))
        raw = await place.joined()
        thief = await sockets.secure(raw, sockets.client_context(await place.host_pem), HOST_NAME)
        await sockets.say(thief, bytes(32) + record(b"stolen"))
        inside, _ = await asyncio.get_running_loop().sock_accept(place.workload)
        assert isinstance(await serving, BadProof)
        assert await asyncio.get_running_loop().sock_recv(inside, 1) == b""
    for one in (thief, inside, place):
        one.close()


async def test_an_access_that_plays_the_host_is_found_out_before_the_secret_is_said() -> None:
    place = Place(make_ca())
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        coming = group.create_task(_outcome(place.come(lone_identity(HOST_NAME).certificate_pem)))
        raw, forged = await place.joined(), lone_identity(HOST_NAME)
        with pytest.raises(OSError):
            await sockets.hear(
                await sockets.secure(raw, sockets.server_context(forged.key_pem, forged.certificate_pem)), 1
            )
        assert isinstance(await coming, TunnelRefused)
    place.close()


@pytest.mark.parametrize("older", ["neither", "host", "renter"])
async def test_bytes_cross_and_the_access_sees_none_of_them(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if older == "host":
        monkeypatch.setattr(tunnels, "SEALED", "windrow-sealed/0")
    if older == "renter":
        monkeypatch.setattr(seal, "SEALED", "windrow-sealed/0")
    place, seen, loop = Place(make_ca()), bytearray(), asyncio.get_running_loop()

    async def passed(source: socket.socket, sink: socket.socket) -> None:
        while data := await loop.sock_recv(source, 1 << 16):
            seen.extend(data)
            await loop.sock_sendall(sink, data)
        sink.shutdown(socket.SHUT_WR)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(place.serve())
        host_side = await place.joined()
        coming = group.create_task(place.come(await place.host_pem))
        renter_side = await place.joined()
        for pair in ((host_side, renter_side), (renter_side, host_side)):
            group.create_task(passed(*pair))
        near, far = socket.socketpair()
        for one in (near, far):
            one.setblocking(False)
        host = await coming
        assert isinstance(host, SealedEnd if older == "neither" else TunnelTls)
        pumping = group.create_task(tunnel.carry(near, host, lambda sent, received: None))
        inside, _ = await loop.sock_accept(place.workload)
        await loop.sock_sendall(far, b"in the clear " * 1000)
        far.shutdown(socket.SHUT_WR)
        came = b""
        while data := await loop.sock_recv(inside, 1 << 16):
            came += data
        await loop.sock_sendall(inside, b"and back")
        inside.shutdown(socket.SHUT_WR)
        assert await loop.sock_recv(far, 100) == b"and back"
        await pumping
    assert came == b"in the clear " * 1000
    assert len(seen) > len(came) and b"clear" not in seen and b"back" not in seen and SECRET not in seen
    for each in (near, far, inside, host, host_side, renter_side, place):
        each.close()


async def test_what_follows_the_seed_at_once_is_the_first_sealed_record() -> None:
    """It comes with the end of the greeting in one reading, and TLS takes no byte of it."""
    (near, far), own = socket.socketpair(), lone_identity(HOST_NAME)
    for one in (near, far):
        one.setblocking(False)
    ticket = {"host_pem": own.certificate_pem.decode(), "host_server_name": HOST_NAME, "secret": SECRET.hex()}

    async def come() -> TunnelEnd:
        end = await tunnel._greeted(near, ticket)
        assert end.write(memoryview(record(b"at once"))) and end.write(memoryview(record(b"and more")))
        return end

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        meeting = group.create_task(tunnels._greeted(far, own, secret_digest(SECRET)))
        coming = group.create_task(come())
    host, room = meeting.result(), memoryview(bytearray(1_000_000))
    assert bytes(room[: host.open_into(room)]) == record(b"at once") + record(b"and more")
    host.close()
    coming.result().close()


async def _outcome(work: Any) -> Any:
    try:
        return await work
    except Exception as error:
        return error
