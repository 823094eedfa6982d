"""Drains Accesses and lets them serve again: the decision is a row, and listeners tell the Access itself."""

from collections.abc import Callable, Collection, Mapping

from windrow_master.accesses.model import Drained, refusal
from windrow_master.accesses.repository import DrainRepository
from windrow_master.identity.members import accesses_in_force
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccessId


class AccessService:
    """The Accesses that are drained, as the store says. Used on the loop only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._drained: dict[str, Drained] = {
            row.access_id: row for row in store.read_now(lambda uow: uow[DrainRepository].list_all())
        }
        self._listeners: list[Callable[[AccessId], None]] = []

    def on_change(self, listener: Callable[[AccessId], None]) -> None:
        """Call `listener` on the loop whenever an Access was drained or serves again."""
        self._listeners.append(listener)

    def is_drained(self, access_id: str) -> bool:
        """Return whether people took this Access out of service."""
        return access_id in self._drained

    @property
    def drained(self) -> Mapping[str, Drained]:
        """Every drained Access by its id, whether it is attached or not."""
        return self._drained

    async def joined(self) -> frozenset[str]:
        """The ids of Accesses in good standing whose certificate still holds: they are there, or may come back."""
        return await self._store.read(accesses_in_force)

    async def drain(self, wanted: Drained, able: Collection[str]) -> None:
        """Take an Access out of service; the same again changes nothing. `drained_at_ns` of the argument is ignored.

        able: the attached Accesses that have capacity. Raises Conflict where no other one could take its agents.
        """

        def decide(uow: UnitOfWork) -> None:
            access_id = wanted.access_id
            rows = {row.access_id: row for row in uow[DrainRepository].list_all()}
            if access_id in rows:
                return
            refused = refusal(access_id, able, rows)
            if refused is not None:
                raise refused
            row = Drained(access_id, wanted.region, wanted.address, uow.now_wall_ns, wanted.actor, wanted.reason)
            uow[DrainRepository].add(row)
            uow.audit(wanted.actor, "access.drain", access_id, wanted.reason, {"region": wanted.region})
            why = f": {wanted.reason}" if wanted.reason else ""
            text = f"{access_id} is draining: its agents go to other relays{why}"
            uow.event("access.draining", (access_id,), text, {"region": wanted.region}, wanted.actor)
            uow.after_commit(lambda: self._put(access_id, row))

        await self._store.write(decide, name="access.drain")

    async def resume(self, access_id: AccessId, actor: str, reason: str) -> None:
        """Let a drained Access serve again; one that is not drained stays as it is."""

        def decide(uow: UnitOfWork) -> None:
            rows = {row.access_id: row for row in uow[DrainRepository].list_all()}
            row = rows.get(access_id)
            if row is None:
                return
            uow[DrainRepository].remove(access_id)
            uow.audit(actor, "access.resume", access_id, reason, {"region": row.region})
            why = f": {reason}" if reason else ""
            text = f"{access_id} takes agents again{why}"
            uow.event("access.resumed", (access_id,), text, {"region": row.region}, actor)
            uow.after_commit(lambda: self._put(access_id, None))

        await self._store.write(decide, name="access.resume")

    def _put(self, access_id: AccessId, row: Drained | None) -> None:
        if row is None:
            self._drained.pop(access_id, None)
        else:
            self._drained[access_id] = row
        for listener in self._listeners:
            listener(access_id)


def no_access(access_id: str) -> NotFound:
    """Nobody has this id."""
    return NotFound("There is no relay with this id; `windrow access ls` shows them all.", subject=access_id[:64])
