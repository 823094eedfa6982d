"""Beside each kept route what its lists show: the forecast, and the job that followed it."""

import json
import zlib

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
    jobs = sa.table("jobs", sa.column("job_id"), sa.column("request", sa.JSON()))
    connection = op.get_bind()
    for route_id, record in connection.execute(sa.select(routes.c.route_id, routes.c.record)).all():
        said = json.loads(zlib.decompress(record))
        best = next((one for one in said["ranked"] if not one["place"]["not_usable"]), None)
        followed = jobs.c.request["route_id"].as_string() == route_id
        first = connection.scalar(sa.select(sa.func.min(jobs.c.job_id)).where(followed))
        values = {"hours": said["work"]["hours"], "chosen": best and best["place"]["backend"], "job_id": first}
        change = sa.update(routes).where(routes.c.route_id == route_id)
        connection.execute(change.values(taken=sa.null() if best is None else best, **values))
