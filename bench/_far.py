"""The far end of `relay`: what agents' frames arrive at, through an Access's trunk or directly, and when.

One process with both listeners. A frame begins with the monotonic nanosecond at which it was sent and a byte that says
whether it is to come back; the clock is the machine's, so that both ends read the same one.

`python -m bench._far FOLDER` obeys lines of JSON on its standard input and answers each with one:
where | take {wanted} | stop
"""

import asyncio
import json
import struct
import sys
import time
from pathlib import Path
from typing import Any

from windrow_proto import link_grpc
from windrow_proto.errors import Unavailable
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import BandwidthLink, FrameLink, PeerFacts, PingFacts, PingLink, TrunkLink
from windrow_proto.v1 import link_pb2, services_pb2

ARRIVAL_S = 2.0
"""How long the last frames of a run may be on their way after the last was written."""
HEAD = struct.Struct("<QB")
"""When a frame was sent, monotonic nanoseconds, and whether it is to be answered."""


def read_identity(folder: Path, name: str) -> TlsIdentity:
    """One of the identities that the benchmark has written."""
    record = json.loads((folder / f"{name}.json").read_text())
    return TlsIdentity(*(record[part].encode() for part in ("key", "certificate", "ca")))


class FarEnd:
    """An AgentAcceptor and a TrunkAcceptor that note how long each frame was on its way."""

    def __init__(self) -> None:
        self.ms: list[float] = []

    def _arrived(self, frame: link_pb2.Frame) -> bool:
        """Note one frame; whether it is to be answered."""
        sent_ns, answered = HEAD.unpack_from(frame.sealed)
        self.ms.append((time.monotonic_ns() - sent_ns) / 1e6)
        return bool(answered)

    async def take(self, wanted: int) -> list[float]:
        """The times noted since the last time, once there are so many or ARRIVAL_S is over."""
        ends = time.monotonic() + ARRIVAL_S
        while len(self.ms) < wanted and time.monotonic() < ends:
            await asyncio.sleep(0.01)
        taken, self.ms = self.ms, []
        return [round(ms, 4) for ms in taken]

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        """An agent's stream without anything between."""
        while True:
            frame = await link.receive()
            if self._arrived(frame):
                await link.send(frame)

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        """An Access's trunk: welcomed, and answered as one batch for each that came."""
        while True:
            back = services_pb2.TrunkBatch()
            for item in (await trunk.receive()).items:
                kind = item.WhichOneof("what")
                if kind == "hello":
                    back.items.add(welcome=services_pb2.TrunkWelcome(epoch=1, leader=True))
                elif kind == "frame" and self._arrived(item.frame):
                    back.items.add(route=item.route, frame=item.frame)
            if back.items:
                await trunk.send(back)

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        """Nobody pings the far end."""
        return PingFacts("", "", 0, False)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        """Nobody keeps a connection to the far end."""
        raise Unavailable("No connection is kept here.")

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        """Nobody measures the far end."""
        raise Unavailable("There is no bandwidth to measure here.")


async def main(folder: Path) -> None:
    """Listen and obey until `stop` or the end of the input."""
    far = FarEnd()
    trunk = await link_grpc.serve_trunk(far, read_identity(folder, "master"))
    direct = await link_grpc.serve_agents(far, read_identity(folder, "access"))
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        if order["do"] == "stop":
            break
        answer: dict[str, Any] = {"trunk": trunk.address, "direct": direct.address}
        if order["do"] == "take":
            answer["ms"] = await far.take(order["wanted"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
