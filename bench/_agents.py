"""The load: one process that is the agents of many hosts towards the shipped Access and Master, and nothing more.

Identities, TLS, hello, proofs, sequences, credits and acks are the product's own (windrow_proto). There is no spool, no
sampler and no journal: every command succeeds at once, which is the no-op runtime of the `command` budget.

`python -m bench._agents CONFIG.json` obeys lines of JSON on its standard input and answers each with one:
encode | connect {folders, addresses} | flood {first, last} | pace {first, last, period_s, troubles} | marks | stop
"""

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench._facts import encode_host, inventory, socket_bytes
from bench._series import Plan
from windrow_proto import link_grpc
from windrow_proto.enrol import Identity, IdentityFolder
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import BootId, HostId
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, LinkVerifier
from windrow_proto.messages import PROTOCOL_VERSION, Heartbeat, Hello, Record, Settings
from windrow_proto.model import (
    CommandPhase,
    CommandStatus,
    FrameClass,
    Kind,
    Lane,
    Observed,
    inventory_hash,
    observed_digest,
)
from windrow_proto.ports import FrameLink
from windrow_proto.session import Admitted, AgentSession, Phase
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.windows import RecordKey, SendWindow
from windrow_proto.wire import Envelope, encode_record, put_together, seal, signed_digest, unseal
from windrow_proto.wire_command import decode_command, encode_status
from windrow_proto.wire_host import encode_inventory, encode_observed
from windrow_proto.wire_link import (
    decode_ack,
    decode_heartbeat_reply,
    decode_query,
    decode_settings,
    decode_welcome,
    encode_heartbeat,
    encode_hello,
)

SETTLE_S = 5.0
"""After the last hello: the Master writes down who has come, which is no part of what is measured."""
CONNECTS_AT_ONCE = 16
CONNECT_DEADLINE_S = 120.0
DIAL_DEADLINE_NS = 10 * SECOND
STALL_S = 40.0
"""Without a single new ack for this long, a phase ends and says how far it came."""
ENCODERS = 2
TAKE = 64
TOGETHER = 16
"""Samples of one message at most: as many as the agent takes in one turn."""


@dataclass(slots=True)
class Tally:
    """The messages that all agents together sent and had acknowledged."""

    frames: int = 0
    frame_bytes: int = 0
    acked_batches: int = 0
    acks: int = 0
    ack_ms: list[float] = field(default_factory=list)
    commands: int = 0
    lost_links: int = 0


