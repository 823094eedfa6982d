"""Carries jobs on with time: steps, places, folders, logs and files."""
