"""Providers that sell machines: one port, and a file for each."""
