"""A host whose map is stale asks the Master it joined, or who keeps a copy; who cannot sign a map changes nothing.

Real TLS, real HTTP, real Accesses, all on loopback.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.connectors import open_access, running_connector
from tests.support.links import ACCESS, HOST, Acceptor, GrpcWorld, grpc_world
from tests.support.pki import issue, make_ca
from tests.waiting import poll_async
from windrow_agent.core import access_choice
from windrow_agent.link import access_connector
from windrow_agent.link.access_connector import AccessConnector
from windrow_agent.link.membership import REGIONS_FILE, Membership
from windrow_agent.threads import ThreadRunner
from windrow_proto import enrol
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.enrol import IdentityFolder
from windrow_proto.keys import DOMAIN_REGIONS, DOMAIN_UP, SigningKey, TlsIdentity, TlsKey
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MILLISECOND
from windrow_proto.wire_link import decode_region_map, encode_region_map

NOBODY = "127.0.0.9:9"
STALE = RegionMap(5, (AccessPoint("acc_gone", "eu", NOBODY),))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_connector, "ASK_NS_FIRST", 0)
    monkeypatch.setattr(access_connector, "ASK_NS_MAX", 0)
    monkeypatch.setattr(access_choice, "BACKOFF_MAX_NS", 300 * MILLISECOND)


def said(regions: RegionMap, signing: SigningKey, domain: str = DOMAIN_REGIONS) -> bytes:
    """Returns the answer of `/api/v1/regions`."""
    signed = encode_region_map(regions)
    texts = {"signed": signed, "signature": signing.sign(domain, signed)}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in texts.items()}).encode()


@dataclass
class Site:
    """A web server that answers everything with one body; asked: the paths."""

    url: str = ""
    body: bytes = b""
    status: str = "200 OK"
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.split()[1].decode())
            length = f"Content-Length: {len(self.body)}\r\n\r\n"
            writer.write(f"HTTP/1.1 {self.status}\r\n{length}".encode() + self.body)
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def site(identity: TlsIdentity, folder: Path) -> AsyncIterator[Site]:
    """Serve with this certificate on a free port."""
    made = Site()
    for name, content in (("c.pem", identity.certificate_pem), ("k.pem", identity.key_pem)):
        (folder / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "c.pem", folder / "k.pem")
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context) as server:
        made.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


@dataclass
class Net:
    """An authority, the Master's key, and a host's folder that knows a stale map."""

    world: GrpcWorld
    signing: SigningKey
    folder: Path

    async def access(self) -> tuple[str, Acceptor]:
        return await open_access(self.world)

    def membership(self, master_url: str, *copies: str) -> Membership:
        """The host's, as joining left it."""
        identity = IdentityFolder(self.folder / "identity")
        answer = {
            "id": HOST,
            "generation": 5,
            "not_after": "",
            "master_public": base64.b64encode(self.signing.public).decode(),
            "certificate_pem": self.world.host.certificate_pem.decode(),
        }
        identity.store(master_url, answer, self.world.ca.certificate_pem, TlsKey.from_pem(self.world.host.key_pem))
        (self.folder / REGIONS_FILE).write_bytes(encode_region_map(STALE))
        runner = ThreadRunner("test-enrol")
        return Membership(self.folder, SystemClock(), SystemRng(), runner, copies)

    def connector(self, member: Membership) -> AbstractAsyncContextManager[AccessConnector]:
        return running_connector(self.world, member.regions(), ask=member.newer_regions)


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Net]:
    async with grpc_world() as world:
        yield Net(world, SigningKey.generate(), tmp_path)


def newer(address: str, version: int = 6) -> RegionMap:
    return RegionMap(version, (AccessPoint(ACCESS, "eu", address),))


async def test_the_master_has_a_newer_map_and_it_is_kept(net: Net) -> None:
    address, access = await net.access()
    async with site(net.world.master, net.folder) as master:
        master.body = said(newer(address), net.signing)
        member = net.membership(master.url)
        async with net.connector(member) as connector:
            await poll_async(lambda: access.links and connector.address == address)
    assert set(master.asked) == {"/api/v1/regions"}
    assert member.regions() == newer(address) == decode_region_map((net.folder / REGIONS_FILE).read_bytes())


