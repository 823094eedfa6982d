"""Puts volumes in place before work starts, and saves them while it runs and when it has ended."""
