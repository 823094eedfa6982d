"""Killing an Access of a development market on purpose, and counting what of its agents' samples was lost."""
