"""The Master's services behind the trunk, as main wires them, on a link in memory; with one host joined."""

import asyncio
from contextlib import asynccontextmanager

from tests.master_support import SeededRng
from tests.support.wired import AccessKeys, fleet_on, forget_messages
from tests.trunk_support import FakeAccess, FakeAgent
from windrow_master.fleet.messages import ReceiptTaken
from windrow_master.link.accesses import Accesses
from windrow_master.link.hub import LinkHub
from windrow_master.link.routes import Routes
from windrow_master.store.executors import InlineExecutor, ThreadExecutor
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.clock import SystemClock
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import Unavailable
from windrow_proto.ids import AccountId, HostId
from windrow_proto.keys import SigningKey
from windrow_proto.link_memory import MemoryNetwork, Weather
from windrow_proto.ports import PeerFacts

HOST = HostId("host_1")
MASTER = SigningKey.generate()
ACCESS_KEY = SigningKey.generate()
ADDRESS = "master:7444"


async def no_service(cluster_id, port):
    raise Unavailable("This Master has no services.")


class Master:
    """Store, fleet, telemetry and hub, as main wires them."""

    agent: FakeAgent
    access: FakeAccess
    group: asyncio.TaskGroup

    def __init__(self, directory, disk, network):
        self.directory, self.disk, self.network = directory, disk, network
        self.clock = SystemClock()
        self.facts = {}
        self.receipts = []

    async def start(self, tasks):
        self.store = Store.open(self.directory, self.clock, SeededRng(), executor=ThreadExecutor())
        forget_messages(self.store)
        self.keys = AccessKeys(access_1=ACCESS_KEY.public)
        self.fleet = fleet_on(self.store, self.clock, SeededRng(), self.keys)
        self.store.messages.on(ReceiptTaken, lambda uow, it: self.receipts.append(it.receipt))
        self.fleet.start()
        self.telemetry = TelemetryService(
            self.disk,
            self.directory,
            self.store.epoch,
            self.clock,
            log_executor=ThreadExecutor(1),
            view_executor=InlineExecutor(),
        )
        self.routes, self.drained = Routes(self.fleet.presence), set[str]()
        self.hub = LinkHub(
            self.fleet,
            self.telemetry,
            self.clock,
            epoch=self.store.epoch,
            signing=MASTER,
            accesses=Accesses({}, self.clock, lambda access_id: access_id in self.drained),
            routes=self.routes,
            identities=self,
            renewals=lambda: self.renewals(),
            open_service=no_service,
            on_welcome=lambda *welcomed: None,
        )
        self.server = await self.network.serve_trunk(ADDRESS, self.hub)
        self.tasks = [tasks.create_task(self.hub.run()), tasks.create_task(self.fleet.run())]

    async def host_facts(self, host_id):
        return self.facts.get(host_id)

    async def generations_used(self, heard):
        """Nobody writes them down."""

    async def generation_found(self, host_id, generation, not_after_ns):
        """Nobody writes it down."""

    def forgetting(self):
        return ": join again."

    async def renewals(self):
        return {}

    async def join(self, agent, **facts):
        self.facts[agent.host_id] = agent.facts(**facts)
        owner = AccountId("account_1")

        def enrol(uow):
            self.fleet.enrol(uow, agent.host_id, "box", owner, False, "account/account_1")

        await self.store.write(enrol, name="enrol")
        await self.fleet.refresh()

    async def attach(self, tasks, access_id="access_1"):
        peer = PeerFacts("access", access_id, 1, 2**62, "127.0.0.1:1", b"")
        access = FakeAccess(await self.network.dial_trunk([ADDRESS], peer), access_id)
        tasks.create_task(access.run())
        await access.hello()
        await access.welcomed.wait()
        return access

    async def stop(self):
        stopping = self.server.stop()
        if asyncio.iscoroutine(stopping):
            await stopping
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)
        await self.store.drain()
        self.telemetry.close()
        self.store.close()


@asynccontextmanager
async def running(directory, disk=None):
    """A Master with one joined host and one Access attached."""
    async with MemoryNetwork(SystemClock(), SeededRng(), Weather(0, 0, 0.0)) as network, asyncio.TaskGroup() as tasks:
        master = Master(directory, disk or MemoryDisk(), network)
        await master.start(tasks)
        agent = FakeAgent(master.clock)
        await master.join(agent)
        access = await master.attach(tasks)
        master.agent, master.access, master.group = agent, access, tasks
        try:
            yield master
        finally:
            await master.stop()
            await access.link.close()
