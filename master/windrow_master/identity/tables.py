"""Tables of identity: accounts and members; tokens, sign-in links, browsers' sessions and join tokens by hash."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, LargeBinary, String, Table, Text

from windrow_master.store.schema import Whole, metadata

accounts = Table(
    "accounts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("roles", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("suspended_at_ns", Whole),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
    Column("used_at_ns", Whole),
    Column("made_by", String(64)),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("name", String(128), nullable=False),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("roles", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
    Column("revoked_at_ns", Whole),
    Column("last_used_at_ns", Whole),
    Column("made_by", String(64)),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("token_id", String(64), ForeignKey("api_tokens.id"), nullable=False),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("browser", String(128), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("last_used_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
    Column("revoked_at_ns", Whole),
)

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("role", String(20), nullable=False),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
    Column("used_at_ns", Whole),
    Column("used_by", String(64)),
    Column("revoked_at_ns", Whole),
    Column("made_by", String(64)),
)

members = Table(
    "members",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("role", String(20), nullable=False, index=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False),
    Column("name", String(128), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("sign_public", LargeBinary(32), nullable=False, unique=True),
    Column("generation", Whole, nullable=False),
    Column("csr_sha256", LargeBinary(32), nullable=False),
    Column("certificate_pem", Text, nullable=False),
    Column("not_after_ns", Whole, nullable=False),
    Column("standing", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("addresses", JSON, nullable=False),
    Column("joined_at_ns", Whole, nullable=False),
    Column("used_generation", Whole, nullable=False, server_default="0"),
    Column("restored_at_ns", Whole),
)
