"""Hosts that may have something in their outbox: who waits for whom before the store is read."""

import asyncio
from collections.abc import Sequence
from typing import Any

from windrow_master.api.trunk_down import Downlink, HubFigures, HubPorts
from windrow_proto.clock import SystemClock
from windrow_proto.gather import Gather
from windrow_proto.ids import HostId

HOSTS = [HostId(f"host_{number}") for number in range(20)]


class Fleet:
    """Notes who is asked for together."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[list[HostId]] = asyncio.Queue()

    async def outbox(self, host_ids: Sequence[HostId]) -> dict[HostId, list[Any]]:
        self.asked.put_nowait(list(host_ids))
        return {}


async def asked_together(gather_s: float, *woken: tuple[HostId, bool]) -> list[HostId]:
    """Whom the first read is about, when these are woken in different turns of the loop; True: by a command."""
    fleet: Any = Fleet()
    routes: Any = dict.fromkeys(HOSTS)
    down = Downlink(fleet, fleet, SystemClock(), HubPorts(), HubFigures(), routes)
    down._gather = Gather(gather_s)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(down.dispatch())
        for host_id, is_urgent in woken:
            down.wake(host_id, is_urgent=is_urgent)
            await asyncio.sleep(0)
        first: list[HostId] = await fleet.asked.get()
        task.cancel()
    return first


async def test_hosts_that_connect_one_after_the_other_take_one_read_of_the_store() -> None:
    assert await asked_together(0.5, *((host_id, False) for host_id in HOSTS)) == HOSTS


async def test_a_command_waits_for_nobody_and_takes_along_who_waits() -> None:
    first = await asked_together(3600.0, (HOSTS[0], False), (HOSTS[1], True), (HOSTS[2], False))
    assert first[:2] == HOSTS[:2]
