"""How much of its host's processors and memory the holder of a slot has with it."""

import sqlalchemy as sa
from alembic import op

revision = "0050_slot_sizes"
down_revision = "0049_idle_policy"
branch_labels = None
depends_on = None

_HELD = """
UPDATE slots SET {column} = COALESCE((
    SELECT SUM(workloads.{column}) FROM workloads
    WHERE workloads.host_id = slots.host_id AND workloads.cluster_id = slots.holder AND NOT workloads.is_released
), 0)
WHERE holder IS NOT NULL AND slot_id = (
    SELECT MIN(other.slot_id) FROM slots AS other
    WHERE other.host_id = slots.host_id AND other.holder = slots.holder
)
"""
"""The first of a holder's slots on a host says it for all."""


def upgrade() -> None:
    """Lead from the revision before to this one."""
    for column in ("cpus", "memory_bytes"):
        op.add_column("slots", sa.Column(column, sa.BigInteger(), server_default="0", nullable=False))
        op.execute(sa.text(_HELD.format(column=column)))
