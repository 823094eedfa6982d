"""A market whose hosts are proved: the ways into a test rental, and a host that does what it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from tests.master_support import SeededRng
from tests.unit.clusters.world import HOST
from tests.waiting import poll_async
from windrow_master.acceptance import rental, schedule
from windrow_master.acceptance.service import ProofService
from windrow_master.acceptance.under_way import UnderWay
from windrow_master.fleet.repository import HostRepository
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import SECOND

SAID = b'windrow-proof {"server": "sshd", "port": 22222}\nwindrow-proof {"gpus": null, "why": "there is none"}\n'


class Inside:
    """The way to its log."""

    said = SAID

    async def log(self, who, cluster_id, offset):
        return self.said, False


class Tunnels:
    """The way to its ports."""

    refusal: Exception | None = None

    async def open(self, who, cluster_id, port, is_allowed):
        if self.refusal is not None:
            raise self.refusal
        self.asked = who.account_id, cluster_id, port
        return SimpleNamespace(ca_pem="ca", host_pem="host", address="access:1", grant="g", secret=b"s")


class Greeting:
    """The renter's end of a tunnel to an SSH server."""

    def __init__(self, side):
        self.side = side

    async def dial(self, ticket):
        self.side.take(memoryview(b"SSH-2.0-OpenSSH\r\n"))

    def close(self):
        """Nothing is open."""


def service(m, is_automatic=True):
    ways = rental.Ways(m.inside, m.tunnels)
    m.tests.proofs = under_way = UnderWay(m.store, m.clock)
    return ProofService(
        m.store, m.clock, SeededRng(), m.fleet, m.market, m.clusters, ways, under_way, is_automatic=is_automatic
    )


@asynccontextmanager
async def proving(m, is_automatic=True) -> AsyncIterator[ProofService]:
    """The service, running; the fleet's first line is not measured, so the first proof waits."""
    made = service(m, is_automatic)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.run())
        refreshing = group.create_task(refresh(m))
        await poll_async(lambda: listed(m), what="a listed host")
        m.clock.advance(schedule.FIRST_WAIT_NS)
        yield made
        running.cancel()
        refreshing.cancel()


async def refresh(m):
    """Does what the fleet's own loop does."""
    while True:
        await m.fleet.refresh()
        await asyncio.sleep(0.01)


async def listed(m):
    return host(m).listed_at_ns is not None


def host(m):
    return m.read(lambda uow: uow[HostRepository].get(HOST))


async def commanded(m, kind):
    async def there():
        return bool(m.commands(kind))

    await poll_async(there, what=f"a command: {kind}")


async def started(m):
    """The host starts what it is told to."""
    await commanded(m, CommandKind.CREATE)
    spec = m.spec()
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
    m.report(spec, WorkloadPhase.RUNNING)
    m.receipt(spec, 1, 0)
    return spec


async def ended(m, spec):
    """The host ends it."""
    await commanded(m, CommandKind.DELETE)
    m.clock.advance(6 * SECOND)
    m.receipt(spec, 2, 6, final=True, end_reason="deleted", exit_code=143)
    m.report(spec, WorkloadPhase.GONE, running_ns=6 * SECOND)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)


async def proved(m, proofs):
    """The newest proof, once it has ended."""

    async def over():
        found = await proofs.of_host(HOST)
        return bool(found) and found[0].ended_at_ns is not None

    await poll_async(over, what="the end of a proof")
    return (await proofs.of_host(HOST))[0]
