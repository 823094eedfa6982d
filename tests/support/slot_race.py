"""Several processes that each believe they lead and race for the slots of one database.

    python -m tests.support.slot_race URL COUNT GUARDS

GUARDS: `shipped`; `room` (the same, and each slot takes a processor of the host); `swap` (only the compare-and-set is
left), `index` (only the database's own guard), `none`.
Lines of JSON tell what all of them answer, in a list: each says that it is ready, then for each `go` what it was
granted; after `free` the same slots are given back, after `look` it reads anew. Each decides on what it read before
anybody wrote: the worst that a stale leader can know. They are forked of one process, which has loaded everything once.
"""

import contextlib
import json
import multiprocessing
import random
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any, TypeVar
from unittest import mock

from sqlalchemy import Connection, Engine, bindparam, update
from sqlalchemy.exc import OperationalError

from windrow_master.fleet import repository as fleet_repository
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.slot_leases import SlotLeases
from windrow_master.fleet.tables import slots as slots_table
from windrow_master.store.engine import engines_of
from windrow_master.store.messages import Messages
from windrow_master.store.prepared import Made
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId
from windrow_proto.model import SlotGrant

T = TypeVar("T")
TRIES = 200
"""Against `database is locked` on a busy machine: losing a turn is no verdict."""

_BLIND = Made(update(slots_table).where(slots_table.c.slot_id == bindparam("was_id")), slots_table.c.keys())


def blind_swap(self: SlotRepository, before: Any, after: Any) -> bool:
    """Write the row whatever it says now, and keep no row of the holding."""
    values = fleet_repository._slot_values(after) | {"was_id": before.slot_id}
    return _BLIND.run(self._connection, values) == 1


@contextlib.contextmanager
def without(guards: str) -> Iterator[None]:
    """Take protections out of the shipped code."""
    with contextlib.ExitStack() as stack:
        if guards == "swap":
            stack.enter_context(mock.patch.object(SlotRepository, "_open_grant", lambda self, slot, holder: None))
        if guards == "index":
            stack.enter_context(mock.patch.object(fleet_repository, "_SWAP_SLOT", _BLIND))
        if guards == "none":
            stack.enter_context(mock.patch.object(SlotRepository, "swap", blind_swap))
        yield


class Racer:
    """A Master that never looks whether it still leads."""

    def __init__(self, engine: Engine, number: int, cpus: int = 0) -> None:
        self._cpus = cpus
        self._engine, self._luck = engine, random.Random(number)
        self._holder = ClusterId(f"cluster_{number}")
        self._leases = SlotLeases(lambda host_id: None)

    def read(self) -> list[Any]:
        """All slots as they are now."""
        return self._try(lambda uow: list(uow[SlotRepository].list_all()))

    def race(self, seen: list[Any]) -> list[SlotGrant]:
        """Try for every slot, in an order of its own."""
        won: list[SlotGrant] = []
        for slot in self._luck.sample(seen, len(seen)):
            with contextlib.suppress(Conflict):
                won += self._try(lambda uow, slot=slot: self._grant(uow, slot))  # type: ignore[misc]
        return won

    def release(self, won: list[SlotGrant]) -> int:
        """Give back what was won."""
        return sum(self._try(lambda uow, g=grant: self._leases.released(uow, [g], "race", "over")) for grant in won)  # type: ignore[misc]

    def _grant(self, uow: UnitOfWork, slot: Any) -> tuple[SlotGrant, ...]:
        if self._cpus:
            return self._leases.grant(uow, [slot.slot_id], self._holder, "race", "race", self._cpus)
        with mock.patch.object(self._leases, "_load", lambda uow, slot_ids: [slot]):
            return self._leases.grant(uow, [slot.slot_id], self._holder, "race", "race")

    def _try(self, work: Callable[[UnitOfWork], T]) -> T:
        for turn in range(TRIES):
            try:
                with self._engine.begin() as connection:
                    return work(_unit(connection))
            except OperationalError:
                if turn == TRIES - 1:
                    raise
        raise AssertionError("not reached")


def _unit(connection: Connection) -> UnitOfWork:
    unit = UnitOfWork(connection, 0, 1, lambda count: b"\0" * count, Messages())
    # The audit's chain has one writer by its own rules; here several pretend, and the slots alone are judged.
    unit.audit = lambda *_, **__: None  # type: ignore[method-assign]
    return unit


def run(pipe: Pipe, url: str, number: int, guards: str) -> None:
    """One racer: answers each word of the process that started it."""
    racer = Racer(engines_of(url).writer, number, int(guards == "room"))
    seen, won = racer.read(), []
    pipe.send("ready")
    with without(guards):
        while True:
            word = pipe.recv()
            if word == "go":
                won = racer.race(seen)
                pipe.send([(grant.slot_id, grant.token) for grant in won])
            elif word == "free":
                pipe.send(racer.release(won))
            else:
                seen = racer.read()
                pipe.send("ready")


def main() -> None:
    """Let them race until the parent closes the pipe; they end with this process."""
    url, count, guards = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    fork = multiprocessing.get_context("fork")
    pipes = []
    for number in range(count):
        ours, theirs = fork.Pipe()
        fork.Process(target=run, args=(theirs, url, number, guards), daemon=True).start()
        pipes.append(ours)
    print(json.dumps([pipe.recv() for pipe in pipes]), flush=True)
    for line in sys.stdin:
        for pipe in pipes:
            pipe.send(line.strip())
        print(json.dumps([pipe.recv() for pipe in pipes]), flush=True)


if __name__ == "__main__":
    main()
