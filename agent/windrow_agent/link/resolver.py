"""Asks DNS where Accesses are: over UDP, over TCP where the answer is longer, all of it within one deadline.

The system's name servers are asked for names as they are written; /etc/hosts and search domains are not looked at.
"""

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from windrow_agent.core import discovery, dns
from windrow_agent.core.discovery import Seed
from windrow_agent.core.dns import Answer, Question, RecordType, Service
from windrow_proto.dns_names import SERVICE, check_name
from windrow_proto.errors import InvalidInput, Unavailable
from windrow_proto.ids import HostId
from windrow_proto.ports import Rng
from windrow_proto.units import MILLISECOND, SECOND, seconds

log = structlog.get_logger()

LOOKUP_NS: Final = 5 * SECOND
"""For one seed, its services and all their addresses."""
TRY_NS: Final = 1200 * MILLISECOND
"""For one server; the next one is asked then, and once more all of them."""
ROUNDS: Final = 2
DNS_PORT: Final = 53
RESOLVER_FILE: Final = Path("/etc/resolv.conf")
RESOLVER_FILE_BYTES_MAX: Final = 65_536
STRAYS_MAX: Final = 16
"""Datagrams that answer another question, before a server counts as silent: somebody guesses."""

Server = tuple[str, int]


class Resolver:
    """Looks up seeds. servers: those to ask; None: the system's, read anew each time, since networks change."""

    def __init__(self, rng: Rng, servers: Sequence[Server] | None = None) -> None:
        self._rng = rng
        self._given = tuple(servers) if servers is not None else None

    async def look(self, host_id: HostId, seeds: Sequence[Seed]) -> tuple[str, ...]:
        """Addresses to try as `host:port`, in order; empty where nothing was found, which is logged. Never raises."""
        servers = self._given or _system_servers()
        found: dict[str, None] = {}
        for seed in seeds:
            try:
                async with asyncio.timeout(seconds(LOOKUP_NS)):
                    found |= dict.fromkeys(await self._look_up(host_id, seed, servers))
            except TimeoutError:
                log.warning("lookup_failed", seed=str(seed), detail=f"no answer within {LOOKUP_NS // SECOND} s")
        return tuple(found)[: discovery.ADDRESSES_MAX]

    async def _look_up(self, host_id: HostId, seed: Seed, servers: Sequence[Server]) -> tuple[str, ...]:
        """The addresses of the seed's services; of its own name where it has none."""
        try:
            answer = await self._ask(Question(f"{SERVICE}.{seed.domain}", RecordType.SRV), servers)
        except (InvalidInput, Unavailable) as error:
            log.warning("services_not_found", seed=str(seed), detail=error.detail)
            answer = Answer()
        services = discovery.targets(host_id, answer.services)
        found = await self._addresses(services, servers)
        return found or await self._addresses((Service(0, 0, seed.domain, seed.port),), servers)

    async def _addresses(self, services: Sequence[Service], servers: Sequence[Server]) -> tuple[str, ...]:
        async def ask(name: str, kind: RecordType) -> tuple[str, ...]:
            try:
                return (await self._ask(Question(check_name(name), kind), servers)).addresses
            except (InvalidInput, Unavailable) as error:
                log.info("address_not_found", name=name, kind=kind.name, detail=error.detail)
                return ()

        async with asyncio.TaskGroup() as group:
            tasks = {
                (service.target, kind): group.create_task(ask(service.target, kind))
                for service in services
                for kind in (RecordType.A, RecordType.AAAA)
            }
        told = {key: task.result() for key, task in tasks.items()}
        return discovery.candidates(
            (service, told[service.target, RecordType.A] + told[service.target, RecordType.AAAA])
            for service in services
        )

    async def _ask(self, question: Question, servers: Sequence[Server]) -> Answer:
        """The first answer of any server. Raises InvalidInput if all answered badly, Unavailable if none did."""
        bad: InvalidInput | None = None
        for _ in range(ROUNDS):
            for server in servers:
                try:
                    async with asyncio.timeout(seconds(TRY_NS)):
                        return await self._ask_one(question, server)
                except InvalidInput as error:
                    bad = error
                except (OSError, TimeoutError, EOFError):
                    continue
            if bad is not None:
                raise bad
        raise Unavailable(f"No name server answered about {question.name} ({len(servers)} asked).")

    async def _ask_one(self, question: Question, server: Server) -> Answer:
        number = int.from_bytes(self._rng.random_bytes(2), "big")
        asked = dns.encode_question(number, question)
        answer = await _by_udp(asked, number, question, server)
        if answer.is_truncated:
            answer = dns.decode_answer(await _by_tcp(asked, server), number, question)
        return answer


class _Mail(asyncio.DatagramProtocol):
    """Collects the datagrams of one socket; the kernel lets in only those of the server's own address."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[bytes | OSError] = asyncio.Queue(STRAYS_MAX)

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        self._put(data)

    def error_received(self, exc: Exception) -> None:
        self._put(OSError(str(exc)))

    def _put(self, what: bytes | OSError) -> None:
        try:
            self.came.put_nowait(what)
        except asyncio.QueueFull:
            pass  # beyond STRAYS_MAX nothing is read


async def _by_udp(asked: bytes, number: int, question: Question, server: Server) -> Answer:
    """The first datagram that answers; others are passed over, since anybody may send some."""
    loop = asyncio.get_running_loop()
    transport, mail = await loop.create_datagram_endpoint(_Mail, remote_addr=server)
    bad: InvalidInput | None = None
    try:
        transport.sendto(asked)
        for _ in range(STRAYS_MAX):
            came = await mail.came.get()
            if isinstance(came, OSError):
                raise came
            if len(came) > dns.TCP_BYTES_MAX:
                raise InvalidInput(f"The name server answered with {len(came)} bytes.")
            try:
                return dns.decode_answer(came, number, question)
            except InvalidInput as error:
                if came[:2] == asked[:2]:
                    raise
                bad = error
    finally:
        transport.close()
    raise bad or InvalidInput("The name server answered other questions.")


async def _by_tcp(asked: bytes, server: Server) -> bytes:
    reader, writer = await asyncio.open_connection(*server, limit=dns.TCP_BYTES_MAX)
    try:
        writer.write(struct.pack("!H", len(asked)) + asked)
        (size,) = struct.unpack("!H", await reader.readexactly(2))
        if size > dns.TCP_BYTES_MAX:
            raise InvalidInput(f"The name server answered with {size} bytes, more than any map of relays needs.")
        return await reader.readexactly(size)
    finally:
        writer.transport.abort()


def _system_servers() -> tuple[Server, ...]:
    try:
        with open(RESOLVER_FILE, encoding="utf-8", errors="replace") as file:
            text = file.read(RESOLVER_FILE_BYTES_MAX)
    except OSError:
        text = ""
    return tuple((address, DNS_PORT) for address in discovery.name_servers(text))
