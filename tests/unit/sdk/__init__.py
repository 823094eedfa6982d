"""Decisions of the SDK and the command without a Master."""
