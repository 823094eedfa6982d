"""Keeps what work leaves that has ended by itself."""
