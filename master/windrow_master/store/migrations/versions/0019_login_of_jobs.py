"""The login of a job's registry, sealed, while the job goes on."""

import sqlalchemy as sa
from alembic import op

revision = "0019_login_of_jobs"
down_revision = "0018_templates"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; what there was had none."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("login", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("login")
