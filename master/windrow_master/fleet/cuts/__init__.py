"""Cutting cards into slices."""
