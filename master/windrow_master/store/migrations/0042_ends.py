"""The end of projects: when one was deleted and purged, and offers to transfer one to another organisation."""

import sqlalchemy as sa
from alembic import op

revision = "0042_ends"
down_revision = "0041_spending_limits"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("accounts", sa.Column("deleted_at_ns", sa.BigInteger(), nullable=True))
    op.add_column("accounts", sa.Column("purged_at_ns", sa.BigInteger(), nullable=True))
    op.create_table(
        "project_transfers",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("organisation_id", sa.String(length=64), nullable=False),
        sa.Column("made_by", sa.String(length=128), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_project_transfers_account_id_accounts")),
        sa.ForeignKeyConstraint(
            ["organisation_id"], ["organisations.id"], name=op.f("fk_project_transfers_organisation_id_organisations")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_project_transfers")),
    )
