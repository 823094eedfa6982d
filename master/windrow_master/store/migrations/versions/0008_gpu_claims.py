"""The cards that each host claims: a card that two hosts claim at once is found by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0008_gpu_claims"
down_revision = "0007_service_traffic"
branch_labels = None
depends_on = None

GONE = "the host no longer reports this GPU"
"""As a slot said it at the revision before."""


def upgrade() -> None:
    """Lead from the revision before to this one; serial numbers come with each host's next inventory."""
    op.create_table(
        "gpu_claims",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("uuid", sa.String(length=128), nullable=False),
        sa.Column("serial", sa.String(length=128), nullable=True),
        sa.Column("since_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_claims_host_id_hosts")),
        sa.PrimaryKeyConstraint("host_id", "uuid", name=op.f("pk_gpu_claims")),
    )
    op.create_index(op.f("ix_gpu_claims_serial"), "gpu_claims", ["serial"], unique=False)
    op.create_index(op.f("ix_gpu_claims_uuid"), "gpu_claims", ["uuid"], unique=False)
    known = sa.text(
        "INSERT INTO gpu_claims (host_id, uuid, since_ns) SELECT host_id, gpu_uuid, changed_at_ns FROM slots"
        " WHERE gpu_uuid IS NOT NULL AND (unavailable IS NULL OR unavailable <> :gone)"
    )
    op.execute(known.bindparams(gone=GONE))


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("gpu_claims")
