"""Accesses as operators see them: which of them are drained, and by whom."""