async def test_without_the_master_a_copy_will_do_and_is_fetched_from_its_own_path(net: Net) -> None:
    address, access = await net.access()
    async with site(net.world.master, net.folder) as mirror:
        mirror.body = said(newer(address), net.signing)
        async with net.connector(net.membership(f"https://{NOBODY}", f"{mirror.url}/maps/eu.json")) as connector:
            await poll_async(lambda: access.links and connector.address == address)
    assert set(mirror.asked) == {"/maps/eu.json"}


async def test_nobody_is_asked_while_the_map_leads_somewhere(net: Net) -> None:
    address, access = await net.access()
    async with site(net.world.master, net.folder) as master:
        master.body = said(newer(NOBODY, 7), net.signing)
        member = net.membership(master.url)
        member.save_regions(encode_region_map(newer(address)))
        async with net.connector(member) as connector:
            await poll_async(lambda: access.links)
            await access.links[0].close()
            await poll_async(lambda: len(access.links) == 2)
            await poll_async(lambda: connector.address == address)
    assert master.asked == []


async def shown(member: Membership) -> list[RegionMap]:
    """The maps that whoever judges would see; it takes any."""
    seen: list[RegionMap] = []

    async def take(regions: RegionMap) -> bool:
        seen.append(regions)
        return True

    await member.newer_regions(take)
    return seen


@pytest.mark.parametrize("useless", [RegionMap(9, ()), newer(NOBODY, 9)], ids=["empty", "nobody there"])
async def test_a_newer_map_that_leads_nowhere_does_not_replace_the_known_one(net: Net, useless: RegionMap) -> None:
    """A Master whose Accesses are down as well has an empty map; they come back where they were."""
    address, access = await net.access()
    async with site(net.world.master, net.folder) as master, site(net.world.master, net.folder) as copy:
        master.body, copy.body = said(useless, net.signing), said(useless, net.signing)
        member = net.membership(master.url, copy.url)
        async with net.connector(member) as connector:
            await poll_async(lambda: len(master.asked) > 1 and len(copy.asked) > 1)
            assert (connector.regions, member.regions(), access.links) == (STALE, STALE, [])
            copy.body = said(newer(address), net.signing)
            await poll_async(lambda: access.links and member.regions() == newer(address))


def lies(signing: SigningKey, address: str) -> dict[str, bytes]:
    """Returns the answers that a host does not believe: all of these would lead it to a good Access."""
    truth = json.loads(said(newer(address), signing))
    return {
        "another's signature": said(newer(address), SigningKey.generate()),
        "a signature for something else": said(newer(address), signing, DOMAIN_UP),
        "an older map": said(newer(address, STALE.version), signing),
        "no signature": json.dumps({"signed": truth["signed"]}).encode(),
        "an empty one": json.dumps({**truth, "signed": ""}).encode(),
        "a list": b"[]",
        "garbage": b"\xff" * 500,
        "more than anybody needs": said(newer(address), signing) + b" " * (enrol.ANSWER_BYTES_MAX + 1),
    }


@pytest.mark.parametrize("lie", list(lies(SigningKey.generate(), NOBODY)))
async def test_a_lie_is_not_believed_and_the_truth_is_taken_afterwards(net: Net, lie: str) -> None:
    async with site(net.world.master, net.folder) as master:
        master.body = lies(net.signing, NOBODY)[lie]
        member = net.membership(master.url)
        assert (await shown(member), member.regions(), len(master.asked)) == ([], STALE, 1)
        master.body = said(newer(NOBODY), net.signing)
        assert (await shown(member), member.regions()) == ([newer(NOBODY)], newer(NOBODY))


async def test_a_server_without_a_certificate_that_we_trust_is_told_nothing(net: Net) -> None:
    address, access = await net.access()
    async with site(issue(make_ca(), "master", "master"), net.folder) as stranger:
        stranger.body = said(newer(address), net.signing)
        assert await shown(net.membership(stranger.url)) == []
    assert (stranger.asked, access.links) == ([], [])


async def test_an_answer_that_is_no_success_is_no_map(net: Net) -> None:
    async with site(net.world.master, net.folder) as master:
        master.body, master.status = said(newer("127.0.0.1:1"), net.signing), "503 Service Unavailable"
        assert await shown(net.membership(master.url)) == []
        assert master.asked
