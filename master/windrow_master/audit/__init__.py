"""Keeps the audit log honest: reads it, recomputes its chain, and anchors its head outside the database."""
