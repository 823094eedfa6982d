"""The hosts of `relay`'s cold storm: all want in at the same moment, by the agent's own dialling, from own addresses.

Nothing of an agent but how it finds and keeps its Access: what is told there is one frame, and its echo.

`python -m bench._storm FOLDER` obeys lines of JSON on its standard input and answers each with one:
storm {port, first, count, seconds} | stop
"""

import asyncio
import json
import os
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import structlog

from bench._streams import frame_of, identity_of
from windrow_agent.dialling import Home
from windrow_proto import link_grpc
from windrow_proto.clock import BootClock, SystemRng
from windrow_proto.ids import AccessId, HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import FrameLink

DIALS_AT_ONCE = 128
"""Under way in this process, which shares two processors with the Access: with more of them a dial is late before its
first byte, as on no host. Who waits for its turn has not begun to dial, and will not have given up."""
FIRST_ADDRESS = IPv4Address("10.0.0.1")
"""Whoever dials an address of its own network's loopback comes from that address, so each comes from another one."""


class Storm:
    """So many hosts, and when each had its first frame back, in seconds from the beginning."""

    def __init__(self, port: int, records: list[dict[str, str]]) -> None:
        self.absorbed_s: list[float] = []
        self.dials = 0
        self._port = port
        self._records = records
        self._done = asyncio.Event()

    async def run(self, seconds: float) -> None:
        """All at once, until the last is served or the time is over."""
        clock, rng, began = BootClock(), SystemRng(), time.monotonic()
        gate = asyncio.Semaphore(DIALS_AT_ONCE)

        async def one(number: int, record: dict[str, str]) -> None:
            point = AccessPoint(AccessId("access_" + "b" * 32), "bench", f"{FIRST_ADDRESS + number}:{self._port}")
            told = False

            async def serve(link: FrameLink) -> None:
                nonlocal told
                self.dials += 1
                await link.send(frame_of(answered=True))
                while True:
                    await link.receive()
                    if not told:
                        told = True
                        self.absorbed_s.append(time.monotonic() - began)
                        if len(self.absorbed_s) == len(self._records):
                            self._done.set()

            dialer = link_grpc.GrpcDialer(identity_of(record), gate)
            await Home(HostId(f"host_{number:032x}"), dialer, clock, rng, RegionMap(1, (point,)), serve).run()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number, record)) for number, record in enumerate(self._records)]
            try:
                async with asyncio.timeout(seconds):
                    await self._done.wait()
            except TimeoutError:
                pass
            for task in tasks:
                task.cancel()


async def main(folder: Path) -> None:
    """Obey orders until `stop` or the end of the input."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        order: dict[str, Any] = json.loads(line)
        if order["do"] == "stop":
            break
        records = json.loads((folder / "hosts.json").read_text())[order["first"] : order["first"] + order["count"]]
        storm = Storm(order["port"], records)
        await storm.run(order["seconds"])
        answer = {"absorbed_s": sorted(round(one, 3) for one in storm.absorbed_s), "dials": storm.dials}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)  # thousands of streams need no farewell: the other end sees their connections end


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[])
    asyncio.run(main(Path(sys.argv[1])))
