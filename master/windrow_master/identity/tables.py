"""Tables of identity: users, organisations and their projects (accounts), members; what lets them in, by hash."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, LargeBinary, String, Table, Text, UniqueConstraint, false

from windrow_master.store.schema import Whole, metadata

accounts = Table(
    "accounts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("roles", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("suspended_at_ns", Whole),
    Column("organisation_id", String(64), index=True),
    Column("deleted_at_ns", Whole),
    Column("purged_at_ns", Whole),
)

project_transfers = Table(
    "project_transfers",
    metadata,
    Column("account_id", String(64), ForeignKey("accounts.id"), primary_key=True),
    Column("organisation_id", String(64), ForeignKey("organisations.id"), nullable=False),
    Column("made_by", String(128), nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
)

organisations = Table(
    "organisations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("created_at_ns", Whole, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("address", String(320)),
    Column("address_key", String(320), unique=True),
    Column("password", String(256)),
    Column("roles", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("disabled_at_ns", Whole),
    Column("erased_at_ns", Whole),
)

organisation_members = Table(
    "organisation_members",
    metadata,
    Column("organisation_id", String(64), ForeignKey("organisations.id"), primary_key=True),
    Column("user_id", String(64), ForeignKey("users.id"), primary_key=True, index=True),
    Column("role", String(20)),
)

project_members = Table(
    "project_members",
    metadata,
    Column("account_id", String(64), ForeignKey("accounts.id"), primary_key=True),
    Column("user_id", String(64), ForeignKey("users.id"), primary_key=True, index=True),
    Column("roles", JSON, nullable=False),
)

invitations = Table(
    "invitations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("organisation_id", String(64), ForeignKey("organisations.id"), nullable=False, index=True),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("address", String(320)),
    Column("role", String(20)),
    Column("projects", JSON, nullable=False),
    Column("made_by", String(128), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False),
    Column("used_at_ns", Whole),
    Column("used_by", String(64)),
    Column("token_id", String(64), index=True),
)

object_shares = Table(
    "object_shares",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("object_kind", String(20), nullable=False),
    Column("object_id", String(64), nullable=False, index=True),
    Column("object_name", String(128), nullable=False),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("receiver_kind", String(20), nullable=False),
    Column("receiver_id", String(64), nullable=False, index=True),
    Column("level", String(20), nullable=False),
    Column("made_by", String(128), nullable=False),
    Column("made_at_ns", Whole, nullable=False),
    Column("until_ns", Whole),
    Column("token_id", String(64), index=True),
)

factors = Table(
    "factors",
    metadata,
    Column("user_id", String(64), ForeignKey("users.id"), primary_key=True),
    Column("sealed", LargeBinary(256), nullable=False),
    Column("confirmed_at_ns", Whole),
    Column("last_step", Whole, nullable=False),
    Column("recovery", JSON, nullable=False),
)

password_links = Table(
    "password_links",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), ForeignKey("users.id"), nullable=False, index=True),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("expires_at_ns", Whole, nullable=False),
    Column("token_id", String(64), index=True),
)

identity_providers = Table(
    "identity_providers",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("client_id", Text, nullable=False),
    Column("sealed", LargeBinary),
    Column("organisation_id", String(64), ForeignKey("organisations.id")),
    Column("domains", JSON, nullable=False),
    Column("creates_users", Boolean, nullable=False),
    Column("is_private", Boolean, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("group_claim", String(128), nullable=False),
    Column("groups", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
)

user_identities = Table(
    "user_identities",
    metadata,
    Column("provider", String(32), ForeignKey("identity_providers.name"), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("user_id", String(64), ForeignKey("users.id"), nullable=False, index=True),
    Column("label", String(320), nullable=False),
    Column("granted", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("last_used_at_ns", Whole),
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
    Column("user_id", String(64), index=True),
    Column("is_sign_in", Boolean, nullable=False, server_default=false()),
    Column("service_id", String(64), index=True),
    Column("last_used_address", String(64)),
)

service_accounts = Table(
    "service_accounts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False),
    Column("name", String(64), nullable=False),
    Column("roles", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("made_by", String(128), nullable=False),
    UniqueConstraint("account_id", "name"),
)

device_codes = Table(
    "device_codes",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("device_sha256", LargeBinary(32), nullable=False, unique=True),
    Column("user_sha256", LargeBinary(32), nullable=False, unique=True),
    Column("name", String(128), nullable=False),
    Column("address", String(64), nullable=False),
    Column("network", String(64), nullable=False, index=True),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, nullable=False, index=True),
    Column("interval_ns", Whole, nullable=False),
    Column("asked_at_ns", Whole),
    Column("state", String(20), nullable=False),
    Column("approved_by", String(64)),
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
    Column("user_id", String(64), index=True),
    Column("address", String(64)),
    Column("proved_at_ns", Whole, nullable=False, server_default="0"),
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
    Column("purchase_id", String(64), index=True),
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
    Column("purchase_id", String(64)),
)
