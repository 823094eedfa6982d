"""Hosts that may have something in their outbox: who waits for whom before the store is read."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.master_support import ManualClock
from windrow_master.fleet.model import CommandRow
from windrow_master.link.downlink import RESEND_NS, Downlink, HubFigures
from windrow_proto.clock import SystemClock
from windrow_proto.gather import Gather
from windrow_proto.ids import CommandId, HostId
from windrow_proto.model import CommandKind, LeaseRenewal
from windrow_proto.units import MIB


async def nothing() -> dict[HostId, tuple[LeaseRenewal, ...]]:
    return {}


HOSTS = [HostId(f"host_{number}") for number in range(20)]


class Fleet:
    """Notes who is asked for together."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[list[HostId]] = asyncio.Queue()

    async def outbox(self, host_ids: Sequence[HostId]) -> dict[HostId, list[Any]]:
        self.asked.put_nowait(list(host_ids))
        return {}


async def asked_together(gather_s: float, *woken: tuple[HostId, bool]) -> list[HostId]:
    """Returns the host that the first read is about, when these are woken in different turns of the loop; True: by a
    command."""
    fleet: Any = Fleet()
    routes: Any = dict.fromkeys(HOSTS)
    down = Downlink(fleet, fleet, SystemClock(), nothing, HubFigures(), routes)
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


def row(name: str, size: int, kind: CommandKind = CommandKind.CREATE) -> CommandRow:
    return CommandRow(CommandId(name), HOSTS[0], kind, bytes(size), "", 1 << 62, 1 << 62, 0)


def test_large_commands_go_one_after_the_other_as_they_are_accepted_and_deletes_wait_for_none() -> None:
    """Five of a megabyte are more than an Access keeps for one host: it ended the stream, and the next one again."""
    sent, clock, fleet = list[str](), ManualClock(), Any
    route: Any = SimpleNamespace(is_open=True, commands_sent={}, may_ask=lambda *_: False)
    routes: Any = {HOSTS[0]: route}
    down = Downlink(fleet, fleet, clock, nothing, HubFigures(), routes)  # type: ignore[arg-type]
    down._send_command = lambda route, row: sent.append(row.command_id)  # type: ignore[method-assign]
    rows = [row(f"large {n}", MIB) for n in range(3)] + [row("small", 10), row("end", 10, CommandKind.DELETE)]

    down._send_commands(HOSTS[0], rows)
    assert sent == ["large 0", "end"]
    clock.advance(RESEND_NS)
    down._send_commands(HOSTS[0], rows[1:3])
    assert sent == ["large 0", "end", "large 1"]
    down._send_commands(HOSTS[0], rows[2:3])
    assert sent == ["large 0", "end", "large 1", "large 2"]


def test_small_commands_go_together() -> None:
    sent, fleet = list[str](), Any
    routes: Any = {HOSTS[0]: SimpleNamespace(is_open=True, commands_sent={}, may_ask=lambda *_: False)}
    down = Downlink(fleet, fleet, ManualClock(), nothing, HubFigures(), routes)  # type: ignore[arg-type]
    down._send_command = lambda route, row: sent.append(row.command_id)  # type: ignore[method-assign]
    down._send_commands(HOSTS[0], [row(f"small {n}", 10) for n in range(100)])
    assert len(sent) == 100
