"""Alembic's migrations of the Master's schema; run at start by `windrow_master.store.migrate`."""
