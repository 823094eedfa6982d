"""Brings other machines in: the wheels and scripts they install from, and the line that does it."""