class LoadAgent:
    """One host's agent on one stream. bodies: its telemetry batches in order, encoded."""

    def __init__(self, number: int, identity: Identity, plan: Plan, bodies: Sequence[bytes], tally: Tally) -> None:
        self.host_id = HostId(identity.subject_id)
        self.acked: set[int] = set()
        self._identity, self._bodies, self._tally = identity, bodies, tally
        self._boot = BootId(secrets.token_bytes(16))
        self._session = AgentSession(self.host_id, self._boot, 0)
        self._inventory = inventory(number, plan)
        self._hash = inventory_hash(self._inventory)
        self._windows: dict[Lane, SendWindow] = {}
        self._records: dict[tuple[Lane, int], tuple[Kind, bytes]] = {}
        self._sequence = {Lane.EVIDENCE: 0, Lane.TELEMETRY: 0}
        self._batch_of: dict[int, tuple[int, float]] = {}
        self._link: FrameLink | None = None
        self._prover: LinkProver | None = None
        self._verifier: LinkVerifier | None = None
        self._sending = asyncio.Lock()
        self._together = TOGETHER
        self._settled = asyncio.Event()
        self.heartbeat_ns = 5 * SECOND
        self.conditions: tuple[str, ...] = ()

    # --- connecting ------------------------------------------------------------------------------------------------

    async def stay(self, address: str) -> None:
        """Listen, and come back after each loss: what was not acknowledged goes again, as the shipped agent has it."""
        while True:
            await self.listen()
            self._session.on_disconnect()
            for window in self._windows.values():
                window.on_disconnect()
            with suppress(TimeoutError, LinkClosed):
                await self.connect(address)
                await self._pump(Lane.TELEMETRY)

    async def connect(self, address: str) -> None:
        """Dial until it is let in, greet, and hand over the inventory if it is wanted."""
        dialer = link_grpc.GrpcDialer(self._identity.tls)
        async with asyncio.timeout(CONNECT_DEADLINE_S):
            while True:
                try:
                    self._link = await dialer.connect(address, DIAL_DEADLINE_NS)
                    await self._greet(self._link)
                    return
                except LinkClosed:  # one address may open so many streams a second; the Access says to come back
                    self._session.on_disconnect()
                    await asyncio.sleep(0.5 + secrets.randbelow(1000) / 1000)

    async def _greet(self, link: FrameLink) -> None:
        identity = self._identity
        exchange = ExchangeKey.generate()
        hello = Hello(
            protocol_version=PROTOCOL_VERSION,
            agent_version="bench",
            x25519_public=exchange.public,
            generation=identity.generation,
            wall_ns=time.time_ns(),
            inventory_hash=self._hash,
            simulated=True,
            unacked=(),
            epoch_seen=0,
        )
        prover = LinkProver(None, identity.signing, DOMAIN_UP)
        frame = seal(self._session.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, encode_hello(hello)), prover)
        await link.send(frame)
        answer = unseal(await link.receive(), LinkVerifier(None, identity.master_public, DOMAIN_DOWN))
        if not isinstance(self._session.admit(answer, time.monotonic_ns()), Admitted):
            raise LinkClosed("The Master did not answer with a welcome.")
        welcome = decode_welcome(answer.body)
        self._session.on_welcome(welcome, signed_digest(frame), time.monotonic_ns())
        mac_key = exchange.derive(welcome.x25519_public, self.host_id, self._boot, welcome.epoch)
        self._prover = LinkProver(mac_key, identity.signing, DOMAIN_UP)
        self._verifier = LinkVerifier(mac_key, identity.master_public, DOMAIN_DOWN)
        self._settle(welcome.settings)
        if welcome.inventory_wanted:
            self._evidence(Kind.INVENTORY, encode_inventory(self._inventory))
        self._observe()
        await self._pump(Lane.EVIDENCE)

    def _settle(self, settings: Settings) -> None:
        self.heartbeat_ns = settings.heartbeat_interval_ns
        for lane, credits in (
            (Lane.EVIDENCE, settings.evidence_credits),
            (Lane.TELEMETRY, settings.telemetry_credits),
        ):
            window = self._windows.setdefault(lane, SendWindow(lane, credits))
            window.credits = credits

    @property
    def is_quiet(self) -> bool:
        """True if everything sent as evidence is acknowledged."""
        window = self._windows.get(Lane.EVIDENCE)
        return window is not None and window.in_flight == 0 and window.pending == 0

    # --- up ----------------------------------------------------------------------------------------------------------

    def _evidence(self, kind: Kind, body: bytes) -> None:
        self._offer(Lane.EVIDENCE, kind, body)

    def _observe(self) -> None:
        self._evidence(Kind.OBSERVED, encode_observed(Observed((), observed_digest(()), time.time_ns())))

    def _offer(self, lane: Lane, kind: Kind, body: bytes, *, is_live: bool = True) -> int:
        self._sequence[lane] += 1
        number = self._sequence[lane]
        self._records[lane, number] = kind, encode_record(Record(self._boot, number, kind, body))
        self._windows[lane].offer(RecordKey(self._boot, number), is_live)
        return number

    async def telemetry(self, batches: Iterable[int], together: int = TOGETHER) -> None:
        """Send these of the batches as credits allow, at most so many in a message; those that go together are a
        backlog and say so, as the agent's outbox does: what was not sent when it was born is not live."""
        self._together = together
        for batch in batches:
            number = self._offer(Lane.TELEMETRY, Kind.TELEMETRY, self._bodies[batch], is_live=together == 1)
            self._batch_of[number] = batch, time.perf_counter()
        with suppress(LinkClosed):  # it goes again over the next link
            await self._pump(Lane.TELEMETRY)

    async def beat(self) -> None:
        """One heartbeat."""
        body = encode_heartbeat(
            Heartbeat(
                *(time.time_ns(), time.monotonic_ns(), self._hash, observed_digest(())),
                conditions=self.conditions,
                sampling_age_ns=0,
            )
        )
        async with self._sending:
            if self._session.phase is not Phase.OPEN:
                return
            await self._link_of().send(self._sealed(Kind.HEARTBEAT, Lane.CONTROL, FrameClass.EVIDENCE, body))

    async def _pump(self, lane: Lane) -> None:
        async with self._sending:
            while self._session.phase is Phase.OPEN and (ready := self._windows[lane].take(TAKE, time.monotonic_ns())):
                frames: list[link_pb2.Frame] = []
                for number, one in enumerate(ready, start=1):
                    if record := self._records.get((lane, one.key.origin_sequence)):  # not acknowledged meanwhile
                        frames.append(self._sealed(record[0], lane, one.frame_class, record[1]))
                    is_last = lane is Lane.EVIDENCE or len(frames) >= self._together or number == len(ready)
                    # Samples that are ready together go together, as the agent sends them; evidence never does.
                    if frames and is_last:
                        await self._link_of().send(put_together(frames))
                        frames = []

    def _link_of(self) -> FrameLink:
        assert self._link is not None, "connected"
        return self._link

    def _sealed(self, kind: Kind, lane: Lane, frame_class: FrameClass, body: bytes) -> link_pb2.Frame:
        assert self._prover is not None, "connected"
        frame = seal(self._session.envelope(kind, lane, frame_class, body), self._prover)
        if kind is Kind.TELEMETRY:
            self._tally.frames += 1
            self._tally.frame_bytes += frame.ByteSize()
        return frame

    # --- down --------------------------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Obey what comes until the stream ends."""
        assert self._verifier is not None and self._link is not None, "connected"
        while True:
            try:
                envelope = unseal(await self._link.receive(), self._verifier)
            except LinkClosed:
                self._tally.lost_links += 1
                return
            if isinstance(self._session.admit(envelope, time.monotonic_ns()), Admitted):
                with suppress(LinkClosed):
                    await self._obey(envelope)

    async def _obey(self, envelope: Envelope) -> None:
        match envelope.kind:
            case Kind.ACK:
                self._tally.acks += 1
                ack = decode_ack(envelope.body)
                for lane, window in self._windows.items():
                    self._acked(lane, window.on_ack(ack))
                await self._pump(Lane.TELEMETRY)
            case Kind.COMMAND:
                command = decode_command(envelope.body)
                self._tally.commands += 1
                done = CommandStatus(command.command_id, CommandPhase.SUCCEEDED, at_wall_ns=time.time_ns())
                self._evidence(Kind.COMMAND_STATUS, encode_status(done))
            case Kind.HEARTBEAT_REPLY:
                reply = decode_heartbeat_reply(envelope.body)
                if reply.inventory_wanted:
                    self._evidence(Kind.INVENTORY, encode_inventory(self._inventory))
                if reply.observed_wanted:
                    self._observe()
            case Kind.QUERY if decode_query(envelope.body).observed:
                self._observe()
            case Kind.SETTINGS:
                self._settle(decode_settings(envelope.body))
            case _:
                pass  # the region map and leases of nothing
        await self._pump(Lane.EVIDENCE)

    def _acked(self, lane: Lane, keys: Iterable[RecordKey]) -> None:
        for key in keys:
            self._records.pop((lane, key.origin_sequence), None)
            if lane is Lane.TELEMETRY:
                batch, sent = self._batch_of.pop(key.origin_sequence)
                self.acked.add(batch)
                self._tally.acked_batches += 1
                self._tally.ack_ms.append((time.perf_counter() - sent) * 1000)

    async def overdue(self) -> None:
        """Send again the records that have waited too long for their acks."""
        for lane, window in self._windows.items():
            if window.overdue(time.monotonic_ns()):
                await self._pump(lane)


