"""Reads and writes the tables of the Accesses; rows go in and out as values of accesses/model.py."""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import delete, insert, select

from windrow_master.accesses.model import Drained
from windrow_master.accesses.tables import access_drains
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccessId


class DrainRepository(Repository):
    """The Accesses that are drained."""

    def list_all(self) -> Sequence[Drained]:
        """All of them, by id."""
        query = select(access_drains).order_by(access_drains.c.access_id)
        return [Drained(**row._mapping) for row in self._connection.execute(query)]

    def add(self, row: Drained) -> None:
        """Add one that was not there."""
        self._connection.execute(insert(access_drains).values(**asdict(row)))

    def remove(self, access_id: AccessId) -> None:
        """Remove one; none is there afterwards."""
        self._connection.execute(delete(access_drains).where(access_drains.c.access_id == access_id))
