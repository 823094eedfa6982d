"""The market's tables: asks, rentals and their lines, spending limits, receipts as they came, the ledger."""

from sqlalchemy import JSON, Boolean, CheckConstraint, Column, ForeignKey, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Serial, Whole, metadata

asks = Table(
    "asks",
    metadata,
    # Empty for the operator's price: a primary key cannot hold a NULL.
    Column("account_id", String(64), primary_key=True),
    Column("tier", String(64), primary_key=True),
    Column("price_per_hour", Whole, nullable=False),
    Column("set_at_ns", Whole, nullable=False),
    Column("set_by", String(200), nullable=False),
)

rentals = Table(
    "rentals",
    metadata,
    Column("rental_id", String(64), primary_key=True),
    Column("cluster_id", String(64), nullable=False, index=True),
    Column("cluster_name", String(128), nullable=False),
    Column("renter", String(64), nullable=False, index=True),
    Column("tier", String(64), nullable=False),
    Column("price_per_hour", Whole, nullable=False),
    Column("fee_permille", Whole, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("state", String(20), nullable=False),
    Column("opened_at_ns", Whole, nullable=False),
    Column("ended_at_ns", Whole),
    Column("end_reason", Text, nullable=False),
    Column("held", Whole, nullable=False),
    Column("charged", Whole, nullable=False),
    Column("balance_after", Whole),
    Column("budget", Whole),
    Column("spenders", JSON),
    CheckConstraint("charged >= 0 AND charged <= held", name="charged_within_held"),
)
# What is still to be settled, in one small index.
Index(
    "ix_rentals_live",
    rentals.c.state,
    sqlite_where=rentals.c.state != "closed",
    postgresql_where=rentals.c.state != "closed",
)

spending_limits = Table(
    "spending_limits",
    metadata,
    Column("spender_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False, index=True),
    Column("name", String(128), nullable=False),
    Column("max_hourly_cost", Whole),
    Column("max_monthly_cost", Whole),
    Column("max_total_cost", Whole),
    Column("max_leases", Whole),
    Column("idle_ns", Whole),
    Column("spent", Whole, nullable=False),
    Column("month", String(7), nullable=False),
    Column("month_spent", Whole, nullable=False),
    Column("set_at_ns", Whole, nullable=False),
    Column("set_by", String(128), nullable=False),
)

rental_lines = Table(
    "rental_lines",
    metadata,
    Column("workload_id", String(64), primary_key=True),
    Column("rental_id", String(64), ForeignKey("rentals.rental_id"), nullable=False, index=True),
    Column("host_id", String(64), nullable=False),
    Column("provider", String(64), nullable=False),
    Column("price_per_hour", Whole, nullable=False),
    Column("slots", JSON, nullable=False),
    Column("lease_from_ns", Whole, nullable=False),
    Column("lease_until_ns", Whole, nullable=False),
    Column("seen_at_ns", Whole, nullable=False),
    Column("signed_ns", Whole, nullable=False),
    Column("receipts", Whole, nullable=False),
    Column("first_number", Whole),
    Column("last_number", Whole),
    Column("final_number", Whole),
    Column("started_at_ns", Whole),
    Column("end_reason", Text, nullable=False),
    Column("exit_code", Whole),
    Column("charged", Whole, nullable=False),
    Column("fee_charged", Whole, nullable=False),
    Column("runs_from_ns", Whole),
    Column("cut_at_ns", Whole),
    Column("silent_ns", Whole, nullable=False, server_default="0"),
    Column("silent_since_ns", Whole),
)

receipts = Table(
    "receipts",
    metadata,
    Column("workload_id", String(64), primary_key=True),
    Column("number", Whole, primary_key=True),
    Column("rental_id", String(64), nullable=False, index=True),
    Column("host_id", String(64), nullable=False),
    Column("running_ns", Whole, nullable=False),
    Column("is_final", Boolean, nullable=False),
    Column("end_reason", Text, nullable=False),
    Column("exit_code", Whole),
    Column("started_at_ns", Whole, nullable=False),
    Column("signed_at_ns", Whole, nullable=False),
    Column("received_at_ns", Whole, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

transfers = Table(
    "transfers",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("transfer_id", String(64), nullable=False, unique=True),
    Column("debit", String(128), nullable=False, index=True),
    Column("credit", String(128), nullable=False, index=True),
    Column("amount", Whole, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("rental_id", String(64), index=True),
    Column("at_ns", Whole, nullable=False),
    Column("memo", Text, nullable=False),
    CheckConstraint("amount > 0", name="amount_positive"),
    CheckConstraint("debit <> credit", name="two_accounts"),
)

balances = Table(
    "balances",
    metadata,
    Column("account", String(128), primary_key=True),
    Column("balance", Whole, nullable=False),
    CheckConstraint("balance >= 0 OR account = 'mint:test'", name="never_below_zero"),
)
"""The fold of all transfers, kept beside them in one transaction; `MarketService.verify` folds again and compares."""
