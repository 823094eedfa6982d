"""When rentals end by themselves, how their commands ended, and what is kept of them."""

revision = "0025_rentals"
down_revision = "0024_accounts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""


def downgrade() -> None:
    """Lead back to the revision before."""
