"""What is needed to let go of old records, and to restore a backup."""

revision = "0027_growth"
down_revision = "0026_sealed_env"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""


def downgrade() -> None:
    """Lead back to the revision before."""
