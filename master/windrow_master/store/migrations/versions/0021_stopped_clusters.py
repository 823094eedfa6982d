"""Clusters that are stopped and started again: a rental for each start, and which workloads are of an earlier one."""

import sqlalchemy as sa
from alembic import op

revision = "0021_stopped_clusters"
down_revision = "0020_volumes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; what there was never stopped, and no login of it is known."""
    with op.batch_alter_table("clusters") as clusters:
        clusters.add_column(sa.Column("needs_login", sa.Boolean(), nullable=False, server_default="0"))
    with op.batch_alter_table("workloads") as workloads:
        workloads.add_column(sa.Column("is_past", sa.Boolean(), nullable=False, server_default="0"))
    _drop_indexes()
    with op.batch_alter_table("rentals") as rentals:
        rentals.drop_constraint(op.f("uq_rentals_cluster_id"), type_="unique")
    op.create_index(op.f("ix_rentals_cluster_id"), "rentals", ["cluster_id"], unique=False)
    _make_indexes()


def downgrade() -> None:
    """Lead back to the revision before; it fails, and changes nothing, where a cluster was started twice."""
    op.drop_index(op.f("ix_rentals_cluster_id"), table_name="rentals")
    _drop_indexes()
    with op.batch_alter_table("rentals") as rentals:
        rentals.create_unique_constraint(op.f("uq_rentals_cluster_id"), ["cluster_id"])
    _make_indexes()
    with op.batch_alter_table("workloads") as workloads:
        workloads.drop_column("is_past")
    with op.batch_alter_table("clusters") as clusters:
        clusters.drop_column("needs_login")


def _drop_indexes() -> None:
    """SQLite makes the table anew to let go of a constraint, and its indexes in no order of ours."""
    for name in ("ix_rentals_live", "ix_rentals_renter"):
        op.drop_index(op.f(name), table_name="rentals")


def _make_indexes() -> None:
    is_live = sa.text("state != 'closed'")
    op.create_index("ix_rentals_live", "rentals", ["state"], sqlite_where=is_live, postgresql_where=is_live)
    op.create_index(op.f("ix_rentals_renter"), "rentals", ["renter"], unique=False)
