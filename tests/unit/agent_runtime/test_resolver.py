"""Looking up where Accesses are, of real name servers on loopback: honest, lying, huge, silent."""

import asyncio
import socket
import struct

import dns.message
import dns.rcode
import pytest

from tests.support.name_server import name_server
from windrow_agent.core.discovery import ADDRESSES_MAX, Seed
from windrow_agent.core.dns import TCP_BYTES_MAX, UDP_BYTES_MAX
from windrow_agent.link import resolver
from windrow_agent.link.resolver import Resolver
from windrow_proto.clock import SystemRng
from windrow_proto.ids import HostId
from windrow_proto.units import MILLISECOND

HOST = HostId("host_1")
SEED = Seed("example.org")
SRV = "_windrow-access._tcp.example.org"


@pytest.fixture
async def server():
    async with name_server() as running:
        yield running


async def _look(*servers: tuple[str, int]) -> tuple[str, ...]:
    return await Resolver(SystemRng(), servers).look(HOST, [SEED])


async def test_services_lead_to_addresses_and_ports(server):
    server.serves("example.org", "127.0.0.2:7001", "127.0.0.3:7002")
    server.zone["acc1.example.org", "AAAA"] = ["::1"]
    assert set(await _look(server.at)) == {"127.0.0.2:7001", "127.0.0.3:7002", "[::1]:7002"}


async def test_without_services_the_domains_own_addresses_are_taken(server):
    server.zone = {("example.org", "A"): ["127.0.0.2"], ("example.org", "AAAA"): ["::1"]}
    assert await _look(server.at) == ("127.0.0.2:7443", "[::1]:7443")
    assert await Resolver(SystemRng(), [server.at]).look(HOST, [Seed("example.org", 9000)]) == (
        "127.0.0.2:9000",
        "[::1]:9000",
    )


async def test_aliases_are_followed(server):
    server.zone = {("example.org", "CNAME"): ["real.example.net."], ("real.example.net", "A"): ["127.0.0.2"]}
    assert await _look(server.at) == ("127.0.0.2:7443",)


async def test_an_answer_too_long_for_a_datagram_is_fetched_whole(server):
    server.serves("example.org", *(f"127.0.1.{n}:7443" for n in range(60)))
    assert len(server.answer(dns.message.make_query(SRV, "SRV").to_wire())) > UDP_BYTES_MAX
    found = await _look(server.at)
    assert server.by_tcp == 1
    assert len(found) == 8 and all(address.startswith("127.0.1.") for address in found)


async def test_a_silent_or_failing_server_is_passed_over(server, monkeypatch):
    monkeypatch.setattr(resolver, "TRY_NS", 200 * MILLISECOND)
    server.serves("example.org", "127.0.0.2:7001")
    async with name_server() as other:
        for reply in (lambda question: None, _failure):
            other.reply = reply
            assert await _look(other.at, server.at) == ("127.0.0.2:7001",)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()
    assert await _look(nobody, server.at) == ("127.0.0.2:7001",)


def _failure(question: bytes) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(question))
    made.set_rcode(dns.rcode.SERVFAIL)
    return made.to_wire()


async def test_strays_are_passed_over_until_the_answer_comes(server):
    """Somebody who does not see our questions guesses their numbers, three times before the server answers."""
    server.zone = {("example.org", "A"): ["127.0.0.2"]}
    server.strays = [
        lambda answer, n=n: bytes((answer[0] ^ n, answer[1])) + answer[2:].replace(b"\x7f\0\0\2", b"\x7f\0\0\x63")
        for n in (1, 2, 3)
    ]
    assert await _look(server.at) == ("127.0.0.2:7443",)


def _huge(question: bytes) -> bytes:
    """Of records that point at each other as much as they may: seconds of work for who reads all of it."""
    number = question[:2]
    asked = question[12 : question.index(b"\0", 12) + 5]
    record = b"\xc0\x0c" + struct.pack("!HHIH", 33, 1, 60, 8) + struct.pack("!HHH", 1, 1, 7443) + b"\xc0\x0c"
    return number + struct.pack("!HHHHH", 0x8180, 1, 3000, 0, 0) + asked + record * 3000


def _endless(question: bytes) -> bytes:
    return question[:2] + struct.pack("!HHHHH", 0x8180, 1, 65535, 0, 0) + question[12:]


LIES = {
    "garbage": lambda question: b"\xff" * 300,
    "our number and garbage": lambda question: question[:2] + b"\xff" * 300,
    "nothing at all": lambda question: b"",
    "our own question": lambda question: question,
    "65,000 bytes": _huge,
    "more records than bytes": _endless,
    "servers fail": _failure,
    "silence": lambda question: None,
    "it does not exist": lambda question: (
        question[:2] + struct.pack("!HHHHH", 0x8183, 1, 0, 0, 0) + question[12 : question.index(b"\0", 12) + 5]
    ),
    "ever more by TCP": lambda question: question[:2] + struct.pack("!H", 0x8380) + question[4:],
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_finds_nothing_and_ends(server, monkeypatch, lie: str):
    monkeypatch.setattr(resolver, "TRY_NS", 200 * MILLISECOND)
    server.reply = LIES[lie]
    assert await _look(server.at) == ()
    assert server.asked


async def test_more_by_tcp_than_fits_is_not_read(server, monkeypatch):
    read: list[int] = []
    readexactly = asyncio.StreamReader.readexactly

    async def counted(self, count: int) -> bytes:
        read.append(count)
        return await readexactly(self, count)

    server.zone = {(SRV, "SRV"): [f"1 1 7443 {'x' * 60}{n:03d}.example.org." for n in range(400)]}
    assert len(server.answer(dns.message.make_query(SRV, "SRV").to_wire())) > TCP_BYTES_MAX
    monkeypatch.setattr(asyncio.StreamReader, "readexactly", counted)
    assert await _look(server.at) == ()
    assert server.by_tcp > 0 and max(read, default=0) <= TCP_BYTES_MAX


async def test_a_silent_world_costs_no_more_than_the_deadline(server, monkeypatch):
    monkeypatch.setattr(resolver, "LOOKUP_NS", 300 * MILLISECOND)
    server.reply = lambda question: None
    async with name_server() as slow:
        slow.reply = server.reply
        assert await _look(server.at, slow.at) == ()
    assert slow.asked == []  # the deadline is for all of it: the second server's turn never came


async def test_a_crowd_of_names_and_addresses_is_cut(server):
    server.zone = {(SRV, "SRV"): [f"1 1 7443 t{n}.example.org." for n in range(30)]}
    for n in range(30):
        server.zone[f"t{n}.example.org", "A"] = [f"10.{n}.{m}.1" for m in range(30)]
    assert len(await _look(server.at)) == ADDRESSES_MAX
    assert len({name for name, _ in server.asked}) == 1 + 8
