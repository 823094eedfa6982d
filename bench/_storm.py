"""The hosts of `relay`'s cold storm: all want in at the same moment, by the agent's own dialling, from own addresses.

Nothing of an agent but how it finds and keeps its Access: what is told there is one frame, and its echo. Whom to dial,
how long to wait, and when to come back is the agent's (`AccessConnector`); what dials for it is either the shipped
dialler, or one that costs a fraction of it and shows an Access the same (bench/_dialer.py).

`python -m bench._storm FOLDER` obeys lines of JSON on its standard input and answers each with one:
storm {port, first, count, seconds, shipped} | held | stop
"""

import asyncio
import gc
import json
import os
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import structlog

from bench._dialer import LeanDialer
from bench._streams import frame_of, identity_of
from windrow_agent.link.access_connector import AccessConnector
from windrow_proto import link_grpc
from windrow_proto.clock import BootClock, SystemRng
from windrow_proto.ids import AccessId, HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import BandwidthLink, Dialer, FrameLink, PingAnswer, WarmLink

DIALS_AT_ONCE = 128
"""Dials of the shipped dialler under way in this process, which shares two processors with the Access: with more of
them one is late before its first byte, as on no host. Who waits for its turn has not begun, and will not have given up.
Lean hosts have no turns: a storm in which 128 dial at once lasts as long as they wait for one another."""
BEGIN_AT_ONCE = 32
"""Hosts that begin between two looks at what came: all of them together would keep the first ones waiting for long."""
FIRST_ADDRESS = IPv4Address("10.0.0.1")
"""A connection to an address of its own network's loopback comes from that address, so each host uses another one."""


class Storm:
    """So many hosts, and when each had its first frame back, in seconds from the beginning. opened: streams that were
    let in; dials, pings: tries, each of which is a connection; held: streams that are open."""

    def __init__(self, port: int, records: list[dict[str, str]], *, is_shipped: bool) -> None:
        self.absorbed_s: list[float] = []
        self.opened = self.dials = self.pings = self.held = 0
        self.cpu_s = 0.0
        self._port = port
        identities = [identity_of(record) for record in records]
        self._dialers: list[Dialer] = []
        if is_shipped:
            gate = asyncio.Semaphore(DIALS_AT_ONCE)
            self._dialers += [link_grpc.GrpcDialer(identity, gate) for identity in identities]
        else:
            self._dialers += [LeanDialer(identity) for identity in identities]
        self._done = asyncio.Event()
        gc.freeze()
        gc.disable()  # a search through thousands of hosts is no host's work

    async def run(self, seconds: float, tasks: asyncio.TaskGroup) -> None:
        """All at once, until the last is served or the time is over; they stay connected as tasks of this group."""
        clock, rng, began, cpu_s = BootClock(), SystemRng(), time.monotonic(), time.process_time()

        async def one(number: int, dialer: Dialer) -> None:
            point = AccessPoint(AccessId("access_" + "b" * 32), "bench", f"{FIRST_ADDRESS + number}:{self._port}")
            told = False

            async def serve(link: FrameLink) -> None:
                nonlocal told
                self.opened += 1
                self.held += 1
                try:
                    await link.send(frame_of(answered=True))
                    while True:
                        await link.receive()
                        if not told:
                            told = True
                            self.absorbed_s.append(time.monotonic() - began)
                            if len(self.absorbed_s) == len(self._dialers):
                                self._done.set()
                finally:
                    self.held -= 1

            counted = Counted(dialer, self)
            await AccessConnector(
                HostId(f"host_{number:032x}"), counted, clock, rng, RegionMap(1, (point,)), serve
            ).run()

        for number, dialer in enumerate(self._dialers, 1):
            tasks.create_task(one(number - 1, dialer))
            if number % BEGIN_AT_ONCE == 0:
                await asyncio.sleep(0)
        try:
            async with asyncio.timeout(seconds):
                await self._done.wait()
        except TimeoutError:
            pass
        self.cpu_s = time.process_time() - cpu_s


class Counted:
    """A Dialer whose storm counts what it does."""

    def __init__(self, dialer: Dialer, storm: Storm) -> None:
        self._dialer, self._storm = dialer, storm

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """As the Dialer's."""
        self._storm.dials += 1
        return await self._dialer.connect(address, deadline_ns)

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """As the Dialer's."""
        self._storm.pings += 1
        return await self._dialer.ping(address, deadline_ns)

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """As the Dialer's."""
        return await self._dialer.warm(address, deadline_ns)

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """As the Dialer's."""
        return await self._dialer.bandwidth(address, deadline_ns)

    async def close(self) -> None:
        """As the Dialer's."""
        await self._dialer.close()


async def obey(order: dict[str, Any], storms: list[Storm], folder: Path, tasks: asyncio.TaskGroup) -> Any:
    """Carry out one order."""
    match order["do"]:
        case "storm":
            records = json.loads((folder / "hosts.json").read_text())[order["first"] : order["first"] + order["count"]]
            storm = Storm(order["port"], records, is_shipped=order["shipped"])
            storms.append(storm)
            await storm.run(order["seconds"], tasks)
            absorbed_s = sorted(round(one, 3) for one in storm.absorbed_s)
            counts = {"opened": storm.opened, "dials": storm.dials, "pings": storm.pings}
            return {"absorbed_s": absorbed_s, "cpu_s": round(storm.cpu_s, 3), **counts}
        case "held":
            return {"held": sum(storm.held for storm in storms)}
        case other:
            raise ValueError(f"there is no order {other!r}")


async def main(folder: Path) -> None:
    """Obey orders until `stop` or the end of the input."""
    storms: list[Storm] = []
    async with asyncio.TaskGroup() as tasks:
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            if order["do"] == "stop":
                break
            sys.stdout.write(json.dumps(await obey(order, storms, folder, tasks)) + "\n")
            sys.stdout.flush()
        os._exit(0)  # thousands of streams need no farewell: the other end sees their connections end


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[])
    asyncio.run(main(Path(sys.argv[1])))
