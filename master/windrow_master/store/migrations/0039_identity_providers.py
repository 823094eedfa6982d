"""Identity providers (OpenID Connect), and who is which user there."""

import sqlalchemy as sa
from alembic import op

revision = "0039_identity_providers"
down_revision = "0038_object_shares"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "identity_providers",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("organisation_id", sa.String(length=64), nullable=True),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.Column("creates_users", sa.Boolean(), nullable=False),
        sa.Column("is_private", sa.Boolean(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("group_claim", sa.String(length=128), nullable=False),
        sa.Column("groups", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"], ["organisations.id"], name=op.f("fk_identity_providers_organisation_id_organisations")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_identity_providers")),
    )
    op.create_table(
        "user_identities",
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=320), nullable=False),
        sa.Column("granted", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["provider"], ["identity_providers.name"], name=op.f("fk_user_identities_provider_identity_providers")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_user_identities_user_id_users")),
        sa.PrimaryKeyConstraint("provider", "subject", name=op.f("pk_user_identities")),
    )
    op.create_index(op.f("ix_user_identities_user_id"), "user_identities", ["user_id"])
