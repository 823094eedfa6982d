"""Faults of several Masters on one database: deaths, stops, cuts, and answers that are lost."""

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.pair import PairedMaster

if TYPE_CHECKING:
    from tests.simulation.world import World

STRIKES = {
    "stop leader": 3,
    "cut leader from database": 3,
    "end leader's sessions": 1,
    "database fails": 1,
    "lose a commit": 2,
    "hand over": 1,
    "kill standby": 1,
}
"""Each with how often it is drawn."""
STOPPED_S = (1.5, 5.5, 8, 20, 45)
"""From less than a beat's patience to more than anybody's."""
CUT_S = (1, 4, 6, 15)
DOWN_S = (0.2, 2, 8)
Later = Callable[[float, Callable[[], None]], None]


async def strike(world: "World", name: str, luck: random.Random, later: Later) -> None:
    """Let it happen, and repair itself after a while; nothing where it cannot happen now."""
    leader = world.master
    if not isinstance(leader, PairedMaster) or not leader.is_up or leader.rooms is None or leader.is_stopped:
        return
    server = leader.server
    match name:
        case "stop leader":
            leader.stop()
            later(luck.choice(STOPPED_S), leader.go_on)
        case "cut leader from database":
            server.unreachable.add(leader.name)
            if luck.random() < 0.5:
                server.end_sessions(leader.name)  # else the server notices nothing until the cut heals
            later(luck.choice(CUT_S), lambda: server.unreachable.discard(leader.name))
        case "end leader's sessions":
            server.end_sessions(leader.name)
        case "database fails":
            if luck.random() < 0.5:
                server.power.refuse = server.power.steps + luck.randrange(1, 8)
                await asyncio.sleep(luck.random() * 3)
            server.cut_power(luck)
            later(luck.choice(DOWN_S), server.come_back)
        case "lose a commit":
            server.lost_commits[leader.name] = luck.random() < 0.5
        case "hand over":
            leader.hand_over()
            later(luck.choice(DOWN_S), leader.mend)
        case "kill standby":
            _kill_standby(world, luck, later)
    world.count(name)


def _kill_standby(world: "World", luck: random.Random, later: Later) -> None:
    waiting = [master for master in world.masters if master.is_up and master is not world.master]
    for master in waiting[:1]:
        master.kill(None)
        later(luck.choice(DOWN_S), master.mend)
