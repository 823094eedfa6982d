"""A market whose jobs go on look by look; the inside of their work is what a test wrote down."""

import asyncio
import io
import tarfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.master_support import ManualClock, opened_store
from tests.unit.clusters.world import OWNER, STRANGER, Market, principal
from windrow_master.clusters.queue_feed import QueueFeed
from windrow_master.clusters.snapshot import Placer
from windrow_master.identity.model import Account, Role
from windrow_master.identity.repository import AccountRepository
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.model import JobRequest
from windrow_master.jobs.service import JobService
from windrow_master.queue.service import QueueService
from windrow_master.queue.shares import ROOT, Node
from windrow_master.storage.folder_store import FolderStore
from windrow_master.storage.transfer import Outcome
from windrow_master.storage.uploads import Uploads
from windrow_proto.errors import Conflict
from windrow_proto.keys import SigningKey
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.sealed import SealKey


def packed(name: str = "train.py", content: bytes = b"") -> bytes:
    """A tar archive of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


FOLDER = packed()


class Inside:
    """The inside of work. refuses: what a host says to a folder, the first one first."""

    def __init__(self) -> None:
        self.sent: dict[str, Any] = {}
        self.times_sent = 0
        self.refuses: list[Exception] = []
        self.log_bytes, self.tar, self.error = b"", b"tar", None

    async def send_files(self, principal, cluster_id, body, *, commit):
        self.times_sent += 1
        if self.refuses:
            raise self.refuses.pop(0)
        self.sent[cluster_id] = b"".join([piece async for piece in body]), commit

    async def log(self, principal, cluster_id, offset):
        if self.error is not None:
            raise self.error
        return self.log_bytes[offset:], False

    async def fetch_files(self, principal, cluster_id, *, changed_only):
        if self.error is not None:
            raise self.error
        return once(self.tar)


async def once(data: bytes) -> AsyncGenerator[bytes]:
    yield data


GONE = Conflict("The work was deleted from its host, with its log and files.")


class Mover:
    """Moves checkpoints as `twin` does; without one there are none."""

    twin: Any = None

    async def save(self, account_id, owner, workload):
        return None if self.twin is None else await self.twin.save(account_id, owner, workload)

    async def restore(self, account_id, owner, workload):
        return Outcome(None) if self.twin is None else await self.twin.restore(account_id, owner, workload)


class Feed(QueueFeed):
    """Also of projects that are in no row."""

    async def nodes(self, leaves):
        return [Node(node_id=one, parent=ROOT) for one in leaves]


class World:
    """One market, its jobs, and a host that does what it is told."""

    def __init__(self, store, clock, folder: Path) -> None:
        self.store, self.clock, self.folder = store, clock, folder
        self.market = Market(store, clock)
        for account in (OWNER, STRANGER):
            made = Account(account, str(account), frozenset({Role.RENTER}), clock.wall_ns())
            self.market.write(lambda uow, made=made: uow[AccountRepository].add(made))
        self.inside: Any = Inside()
        self.signing = SigningKey.generate()
        self.mover: Any = Mover()
        self.start_again()

    def start_again(self) -> None:
        """A Master's services after a restart: nothing is left but the store and the objects."""
        files = JobFiles(FolderStore(self.folder), self.inside)
        fleet, market = self.market.fleet, self.market.market
        self.queue = QueueService(self.clock, Feed(self.store, self.clock, fleet, market, Placer(fleet, market)))
        fleet.on_touch(lambda host_id: self.queue.touched())
        self.jobs = JobService(
            self.store,
            self.clock,
            self.market.clusters,
            files,
            SealKey.of(self.signing),
            Uploads(lambda more_bytes: None),
            self.mover,
            self.queue,
        )

    async def submit(self, *argv, key=None, who=None, login=None, **more):
        asked = JobRequest(argv=argv or ("true",), **more)
        (view,) = await self.jobs.submit(who or principal(), asked, key, login=login)
        return view.job

    async def get(self, job):
        return (await self.jobs.get(principal(), job.job_id)).job

    async def tick(self, times=1):
        """Look, and let what was begun come to its end."""
        for _ in range(times):
            await self.market.fleet.refresh()
            async with asyncio.TaskGroup() as group:
                self.group = self.jobs.controller._group = group
                await self.jobs.controller.tick()
                await self.queue.tick()

    def run(self, spec=None):
        """The host takes the latest command and its work runs."""
        spec = spec or self.market.spec()
        self.market.status(CommandKind.CREATE, CommandPhase.RUNNING)
        self.market.report(spec, WorkloadPhase.RUNNING)
        return spec

    def exit(self, spec, code=0):
        self.market.report(spec, WorkloadPhase.EXITED, exit_code=code)


@asynccontextmanager
async def world(tmp_path: Path):
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        yield World(store, clock, tmp_path / "objects")
