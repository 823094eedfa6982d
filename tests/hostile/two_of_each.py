"""A Master with two hosts and work on each, so that one of each can be bad."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.api.services import Services
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.clusters.model import ClusterRequest, Workload, WorkPhase
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.states import LinkEvent, VerifyState
from windrow_master.identity.model import Principal
from windrow_master.jobs.model import JobId, JobRequest
from windrow_master.jobs.service import JobService
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.unit import UnitOfWork
from windrow_master.verification.scheduler import Begun
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.model import Inventory, Observed, ObservedWorkload, WorkloadPhase
from windrow_proto.units import GIB
from windrow_proto.volumes import VOLUMES, Mount, parse_mount

HOST, OTHER = HostId("host_1"), HostId("host_2")


@dataclass
class Pair:
    """The Master, a client with the first account's token, and what a test does to its two hosts."""

    opened: Master
    clock: ManualClock
    client: httpx2.AsyncClient
    owner: Principal

    @property
    def services(self) -> Services:
        return self.opened.services

    @property
    def jobs(self) -> JobService:
        assert self.services.jobs is not None
        return self.services.jobs

    def write(self, change: Any) -> Any:
        return self.opened.store.write_now(change, name="test")

    async def workload(self, host_id: HostId) -> Workload:
        """Work that runs on this host: there is space for one on each."""
        held = self.opened.store.read_now(lambda uow: uow[WorkloadRepository].held_on(host_id))
        while not held:
            await self.running()
            held = self.opened.store.read_now(lambda uow: uow[WorkloadRepository].held_on(host_id))
        return held[0]

    async def running(self, *volumes: Mount) -> Workload:
        """Work that runs on a host that had none."""
        asked = ClusterRequest(argv=("true",), cpus=4, volumes=volumes)
        _, view = await self.opened.clusters.create(self.owner, asked, None)
        self.report(view.cluster.cluster_id, WorkloadPhase.RUNNING)
        return self.opened.store.read_now(lambda uow: uow[WorkloadRepository].of_cluster(view.cluster.cluster_id))[0]

    def report(self, cluster_id: ClusterId, phase: WorkloadPhase) -> None:
        """A host says this of the work of a cluster."""

        def hear(uow: UnitOfWork) -> None:
            (held,) = uow[WorkloadRepository].of_cluster(cluster_id)
            code = 0 if phase is WorkloadPhase.EXITED else None
            said = ObservedWorkload(held.workload_id, phase, held.slots, code, runtime="process")
            self.opened.clusters.lifecycle.on_workload(uow, held.host_id, said)

        self.write(hear)

    async def ended(self, host_id: HostId) -> Workload:
        """Work that has ended by itself on this host."""
        held = await self.workload(host_id)
        self.report(held.cluster_id, WorkloadPhase.EXITED)
        return held

    async def waiting_for_volume(self, name: str) -> Workload:
        """Work that waits for a volume of this name."""
        assert self.services.volumes is not None
        await self.services.volumes.create(self.owner, name)
        waits = replace(await self.running(parse_mount(f"{name}:/data")), phase=WorkPhase.WAITING_VOLUMES)
        self.write(lambda uow: uow[WorkloadRepository].save(waits))
        return waits

    async def job(self, name: str) -> JobId:
        """A job that waits."""
        (made,) = await self.jobs.submit(self.owner, JobRequest(argv=("true",), name=name, cpus=4))
        return made.job.job_id

    def observe(self, *hosts: HostId) -> None:
        """Reports what these hosts have: nothing."""
        for host_id in hosts:
            self.opened.fleet._on_observed(host_id, Observed((), b"", self.clock.wall_ns()))

    def verifying(self, *hosts: HostId) -> None:
        """They are being challenged."""
        for host_id in hosts:

            def begin(uow: UnitOfWork, host_id: HostId = host_id) -> None:
                host = uow[HostRepository].get(host_id)
                assert host is not None
                self.opened.fleet.hosts.save(uow, replace(host, verify_state=VerifyState.VERIFYING))

            self.write(begin)

    def begun(self, host: Any) -> Begun:
        """A challenge that was written down."""
        return Begun("verification_1", host, {})

    async def ticks(self, service: Any, count: int) -> None:
        """Looks of a service that begins tasks, each with time for them to end."""
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            service._group = group
            for _ in range(count):
                await service.tick()
                for _ in range(20):
                    await asyncio.sleep(0)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    clock = ManualClock()
    opened = wiring.build(tmp_path, clock, SeededRng(3), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        account = opened.identity.first_account()
        token = opened.identity.local_token(account, None)

        def join(uow: UnitOfWork) -> None:
            for host_id in (HOST, OTHER):
                has = Inventory(
                    hostname=host_id,
                    cpu_count=4,
                    memory_bytes=16 * GIB,
                    runtimes=("process",),
                    more={VOLUMES: 1},
                )
                opened.fleet.enrol(uow, host_id, host_id, account.id, False, "account/1")
                opened.fleet.hosts.inventory(uow, host_id, has)
                opened.fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)
                opened.fleet.hosts.conditions(uow, host_id, ("clock.skew",))

        opened.store.write_now(join, name="test")
        await opened.fleet.refresh()
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as client:
            yield Pair(opened, clock, client, await opened.identity.authenticate(token))
