"""Accounts that an operator adds, suspends and credits; what tokens made."""

import sqlalchemy as sa
from alembic import op

revision = "0024_accounts"
down_revision = "0023_flaps"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; nobody is suspended, and which token made which is not known."""
    with op.batch_alter_table("accounts") as accounts:
        accounts.add_column(sa.Column("suspended_at_ns", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("api_tokens") as api_tokens:
        api_tokens.add_column(sa.Column("made_by", sa.String(64), nullable=True))
    with op.batch_alter_table("join_tokens") as join_tokens:
        join_tokens.add_column(sa.Column("made_by", sa.String(64), nullable=True))
    op.create_table(
        "sign_in_links",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("made_by", sa.String(64), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_sign_in_links_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_links")),
        sa.UniqueConstraint("sha256", name=op.f("uq_sign_in_links_sha256")),
    )
    op.create_index(op.f("ix_sign_in_links_account_id"), "sign_in_links", ["account_id"])


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("sign_in_links")
    with op.batch_alter_table("join_tokens") as join_tokens:
        join_tokens.drop_column("made_by")
    with op.batch_alter_table("api_tokens") as api_tokens:
        api_tokens.drop_column("made_by")
    with op.batch_alter_table("accounts") as accounts:
        accounts.drop_column("suspended_at_ns")
