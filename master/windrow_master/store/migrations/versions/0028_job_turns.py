"""Jobs in turn by account."""

revision = "0028_job_turns"
down_revision = "0027_growth"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""


def downgrade() -> None:
    """Lead back to the revision before."""
