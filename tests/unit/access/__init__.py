"""Decisions of an Access."""
