"""Sign-in of devices, service accounts, and when a session's user last showed a password."""

import sqlalchemy as sa
from alembic import op

revision = "0040_device_and_service"
down_revision = "0039_identity_providers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "service_accounts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_service_accounts_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service_accounts")),
        sa.UniqueConstraint("account_id", "name", name=op.f("uq_service_accounts_account_id_name")),
    )
    op.create_table(
        "device_codes",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("device_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("user_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("network", sa.String(length=64), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("interval_ns", sa.BigInteger(), nullable=False),
        sa.Column("asked_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("approved_by", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_codes")),
        sa.UniqueConstraint("device_sha256", name=op.f("uq_device_codes_device_sha256")),
        sa.UniqueConstraint("user_sha256", name=op.f("uq_device_codes_user_sha256")),
    )
    op.create_index(op.f("ix_device_codes_network"), "device_codes", ["network"])
    op.create_index(op.f("ix_device_codes_expires_at_ns"), "device_codes", ["expires_at_ns"])
    op.add_column("api_tokens", sa.Column("service_id", sa.String(length=64), nullable=True))
    op.add_column("api_tokens", sa.Column("last_used_address", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_api_tokens_service_id"), "api_tokens", ["service_id"])
    op.add_column("sessions", sa.Column("proved_at_ns", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE sessions SET proved_at_ns = created_at_ns")
