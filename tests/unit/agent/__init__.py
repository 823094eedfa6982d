"""The agent's promises, one file per module."""
