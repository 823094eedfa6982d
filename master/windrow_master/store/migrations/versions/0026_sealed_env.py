"""Environment values that are sealed, and forgotten at the end."""

revision = "0026_sealed_env"
down_revision = "0025_rentals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""


def downgrade() -> None:
    """Lead back to the revision before."""
