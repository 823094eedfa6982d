"""The near end of `relay`: many agents' streams with a certificate and a connection each, and frames at a steady pace.

Nothing of an agent but its stream: what is in a frame is nobody's business on the way.

`python -m bench._streams FOLDER` obeys lines of JSON on its standard input and answers each with one:
open {name, address, first, count} | pace {name, seconds, per_s} | shut {name} | stop
"""

import asyncio
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from bench._far import HEAD
from windrow_proto import link_grpc
from windrow_proto.errors import LinkClosed, TooMany
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import FrameLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2

SEALED_BYTES = 600
"""About a batch of eight cards and five seconds."""
ANSWER_EVERY = 10
"""One frame in so many comes back, as acks do."""
SENDERS = 8
"""Tasks that share the streams: a write waits for gRPC, and the next frame is due before that."""
OPENING_AT_ONCE = 16
OPEN_DEADLINE_S = 600.0
"""An Access lets 50 streams a second in from one address, after the first 400."""
DIAL_DEADLINE_NS = 15 * SECOND
ANSWER_DEADLINE_S = 10.0
PADDING = secrets.token_bytes(SEALED_BYTES - HEAD.size)


def frame_of(*, answered: bool) -> link_pb2.Frame:
    """A frame of telemetry that says when it was made, and whether it is to come back."""
    sealed = HEAD.pack(time.monotonic_ns(), answered) + PADDING
    lane, live = link_pb2.LANE_TELEMETRY, link_pb2.FRAME_CLASS_LIVE
    return link_pb2.Frame(frame_class=live, lane=lane, sequence=time.monotonic_ns(), sealed=sealed)


def identity_of(record: dict[str, str]) -> TlsIdentity:
    """Returns the identity that a host shows, of those that the benchmark has written."""
    return TlsIdentity(*(record[part].encode() for part in ("key", "certificate", "ca")))


class Streams:
    """The streams of one name, opened to one address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.back_ms: list[float] = []
        self.lost = 0
        self._dialers: list[link_grpc.GrpcDialer] = []
        self._links: list[FrameLink] = []

    async def open(self, identities: list[TlsIdentity], tasks: asyncio.TaskGroup) -> int:
        """Dial until every one is let in; returns how many were sent away for a moment meanwhile."""
        gate, refused = asyncio.Semaphore(OPENING_AT_ONCE), 0

        async def one(identity: TlsIdentity) -> None:
            nonlocal refused
            async with gate:
                dialer = link_grpc.GrpcDialer(identity)
                while (link := await self._let_in(dialer)) is None:
                    refused += 1
                    await asyncio.sleep(0.2 + secrets.randbelow(400) / 1000)
            self._dialers.append(dialer)
            self._links.append(link)
            tasks.create_task(self._hear(link))

        async with asyncio.timeout(OPEN_DEADLINE_S), asyncio.TaskGroup() as opening:
            for identity in identities:
                opening.create_task(one(identity))
        return refused

    async def _let_in(self, dialer: link_grpc.GrpcDialer) -> FrameLink | None:
        """A stream on which one frame came back, so that it is in use; None where the Access says to come again."""
        try:
            link = await dialer.connect(self.address, DIAL_DEADLINE_NS)
            await link.send(frame_of(answered=True))
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                await link.receive()
        except LinkClosed as error:
            if not isinstance(error.__cause__, TooMany):
                raise
            return None
        return link

    async def _hear(self, link: FrameLink) -> None:
        while True:
            try:
                frame = await link.receive()
            except LinkClosed:
                self.lost += 1
                return
            sent_ns, _ = HEAD.unpack_from(frame.sealed)
            self.back_ms.append((time.monotonic_ns() - sent_ns) / 1e6)

    async def pace(self, seconds: float, per_s: float) -> dict[str, Any]:
        """Send so many a second, in turn on all streams; a frame is stamped as it is written, so that what this
        process lags behind is not counted as the way's."""
        self.back_ms.clear()
        began = time.perf_counter()
        step_s, count = SENDERS / per_s, int(seconds * per_s / SENDERS)

        async def sender(place: int) -> None:
            own = self._links[place::SENDERS]  # a stream has one sender at a time
            for turn in range(count):
                due = began + turn * step_s + place / per_s
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                answered = (turn * SENDERS + place) % ANSWER_EVERY == 0
                await own[turn % len(own)].send(frame_of(answered=answered))

        async with asyncio.TaskGroup() as sending:
            for place in range(SENDERS):
                sending.create_task(sender(place))
        took_s = time.perf_counter() - began
        await self._answers(len(range(0, count * SENDERS, ANSWER_EVERY)))
        back = [round(ms, 4) for ms in self.back_ms]
        return {"sent": count * SENDERS, "seconds": took_s, "back_ms": back, "lost": self.lost}

    async def _answers(self, wanted: int) -> None:
        """Wait for the answers, or not longer than ANSWER_DEADLINE_S without a new one."""
        last, moved = -1, time.perf_counter()
        while len(self.back_ms) < wanted and time.perf_counter() - moved < ANSWER_DEADLINE_S:
            if len(self.back_ms) != last:
                last, moved = len(self.back_ms), time.perf_counter()
            await asyncio.sleep(0.02)

    async def shut(self) -> None:
        """End them all."""
        for dialer in self._dialers:
            await dialer.close()


async def obey(order: dict[str, Any], known: dict[str, Streams], folder: Path, tasks: asyncio.TaskGroup) -> Any:
    """Carry out one order."""
    match order["do"]:
        case "open":
            streams = known.setdefault(order["name"], Streams(order["address"]))
            records = json.loads((folder / "hosts.json").read_text())[order["first"] : order["first"] + order["count"]]
            identities = [identity_of(record) for record in records]
            began = time.perf_counter()
            refused = await streams.open(identities, tasks)
            return {"seconds": time.perf_counter() - began, "refused": refused, "lost": streams.lost}
        case "pace":
            return await known[order["name"]].pace(order["seconds"], order["per_s"])
        case "shut":
            await known.pop(order["name"]).shut()
            return {}
        case other:
            raise ValueError(f"there is no order {other!r}")


async def main(folder: Path) -> None:
    """Obey orders until `stop` or the end of the input."""
    known: dict[str, Streams] = {}
    async with asyncio.TaskGroup() as tasks:
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            if order["do"] == "stop":
                break
            sys.stdout.write(json.dumps(await obey(order, known, folder, tasks)) + "\n")
            sys.stdout.flush()
        os._exit(0)  # thousands of streams need no farewell: the other end sees their connections end


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
