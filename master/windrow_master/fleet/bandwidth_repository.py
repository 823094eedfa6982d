"""Reads and writes bandwidth measurements of hosts; the oldest rounds of a host are deleted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, select

from windrow_master.fleet.model import MeasuredRound
from windrow_master.fleet.tables import bandwidth_rounds as table
from windrow_master.store.prepared import Found, Upsert, flat
from windrow_master.store.repository import Repository
from windrow_proto.ids import HostId

KEPT_PER_HOST: Final = 1_024
"""Rows: two months of a round each six hours by relays of three regions."""
_KEY: Final = ("host_id", "nonce", "region")
_PUT: Final = Upsert(table, _KEY, ["at_ns", "up_bps", "down_bps", "relays"])
_GET: Final = Found(
    select(table).where(*(table.c[name] == bindparam(f"wanted_{name}") for name in _KEY)), lambda row: _round(row)
)


class BandwidthRepository(Repository):
    """One row for each round and region."""

    def get(self, host_id: HostId, nonce: str, region: str) -> MeasuredRound | None:
        """Return the results of one region's relays in one round so far."""
        wanted = {"wanted_host_id": host_id, "wanted_nonce": nonce, "wanted_region": region}
        return _GET.one(self._connection, wanted)

    def of_round(self, host_id: HostId, nonce: str) -> Sequence[MeasuredRound]:
        """Return the results of each region's relays in one round so far."""
        query = select(table).where(table.c.host_id == host_id, table.c.nonce == nonce).order_by(table.c.number)
        return [_round(row._mapping) for row in self._connection.execute(query)]

    def put(self, found: MeasuredRound) -> None:
        """Write a round down, in place of what was known of it; of its host the newest KEPT_PER_HOST stay."""
        relays = {access_id: list(figures) for access_id, figures in found.relays.items()}
        _PUT.run(self._connection, flat(found) | {"relays": relays})
        mine = table.c.host_id == found.host_id
        last = select(table.c.number).where(mine).order_by(table.c.number.desc()).offset(KEPT_PER_HOST).limit(1)
        self._connection.execute(delete(table).where(mine, table.c.number <= last.scalar_subquery()))

    def of_host(self, host_id: HostId, limit: int) -> Sequence[MeasuredRound]:
        """Of one host, the newest first."""
        query = select(table).where(table.c.host_id == host_id).order_by(table.c.number.desc()).limit(limit)
        return [_round(row._mapping) for row in self._connection.execute(query)]


def _round(row: Mapping[Any, Any]) -> MeasuredRound:
    values = {name: row[name] for name in MeasuredRound.__dataclass_fields__}
    relays = {access_id: (up, down) for access_id, (up, down) in values["relays"].items()}
    return MeasuredRound(**values | {"relays": relays})
