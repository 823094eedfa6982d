"""HTTP/2 over TLS by hand, for a peer that keeps no rule: frames as bytes, and nothing read unless asked."""

import asyncio
import contextlib
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from windrow_proto.keys import SERVER_NAMES, TlsIdentity
from windrow_proto.link_grpc import CONNECT

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_HEADERS, ACK, END_STREAM = 4, 1, 1
CANCEL = struct.pack(">I", 8)


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def call(stream: int, path: str = CONNECT, ballast: int = 0) -> bytes:
    """The headers that open a gRPC call, spelt out. ballast: so many bytes of metadata beside them."""
    pairs = {
        ":method": "POST",
        ":scheme": "https",
        ":path": path,
        ":authority": SERVER_NAMES["access"],
        "te": "trailers",
        "content-type": "application/grpc",
    }
    if ballast:
        pairs["ballast"] = "x" * ballast
    block = b"".join(
        bytes([0, len(name)]) + name.encode() + _length(value) + value.encode() for name, value in pairs.items()
    )
    return frame(HEADERS, stream, block, END_HEADERS)


def _length(value: str) -> bytes:
    """As HPACK writes it: seven bits, and what is more behind them."""
    if len(value) < 127:
        return bytes([len(value)])
    rest, more = len(value) - 127, [127]
    while rest >= 128:
        more.append(rest % 128 + 128)
        rest //= 128
    return bytes([*more, rest])


def message(body: bytes) -> bytes:
    """A gRPC message."""
    return b"\0" + struct.pack(">I", len(body)) + body


def client_context(identity: TlsIdentity | None, ca_pem: bytes) -> ssl.SSLContext:
    """TLS as an agent's, with this certificate or none."""
    context = ssl.create_default_context(cadata=ca_pem.decode())
    context.set_alpn_protocols(["h2"])
    if identity is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "both.pem"
            path.write_bytes(identity.key_pem + identity.certificate_pem)
            context.load_cert_chain(path)
    return context


class Peer:
    """A connection. What the other side sends is read by `until_gone` only."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *parts: bytes) -> None:
        """Write; raises OSError when the other side has gone."""
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def until_gone(self) -> None:
        """Read until the connection ends; answers pings and settings, so that it does not end for their sake."""
        async for _ in self.frames():
            pass

    async def frames(self) -> AsyncIterator[tuple[int, int, int]]:
        """The same, and kind, flags and stream of what comes."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self.reader.readexactly(9)
                payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
                if head[3] in (PING, SETTINGS) and not head[4] & ACK:
                    self.writer.write(frame(head[3], 0, payload if head[3] == PING else b"", ACK))
                yield head[3], head[4], int.from_bytes(head[5:], "big")

    async def close(self) -> None:
        """End it from this side, at once."""
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def connected(address: str, context: ssl.SSLContext | None, source: str = "127.0.0.1") -> Peer:
    """A TCP connection from this address of this machine, with TLS if there is a context."""
    host, port = address.rsplit(":", 1)
    name = None if context is None else SERVER_NAMES["access"]
    streams = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name, local_addr=(source, 0))
    return Peer(*streams)


@contextlib.asynccontextmanager
async def peer(address: str, context: ssl.SSLContext | None, source: str = "127.0.0.1") -> AsyncIterator[Peer]:
    """The same, ended afterwards; with TLS it has begun HTTP/2."""
    made = await connected(address, context, source)
    try:
        if context is not None:
            await made.send(PREFACE, frame(SETTINGS, 0))
        yield made
    finally:
        await made.close()
