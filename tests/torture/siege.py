"""A siege of an Access: the Access with its Master and an honest agent, and crowds of connections before it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil

from tests.support.hostile_peer import Peer, client_context
from tests.support.one_access import EchoMaster, Running, identity_folder
from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_access.outbox import CAP_BYTES
from windrow_proto import link_grpc
from windrow_proto.endure import KEPT_BYTES
from windrow_proto.errors import WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import FrameLink, PeerFacts, TrunkLink
from windrow_proto.units import MIB, SECOND
from windrow_proto.v1 import link_pb2, services_pb2

HASTY = """
import sys
from windrow_access import relay, worker
from windrow_access.core.strangers import StrangerLimits
from windrow_access.main import main
relay.HELLO_NS_MAX, relay.EXPIRY_PERIOD_NS = 5 * 10**8, 10**8
worker.StrangerLimits = lambda: StrangerLimits(age_ns=10**9)
sys.argv[0] = "windrow-access"
main()
"""
"""An Access that waits for a hello and for a stranger's call a second."""
GROWTH_BYTES_MAX = 96 * MIB + KEPT_BYTES
"""Of the Access' resident memory in any of these: what its caps add up to in one case, and what it keeps."""
BEAT_S = 0.02
LONG = bool(os.environ.get("TORTURE"))
QUIET_BEATS = 100 if LONG else 5
"""Of the honest agent before the siege: by them the others are judged."""
P99_TIMES_MAX, P99_S_LEAST = 20, 1.0
"""Of the honest agent's echoes in a siege: so many times as long as before it, or a second, which is the busy machine's
own."""
EVIDENCE, TELEMETRY = link_pb2.LANE_EVIDENCE, link_pb2.LANE_TELEMETRY


class Master(EchoMaster):
    """Echoes what is no flood, can stop reading, and can be made to send without end."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = asyncio.Event()
        self.reading.set()
        self.host_of: dict[int, str] = {}
        self.closed: dict[str, str] = {}
        self.pushed = 0

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        while True:
            await self.reading.wait()
            for item in (await trunk.receive()).items:
                await self._take(item, trunk)

    async def _take(self, item: services_pb2.TrunkItem, trunk: TrunkLink) -> None:
        what = item.WhichOneof("what")
        if what == "opened":
            self.host_of[item.route] = item.opened.host_id
        elif what == "closed":
            self.closed[self.host_of[item.route]] = item.closed.reason
        if what == "frame" and item.frame.sealed == b"push":
            for _ in range(4 * CAP_BYTES // 100_000):
                bulk = link_pb2.Frame(lane=EVIDENCE, sealed=bytes(100_000))
                await trunk.send(services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(route=item.route, frame=bulk)]))
                self.pushed += 1
        elif what != "frame" or item.frame.lane == EVIDENCE:
            answer = self.answer(item)
            if answer is not None:
                await trunk.send(services_pb2.TrunkBatch(items=[answer]))


class Honest:
    """An agent that sends a frame each BEAT_S on one stream and waits for its echo."""

    def __init__(self, link: FrameLink) -> None:
        self.link = link
        self.seconds: list[float] = []
        self.error: Exception | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        sequence = 0
        try:
            while True:
                sequence += 1
                began = loop.time()
                await self.link.send(link_pb2.Frame(lane=EVIDENCE, sequence=sequence, sealed=b"honest"))
                assert (await self.link.receive()).sequence == sequence
                self.seconds.append(loop.time() - began)
                await asyncio.sleep(BEAT_S)
        except WindrowError as error:
            self.error = error

    async def beat(self, count: int = 5) -> None:
        """Wait until so many more have gone there and back."""
        goal = len(self.seconds) + count
        await poll_async(lambda: len(self.seconds) >= goal or self.error is not None, what="the honest agent")
        assert self.error is None, f"the honest agent lost its stream: {self.error!r}"


class World:
    """An Access with its Master, an authority, and an honest agent."""

    def __init__(self, authority: TestAuthority, master: Master, address: str, pid: int) -> None:
        self.authority, self.master, self.address = authority, master, address
        self.process = psutil.Process(pid)
        self.hosts = 0

    def host(self) -> tuple[str, TlsIdentity]:
        """A host nobody has seen before."""
        self.hosts += 1
        name = f"host_{self.hosts:032x}"
        return name, issue(self.authority, "host", name)

    def context(self, identity: TlsIdentity | None) -> Any:
        return client_context(identity, self.authority.certificate_pem)

    @contextlib.asynccontextmanager
    async def besieged(self, title: str, *, is_held_up: bool = False) -> AsyncIterator[Honest]:
        """An honest agent is connected before, during and after; the Access' memory grows no more than it may, and the
        agent's echoes take not much longer. is_held_up: they do, since the test stops the Master itself."""
        before = self.process.memory_info().rss
        dialer = link_grpc.GrpcDialer(self.host()[1])
        link = await dialer.connect(self.address, int(PATIENCE_S) * SECOND)
        honest, peak_bytes = Honest(link), before

        async def watch() -> None:
            nonlocal peak_bytes
            while True:
                peak_bytes = max(peak_bytes, self.process.memory_info().rss)
                await asyncio.sleep(BEAT_S)

        async with asyncio.TaskGroup() as tasks:
            beating, watching = tasks.create_task(honest.run()), tasks.create_task(watch())
            try:
                await honest.beat(QUIET_BEATS)
                quiet = len(honest.seconds)
                yield honest
                await honest.beat()
            finally:
                beating.cancel()
                watching.cancel()
                await dialer.close()
        grown = peak_bytes - before
        before_s, during_s = p99_s(honest.seconds[:quiet]), p99_s(honest.seconds[quiet:])
        said = f"p99 {1000 * during_s:.1f} ms after {1000 * before_s:.1f} ms"
        print(f"{title}: {len(honest.seconds)} echoes, {said}, {grown / MIB:+.1f} MiB at most")
        assert grown <= GROWTH_BYTES_MAX
        if LONG and not is_held_up:
            assert during_s <= max(P99_TIMES_MAX * before_s, P99_S_LEAST)


def p99_s(seconds: list[float]) -> float:
    """Returns the value that 99 in a hundred of them, at least one, do not exceed."""
    return sorted(seconds)[len(seconds) * 99 // 100]


@contextlib.asynccontextmanager
async def world(folder: Path, program: tuple[str, ...]) -> AsyncIterator[World]:
    authority, master = make_ca(), Master()
    server = await link_grpc.serve_trunk(master, issue(authority, "master", "master"))
    identity_folder(folder, authority)
    access = Running(folder, server.address, program=program)
    try:
        yield World(authority, master, await access.address(), access.process.pid)
    finally:
        assert access.stop() == 0
        await server.stop(0)


class Crowd:
    """Many connections, and how many of them are still there."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._watching: list[asyncio.Task[None]] = []
        self.peers: list[Peer] = []

    def add(self, one: Peer) -> None:
        self.peers.append(one)
        self._watching.append(self._tasks.create_task(one.until_gone()))

    @property
    def here(self) -> int:
        return sum(not one.done() for one in self._watching)

    async def leave(self) -> None:
        for one in self.peers:
            await one.close()


@contextlib.asynccontextmanager
async def crowd() -> AsyncIterator[Crowd]:
    async with asyncio.TaskGroup() as tasks:
        made = Crowd(tasks)
        try:
            yield made
        finally:
            await made.leave()
