"""A renter: asks for clusters, stops, starts and deletes them, sometimes twice or at once, and asks again when nobody
answers."""

import asyncio
import random
from typing import TYPE_CHECKING, Any

from windrow_master.app.wiring import Master
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest
from windrow_master.identity.model import Principal
from windrow_proto.errors import Conflict, InsufficientFunds, NoCapacity, NotFound, WindrowError
from windrow_proto.ids import ClusterId

if TYPE_CHECKING:
    from tests.simulation.world import World

TRIES = 30
CLUSTERS_MAX = 4
OVER = (ClusterPhase.DELETED, ClusterPhase.FINISHED, ClusterPhase.FAILED)
LISTED_MAX = 10_000
Refusals = tuple[type[WindrowError], ...]
REFUSALS: Refusals = (NoCapacity, InsufficientFunds)
LOST_ANSWERS = 0.05
"""How often the Master has done what was asked and its answer does not come."""


class Renter:
    """One account at work. `created` and `deleted` hold what the Master has answered for, with the loop's time.

    stopped: what it has answered for and was not asked to start since. turning: the luck of stops and starts alone, so
    that the rest of a history without them does not depend on it."""

    def __init__(self, world: "World", principal: Principal, luck: random.Random, turning: random.Random) -> None:
        self._turning = turning
        self.stopped: set[ClusterId] = set()
        self.world, self.principal, self._luck = world, principal, luck
        self.created: dict[ClusterId, int] = {}
        self.deleted: dict[ClusterId, int] = {}
        self.lost: set[ClusterId] = set()
        self.refused: dict[str, int] = {}
        self.trespasses: list[str] = []
        self._asked = 0

    @property
    def living(self) -> list[ClusterId]:
        """Returns the clusters that were created and not deleted."""
        return [c for c in self.created if c not in self.deleted and c not in self.lost]

    async def run(self) -> None:
        """Rent, stop, start and delete until cancelled."""
        while True:
            await asyncio.sleep(self._luck.choice((0.2, 2, 5, 20)))
            if len(self.living) < CLUSTERS_MAX and self._luck.random() < 0.6:
                await self._create()
            elif self.living:
                await self._delete(self._luck.choice(self.living))
            if self.living and self._turning.random() < self.world.plan.turns_chance:
                halted = [c for c in self.living if c in self.stopped]
                await self._turn(self._turning.choice(halted or self.living))
            if self._luck.random() < 0.1:
                await self._trespass()

    async def leave(self) -> None:
        """Delete everything, what a lost answer would have told of too."""
        mine = await self._insist(lambda rooms: rooms.clusters.list(self.principal, None, LISTED_MAX), is_heard=True)
        for view in mine or ():
            if view.cluster.phase not in OVER:
                self.created.setdefault(view.cluster.cluster_id, self.world.clock.monotonic_ns())
        for cluster_id in self.living:
            await self._delete(cluster_id)

    async def _create(self) -> None:
        self._asked += 1
        key = f"{self.principal.account_id}-{self._asked}"
        argv = self._luck.choice(((), (), ("sleep", "30"), ("sleep", "300"), ("echo", "hello"), ("exit", "3")))
        request = ClusterRequest(
            name=f"work {self._asked}",
            kind=self._luck.choice((ClusterKind.BOX, ClusterKind.SERVICE)),
            gpus=self._luck.choice((0, 1, 1, 2)),
            cpus=self._luck.choice((1, 2)),
            argv=argv,
            env={"API_KEY": self.world.hush.of(key)},
            simulated=True,
        )
        is_hasty = self._luck.random() < 0.25

        async def create(rooms: Master) -> Any:
            return await rooms.clusters.create(self.principal, request, key)

        answer = await self._insist(create)
        if answer is not None:
            cluster_id = answer[1].cluster.cluster_id
            self.created.setdefault(cluster_id, self.world.clock.monotonic_ns())
            self.world.trace.add(f"created {cluster_id}")
            if is_hasty:
                await self._delete(cluster_id)

    async def _delete(self, cluster_id: ClusterId) -> None:
        async def delete(rooms: Master) -> Any:
            try:
                return await rooms.clusters.delete(self.principal, cluster_id)
            except NotFound:
                self.lost.add(cluster_id)  # a judge will say what that means
                return None

        if await self._insist(delete) is not None:
            self.deleted.setdefault(cluster_id, self.world.clock.monotonic_ns())
            self.world.trace.add(f"deleted {cluster_id}")
            if self._luck.random() < 0.2:
                await self._insist(delete)

    async def _turn(self, cluster_id: ClusterId) -> None:
        """Start what was stopped; else stop it, and maybe start it at once."""
        verb = "start" if cluster_id in self.stopped else "stop"
        self.stopped.discard(cluster_id)

        async def turn(rooms: Master) -> Any:
            return await getattr(rooms.clusters, verb)(self.principal, cluster_id)

        refusals = REFUSALS if verb == "start" else (*REFUSALS, Conflict)  # a start waits until the stop is through
        if await self._insist(turn, refusals=refusals) is not None:
            self.world.count(f"renter's {verb}")
            if verb == "stop":
                self.stopped.add(cluster_id)
                if self._turning.random() < 0.5:
                    await self._turn(cluster_id)

    async def _trespass(self) -> None:
        """Try to delete what is somebody else's; it must not be found."""
        others = [c for renter in self.world.renters if renter is not self for c in renter.living]
        if not others:
            return
        foreign = self._luck.choice(others)
        try:
            await self.world.master.ask(lambda rooms: rooms.clusters.delete(self.principal, foreign))
        except (WindrowError, TimeoutError):
            return
        self.trespasses.append(foreign)

    async def _insist(self, work: Any, is_heard: bool = False, refusals: Refusals = REFUSALS) -> Any:
        for _ in range(TRIES):
            try:
                answer = await self.world.master.ask(work)
                if is_heard or self._luck.random() >= LOST_ANSWERS:
                    return answer
                self.world.count("answer lost")
            except refusals as error:
                self.refused[error.code] = self.refused.get(error.code, 0) + 1
                return None
            except (WindrowError, TimeoutError):
                await asyncio.sleep(1 + 2 * self._luck.random())
        return None
