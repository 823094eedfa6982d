"""A name server on loopback, over UDP and TCP, that says what a test tells it to: the truth, lies, or nothing."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

UDP_BYTES = 1232
Reply = Callable[[bytes], bytes | None]
"""From the bytes of a question to the bytes of an answer; None: silence."""


@dataclass
class NameServer:
    """zone: (name, type) to what its records say; reply: instead of it, for lies that no zone file can hold."""

    zone: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    reply: Reply | None = None
    strays: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """The datagrams that come before the answer, made of it."""
    port: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    by_tcp: int = 0

    @property
    def at(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def serves(self, domain: str, *addresses: str) -> None:
        """One service record for each `127.x.y.z:port`, and an address record for each of its targets."""
        self.zone = {(f"_windrow-access._tcp.{domain}", "SRV"): []}
        for number, address in enumerate(addresses):
            host, _, port = address.rpartition(":")
            target = f"acc{number}.{domain}"
            self.zone[f"_windrow-access._tcp.{domain}", "SRV"].append(f"10 5 {port} {target}.")
            self.zone[target, "A"] = [host]

    def answer(self, question: bytes) -> bytes | None:
        """Returns the answer, whole; a name that no record has does not exist."""
        query = dns.message.from_wire(question)
        (asked,) = query.question
        name = asked.name.to_text(omit_final_dot=True)
        kind = dns.rdatatype.to_text(asked.rdtype)
        self.asked.append((name, kind))
        if self.reply is not None:
            return self.reply(question)
        made = dns.message.make_response(query, recursion_available=True)
        for alias in range(20):
            if (name, "CNAME") not in self.zone or alias == 19:
                break
            target = self.zone[name, "CNAME"][0]
            made.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "CNAME", target))
            name = target.removesuffix(".")
        if texts := self.zone.get((name, kind)):
            made.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", kind, *texts))
        elif not any(known == name for known, _ in self.zone):
            made.set_rcode(dns.rcode.NXDOMAIN)
        return made.to_wire(max_size=65_535)


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport) -> None:
        self._transport = transport

    def datagram_received(self, data, addr) -> None:
        answer = self._server.answer(data)
        if answer is None:
            return
        for stray in self._server.strays:
            self._transport.sendto(stray(answer), addr)
        if self._server.reply is None and len(answer) > UDP_BYTES:
            short = dns.message.make_response(dns.message.from_wire(data))
            short.flags |= dns.flags.TC
            answer = short.to_wire()
        self._transport.sendto(answer, addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[NameServer]:
    """A running server with an empty zone, on one port for both transports."""
    server = NameServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.by_tcp += 1
        try:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            answer = server.answer(await reader.readexactly(size))
            if answer is not None:
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
                await reader.read()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    tcp = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = tcp.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(lambda: _Udp(server), local_addr=server.at)
    try:
        yield server
    finally:
        udp.close()
        tcp.close()
