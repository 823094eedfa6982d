"""Accounts that an operator adds, suspends and credits; what tokens made."""

revision = "0024_accounts"
down_revision = "0023_flaps"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""


def downgrade() -> None:
    """Lead back to the revision before."""
