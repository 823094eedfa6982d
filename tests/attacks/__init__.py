"""Attacks of a renter on the host that runs its container."""
