"""The shipped Master with one more way in, for the `command` budget: commands issued from inside and timed.

Everything is wired and served as `windrow-master` does it; beside that this process obeys lines of JSON on its standard
input and answers each with one. A command is what the fleet itself issues to a host without measurements (BENCHMARK):
one store.write of its own, committed with fsync, sent down, answered, and its final status committed.

one {count} | sustain {seconds, workers}
"""

import asyncio
import itertools
import json
import sys
import time
from functools import partial
from typing import Any

from windrow_master.app import logs, wiring
from windrow_master.app.main import open_listeners, reached_at, serve, write_cli
from windrow_master.app.wiring import Master
from windrow_master.config import Config, from_process
from windrow_master.fleet.messages import CommandChanged
from windrow_master.fleet.model import CommandRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.data_directory import CliFile
from windrow_proto.ids import CommandId, HostId
from windrow_proto.model import Command, CommandKind

ANSWER_S = 30.0


class Issuer:
    """Issues commands and waits for what becomes of them."""

    def __init__(self, opened: Master) -> None:
        self._opened = opened
        self._ended: dict[CommandId, float] = {}
        self._waiting: dict[CommandId, asyncio.Future[float]] = {}
        opened.store.messages.on(CommandChanged, lambda uow, it: self._on_command(uow, it.row))

    def _on_command(self, uow: UnitOfWork, row: CommandRow) -> None:
        if row.is_done:
            uow.after_commit(lambda: self._end(row.command_id))

    def _end(self, command_id: CommandId) -> None:
        now = time.perf_counter()
        waiting = self._waiting.pop(command_id, None)
        if waiting is None:
            self._ended[command_id] = now
        elif not waiting.done():
            waiting.set_result(now)

    async def one(self, host_id: HostId) -> tuple[float, float]:
        """Issue one command; milliseconds from the call and from the commit of its row to the commit of its result."""
        command = Command(CommandId(""), CommandKind.BENCHMARK)
        began = time.perf_counter()
        command_id = await self._opened.store.write(
            lambda uow: self._opened.fleet.issue(uow, host_id, command), name="bench.issue"
        )
        committed = time.perf_counter()
        ended = self._ended.pop(command_id, None)
        if ended is None:
            self._waiting[command_id] = asyncio.get_running_loop().create_future()
            async with asyncio.timeout(ANSWER_S):
                ended = await self._waiting[command_id]
        return (ended - began) * 1000, (ended - committed) * 1000

    def hosts(self) -> list[HostId]:
        """The benchmark's hosts that are connected."""
        fleet = self._opened.fleet
        found = [entry.host for entry in fleet.view if entry.host.name.startswith("bench-")]
        return [host.host_id for host in found if fleet.is_connected(host.host_id)]

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out one order."""
        hosts = itertools.cycle(self.hosts())
        if order["do"] == "one":
            cpu = time.process_time()
            times = [await self.one(next(hosts)) for _ in range(order["count"])]
            cpu_ms = (time.process_time() - cpu) * 1000 / len(times)
            return {
                "cpu_ms": cpu_ms,
                "call_ms": [call for call, _ in times],
                "commit_ms": [commit for _, commit in times],
            }
        times = []
        ends = time.perf_counter() + order["seconds"]

        async def work() -> None:
            while time.perf_counter() < ends:
                times.append(await self.one(next(hosts)))

        began, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(order["workers"]):
                tasks.create_task(work())
        took = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
        return {"done": len(times), **took, "call_ms": [call for call, _ in times]}


async def _serve(config: Config, opened: Master, listeners: Any) -> None:
    issuer = Issuer(opened)

    async def obey() -> None:
        while line := await asyncio.to_thread(sys.stdin.readline):
            sys.stdout.write(json.dumps(await issuer.obey(json.loads(line))) + "\n")
            sys.stdout.flush()

    async with asyncio.TaskGroup() as tasks:
        obeying = tasks.create_task(obey())
        await serve(config, opened, listeners, None)
        obeying.cancel()


def main() -> None:
    """As `windrow-master` runs, and obeys."""
    config = from_process(sys.argv[1:])
    logs.set_up(config.log_level)
    config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    cli, clock = CliFile(config.data_dir / "cli.json"), SystemClock()
    listeners = open_listeners(config, cli)
    settings = wiring.Settings(reached_at=partial(reached_at, config, listeners, clock, None))
    opened = wiring.build(config.data_dir, clock, SystemRng(), settings, database=config.database)
    try:
        write_cli(config, opened, cli, listeners)
        asyncio.run(_serve(config, opened, listeners))
    finally:
        opened.close()


if __name__ == "__main__":
    main()
