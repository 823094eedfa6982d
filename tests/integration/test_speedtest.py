"""The real speedtest-cli, run by the agent's own command, against the mini server of a real Access."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.one_access import EchoMaster, Running, identity_folder
from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto import keys, link_grpc
from windrow_proto.units import MIB, SECOND
from windrow_proto.v1 import link_pb2

HOST = "host_" + "a" * 32


@asynccontextmanager
async def serving(folder: Path, authority: TestAuthority) -> AsyncIterator[tuple[str, str]]:
    """An Access that serves speedtest-cli; gives the address of agents and that of its mini server."""
    server = await link_grpc.serve_trunk(EchoMaster(), issue(authority, "master", "master"))
    identity_folder(folder, authority)
    access = Running(folder, server.address, "--speedtest-port", "0")
    try:
        address = await access.address()
        events = [json.loads(line) for line in (folder / "access.log").read_text().splitlines()]
        (port,) = [event["port"] for event in events if event["event"] == "speedtest_listening"]
        yield address, f"http://127.0.0.1:{port}"
    finally:
        access.stop()
        await server.stop(0)


@asynccontextmanager
async def connected(address: str, identity: keys.TlsIdentity) -> AsyncIterator[None]:
    """A host that has a stream to this Access."""
    dialer = link_grpc.GrpcDialer(identity)
    try:
        link = await dialer.connect(address, int(PATIENCE_S) * SECOND)
        await link.send(link_pb2.Frame(lane=link_pb2.LANE_EVIDENCE, sequence=1, sealed=b"here"))
        async with asyncio.timeout(PATIENCE_S):
            await link.receive()
        yield
    finally:
        await dialer.close()


async def speedtest(*arguments: str) -> tuple[int, bytes, bytes]:
    """`windrow-agent speedtest` in a process of its own."""
    command = (sys.executable, "-m", "windrow_agent", "speedtest", *arguments)
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    said, complaint = await child.communicate()
    return child.returncode or 0, said, complaint


@pytest.mark.proves("speedtest-cli against an Access's mini server, there and back")
async def test_the_owner_of_a_connected_host_measures_his_line_to_its_access(tmp_path: Path) -> None:
    authority = make_ca()
    async with serving(tmp_path, authority) as (address, mini), connected(address, issue(authority, "host", HOST)):
        status, said, complaint = await speedtest("--mini", mini, "--json")
        again, _, _ = await speedtest("--mini", mini)

    assert (status, complaint) == (0, b"")
    (claim,) = json.loads(said)
    assert claim["path"] == mini
    assert claim["down_bytes"] >= MIB and claim["up_bytes"] >= MIB
    assert min(claim["down_bits_per_s"], claim["up_bits_per_s"], claim["rtt_ns"]) > 0
    assert again == 1  # a line rests between two runs


async def test_where_no_host_is_connected_the_access_says_nothing(tmp_path: Path) -> None:
    authority = make_ca()
    async with serving(tmp_path, authority) as (address, mini):
        before, said, _ = await speedtest("--mini", mini, "--json")
        async with connected(address, issue(authority, "host", HOST)):
            pass
        host, _, port = mini.removeprefix("http://").partition(":")

        async def is_closed_unread() -> bool:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /elsewhere HTTP/1.1\r\n\r\n")
            try:
                return await reader.read() == b""
            except ConnectionError:
                return True
            finally:
                writer.close()

        await poll_async(is_closed_unread, what="the host's stream to end")

    assert before == 1
    (refused,) = json.loads(said)
    assert "only to addresses from which a host is connected" in refused["failed"]
