"""Acceptance tests: the Master rents a host for a short time to see whether it does what it says."""
