"""Environment values that are sealed, and forgotten at the end."""

import sqlalchemy as sa
from alembic import op

revision = "0026_sealed_env"
down_revision = "0025_rentals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; what is in clear is sealed at the start, by who has the key."""
    for table, key, column in (("clusters", "cluster_id", "sealed"), ("jobs", "job_id", "sealed_env")):
        with op.batch_alter_table(table) as altered:
            altered.add_column(sa.Column(column, sa.LargeBinary(), nullable=True))
        is_plain = sa.text(f"{column} IS NULL")
        op.create_index(f"ix_{table}_plain", table, [key], sqlite_where=is_plain, postgresql_where=is_plain)
    with op.batch_alter_table("templates") as templates:
        templates.add_column(sa.Column("sealed", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before. Sealed values are lost."""
    with op.batch_alter_table("templates") as templates:
        templates.drop_column("sealed")
    for table, column in (("jobs", "sealed_env"), ("clusters", "sealed")):
        op.drop_index(f"ix_{table}_plain", table)
        with op.batch_alter_table(table) as altered:
            altered.drop_column(column)
