"""Reports that are sent by mail at chosen times."""

import sqlalchemy as sa
from alembic import op

revision = "0047_report_schedules"
down_revision = "0046_channels"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "report_schedules",
        sa.Column("schedule_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("cron", sa.String(length=100), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("query", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("due_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("sent_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_report_schedules_account_id_accounts")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_report_schedules_user_id_users")),
        sa.PrimaryKeyConstraint("schedule_id", name=op.f("pk_report_schedules")),
    )
    for name in ("account_id", "due_at_ns", "user_id"):
        op.create_index(op.f(f"ix_report_schedules_{name}"), "report_schedules", [name])
