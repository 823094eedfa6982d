"""The schema of everything, in one migration; it keeps the name of the last of the thirty that made it step by step."""

import sqlalchemy as sa
from alembic import op

revision = "0030_indexes_of_looks"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the schema in an empty database."""
    op.create_table(
        "access_drains",
        sa.Column("access_id", sa.String(length=128), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=128), nullable=False),
        sa.Column("drained_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("access_id", name=op.f("pk_access_drains")),
    )
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("suspended_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("name", name=op.f("uq_accounts_name")),
    )
    op.create_table(
        "artefacts",
        sa.Column("artefact_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("owner_kind", sa.String(length=20), nullable=False),
        sa.Column("owner_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("artefact_id", name=op.f("pk_artefacts")),
        sa.UniqueConstraint("object_key", name=op.f("uq_artefacts_object_key")),
    )
    op.create_index(op.f("ix_artefacts_account_id"), "artefacts", ["account_id"], unique=False)
    op.create_index(op.f("ix_artefacts_expires_at_ns"), "artefacts", ["expires_at_ns"], unique=False)
    op.create_index("uq_artefacts_owner_name", "artefacts", ["owner_kind", "owner_id", "name"], unique=True)
    op.create_table(
        "asks",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("price_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("set_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("set_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "tier", name=op.f("pk_asks")),
    )
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("chain", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_subject_number"), "audit", ["subject", "number"], unique=False)
    op.create_table(
        "balances",
        sa.Column("account", sa.String(length=128), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("balance >= 0 OR account = 'mint:test'", name=op.f("ck_balances_never_below_zero")),
        sa.PrimaryKeyConstraint("account", name=op.f("pk_balances")),
    )
    op.create_table(
        "clusters",
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("rental_id", sa.String(length=64), nullable=False),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("price_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.LargeBinary(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("started_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("request_key", sa.String(length=200), nullable=True),
        sa.Column("request_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("first_port", sa.BigInteger(), nullable=True),
        sa.Column("restarts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("secret", sa.String(length=128), nullable=True),
        sa.Column("network", sa.String(length=20), nullable=True),
        sa.Column("network_reason", sa.Text(), nullable=True),
        sa.Column("needs_login", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("cluster_id", name=op.f("pk_clusters")),
    )
    op.create_index(op.f("ix_clusters_account_id"), "clusters", ["account_id"], unique=False)
    op.create_index(op.f("ix_clusters_phase"), "clusters", ["phase"], unique=False)
    op.create_index(
        "ix_clusters_plain",
        "clusters",
        ["cluster_id"],
        unique=False,
        sqlite_where=sa.text("sealed IS NULL"),
        postgresql_where=sa.text("sealed IS NULL"),
    )
    op.create_index("uq_clusters_request_key", "clusters", ["account_id", "request_key"], unique=True)
    op.create_table(
        "dead_letters",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("origin_boot", sa.LargeBinary(length=16), nullable=False),
        sa.Column("origin_sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_dead_letters")),
    )
    op.create_index(op.f("ix_dead_letters_host_id"), "dead_letters", ["host_id"], unique=False)
    op.create_table(
        "events",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_events")),
        sa.UniqueConstraint("id", name=op.f("uq_events_id")),
    )
    op.create_table(
        "evidence",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("origin_boot", sa.LargeBinary(length=16), nullable=False),
        sa.Column("origin_sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_evidence")),
    )
    op.create_index(op.f("ix_evidence_at_ns"), "evidence", ["at_ns"], unique=False)
    op.create_index("uq_evidence_origin", "evidence", ["host_id", "origin_boot", "origin_sequence"], unique=True)
    op.create_table(
        "evidence_marks",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("origin_boot", sa.LargeBinary(length=16), nullable=False),
        sa.Column("ranges", sa.JSON(), nullable=False),
        sa.Column("updated_at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host_id", "origin_boot", name=op.f("pk_evidence_marks")),
    )
    op.create_index(op.f("ix_evidence_marks_updated_at_ns"), "evidence_marks", ["updated_at_ns"], unique=False)
    op.create_table(
        "gaps",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("lane", sa.BigInteger(), nullable=False),
        sa.Column("origin_boot", sa.LargeBinary(length=16), nullable=False),
        sa.Column("ranges", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(length=128), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gaps")),
    )
    op.create_index(op.f("ix_gaps_host_id"), "gaps", ["host_id"], unique=False)
    op.create_table(
        "hosts",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("owner_account", sa.String(length=64), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("admin_state", sa.String(length=20), nullable=False),
        sa.Column("admin_reason", sa.Text(), nullable=False),
        sa.Column("verify_state", sa.String(length=20), nullable=False),
        sa.Column("link_state", sa.String(length=20), nullable=False),
        sa.Column("link_since_ns", sa.BigInteger(), nullable=False),
        sa.Column("online_since_ns", sa.BigInteger(), nullable=True),
        sa.Column("settled_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_seen_ns", sa.BigInteger(), nullable=True),
        sa.Column("boot_id", sa.LargeBinary(length=16), nullable=True),
        sa.Column("access_id", sa.String(length=128), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=128), nullable=False),
        sa.Column("inventory", sa.LargeBinary(), nullable=True),
        sa.Column("inventory_hash", sa.String(length=64), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("tier_reasons", sa.JSON(), nullable=False),
        sa.Column("bandwidth", sa.JSON(), nullable=True),
        sa.Column("measure_due_ns", sa.BigInteger(), nullable=True),
        sa.Column("default_image", sa.String(length=512), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("verify_due_ns", sa.BigInteger(), nullable=True),
        sa.Column("verify_tries", sa.BigInteger(), nullable=True),
        sa.Column("listed_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("proof", sa.JSON(), nullable=True),
        sa.Column("proof_due_ns", sa.BigInteger(), nullable=True),
        sa.Column("proof_tries", sa.BigInteger(), nullable=True),
        sa.Column("flaps", sa.Double(), server_default="0", nullable=False),
        sa.Column("flaps_at_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_hosts")),
    )
    op.create_index(op.f("ix_hosts_owner_account"), "hosts", ["owner_account"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("request_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_created_at_ns"), "idempotency", ["created_at_ns"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("group_id", sa.String(length=64), nullable=False),
        sa.Column("array_index", sa.BigInteger(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("folder_bytes", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("request_key", sa.String(length=200), nullable=True),
        sa.Column("request_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("login", sa.LargeBinary(), nullable=True),
        sa.Column("sealed_env", sa.LargeBinary(), nullable=True),
        sa.Column("kept_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_account_id"), "jobs", ["account_id"], unique=False)
    op.create_index(op.f("ix_jobs_group_id"), "jobs", ["group_id"], unique=False)
    op.create_index(
        "ix_jobs_living",
        "jobs",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("ended_at_ns IS NULL"),
        postgresql_where=sa.text("ended_at_ns IS NULL"),
    )
    op.create_index(
        "ix_jobs_plain",
        "jobs",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("sealed_env IS NULL"),
        postgresql_where=sa.text("sealed_env IS NULL"),
    )
    op.create_index("uq_jobs_request_key", "jobs", ["account_id", "request_key", "array_index"], unique=True)
    op.create_table(
        "leader",
        sa.Column("seat", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=300), nullable=False),
        sa.CheckConstraint("seat = 1", name=op.f("ck_leader_one_seat")),
        sa.PrimaryKeyConstraint("seat", name=op.f("pk_leader")),
        sa.UniqueConstraint("epoch", name=op.f("uq_leader_epoch")),
    )
    op.create_table(
        "operations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("done_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operations")),
    )
    op.create_index(op.f("ix_operations_subject"), "operations", ["subject"], unique=False)
    op.create_table(
        "receipts",
        sa.Column("workload_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("rental_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("running_ns", sa.BigInteger(), nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("end_reason", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("started_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("signed_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("received_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("workload_id", "number", name=op.f("pk_receipts")),
    )
    op.create_index(op.f("ix_receipts_rental_id"), "receipts", ["rental_id"], unique=False)
    op.create_table(
        "rentals",
        sa.Column("rental_id", sa.String(length=64), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("cluster_name", sa.String(length=128), nullable=False),
        sa.Column("renter", sa.String(length=64), nullable=False),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("price_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("fee_permille", sa.BigInteger(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("opened_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.Column("balance_after", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("charged >= 0 AND charged <= held", name=op.f("ck_rentals_charged_within_held")),
        sa.PrimaryKeyConstraint("rental_id", name=op.f("pk_rentals")),
    )
    op.create_index(op.f("ix_rentals_cluster_id"), "rentals", ["cluster_id"], unique=False)
    op.create_index(
        "ix_rentals_live",
        "rentals",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state != 'closed'"),
        postgresql_where=sa.text("state != 'closed'"),
    )
    op.create_index(op.f("ix_rentals_renter"), "rentals", ["renter"], unique=False)
    op.create_table(
        "templates",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("saved_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("pk_templates")),
    )
    op.create_table(
        "terms",
        sa.Column("epoch", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("started_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("stopped_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("backup_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("epoch", name=op.f("pk_terms")),
    )
    op.create_table(
        "transfers",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("transfer_id", sa.String(length=64), nullable=False),
        sa.Column("debit", sa.String(length=128), nullable=False),
        sa.Column("credit", sa.String(length=128), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("rental_id", sa.String(length=64), nullable=True),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("memo", sa.Text(), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_transfers_amount_positive")),
        sa.CheckConstraint("debit <> credit", name=op.f("ck_transfers_two_accounts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_transfers")),
        sa.UniqueConstraint("transfer_id", name=op.f("uq_transfers_transfer_id")),
    )
    op.create_index(op.f("ix_transfers_credit"), "transfers", ["credit"], unique=False)
    op.create_index(op.f("ix_transfers_debit"), "transfers", ["debit"], unique=False)
    op.create_index(op.f("ix_transfers_rental_id"), "transfers", ["rental_id"], unique=False)
    op.create_table(
        "volume_uses",
        sa.Column("volume_id", sa.String(length=64), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("writes", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("volume_id", "cluster_id", name=op.f("pk_volume_uses")),
    )
    op.create_index(op.f("ix_volume_uses_cluster_id"), "volume_uses", ["cluster_id"], unique=False)
    op.create_table(
        "volumes",
        sa.Column("volume_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("max_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("saved_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("volume_id", name=op.f("pk_volumes")),
    )
    op.create_index("uq_volumes_name", "volumes", ["account_id", "name"], unique=True)
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_api_tokens_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_api_tokens_sha256")),
    )
    op.create_index(op.f("ix_api_tokens_account_id"), "api_tokens", ["account_id"], unique=False)
    op.create_table(
        "bandwidth_rounds",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("up_bps", sa.BigInteger(), nullable=False),
        sa.Column("down_bps", sa.BigInteger(), nullable=False),
        sa.Column("relays", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_bandwidth_rounds_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_bandwidth_rounds")),
    )
    op.create_index("ix_bandwidth_rounds_round", "bandwidth_rounds", ["host_id", "nonce", "region"], unique=True)
    op.create_table(
        "commands",
        sa.Column("command_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("not_after_ns", sa.BigInteger(), nullable=False),
        sa.Column("deadline_ns", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("step", sa.String(length=128), nullable=False),
        sa.Column("progress_permille", sa.BigInteger(), nullable=False),
        sa.Column("error_code", sa.String(length=64), nullable=False),
        sa.Column("error_detail", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("sent_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("heard_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("done_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_commands_host_id_hosts")),
        sa.PrimaryKeyConstraint("command_id", name=op.f("pk_commands")),
    )
    op.create_index("ix_commands_host_created", "commands", ["host_id", "created_at_ns"], unique=False)
    op.create_index(
        "ix_commands_open",
        "commands",
        ["host_id"],
        unique=False,
        sqlite_where=sa.text("done_at_ns IS NULL"),
        postgresql_where=sa.text("done_at_ns IS NULL"),
    )
    op.create_table(
        "event_subjects",
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("event_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["event_number"], ["events.number"], name=op.f("fk_event_subjects_event_number_events"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("subject", "event_number", name=op.f("pk_event_subjects")),
    )
    op.create_index(op.f("ix_event_subjects_event_number"), "event_subjects", ["event_number"], unique=False)
    op.create_table(
        "gpu_benchmarks",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("proof_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_benchmarks_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gpu_benchmarks")),
    )
    op.create_index(
        "ix_gpu_benchmarks_figure", "gpu_benchmarks", ["host_id", "gpu_uuid", "name", "number"], unique=False
    )
    op.create_table(
        "gpu_claims",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("uuid", sa.String(length=128), nullable=False),
        sa.Column("serial", sa.String(length=128), nullable=True),
        sa.Column("since_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_claims_host_id_hosts")),
        sa.PrimaryKeyConstraint("host_id", "uuid", name=op.f("pk_gpu_claims")),
    )
    op.create_index(op.f("ix_gpu_claims_serial"), "gpu_claims", ["serial"], unique=False)
    op.create_index(op.f("ix_gpu_claims_uuid"), "gpu_claims", ["uuid"], unique=False)
    op.create_table(
        "gpu_verifications",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("verification_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("device", sa.String(length=128), nullable=False),
        sa.Column("driver", sa.String(length=128), nullable=False),
        sa.Column("span_ns", sa.BigInteger(), nullable=True),
        sa.Column("pace", sa.String(length=20), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_verifications_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gpu_verifications")),
    )
    op.create_index("ix_gpu_verifications_card", "gpu_verifications", ["host_id", "gpu_uuid", "number"], unique=False)
    op.create_table(
        "host_proofs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("proof_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_host_proofs_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_host_proofs")),
        sa.UniqueConstraint("proof_id", name=op.f("uq_host_proofs_proof_id")),
    )
    op.create_index("ix_host_proofs_host", "host_proofs", ["host_id", "number"], unique=False)
    op.create_table(
        "host_reliability",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("since_ns", sa.BigInteger(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("good", sa.Double(), nullable=False),
        sa.Column("bad", sa.Double(), nullable=False),
        sa.Column("faults", sa.Double(), nullable=False),
        sa.Column("aborts", sa.Double(), nullable=False),
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("event_number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_host_reliability_host_id_hosts")),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_host_reliability")),
    )
    op.create_table(
        "join_tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("used_by", sa.String(length=64), nullable=True),
        sa.Column("revoked_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_join_tokens_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_join_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_join_tokens_sha256")),
    )
    op.create_index(op.f("ix_join_tokens_account_id"), "join_tokens", ["account_id"], unique=False)
    op.create_table(
        "members",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("sign_public", sa.LargeBinary(length=32), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("csr_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("certificate_pem", sa.Text(), nullable=False),
        sa.Column("not_after_ns", sa.BigInteger(), nullable=False),
        sa.Column("standing", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("addresses", sa.JSON(), nullable=False),
        sa.Column("joined_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("restored_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_members_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_members")),
        sa.UniqueConstraint("sign_public", name=op.f("uq_members_sign_public")),
    )
    op.create_index(op.f("ix_members_role"), "members", ["role"], unique=False)
    op.create_table(
        "rental_lines",
        sa.Column("workload_id", sa.String(length=64), nullable=False),
        sa.Column("rental_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("price_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("lease_from_ns", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_ns", sa.BigInteger(), nullable=False),
        sa.Column("seen_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("signed_ns", sa.BigInteger(), nullable=False),
        sa.Column("receipts", sa.BigInteger(), nullable=False),
        sa.Column("first_number", sa.BigInteger(), nullable=True),
        sa.Column("last_number", sa.BigInteger(), nullable=True),
        sa.Column("final_number", sa.BigInteger(), nullable=True),
        sa.Column("started_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.Column("fee_charged", sa.BigInteger(), nullable=False),
        sa.Column("runs_from_ns", sa.BigInteger(), nullable=True),
        sa.Column("cut_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("silent_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("silent_since_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["rental_id"], ["rentals.rental_id"], name=op.f("fk_rental_lines_rental_id_rentals")),
        sa.PrimaryKeyConstraint("workload_id", name=op.f("pk_rental_lines")),
    )
    op.create_index(op.f("ix_rental_lines_rental_id"), "rental_lines", ["rental_id"], unique=False)
    op.create_table(
        "service_traffic",
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("connections", sa.BigInteger(), nullable=False),
        sa.Column("bytes_in", sa.BigInteger(), nullable=False),
        sa.Column("bytes_out", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["clusters.cluster_id"], name=op.f("fk_service_traffic_cluster_id_clusters")
        ),
        sa.PrimaryKeyConstraint("cluster_id", name=op.f("pk_service_traffic")),
    )
    op.create_table(
        "sign_in_links",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_sign_in_links_account_id_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_links")),
        sa.UniqueConstraint("sha256", name=op.f("uq_sign_in_links_sha256")),
    )
    op.create_index(op.f("ix_sign_in_links_account_id"), "sign_in_links", ["account_id"], unique=False)
    op.create_table(
        "slots",
        sa.Column("slot_id", sa.String(length=128), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("unavailable", sa.Text(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=True),
        sa.Column("hold_expires_ns", sa.BigInteger(), nullable=True),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("tier_reasons", sa.JSON(), nullable=False),
        sa.Column("changed_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("isolation", sa.String(length=12), server_default="whole", nullable=False),
        sa.Column("card_uuid", sa.String(length=128), nullable=True),
        sa.Column("profile", sa.String(length=32), nullable=True),
        sa.Column("share_milli", sa.BigInteger(), server_default="1000", nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_slots_host_id_hosts")),
        sa.PrimaryKeyConstraint("slot_id", name=op.f("pk_slots")),
    )
    op.create_index(op.f("ix_slots_hold_expires_ns"), "slots", ["hold_expires_ns"], unique=False)
    op.create_index(op.f("ix_slots_holder"), "slots", ["holder"], unique=False)
    op.create_index(op.f("ix_slots_host_id"), "slots", ["host_id"], unique=False)
    op.create_table(
        "workloads",
        sa.Column("workload_id", sa.String(length=64), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("host_name", sa.String(length=128), nullable=False),
        sa.Column("runtime", sa.String(length=20), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("cpus", sa.BigInteger(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("running_ns", sa.BigInteger(), nullable=False),
        sa.Column("ports", sa.JSON(), nullable=False),
        sa.Column("create_command", sa.String(length=64), nullable=True),
        sa.Column("delete_command", sa.String(length=64), nullable=True),
        sa.Column("lost_since_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("is_released", sa.Boolean(), nullable=False),
        sa.Column("rank", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("start_command", sa.String(length=64), nullable=True),
        sa.Column("replaced_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("is_past", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("results", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.cluster_id"], name=op.f("fk_workloads_cluster_id_clusters")),
        sa.PrimaryKeyConstraint("workload_id", name=op.f("pk_workloads")),
    )
    op.create_index(op.f("ix_workloads_cluster_id"), "workloads", ["cluster_id"], unique=False)
    op.create_index(
        "ix_workloads_held",
        "workloads",
        ["host_id"],
        unique=False,
        sqlite_where=sa.text("is_released IS 0"),
        postgresql_where=sa.text("is_released IS false"),
    )
    op.create_table(
        "grants",
        sa.Column("slot_id", sa.String(length=128), nullable=False),
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("granted_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["slot_id"], ["slots.slot_id"], name=op.f("fk_grants_slot_id_slots")),
        sa.PrimaryKeyConstraint("slot_id", "token", name=op.f("pk_grants")),
    )
    op.create_index(op.f("ix_grants_holder"), "grants", ["holder"], unique=False)
    op.create_index(
        "uq_grants_open",
        "grants",
        ["slot_id"],
        unique=True,
        sqlite_where=sa.text("ended_at_ns IS NULL"),
        postgresql_where=sa.text("ended_at_ns IS NULL"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("browser", sa.String(length=128), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_sessions_account_id_accounts")),
        sa.ForeignKeyConstraint(["token_id"], ["api_tokens.id"], name=op.f("fk_sessions_token_id_api_tokens")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("sha256", name=op.f("uq_sessions_sha256")),
    )
    op.create_index(op.f("ix_sessions_account_id"), "sessions", ["account_id"], unique=False)
    op.execute("INSERT INTO leader (seat, epoch, beat, holder, address) VALUES (1, 0, 0, '', '')")
