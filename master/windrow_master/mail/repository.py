"""Reads and writes the mail that is still to be sent."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import delete, func, insert, select, update

from windrow_master.mail.tables import outbox
from windrow_master.store.repository import Repository


@dataclass(frozen=True, slots=True)
class Waiting:
    """One mail that is still to be sent. sealed: its letter; links in it are secrets. tries: that have failed."""

    id: str
    address: str
    sealed: bytes
    written_at_ns: int
    tries: int
    due_at_ns: int


class OutboxRepository(Repository):
    """Mail that waits."""

    def add(self, waiting: Waiting) -> None:
        """Add one."""
        self._connection.execute(insert(outbox).values(**asdict(waiting)))

    def due(self, now_ns: int, limit: int) -> Sequence[Waiting]:
        """Those that are to be sent now, the longest due first."""
        query = select(outbox).where(outbox.c.due_at_ns <= now_ns).order_by(outbox.c.due_at_ns).limit(limit)
        rows = self._connection.execute(query).mappings()
        return [Waiting(**dict(row) | {"sealed": bytes(row["sealed"])}) for row in rows]

    def again(self, mail_id: str, tries: int, due_at_ns: int) -> None:
        """Send it later: so many tries have failed."""
        values = {"tries": tries, "due_at_ns": due_at_ns}
        self._connection.execute(update(outbox).where(outbox.c.id == mail_id).values(**values))

    def forget(self, address: str) -> None:
        """Send none to this address any more, in any case of its letters."""
        self._connection.execute(delete(outbox).where(func.lower(outbox.c.address) == address.lower()))

    def remove(self, mail_id: str) -> None:
        """It is sent, or given up."""
        self._connection.execute(delete(outbox).where(outbox.c.id == mail_id))
