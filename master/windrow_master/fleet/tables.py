"""The fleet's tables: hosts, slots, commands, and the records received from hosts."""

from sqlalchemy import JSON, Boolean, Column, Double, ForeignKey, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Serial, Whole, metadata

hosts = Table(
    "hosts",
    metadata,
    Column("host_id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("owner_account", String(64), nullable=False, index=True),
    Column("simulated", Boolean, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("admin_state", String(20), nullable=False),
    Column("admin_reason", Text, nullable=False),
    Column("verify_state", String(20), nullable=False),
    Column("link_state", String(20), nullable=False),
    Column("link_since_ns", Whole, nullable=False),
    Column("online_since_ns", Whole),
    Column("settled_at_ns", Whole),
    Column("last_seen_ns", Whole),
    Column("boot_id", LargeBinary(16)),
    Column("access_id", String(128), nullable=False),
    Column("region", String(128), nullable=False),
    Column("address", String(128), nullable=False),
    Column("inventory", LargeBinary),
    Column("inventory_hash", String(64), nullable=False),
    Column("conditions", JSON, nullable=False),
    Column("tier", String(64), nullable=False),
    Column("tier_reasons", JSON, nullable=False),
    Column("bandwidth", JSON),
    Column("measure_due_ns", Whole),
    Column("default_image", String(512)),
    Column("verify_due_ns", Whole),
    Column("verify_tries", Whole),
    Column("listed_at_ns", Whole),
    Column("proof", JSON),
    Column("proof_due_ns", Whole),
    Column("proof_tries", Whole),
    Column("version", Whole, nullable=False),
    Column("flaps", Double, nullable=False, server_default="0"),
    Column("flaps_at_ns", Whole, nullable=False, server_default="0"),
    Column("country", String(2)),
    Column("labels", JSON),
)

slots = Table(
    "slots",
    metadata,
    Column("slot_id", String(128), primary_key=True),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False, index=True),
    Column("kind", String(10), nullable=False),
    Column("gpu_uuid", String(128)),
    Column("state", String(20), nullable=False),
    Column("unavailable", Text),
    Column("token", Whole, nullable=False),
    Column("holder", String(64), index=True),
    Column("hold_expires_ns", Whole, index=True),
    Column("tier", String(64), nullable=False),
    Column("tier_reasons", JSON, nullable=False),
    Column("changed_at_ns", Whole, nullable=False),
    Column("isolation", String(12), nullable=False, server_default="whole"),
    Column("card_uuid", String(128)),
    Column("profile", String(32)),
    Column("share_milli", Whole, nullable=False, server_default="1000"),
    Column("cpus", Whole, nullable=False, server_default="0"),
    Column("memory_bytes", Whole, nullable=False, server_default="0"),
)

gpu_claims = Table(
    "gpu_claims",
    metadata,
    # What the newest inventory of a host says it has. Two may say so of one card: the indexes find them.
    Column("host_id", String(64), ForeignKey("hosts.host_id"), primary_key=True),
    Column("uuid", String(128), primary_key=True, index=True),
    Column("serial", String(128), index=True),
    Column("since_ns", Whole, nullable=False),
)

gpu_verifications = Table(
    "gpu_verifications",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("verification_id", String(64), nullable=False),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    Column("gpu_uuid", String(128), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("detail", Text, nullable=False),
    Column("device", String(128), nullable=False),
    Column("driver", String(128), nullable=False),
    Column("span_ns", Whole),
    Column("pace", String(20)),
    Column("evidence", JSON, nullable=False),
    Index("ix_gpu_verifications_card", "host_id", "gpu_uuid", "number"),
)

gpu_benchmarks = Table(
    "gpu_benchmarks",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    Column("gpu_uuid", String(128), nullable=False),
    # The test rental that measured it.
    Column("proof_id", String(64), nullable=False),
    Column("name", String(64), nullable=False),
    Column("value", Double, nullable=False),
    Column("unit", String(32), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Index("ix_gpu_benchmarks_figure", "host_id", "gpu_uuid", "name", "number"),
)

bandwidth_rounds = Table(
    "bandwidth_rounds",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    # Which round it was; relays of other regions have rows of their own.
    Column("nonce", String(64), nullable=False),
    Column("region", String(128), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("up_bps", Whole, nullable=False),
    Column("down_bps", Whole, nullable=False),
    # By whom: [up, down] by their ids.
    Column("relays", JSON, nullable=False),
    Index("ix_bandwidth_rounds_round", "host_id", "nonce", "region", unique=True),
)

host_reliability = Table(
    "host_reliability",
    metadata,
    Column("host_id", String(64), ForeignKey("hosts.host_id"), primary_key=True),
    Column("since_ns", Whole, nullable=False),
    # Weights as they were at that moment; they decay.
    Column("at_ns", Whole, nullable=False),
    Column("good", Double, nullable=False),
    Column("bad", Double, nullable=False),
    Column("faults", Double, nullable=False),
    Column("aborts", Double, nullable=False),
    Column("figure", Double),
    # Events up to this one were counted.
    Column("event_number", Whole, nullable=False),
)

fleet_counts = Table(
    "fleet_counts",
    metadata,
    Column("span_s", Whole, primary_key=True),
    # The beginning of the span; the rest are sums over its looks.
    Column("at_ns", Whole, primary_key=True),
    *(Column(name, Whole, nullable=False) for name in ("looks", "rented", "idle", "paused", "faulty", "offline")),
)


grants = Table(
    "grants",
    metadata,
    # A token is used once per slot, for ever: nobody can be given one that somebody else had.
    Column("slot_id", String(128), ForeignKey("slots.slot_id"), primary_key=True),
    Column("token", Whole, primary_key=True, autoincrement=False),
    Column("holder", String(64), nullable=False, index=True),
    Column("granted_at_ns", Whole, nullable=False),
    Column("ended_at_ns", Whole),
)
# The database's own word on "one holder per slot": it stands even if the compare-and-set before it were forgotten.
Index(
    "uq_grants_open",
    grants.c.slot_id,
    unique=True,
    sqlite_where=grants.c.ended_at_ns.is_(None),
    postgresql_where=grants.c.ended_at_ns.is_(None),
)

commands = Table(
    "commands",
    metadata,
    Column("command_id", String(64), primary_key=True),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    Column("kind", Whole, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("subject", String(128), nullable=False),
    Column("not_after_ns", Whole, nullable=False),
    Column("deadline_ns", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("state", String(20), nullable=False),
    Column("step", String(128), nullable=False),
    Column("progress_permille", Whole, nullable=False),
    Column("error_code", String(64), nullable=False),
    Column("error_detail", Text, nullable=False),
    Column("result", JSON, nullable=False),
    Column("sent_at_ns", Whole),
    Column("heard_at_ns", Whole),
    Column("done_at_ns", Whole),
    Index("ix_commands_host_created", "host_id", "created_at_ns"),
)
# The outbox in two small indexes: only the commands that are still open are in them.
Index(
    "ix_commands_open",
    commands.c.host_id,
    sqlite_where=commands.c.done_at_ns.is_(None),
    postgresql_where=commands.c.done_at_ns.is_(None),
)

marks = Table(
    "evidence_marks",
    metadata,
    Column("host_id", String(64), primary_key=True),
    Column("origin_boot", LargeBinary(16), primary_key=True),
    Column("ranges", JSON, nullable=False),
    Column("updated_at_ns", Whole, nullable=False, index=True),
)

evidence = Table(
    "evidence",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("host_id", String(64), nullable=False),
    Column("origin_boot", LargeBinary(16), nullable=False),
    Column("origin_sequence", Whole, nullable=False),
    Column("kind", Whole, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("at_ns", Whole, nullable=False, index=True),
    # The second guard of "stored exactly once", beside the marks.
    Index("uq_evidence_origin", "host_id", "origin_boot", "origin_sequence", unique=True),
)

gaps = Table(
    "gaps",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("host_id", String(64), nullable=False, index=True),
    Column("lane", Whole, nullable=False),
    Column("origin_boot", LargeBinary(16), nullable=False),
    Column("ranges", JSON, nullable=False),
    Column("reason", String(128), nullable=False),
    Column("at_ns", Whole, nullable=False),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("host_id", String(64), nullable=False, index=True),
    Column("origin_boot", LargeBinary(16), nullable=False),
    Column("origin_sequence", Whole, nullable=False),
    Column("kind", Whole, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("error", Text, nullable=False),
    Column("at_ns", Whole, nullable=False),
)
