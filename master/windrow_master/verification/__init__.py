"""Verification of claims: challenges that show whether a host has the GPUs that it says it has."""
