"""Alembic's migrations of the Master's schema, one file each, in the order of their numbers."""
