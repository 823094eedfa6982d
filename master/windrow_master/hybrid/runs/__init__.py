"""Runs: jobs at services that run code themselves, without a machine of ours."""
