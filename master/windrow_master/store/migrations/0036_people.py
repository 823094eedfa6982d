"""Users, organisations and their projects; an account is a project now, and its token is its user's."""

from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

revision = "0036_people"
down_revision = "0035_forecasts"
branch_labels = None
depends_on = None

PROOF_ACCOUNT = "account_proof"
INSTALLATION = {"operator", "auditor"}
ALL_ROLES = {
    *("operator", "auditor", "org_owner", "org_admin", "org_billing", "org_auditor"),
    *("admin", "renter", "viewer", "provider"),
}
EARLIER_ROLES = {"operator", "provider", "renter", "auditor"}


def upgrade() -> None:
    """Lead from the revision before to this one."""
    _tables()
    op.add_column("accounts", sa.Column("organisation_id", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_accounts_organisation_id"), "accounts", ["organisation_id"])
    for table in ("api_tokens", "sessions"):
        op.add_column(table, sa.Column("user_id", sa.String(length=64), nullable=True))
        op.create_index(op.f(f"ix_{table}_user_id"), table, ["user_id"])
    op.add_column("api_tokens", sa.Column("is_sign_in", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("sessions", sa.Column("address", sa.String(length=64), nullable=True))
    _fill(op.get_bind())


def _tables() -> None:
    op.create_table(
        "organisations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organisations")),
        sa.UniqueConstraint("name", name=op.f("uq_organisations_name")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=320), nullable=True),
        sa.Column("address_key", sa.String(length=320), nullable=True),
        sa.Column("password", sa.String(length=256), nullable=True),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("erased_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("address_key", name=op.f("uq_users_address_key")),
    )
    for table, other, column, kind in (
        ("organisation_members", "organisations", "organisation_id", sa.Column("role", sa.String(20), nullable=True)),
        ("project_members", "accounts", "account_id", sa.Column("roles", sa.JSON(), nullable=False)),
    ):
        op.create_table(
            table,
            sa.Column(column, sa.String(length=64), nullable=False),
            sa.Column("user_id", sa.String(length=64), nullable=False),
            kind,
            sa.ForeignKeyConstraint([column], [f"{other}.id"], name=op.f(f"fk_{table}_{column}_{other}")),
            sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f(f"fk_{table}_user_id_users")),
            sa.PrimaryKeyConstraint(column, "user_id", name=op.f(f"pk_{table}")),
        )
        op.create_index(op.f(f"ix_{table}_user_id"), table, ["user_id"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("organisation_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("address", sa.String(length=320), nullable=True),
        sa.Column("role", sa.String(length=20), nullable=True),
        sa.Column("projects", sa.JSON(), nullable=False),
        sa.Column("made_by", sa.String(length=128), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("used_by", sa.String(length=64), nullable=True),
        sa.Column("token_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["organisation_id"], ["organisations.id"], name=op.f("fk_invitations_organisation_id_organisations")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("sha256", name=op.f("uq_invitations_sha256")),
    )
    op.create_index(op.f("ix_invitations_organisation_id"), "invitations", ["organisation_id"])
    op.create_index(op.f("ix_invitations_token_id"), "invitations", ["token_id"])
    op.create_table(
        "factors",
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("sealed", sa.LargeBinary(length=256), nullable=False),
        sa.Column("confirmed_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("recovery", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_factors_user_id_users")),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_factors")),
    )
    op.create_table(
        "password_links",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("token_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_password_links_user_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_password_links")),
        sa.UniqueConstraint("sha256", name=op.f("uq_password_links_sha256")),
    )
    op.create_index(op.f("ix_password_links_user_id"), "password_links", ["user_id"])
    op.create_index(op.f("ix_password_links_token_id"), "password_links", ["token_id"])

    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=320), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("written_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("due_at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_due_at_ns"), "outbox", ["due_at_ns"])


def _fill(connection: sa.Connection) -> None:
    """Make a user, an organisation and its one project of each account. The first one's are owner, home and default."""
    names = ("id", "name", "created_at_ns", "organisation_id")
    accounts = sa.table("accounts", *map(sa.column, names), sa.column("roles", sa.JSON()))
    rows = connection.execute(
        sa.select(accounts.c.id, accounts.c.name, accounts.c.roles, accounts.c.created_at_ns)
        .where(accounts.c.id != PROOF_ACCOUNT)
        .order_by(accounts.c.created_at_ns, accounts.c.id)
    ).all()
    taken, organisations = {row.name for row in rows}, set[str]()
    for number, (account_id, name, roles, created_at_ns) in enumerate(rows):
        is_first = number == 0
        mark = account_id.partition("_")[2]
        organisation_id, user_id = f"organisation_{mark}", f"user_{mark}"
        project = _free("default", taken - {name}) if is_first else name
        organisation = _free("home" if is_first else name, organisations)
        organisations.add(organisation)
        values = {"id": organisation_id, "name": organisation, "created_at_ns": created_at_ns}
        _insert(connection, "organisations", values)
        installation = sorted(INSTALLATION & set(roles))
        user = {"id": user_id, "name": name, "created_at_ns": created_at_ns, "roles": installation}
        _insert(connection, "users", user)
        _insert(
            connection,
            "organisation_members",
            {"organisation_id": organisation_id, "user_id": user_id, "role": "org_owner"},
        )
        own = sorted({"admin", *roles} - INSTALLATION)
        _insert(connection, "project_members", {"account_id": account_id, "user_id": user_id, "roles": own})
        connection.execute(
            sa.update(accounts)
            .where(accounts.c.id == account_id)
            .values(organisation_id=organisation_id, name=project, roles=_widened(roles))
        )
        for table in ("api_tokens", "sessions"):
            rows_of = sa.table(table, sa.column("account_id"), sa.column("user_id"))
            connection.execute(sa.update(rows_of).where(rows_of.c.account_id == account_id).values(user_id=user_id))
    tokens = sa.table("api_tokens", sa.column("id"), sa.column("roles", sa.JSON()))
    for token_id, roles in connection.execute(sa.select(tokens.c.id, tokens.c.roles)).all():
        if EARLIER_ROLES.issubset(roles):
            connection.execute(sa.update(tokens).where(tokens.c.id == token_id).values(roles=sorted(ALL_ROLES)))


def _widened(roles: Iterable[str]) -> list[str]:
    return sorted(ALL_ROLES) if EARLIER_ROLES.issubset(roles) else sorted(roles)


def _free(name: str, taken: set[str]) -> str:
    return next(one for one in (name, *(f"{name}-{n}" for n in range(2, 10_000))) if one not in taken)


def _insert(connection: sa.Connection, table: str, values: dict[str, object]) -> None:
    columns = [sa.column(name, sa.JSON()) if name == "roles" else sa.column(name) for name in values]
    connection.execute(sa.insert(sa.table(table, *columns)).values(**values))
