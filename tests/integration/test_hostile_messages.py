"""A joined host that sends what no agent sends, to the shipped daemons: refused before it costs, others notice nothing.

What is measured: the processor time and the memory of the Access and the Master, beside the same count of honest
messages of the largest size in the same run.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest

from tests.support.raw_agent import RawAgent, access_address, dialled, joined
from tests.support.rental import Renter
from tests.support.stack import wait_for
from tests.torture.test_fuzz import BOMBS
from tests.waiting import PATIENCE_S
from windrow_proto import link_grpc
from windrow_proto import link_streams as streams
from windrow_proto.endure import KEPT_BYTES
from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.keys import SERVER_NAMES, TlsIdentity
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import FrameLink
from windrow_proto.samples import VALUES_MAX
from windrow_proto.units import MIB
from windrow_proto.v1 import host_pb2, link_pb2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

COPIES = 100
"""Of each hostile message."""
GROWTH_BYTES_MAX = 96 * MIB + KEPT_BYTES
"""Of one daemon while all of it lasts: queues and one batch being unfolded, not a hundred, and what it keeps."""


@pytest.fixture
async def agent(renter: Renter, tmp_path: Path) -> RawAgent:
    return RawAgent(await joined(renter, tmp_path / "identity"))


class Watched:
    """The daemons while somebody is hostile to them."""

    def __init__(self, renter: Renter) -> None:
        self.renter = renter
        # Those below the supervisor itself: a daemon's own children come and go.
        self.processes = psutil.Process(renter.stack.process.pid).children()
        self.before = {process.pid: process.memory_info().rss for process in self.processes}
        self.neighbour = renter.host()

    def flaws(self) -> list[str]:
        """Returns the harm that was done."""
        found = [f"{process.pid} is gone" for process in self.processes if not process.is_running()]
        for process in self.processes:
            grown = process.memory_info().rss - self.before[process.pid]
            if grown > GROWTH_BYTES_MAX:
                found.append(f"{process.pid} has grown by {grown // MIB} MiB")
        access_id = self.renter.host()["access_id"]
        if access_id != self.neighbour["access_id"]:
            found.append(f"the neighbour went from {self.neighbour['access_id']} to {access_id}")
        return found

    def heard_again(self) -> bool:
        """True if the neighbour has been heard since: on a busy machine its word may be late."""
        since = self.renter.host()["last_seen_at"]
        return bool(wait_for(lambda: (h := self.renter.host())["last_seen_at"] > since and h["link_state"] == "online"))

    def cpu_s(self) -> float:
        """Processor time of all of them so far."""
        times = [process.cpu_times() for process in self.processes]
        return sum(one.user + one.system for one in times)


@contextlib.asynccontextmanager
async def raw_stream(identity: TlsIdentity, address: str, **call: Any) -> AsyncIterator[Any]:
    """The agents' stream without any of our own code on this side: bytes go as they are."""
    credentials = grpc.ssl_channel_credentials(identity.ca_pem, identity.key_pem, identity.certificate_pem)
    options = [("grpc.ssl_target_name_override", SERVER_NAMES["access"]), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        stream: Any = channel.stream_stream(link_grpc.CONNECT)(**call)
        await stream.wait_for_connection()
        yield stream
        stream.cancel()


async def ended(stream: Any, *messages: bytes) -> tuple[str, str]:
    """Send these until the other side ends the call; returns its status and our own code for it."""
    with contextlib.suppress(grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
        for message in messages:
            await stream.write(message)
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(grpc.RpcError, grpc.aio.BaseError):
            while await stream.read() is not grpc.aio.EOF:
                pass
        named = dict(await stream.trailing_metadata() or ()).get(streams.CODE_KEY, "")
        return (await stream.code()).name, str(named)


def frame(sealed: bytes = b"x", lane: int = 1, frame_class: int = 0, **more: Any) -> link_pb2.Frame:
    return link_pb2.Frame(lane=lane, frame_class=frame_class, sequence=1, sealed=sealed, **more)  # type: ignore[arg-type]


def with_unknown(carrier: link_pb2.Frame, size: int) -> link_pb2.Frame:
    """The same frame with a field that nobody knows, of this size."""
    carried = link_pb2.Frame(sealed=bytes(size)).SerializeToString()
    assert carried[0] == link_pb2.Frame.DESCRIPTOR.fields_by_name["sealed"].number << 3 | 2
    return link_pb2.Frame.FromString(carrier.SerializeToString() + b"\xfa\x01" + carried[1:])


OUTSIDE = {
    "noise": b"\xff" * 1000,
    "groups in groups": b"\x0b" * 100_000,
    "a message over any limit": frame(bytes(3 * MIB)).SerializeToString(),
    "telemetry over 256 KiB": frame(bytes(MIB // 2), lane=2, frame_class=1).SerializeToString(),
    "a lane that is not": frame(lane=77).SerializeToString(),
    "a class that is not its lane's": frame(lane=1, frame_class=3).SerializeToString(),
    "frames in frames": frame(more=[frame(more=[frame()])]).SerializeToString(),
    "a hundred thousand frames": frame(more=[link_pb2.Frame()] * 100_000).SerializeToString(),
}


@pytest.mark.proves("hostile messages are refused at the Access with a stated reason; the neighbours notice nothing")
async def test_what_is_no_frame_ends_its_own_stream_with_a_reason_and_costs_nobody_else(
    renter: Renter, agent: RawAgent
) -> None:
    watched = Watched(renter)
    reasons = {}
    for name, message in OUTSIDE.items():
        async with raw_stream(agent.identity.tls, access_address(renter)) as stream:
            reasons[name] = await ended(stream, message)
    print(reasons)
    assert all(status not in ("OK", "UNKNOWN", "CANCELLED") for status, _ in reasons.values()), reasons
    assert watched.flaws() == []
    assert watched.heard_again()


class _Fat:
    """A link that adds a megabyte to each frame where nobody looks."""

    def __init__(self, link: FrameLink) -> None:
        self.receive, self.close = link.receive, link.close
        self._send = link.send

    async def send(self, frame: link_pb2.Frame) -> None:
        await self._send(with_unknown(frame, MIB - 1000))


async def test_fields_that_nobody_knows_neither_pass_nor_burst_the_trunk(renter: Renter, agent: RawAgent) -> None:
    watched = Watched(renter)
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        line.link = _Fat(line.link)
        for _ in range(COPIES):
            sequence = await agent.record(Kind.EVENT, b"\xff")
        await agent.acked(Lane.EVIDENCE, sequence)
    assert watched.flaws() == []
    assert watched.heard_again()


async def test_a_compressed_message_is_not_unpacked(renter: Renter, agent: RawAgent) -> None:
    watched = Watched(renter)
    async with raw_stream(agent.identity.tls, access_address(renter), compression=grpc.Compression.Gzip) as stream:
        status, _ = await ended(stream, frame(bytes(256 * MIB)).SerializeToString())
    print(status)
    assert status in ("UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "INTERNAL")
    assert watched.flaws() == []


async def test_noise_instead_of_a_handshake_or_of_http_is_no_connection(renter: Renter, agent: RawAgent) -> None:
    watched = Watched(renter)
    await asyncio.to_thread(_noise, access_address(renter), agent.identity.tls)
    assert watched.flaws() == []
    assert watched.heard_again()


def _noise(address: str, identity: TlsIdentity) -> None:
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context(cadata=identity.ca_pem.decode())
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    for first in (b"GET / HTTP/1.1\r\n\r\n", bytes(100_000), b"\x16\x03\x01\xff\xff" + b"\xff" * 70_000):
        with socket.create_connection((host, int(port)), timeout=10) as plain, contextlib.suppress(OSError):
            plain.sendall(first)
            while plain.recv(65_536):
                pass


# --- behind the proof -----------------------------------------------------------------------------------------------


def inside() -> dict[str, tuple[Kind, Lane, bytes]]:
    """Well-sealed records of a real host with these bodies."""
    columns = host_pb2.TelemetryBatch(at_ms=[0], metric=[1], device=[0], values=[0]).SerializeToString()
    claims = columns[:-1] + b"\xff\xff\xff\xff\x07"  # the length of `values`: 2**31 - 1 bytes that never come
    made = {name: make() for name, make in BOMBS.items()}
    found = {name: (Kind.TELEMETRY, Lane.TELEMETRY, body) for name, body in made.items() if len(body) <= 250_000}
    found["two thousand million samples"] = (Kind.TELEMETRY, Lane.TELEMETRY, claims)
    found["noise for an inventory"] = (Kind.INVENTORY, Lane.EVIDENCE, b"\xff" * 100_000)
    found["empty names for an inventory"] = (Kind.INVENTORY, Lane.EVIDENCE, b"\x12\x00" * 120_000)
    found["groups for an event"] = (Kind.EVENT, Lane.EVIDENCE, b"\x0b" * 100_000)
    return found


@pytest.mark.long
async def test_bombs_under_a_good_proof_cost_no_more_than_honest_batches_and_are_not_kept_waiting(
    renter: Renter, agent: RawAgent
) -> None:
    watched = Watched(renter)
    values = [n * 7_919 % 100_000 for n in range(VALUES_MAX // 2)]
    honest = host_pb2.TelemetryBatch(
        start_wall_ns=agent.clock.wall_ns(), at_ms=[0], metric=[1] * len(values), device=[0] * len(values),
        values=values, devices=[""],
    ).SerializeToString()  # fmt: skip
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        costs = {}
        for name, (kind, lane, body) in inside().items():
            began_s = watched.cpu_s()
            for _ in range(COPIES):
                sequence = await agent.record(kind, body, lane)
            await agent.acked(lane, sequence)
            costs[name] = watched.cpu_s() - began_s
        flaws = watched.flaws()  # before the honest ones, which the history keeps in its memory
        began_s = watched.cpu_s()
        for _ in range(COPIES):
            sequence = await agent.record(Kind.TELEMETRY, honest, Lane.TELEMETRY)
        await agent.acked(Lane.TELEMETRY, sequence)
        honest_s = watched.cpu_s() - began_s
    print({"honest": honest_s, **costs})

    assert max(costs.values()) <= 20 * honest_s, (honest_s, costs)  # evidence is committed to SQL, whatever it holds
    assert flaws == []
    assert watched.heard_again()


async def test_who_goes_on_sending_what_is_not_understood_is_cut_off_with_the_reason_and_it_is_an_event(
    renter: Renter, agent: RawAgent
) -> None:
    watched = Watched(renter)
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        with contextlib.suppress(LinkClosed):
            await agent.beat()
            for _ in range(40):
                await agent.send(Kind.HEARTBEAT, Lane.CONTROL, b"\xff" * 100)
        error = await line.end()

    assert isinstance(error, WindrowError) and error.code == "invalid_input", repr(error)
    assert wait_for(lambda: "host.link_misused" in renter.events(agent.host_id))
    assert watched.flaws() == []


async def test_evidence_that_is_no_evidence_is_put_aside_and_the_next_is_taken(renter: Renter, agent: RawAgent) -> None:
    async with dialled(agent.identity.tls, access_address(renter)) as line:
        await agent.greet_over(line)
        await agent.record(Kind.EVENT, b"\xff")
        await agent.tell_inventory()
        await agent.acked(Lane.EVIDENCE, 2)
    assert wait_for(lambda: renter.ask("GET", f"/hosts/{agent.host_id}")["cpu_model"] == "By hand")
