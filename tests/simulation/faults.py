"""Faults, drawn from the seed: deaths, power cuts, cuts of the network, bad weather, clocks that jump."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.books import copy_of
from tests.simulation.breakages import DAEMON_FAILS, break_a_card, crash_a_program
from tests.simulation.database import Power
from tests.simulation.full_disk import SharedDisk
from tests.simulation.machines import AccessMachine, HostMachine, forked
from tests.simulation.pair_faults import STRIKES, strike
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.link_memory import BOTH, Way, Weather
from windrow_proto.units import DAY, MILLISECOND, SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

FOUL = (
    Weather(1 * MILLISECOND, 12 * MILLISECOND, 0.002),
    Weather(40 * MILLISECOND, 400 * MILLISECOND, 0.0),
    Weather(0, 1500 * MILLISECOND, 0.0005),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault and how often it is drawn."""

    name: str
    weight: int


KINDS = (
    Kind("kill agent", 6),
    Kind("cut power of host", 3),
    Kind("kill access", 2),
    Kind("kill master", 1),
    Kind("cut power of master", 2),
    Kind("fail disk of master", 1),
    Kind("partition host", 4),
    Kind("partition access", 1),
    Kind("reset streams", 3),
    Kind("weather", 2),
    Kind("clock jumps", 4),
    Kind("withhold", 2),
    Kind("relay misbehaves", 2),
    Kind("daemon fails", 3),
    Kind("program crashes", 2),
    Kind("card fails", 4),
    Kind("fill disk of host", 1),
    Kind("operator looks", 2),
    Kind("renew certificate", 2),
    Kind("partition group", 2),
    Kind("cut one way", 3),
    Kind("restore master", 0),
    Kind("copy host", 0),
    Kind("isolate host", 0),
    Kind("stray box", 0),
    Kind("keep hellos back", 0),
    Kind("master's clock jumps", 0),
    Kind("fill disk of master", 0),
)
"""A fault of weight 0 breaks promises by itself, or needs a plan of its own: it is only drawn where a plan names it."""
OF_PAIRS = tuple(Kind(name, weight) for name, weight in STRIKES.items())
NOT_OF_PAIRS = frozenset({"fail disk of master", "restore master", "master's clock jumps", "fill disk of master"})
"""The faults that need the database and the log on the Master's own disks."""
YEARS = (-30, -3, -1, 1, 3, 70)
ISOLATED_S = 150
"""Longer than the short terms of plans that name it."""
HEARD_S, LATE_S = 7, 12
"""Before and after an Access gives up its line to the Master (KEEPALIVE_NS): hosts go elsewhere, and the line heals."""


