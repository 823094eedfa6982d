"""Runs each migration for Alembic: on the connection it was given, inside that one's transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["schema"],
    compare_type=True,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
