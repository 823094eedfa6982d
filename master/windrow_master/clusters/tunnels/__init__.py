"""Tunnels to ports of workloads."""