class Faults:
    """Everything that goes wrong in one history."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._luck = random.Random(f"{world.seed}|faults")
        wanted = world.plan.faults
        kinds: tuple[Kind, ...] = KINDS
        if world.plan.masters > 1:
            kinds = (*(kind for kind in KINDS if kind.name not in NOT_OF_PAIRS), *OF_PAIRS)
        self._kinds = [kind for kind in kinds if (kind.name in wanted if wanted else kind.weight)]
        self._repairs: list[asyncio.Task[None]] = []
        self._copy: tuple[Power, MemoryDisk] | None = None
        self._isolated: set[str] = set()

    async def rain(self, duration_ns: int) -> None:
        """Let faults happen for so long; each repairs itself after a while."""
        world, luck = self._world, self._luck
        until_ns = world.clock.monotonic_ns() + duration_ns
        while world.clock.monotonic_ns() < until_ns:
            await world.clock.sleep_ns(int(world.plan.fault_every_ns * (0.2 + 1.6 * luck.random())))
            if not self._kinds:
                continue
            kind = luck.choices(self._kinds, [max(1, kind.weight) for kind in self._kinds])[0]
            await self._strike(kind.name)

    async def _strike(self, name: str) -> None:
        host = self._luck.choice(self._world.hosts)
        access = self._luck.choice(self._world.accesses)
        match name:
            case "kill agent":
                self._host_down(host, None)
            case "cut power of host":
                self._host_down(host, self._luck)
            case "kill access":
                self._access_down(access)
            case "kill master" | "cut power of master":
                self._master_down(self._luck if name.startswith("cut") else None, name)
            case "fail disk of master":
                await self._master_disk()
            case "partition host":
                self._partition([host.host_id], access.address, name)
            case "partition access":
                self._partition([access.peer.subject_id], self._world.master.address, name)
            case "reset streams":
                if self._world.network.reset(dialer=self._luck.choice((host.host_id, access.peer.subject_id))):
                    self._world.count(name)
            case "weather":
                self._world.network.weather = self._luck.choice(FOUL)
                self._world.count(name)
                self._later(20, self._fair)
            case "withhold":
                self._play_withheld()
            case "restore master":
                self._restore()
            case "isolate host":
                self._isolate(host)
            case "stray box":
                self._stray(host)
            case "renew certificate":
                host.folder.is_due = True
                self._world.count(name)
            case "copy host":
                self._copy_host(host)
            case "clock jumps":
                host.clock.skew_ns += self._luck.choice((-3600, -600, -20, 20, 600, 3600)) * SECOND
                self._world.count(name)
            case "fill disk of master":
                self._fill()
            case "relay misbehaves":
                access.mischief.trouble.until_ns = self._for(5, 15, 40)
                self._world.count(name)
            case _:
                await self._strike_further(name, host, access)

    async def _strike_further(self, name: str, host: HostMachine, access: AccessMachine) -> None:
        match name:
            case "daemon fails":
                host.daemon.until_ns = self._for(3, 10, 30)
                host.daemon.what = self._luck.choice(DAEMON_FAILS)
                self._world.count(name)
            case "program crashes":
                if crash_a_program(host, self._luck):
                    self._world.count(name)
            case "card fails":
                self._card(host)
            case "fill disk of host":
                host.fill_disk()
                self._world.count(name)
                self._later(self._luck.choice((5, 20, 60)), host.empty_disk)
            case "operator looks":
                await self._world.reverify(host)
                self._world.count(name)
            case "partition group":
                self._partition(self._group(), access.address, name)
            case "cut one way":
                self._cut_one_way(access)
            case "keep hellos back":
                self._keep_hellos_back(access)
            case "master's clock jumps":
                self._world.master.clock.skew_ns += self._luck.choice(YEARS) * 365 * DAY
                self._world.count(name)
            case _:
                await strike(self._world, name, self._luck, self._later)

    def _for(self, *spans_s: float) -> int:
        return self._world.clock.monotonic_ns() + int(self._luck.choice(spans_s) * SECOND)

    def _card(self, host: HostMachine) -> None:
        mend = None if host.gpus is None or not host.is_up else break_a_card(host.gpus, self._luck)
        if mend is not None:
            host.was_sick = True
            self._world.count("card fails")
            self._later(self._luck.choice((2, 15, 60)), mend)

    def _fair(self) -> None:
        from tests.simulation.world import FAIR

        self._world.network.weather = FAIR

    def _host_down(self, host: HostMachine, luck: random.Random | None) -> None:
        if not host.is_up:
            return
        host.kill(luck)
        self._world.count("kill agent" if luck is None else "cut power of host")
        self._later(self._luck.choice((0.1, 1, 5, 30, 90)), lambda: None if host.is_up else host.start())

    def _access_down(self, access: AccessMachine) -> None:
        if not access.is_up:
            return
        access.kill()
        self._world.count("kill access")
        self._later(self._luck.choice((0.5, 3, 25)), lambda: None if access.is_up else access.start())

    def _master_down(self, luck: random.Random | None, name: str) -> None:
        master = self._world.master
        if not master.is_up:
            return
        if luck is not None:
            from tests.simulation import judges

            self._world.verdicts += judges.at_power_cut(self._world)
        master.kill(luck)
        self._world.count(name)
        self._later(self._luck.choice((0.5, 2, 10)), lambda: None if master.is_up else master.start())

    async def _master_disk(self) -> None:
        """The disk fails in the middle of a write, and soon afterwards the power."""
        master = self._world.master
        if not master.is_up or master.rooms is None:
            return
        master.power.refuse = master.power.steps + self._luck.randrange(1, 8)
        self._world.count("fail disk of master")
        await asyncio.sleep(self._luck.random() * 3)
        self._master_down(self._luck, "cut power of master")

    def _fill(self) -> None:
        """Somebody fills the Master's disk at one of its next writes, and empties it after a while."""
        disk = self._world.master.disk
        assert isinstance(disk, SharedDisk), "the plan fills a disk"
        if disk.capacity_bytes is not None or disk.power.fill_at:
            return
        disk.power.fill_at = disk.power.steps + self._luck.randrange(1, 40)
        self._world.count("fill disk of master")
        self._later(self._luck.choice((10, 30, 60)), disk.empty)

    def _play_withheld(self) -> None:
        """Let the hosts connect anew whose creations were kept back and that have taken the delete since."""
        world = self._world
        for host in world.hosts:
            kept = [w for access in world.accesses for w in access.withheld.get(host.host_id, {})]
            if any(workload_id in world.witness.deletes_told for workload_id in kept):
                world.network.reset(dialer=host.host_id)
                world.count("withhold")

    def _restore(self) -> None:
        """Bring the Master back from a copy of its disks that was taken the last time."""
        master = self._world.master
        if not master.is_up:
            return
        kept, self._copy = self._copy, None
        if kept is None:
            self._copy = copy_of(master.power), forked(master.disk, None)
            return
        master.kill(None)
        master.power, master.disk = kept
        master.start()
        self._world.count("restore master")

    def _partition(self, dialers: Sequence[str], address: str, name: str, ways: frozenset[Way] = BOTH) -> None:
        """Let these not reach this address for a while, nor be reached by it."""
        network = self._world.network
        for dialer in dialers:
            network.partition(dialer, address, ways)
        self._world.count(name)

        def heal() -> None:
            for dialer in dialers:
                network.heal(dialer, address)

        self._later(self._luck.choice((3, 12, 40)), heal)

    def _group(self) -> list[str]:
        """Some of the hosts, as behind one router: from two to all of them."""
        hosts = self._world.hosts
        return [host.host_id for host in self._luck.sample(hosts, self._luck.randint(min(2, len(hosts)), len(hosts)))]

    def _cut_one_way(self, access: AccessMachine) -> None:
        """Messages of hosts to an Access do not come through while the hosts hear the Access, or the other way round;
        or so between an Access and the Master."""
        way = frozenset({self._luck.choice((Way.UP, Way.DOWN))})
        if self._luck.random() < 0.5:
            self._partition(self._group(), access.address, "cut one way", way)
        else:
            self._partition([access.peer.subject_id], self._world.master.address, "cut one way", way)

    def _keep_hellos_back(self, access: AccessMachine) -> None:
        """Send hosts to an Access that the Master does not hear for a while: what they say there arrives when they have
        given it up and are elsewhere."""
        world, relay = self._world, access.peer.subject_id
        hosts = [host.host_id for host in world.hosts]
        master = world.master.address
        world.network.partition(relay, master, frozenset({Way.UP}))
        for other in world.accesses:
            if other is not access:
                for host_id in hosts:
                    world.network.partition(host_id, other.address)
                world.network.reset(address=other.address)
                self._later(HEARD_S, partial(world.network.heal, address=other.address))
        self._later(LATE_S, partial(world.network.heal, relay, master))
        world.count("keep hellos back")

    def _isolate(self, host: HostMachine) -> None:
        """Let a host reach nobody, for longer than it may go on alone."""
        if host.host_id in self._isolated:
            return
        self._isolated.add(host.host_id)
        for access in self._world.accesses:
            self._world.network.partition(host.host_id, access.address)
        self._world.count("isolate host")
        self._later(ISOLATED_S, self._world.network.heal)

    def _stray(self, host: HostMachine) -> None:
        """Something with our mark is on a host again that was deleted there, as when its removal had failed."""
        gone = {life.workload_id: life for life in self._world.witness.lives[host.host_id] if life.ended_ns is not None}
        for workload_id in gone:
            kept = self._world.witness.removed.get(workload_id)
            if kept is not None and workload_id not in host.machine.boxes:
                host.machine.boxes[kept.spec.workload_id] = kept
                kept.started_ns, kept.stopped_ns, kept.ends_ns = host.clock.monotonic_ns(), None, None
                self._world.count("stray box")
                return

    def _copy_host(self, host: HostMachine) -> None:
        """A second machine has all of this one's disk: it runs at once, or renews first while this one is off."""
        if host.host_id in self._world.copied:
            return
        copy = self._world.copied[host.host_id] = host.copied()
        if self._luck.random() < 0.5:
            copy.start()
        else:
            if host.is_up:
                host.kill(None)
                self._later(self._luck.choice((30, 60)), lambda: None if host.is_up else host.start())
            copy.steal()
        self._world.count("copy host")

    def _later(self, delay_s: float, repair: Callable[[], None]) -> None:
        async def wait() -> None:
            await asyncio.sleep(delay_s)
            repair()

        self._repairs.append(self._world.loop.create_task(wait()))

    async def heal(self) -> None:
        """Repair everything now."""
        world = self._world
        for task in self._repairs:
            task.cancel()
        await asyncio.gather(*self._repairs, return_exceptions=True)
        if isinstance(world.master.disk, SharedDisk):
            world.master.disk.power.fill_at = 0
            world.master.disk.empty()
        world.network.heal()
        self._fair()
        for master in world.masters:
            master.mend()
        for access in world.accesses:
            access.mischief.trouble.until_ns = 0
        for host in world.hosts:
            host.daemon.until_ns = 0
            host.empty_disk()
            if host.is_up and host.was_sick:
                host.kill(None)  # its driver is opened anew, as after the reset of a card
        for copy in world.copied.values():
            if copy.is_up:
                copy.kill(None)
        for machine in (*world.accesses, *world.hosts):
            if not machine.is_up:
                machine.start()
