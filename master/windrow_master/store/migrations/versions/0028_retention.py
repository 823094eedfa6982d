"""An index to find the subjects of an event, for its page and when it is let go of."""

from alembic import op

revision = "0028_retention"
down_revision = "0027_growth"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_index("ix_event_subjects_event_number", "event_subjects", ["event_number"])


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_index("ix_event_subjects_event_number", table_name="event_subjects")