class Load:
    """All agents of this process."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._plan = Plan(**config["plan"])
        self._start_ms: int = config["start_ms"]
        self._addresses: list[str] = []
        self._tally = Tally()
        self._agents: list[LoadAgent] = []
        self._bodies: list[list[bytes]] = []

    def encode(self) -> dict[str, Any]:
        """Make every batch before the clock runs."""
        with ProcessPoolExecutor(ENCODERS) as pool:
            made = pool.map(partial(encode_host, self._plan, self._start_ms), range(self._plan.hosts), chunksize=8)
            self._bodies = list(made)
        return {"body_bytes": sum(len(body) for bodies in self._bodies for body in bodies)}

    async def obey(self, order: dict[str, Any], tasks: asyncio.TaskGroup) -> dict[str, Any]:
        """Carry out one order."""
        match order["do"]:
            case "encode":
                return await asyncio.to_thread(self.encode)
            case "connect":
                self._addresses = order["addresses"]
                return await self._connect(order["folders"], tasks)
            case "flood":
                return await self._phase(order, partial(self._flood, together=order.get("together", TOGETHER)))
            case "pace":
                pace = partial(self._pace, period_s=order["period_s"], troubles=order.get("troubles", {}))
                return await self._phase(order, pace)
            case "marks":
                return {"acked": {agent.host_id: sorted(agent.acked) for agent in self._agents}}
            case other:
                raise ValueError(f"there is no order {other!r}")

    async def _connect(self, folders: Sequence[str], tasks: asyncio.TaskGroup) -> dict[str, Any]:
        began = time.perf_counter()
        gate = asyncio.Semaphore(CONNECTS_AT_ONCE)
        for number, folder in enumerate(folders):
            identity = IdentityFolder(Path(folder)).load()
            self._agents.append(LoadAgent(number, identity, self._plan, self._bodies[number], self._tally))

        async def one(agent: LoadAgent, address: str) -> None:
            async with gate:
                await agent.connect(address)
            tasks.create_task(agent.stay(address))

        async with asyncio.TaskGroup() as connecting:
            for number, agent in enumerate(self._agents):
                connecting.create_task(one(agent, self._addresses[number % len(self._addresses)]))
        tasks.create_task(self._keep_alive())
        await self._until(lambda: sum(agent.is_quiet for agent in self._agents), len(self._agents))
        quiet = sum(agent.is_quiet for agent in self._agents)
        seconds = time.perf_counter() - began
        await asyncio.sleep(SETTLE_S)
        return {"connected": len(self._agents), "quiet": quiet, "seconds": seconds}

    async def _keep_alive(self) -> None:
        """Heartbeats of all agents, spread over the interval; what lost its ack goes again."""
        while True:
            step_s = self._agents[0].heartbeat_ns / SECOND / len(self._agents)
            due = time.monotonic()
            for agent in self._agents:
                due += step_s
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                try:
                    await agent.beat()
                    await agent.overdue()
                except LinkClosed:
                    continue

    async def _phase(self, order: dict[str, Any], send: Any) -> dict[str, Any]:
        batches = range(order["first"], order["last"])
        before, tally, lost = self._tally.acked_batches, self._tally, self._tally.lost_links
        tally.ack_ms.clear()
        ports = {int(address.rpartition(":")[2]) for address in self._addresses}
        frames, frame_bytes, acks, (up, down) = tally.frames, tally.frame_bytes, tally.acks, socket_bytes(ports)
        began = time.perf_counter()
        await send(batches)
        wanted = before + len(batches) * len(self._agents)
        await self._until(lambda: tally.acked_batches, wanted)
        up_after, down_after = socket_bytes(ports)
        return {
            "seconds": time.perf_counter() - began,
            "acked_batches": tally.acked_batches - before,
            "wanted_batches": len(batches) * len(self._agents),
            "frames": tally.frames - frames,
            "acks": tally.acks - acks,
            "frame_bytes": tally.frame_bytes - frame_bytes,
            "socket_bytes_up": up_after - up,
            "socket_bytes_down": down_after - down,
            "ack_ms": sorted(tally.ack_ms)[:: max(1, len(tally.ack_ms) // 1000)],
            "lost_links": tally.lost_links - lost,
        }

    @staticmethod
    async def _until(read: Any, wanted: int) -> None:
        """Wait until a count is reached, or has not moved for STALL_S."""
        last, moved = -1, time.monotonic()
        while (now := read()) < wanted:
            if now != last:
                last, moved = now, time.monotonic()
            if time.monotonic() - moved > STALL_S:
                return
            await asyncio.sleep(0.02)

    async def _flood(self, batches: range, together: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            for agent in self._agents:
                tasks.create_task(agent.telemetry(batches, together))

    async def _pace(self, batches: range, period_s: float, troubles: dict[str, list[tuple[int, str]]]) -> None:
        """troubles: at the place of a batch the numbers of hosts, and the condition that holds from then on."""
        began = time.monotonic()
        for place, batch in enumerate(batches):
            for number, condition in troubles.get(str(place), ()):
                self._agents[number].conditions = (condition,) if condition else ()
                await self._agents[number].beat()
            for number, agent in enumerate(self._agents):
                due = began + (place + number / len(self._agents)) * period_s
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await agent.telemetry([batch], together=1)


async def main(path: str) -> None:
    """Obey orders until `stop` or the end of the input."""
    load = Load(json.loads(Path(path).read_text()))
    async with asyncio.TaskGroup() as tasks:
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            if order["do"] == "stop":
                break
            sys.stdout.write(json.dumps(await load.obey(order, tasks)) + "\n")
            sys.stdout.flush()
        os._exit(0)  # a thousand streams need no farewell: the Access sees their connections end


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
