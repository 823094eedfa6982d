"""Shares of clusters, jobs and templates with users, projects and organisations."""

import sqlalchemy as sa
from alembic import op

revision = "0038_object_shares"
down_revision = "0037_secrets"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "object_shares",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("object_kind", sa.String(length=20), nullable=False),
        sa.Column("object_id", sa.String(length=64), nullable=False),
        sa.Column("object_name", sa.String(length=128), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("receiver_kind", sa.String(length=20), nullable=False),
        sa.Column("receiver_id", sa.String(length=64), nullable=False),
        sa.Column("level", sa.String(length=20), nullable=False),
        sa.Column("made_by", sa.String(length=128), nullable=False),
        sa.Column("made_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("until_ns", sa.BigInteger(), nullable=True),
        sa.Column("token_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_object_shares_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_object_shares")),
    )
    for column in ("object_id", "account_id", "receiver_id", "token_id"):
        op.create_index(op.f(f"ix_object_shares_{column}"), "object_shares", [column])
