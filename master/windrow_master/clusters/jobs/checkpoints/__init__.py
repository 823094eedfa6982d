"""Checkpoints of jobs."""
