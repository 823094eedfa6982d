"""Tunnels between a renter and a workload: sealed records, TLS, and the pump that moves bytes. Both ends share it."""
