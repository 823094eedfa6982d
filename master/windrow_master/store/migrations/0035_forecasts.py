"""Beside each kept route what its lists show: the forecast, and the job that followed it."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0035_forecasts"
down_revision = "0034_routes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("routes", sa.Column("hours", sa.Float(), nullable=True))
    op.add_column("routes", sa.Column("chosen", sa.String(length=512), nullable=True))
    op.add_column("routes", sa.Column("taken", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("routes", sa.Column("job_id", sa.String(length=64), nullable=True))
    names = ("route_id", "record", "hours", "chosen", "job_id")
    routes = sa.table("routes", *map(sa.column, names), sa.column("taken", sa.JSON()))
    connection = op.get_bind()
    followed = _followed(connection)
    for route_id in connection.scalars(sa.select(routes.c.route_id)).all():
        one = routes.c.route_id == route_id
        job_id, request = followed.get(route_id, (None, {}))
        try:
            record: bytes = connection.execute(sa.select(routes.c.record).where(one)).scalar_one()
            said = json.loads(zlib.decompress(record))
            best = next((each for each in said["ranked"] if not each["place"]["not_usable"]), None)
            taken = _taken(said["ranked"], best, request)
            values = {"hours": said["work"]["hours"], "chosen": best and best["place"]["backend"], "job_id": job_id}
        except (zlib.error, ValueError, LookupError, TypeError):  # its list shows it without a forecast
            continue
        connection.execute(sa.update(routes).where(one).values(taken=sa.null() if taken is None else taken, **values))


def _followed(connection: sa.Connection) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The id and request of the first job that follows each route."""
    jobs = sa.table("jobs", sa.column("job_id"), sa.column("request", sa.JSON()))
    route_id = jobs.c.request["route_id"].as_string()
    rows = connection.execute(
        sa.select(route_id, jobs.c.job_id, jobs.c.request).where(route_id.is_not(None)).order_by(jobs.c.job_id.desc())
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _taken(ranked: Sequence[Any], best: Any, request: Mapping[str, Any]) -> Any:
    """The forecast of the place that this request names; where it names none, of the best."""
    host, tier = request.get("host_id"), request.get("tier")
    if host is None and tier is None:
        return best
    hosts = (one for one in ranked if host and one["place"].get("host") == host)
    tiers = (one for one in ranked if one["place"]["where"] == "market" and one["place"]["offer"] == tier)
    return next(hosts, None) or next(tiers, None)
