"""Moves checkpoints between workloads and the store of objects."""
