"""The Master that `admit` asks: the shipped services under the shipped HTTP application; its hosts are rows alone.

`python -m bench._admit FOLDER DATABASE HOSTS`: no database is SQLite in the folder. Its first line has port and token;
each line of JSON that it is given is answered with its figures: {"whole": true} has each request tried on all hosts,
as before there was an index. No host is connected, so that nothing but creating costs time.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import uvicorn

from tests.support.personas import DRIVER, uuid
from windrow_master.api.app import build_app
from windrow_master.api.event_tail import EventTail
from windrow_master.api.rate_limits import Limits
from windrow_master.app import wiring
from windrow_master.app.logs import set_up
from windrow_master.app.serving import bind
from windrow_master.fleet.states import LinkEvent
from windrow_master.identity.model import Account
from windrow_master.loops import again
from windrow_master.store.unit import UnitOfWork
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.endure import endure
from windrow_proto.ids import HostId
from windrow_proto.keys import SigningKey
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.sealed import SEAL_KEY, SealKey
from windrow_proto.units import GIB, SECOND, Microcents

GPUS = 4
AT_ONCE = 50
"""Hosts that join in one transaction."""
CREDIT = Microcents(10**13)
_HELD = "SELECT count(*) FROM grants"
_KEY = SealKey.of(SigningKey.generate()).public


def _inventory(number: int) -> Inventory:
    cards = tuple(
        GpuFacts(
            uuid(GPUS * number + at), at, "nvidia", "NVIDIA H100 PCIe", pci_device_id=0x233110DE, memory_bytes=80 * GIB
        )
        for at in range(GPUS)
    )
    return Inventory(
        hostname=f"bench-{number:05d}",
        cpu_count=64,
        memory_bytes=512 * GIB,
        gpus=cards,
        runtimes=("simulated",),
        simulated=True,
        driver_version=DRIVER,
        more={SEAL_KEY: _KEY},
    )


def joined(opened: wiring.Master, owner: Account, count: int) -> None:
    """So many simulated hosts join and are heard of."""
    for first in range(0, count, AT_ONCE):

        def join(uow: UnitOfWork, first: int = first) -> None:
            for number in range(first, min(first + AT_ONCE, count)):
                host_id = HostId(uow.mint("host"))
                opened.fleet.enrol(uow, host_id, f"bench-{number:05d}", owner.id, True, "bench")
                opened.fleet.hosts.inventory(uow, host_id, _inventory(number))
                opened.fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)

        opened.store.write_now(join, name="bench.join")


async def _on_all_hosts(account_id: Any, request: Any, act: Any, **how: Any) -> Any:
    return await act(None)


async def obey(opened: wiring.Master) -> None:
    """Answer orders until their end. held: how many leases of slots there were."""
    nominations = opened.clusters.nominations
    with_index = nominations.placed
    while line := await asyncio.to_thread(sys.stdin.readline):
        if "whole" in (order := json.loads(line)):
            nominations.placed = _on_all_hosts if order["whole"] else with_index  # type: ignore[method-assign]
        figures, counts = opened.store.figures, nominations.counts
        held = await opened.store.read(lambda uow: uow.connection.exec_driver_sql(_HELD).scalar())
        said = {"commits": figures.commits, "nominated": counts.nominated, "missed": counts.missed}
        _say(said | {"whole": counts.whole, "held": held})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def serve(opened: wiring.Master, static: Path, token: str) -> None:
    """Serve and obey until the orders end."""
    listening = bind("127.0.0.1", 0, 0)
    app = build_app(opened.services, static, limits=Limits())
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=75)
    server, tail = uvicorn.Server(config), EventTail(opened.store, opened.services.bus, opened.services.broadcaster)
    await opened.fleet.refresh()
    endure()  # as the Master does before it serves
    async with asyncio.TaskGroup() as group:
        clock = opened.services.clock
        loops = [
            tail.run(),
            again(opened.fleet.refresh, SECOND, clock, "fleet"),
            again(opened.clusters.tick, 5 * SECOND, clock, "clusters"),
            opened.services.queue.run(),
            opened.services.jobs.controller.run(),
        ]
        tasks = [group.create_task(work) for work in (*loops, server.serve([listening]))]
        _say({"port": listening.getsockname()[1], "token": token})
        await obey(opened)
        for task in tasks:
            task.cancel()


def main(folder: str, database: str, hosts: str) -> None:
    """Build, join, serve."""
    set_up("info")
    static = Path(folder) / "static"
    static.mkdir(parents=True)
    opened = wiring.build(Path(folder), SystemClock(), SystemRng(), database=database or None)
    owner = opened.identity.first_account()
    token = opened.identity.local_token(owner, None)
    opened.store.write_now(lambda uow: opened.market.credit(uow, owner.id, CREDIT, "bench", "bench"), name="credit")
    joined(opened, owner, int(hosts))
    asyncio.run(serve(opened, static, token))


if __name__ == "__main__":
    main(*sys.argv[1:])
