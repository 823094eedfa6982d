"""Sessions: browsers that are signed in, by the hash of a secret of their own; and when each token was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0004_sessions"
down_revision = "0003_leases"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("api_tokens", sa.Column("last_used_at_ns", sa.BigInteger(), nullable=True))
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("browser", sa.String(length=128), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_sessions_account_id_accounts")),
        sa.ForeignKeyConstraint(["token_id"], ["api_tokens.id"], name=op.f("fk_sessions_token_id_api_tokens")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("sha256", name=op.f("uq_sessions_sha256")),
    )
    op.create_index(op.f("ix_sessions_account_id"), "sessions", ["account_id"])


def downgrade() -> None:
    """Lead back to the revision before: every browser signs in again."""
    op.drop_index(op.f("ix_sessions_account_id"), table_name="sessions")
    op.drop_table("sessions")
    op.drop_column("api_tokens", "last_used_at_ns")
