"""A storm's hosts show an Access the same as the shipped dialler, and hear the same."""

import asyncio
import dataclasses
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench import _dialer, _http2
from bench._streams import frame_of
from tests.support.pki import issue, make_ca
from windrow_proto import link_grpc
from windrow_proto.errors import LinkClosed, TooMany, Unavailable
from windrow_proto.ports import PeerFacts, PingFacts
from windrow_proto.units import MILLISECOND, SECOND

DEADLINE_NS = 10 * SECOND
CA = make_ca()
HOST, OTHER = (issue(CA, "host", f"host_{number:032x}") for number in (1, 2))
ACCESS = issue(CA, "access", "access_" + "b" * 32)


def lean():
    return _dialer.LeanDialer(HOST)


class Echo:
    """An AgentAcceptor that sends back what comes, or sends everybody away."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.callers: list[str] = []

    async def accepted(self, peer: PeerFacts, link):
        self.callers.append(peer.subject_id)
        if self.refusal is not None:
            raise self.refusal
        while True:
            await link.send(await link.receive())

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        return PingFacts("access_" + "b" * 32, "bench", 7, False, "10.0.0.1")

    async def warmed(self, peer, link):
        raise Unavailable("Not here.")

    async def measured(self, peer, link):
        raise Unavailable("Not here.")


@asynccontextmanager
async def serving(acceptor) -> AsyncIterator[str]:
    server = await link_grpc.serve_agents(acceptor, ACCESS)
    try:
        yield server.address
    finally:
        await server.stop(0)


async def said_by(dialer, tmp_path):
    """Settings and fields of a dialler's first call, as a server sees them that lets nobody in."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=CA.certificate_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    (tmp_path / "server.pem").write_bytes(ACCESS.certificate_pem + b"\n" + ACCESS.key_pem)
    context.load_cert_chain(tmp_path / "server.pem")
    heard: asyncio.Future = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        tls = writer.get_extra_info("ssl_object")
        assert tls.getpeercert()["subject"] == ((("commonName", "host_" + "0" * 31 + "1"),),)
        taken, settings = bytearray(), None
        writer.write(_http2.settings({}))
        assert await reader.readexactly(len(_http2.PREFACE)) == _http2.PREFACE
        while not heard.done():
            taken += await reader.read(1 << 16)
            for kind, flags, _, body in _http2.frames(taken):
                if kind == _http2.SETTINGS and not flags & _http2.ACK:
                    settings = dict(_http2.SETTING.iter_unpack(body))
                if kind == _http2.HEADERS:
                    heard.set_result(
                        (tls.selected_alpn_protocol(), tls.version(), settings, _http2.Fields().read(body))
                    )
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(LinkClosed):
        await dialer.connect(f"127.0.0.1:{port}", DEADLINE_NS)
    server.close()
    return heard.result()


async def test_an_access_is_shown_what_the_shipped_dialler_shows(tmp_path):
    shipped = await said_by(link_grpc.GrpcDialer(HOST), tmp_path)
    ours = await said_by(lean(), tmp_path)
    assert ours[:3] == shipped[:3]
    numbered = {"1": ":authority", "3": "POST", "4": ":path", "7": "https"}  # well-known fields go as their numbers
    versions = re.compile(r"\d+(\.\d+)+")
    said = [versions.sub("N", value) for _, value in ours[3]]
    assert sorted(said) == sorted(versions.sub("N", numbered.get(value, value)) for _, value in shipped[3])


async def test_a_frame_goes_there_and_comes_back():
    echo = Echo()
    async with serving(echo) as address:
        dialer = lean()
        link = await dialer.connect(address, DEADLINE_NS)
        frame = frame_of(answered=True)
        for _ in range(3):
            await link.send(frame)
            assert await link.receive() == frame
        assert echo.callers == ["host_" + "0" * 31 + "1"]
        answer = await dialer.ping(address, DEADLINE_NS)
        assert (answer.region, answer.load_permille, answer.seen) == ("bench", 7, "10.0.0.1")
        await link.send(frame)
        assert await link.receive() == frame
        await dialer.close()
        with pytest.raises(LinkClosed):
            await link.receive()


@pytest.mark.parametrize("kind", [lean, lambda: link_grpc.GrpcDialer(HOST)], ids=["lean", "shipped"])
async def test_who_is_sent_away_hears_when_to_come_back(kind):
    async with serving(Echo(TooMany("Not now: 20 % less.", retry_after_ns=1500 * MILLISECOND))) as address:
        with pytest.raises(LinkClosed) as raised:
            await kind().connect(address, DEADLINE_NS)
    cause = raised.value.__cause__
    assert isinstance(cause, TooMany)
    assert cause.retry_after_ns == 1500 * MILLISECOND


async def test_nobody_there_and_nobody_who_answers_end_a_dial():
    async def silent(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(LinkClosed, match="No answer within"):
        await lean().connect(f"127.0.0.1:{port}", 200 * MILLISECOND)
    server.close()
    await server.wait_closed()
    with pytest.raises(LinkClosed, match="Could not connect"):
        await lean().connect(f"127.0.0.1:{port}", DEADLINE_NS)


async def test_who_shows_anothers_certificate_or_a_strangers_is_not_let_in():
    stolen = dataclasses.replace(HOST, key_pem=OTHER.key_pem)
    echo = Echo()
    async with serving(echo) as address:
        for identity in (stolen, issue(make_ca(), "host", "host_" + "0" * 31 + "3")):
            with pytest.raises(LinkClosed):
                await _dialer.LeanDialer(identity).connect(address, DEADLINE_NS)
    assert echo.callers == []


def test_frames_and_messages_come_whole_however_they_are_cut():
    taken = bytearray()
    found: list[tuple[int, int, int, bytes]] = []
    for byte in _http2.message(1, b"x" * 300) + _http2.frame(_http2.PING, 0, 0, b"12345678"):
        taken.append(byte)
        found += _http2.frames(taken)
    assert [(kind, stream) for kind, _, stream, _ in found] == [(_http2.DATA, 1), (_http2.PING, 0)]
    assert list(_http2.messages(bytearray(found[0][3]))) == [b"x" * 300]


def test_fields_are_read_as_they_were_written_the_long_ones_too():
    fields = (("a", "1"), ("long", "v" * 500))
    block = _http2.call(1, fields)[_http2.HEAD_BYTES :]
    assert tuple(_http2.Fields().read(block)) == fields
    kept = b"\x40\x01a\x01b" + b"\xbe"  # remembered, then named by its number
    assert _http2.Fields().read(kept) == [("a", "b")] * 2
    with pytest.raises(_http2.Malformed):
        _http2.Fields().read(b"\xbf")
