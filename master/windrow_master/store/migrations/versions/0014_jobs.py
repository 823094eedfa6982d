"""Jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0014_jobs"
down_revision = "0013_artefacts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; there are no jobs."""
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("group_id", sa.String(length=64), nullable=False),
        sa.Column("array_index", sa.BigInteger(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("folder_bytes", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("request_key", sa.String(length=200), nullable=True),
        sa.Column("request_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_account_id"), "jobs", ["account_id"], unique=False)
    op.create_index(op.f("ix_jobs_group_id"), "jobs", ["group_id"], unique=False)
    op.create_index("uq_jobs_request_key", "jobs", ["account_id", "request_key", "array_index"], unique=True)
    op.create_index(
        "ix_jobs_living",
        "jobs",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("ended_at_ns IS NULL"),
        postgresql_where=sa.text("ended_at_ns IS NULL"),
    )


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("jobs")
